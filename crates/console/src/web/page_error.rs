//! Why a request failed, as far as the page about it says.

use axum::response::Response;
use callers::administration::AdministrationError;
use callers::people::PeopleError;
use http::StatusCode;
use resources::counted;

use crate::pages::FormErrors;

/// After how many seconds a sign-in is worth another attempt while too many people sign in.
const BUSY_S: u64 = 3;

/// After how many seconds a page is worth another attempt while the same user has too many requests.
pub(super) const RETRY_S: u64 = 1;

/// The reply of a handler, or why there is none.
pub(super) type PageResult = Result<Response, PageError>;

/// A request that failed.
#[derive(Debug)]
pub(super) enum PageError {
    /// The page of an HTTP status.
    Status(u16),
    /// The user, or somebody with the same address, has asked too often.
    TooManyRequests { wait_s: u64 },
    /// A value of the request is not valid: which, and what to do.
    InvalidValue(String),
    /// The link was used, has expired or never existed.
    InvalidLink,
    /// The browser has to go elsewhere, to a path of this site.
    Redirect(String),
    /// The console is at fault, or the store of accounts and keys; the reason is logged.
    Failed { status: u16, reason: String },
}

impl PageError {
    /// A page could not be made.
    pub(super) fn broken(reason: impl ToString) -> Self {
        Self::Failed { status: 500, reason: reason.to_string() }
    }
}

impl From<AdministrationError> for PageError {
    fn from(error: AdministrationError) -> Self {
        match error {
            AdministrationError::NotFound { .. } => Self::Status(404),
            AdministrationError::StoreUnavailable(reason) => Self::Failed { status: 503, reason },
            AdministrationError::StoreTimedOut(reason) => Self::Failed { status: 504, reason },
            AdministrationError::NotSaved(_) => Self::broken(error),
            AdministrationError::Invalid { .. } => Self::InvalidValue(error.to_string()),
            AdministrationError::AlreadyExists { .. } | AdministrationError::TooManyKeys { .. } => {
                Self::Status(400)
            }
        }
    }
}

impl From<PeopleError> for PageError {
    fn from(error: PeopleError) -> Self {
        match error {
            PeopleError::Change(error) => error.into(),
            PeopleError::InvalidLink => Self::InvalidLink,
            PeopleError::SessionEnded => Self::Redirect("/sign-in".to_owned()),
            PeopleError::TooManyAttempts { wait_s } => Self::TooManyRequests { wait_s },
            PeopleError::Busy => Self::Status(503),
            PeopleError::WrongCredentials | PeopleError::InvitationNeeded => Self::Status(403),
        }
    }
}

impl From<askama::Error> for PageError {
    fn from(error: askama::Error) -> Self {
        Self::broken(error)
    }
}

/// The status of a page that says why a request was refused, and after how many seconds it can be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) retry_after_s: Option<u64>,
}

impl Refusal {
    /// The form has to be corrected.
    pub(super) const INVALID: Self = Self { status: StatusCode::UNPROCESSABLE_ENTITY, retry_after_s: None };

    pub(super) fn of(error: &PeopleError) -> Self {
        match error {
            PeopleError::TooManyAttempts { wait_s } => {
                Self { status: StatusCode::TOO_MANY_REQUESTS, retry_after_s: Some(*wait_s) }
            }
            PeopleError::Busy => {
                Self { status: StatusCode::SERVICE_UNAVAILABLE, retry_after_s: Some(BUSY_S) }
            }
            _ => Self::INVALID,
        }
    }
}

/// The errors that a person can correct in a form; everything else is an error of the request.
pub(super) fn form_errors(error: AdministrationError) -> Result<FormErrors, PageError> {
    match error {
        AdministrationError::Invalid { field, message } => Ok(FormErrors::field(field, message)),
        AdministrationError::AlreadyExists { what, .. } => {
            let field = if what == "user" { "email" } else { "name" };
            Ok(FormErrors::field(field, format!("this {what} exists already; choose another {field}")))
        }
        AdministrationError::TooManyKeys { plan, max } => {
            let keys = counted(max, "active key");
            Ok(FormErrors::general(format!(
                "The plan {plan} allows {keys}. Revoke keys first; only an operator can choose another plan."
            )))
        }
        other @ (AdministrationError::NotFound { .. }
        | AdministrationError::StoreUnavailable(_)
        | AdministrationError::StoreTimedOut(_)
        | AdministrationError::NotSaved(_)) => Err(other.into()),
    }
}

/// The errors of forms about people. Fields of accounts are called `account` in these forms.
pub(super) fn people_form_errors(error: PeopleError) -> Result<FormErrors, PageError> {
    Ok(match error {
        PeopleError::WrongCredentials => FormErrors::general("Email or password is wrong."),
        PeopleError::TooManyAttempts { wait_s } => {
            FormErrors::general(format!("Too many attempts. Try again in {}.", counted(wait_s, "second")))
        }
        PeopleError::Busy => {
            FormErrors::general("Too many people are signing in. Try again in a few seconds.")
        }
        PeopleError::InvitationNeeded => {
            FormErrors::general("New people need an invitation. Ask the operator for one.")
        }
        other @ (PeopleError::InvalidLink | PeopleError::SessionEnded) => return Err(other.into()),
        PeopleError::Change(error) => form_errors(error)?.renamed("name", "account"),
    })
}
