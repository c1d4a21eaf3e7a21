//! The pages for people who are not signed in: sign-in, sign-up and one-time links.

use askama::Template;

use super::{FormErrors, PageFrame};

/// `GET /sign-in`. The form posts `email`, `password` and `next` to the same path.
#[derive(Template)]
#[template(path = "sign_in.html")]
pub(crate) struct SignInPage {
    pub(crate) frame: PageFrame,
    /// What was typed.
    pub(crate) email: String,
    /// The path to open after the sign-in, or the empty string.
    pub(crate) next: String,
    /// Whether anyone may sign up, so that there is a link to it.
    pub(crate) is_sign_up_open: bool,
    pub(crate) errors: FormErrors,
}

/// `GET /sign-up`. The form posts `email`, `account` and `password` to the same path.
#[derive(Template)]
#[template(path = "sign_up.html")]
pub(crate) struct SignUpPage {
    pub(crate) frame: PageFrame,
    /// Whether anyone may sign up. If not, the page has no form and says how to get an invitation.
    pub(crate) is_open: bool,
    /// What was typed.
    pub(crate) email: String,
    /// What was typed as the name of the new account.
    pub(crate) account: String,
    pub(crate) password_characters_min: usize,
    pub(crate) errors: FormErrors,
}

/// `GET /link/{token}`. The form posts `password`, and `email` and `account` if they can be chosen, to `action`.
///
/// A link that is unknown, used or expired is an [`super::error::ErrorPage::invalid_link`].
#[derive(Template)]
#[template(path = "link.html")]
pub(crate) struct LinkPage {
    pub(crate) frame: PageFrame,
    /// The path of this link, which contains its token.
    pub(crate) action: String,
    pub(crate) purpose: LinkPurpose,
    /// The email that the link is for, or what was typed.
    pub(crate) email: String,
    /// Whether the link is only for this email; otherwise it can be chosen.
    pub(crate) is_email_fixed: bool,
    pub(crate) password_characters_min: usize,
    pub(crate) errors: FormErrors,
}

/// What a one-time link is for.
#[derive(Clone, Debug)]
pub(crate) enum LinkPurpose {
    /// Joins an existing account.
    JoinAccount { account: String },
    /// Creates an account, whose name is chosen in the form; `account` is what was typed.
    NewAccount { account: String, plan: String },
    /// Chooses a new password.
    ResetPassword,
    /// Becomes an operator.
    Operator,
}
