//! The pages for people who are not signed in: sign-in, sign-up and one-time links.

use askama::Template;
use callers::people::{InvitationTarget, LinkSummary};

use super::{FormErrors, PageFrame};

/// `GET /sign-in`. The form posts `email`, `password` and `next` to the same path.
#[derive(Template)]
#[template(path = "sign_in.html")]
pub(crate) struct SignInPage {
    pub(crate) frame: PageFrame,
    /// The text that was typed.
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
    /// The text that was typed.
    pub(crate) email: String,
    /// The name that was typed for the new account.
    pub(crate) account: String,
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
    pub(crate) link: LinkSummary,
    /// The email that was typed, if the link is for anybody.
    pub(crate) typed_email: String,
    /// The name that was typed for the new account, if the link creates one.
    pub(crate) typed_account: String,
    pub(crate) errors: FormErrors,
}

impl LinkPage {
    /// The email that the link is for; `None` if it can be chosen.
    fn fixed_email(&self) -> Option<&str> {
        match &self.link {
            LinkSummary::Reset { email } => Some(email),
            LinkSummary::Invitation { email, .. } => email.as_deref(),
            LinkSummary::Operator => None,
        }
    }

    fn email(&self) -> &str {
        self.fixed_email().unwrap_or(&self.typed_email)
    }
}
