//! Why a request failed, as far as the page about it says.

use callers::administration::AdministrationError;
use callers::people::PeopleError;
use http::StatusCode;
use resources::counted;

use crate::pages::{FieldError, FormErrors};

/// After how many seconds a sign-in is worth another attempt while too many people sign in.
const BUSY_S: u64 = 3;

/// After how many seconds a page is worth another attempt while the same user has too many requests.
pub(super) const RETRY_S: u64 = 1;

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
    /// The store of accounts and keys cannot be used.
    StoreUnavailable(String),
    /// The store can be reached, but has not answered in time.
    StoreTimedOut(String),
    /// A page could not be made.
    Broken(String),
}

impl From<AdministrationError> for PageError {
    fn from(error: AdministrationError) -> Self {
        match error {
            AdministrationError::NotFound { .. } => Self::Status(404),
            AdministrationError::StoreUnavailable(reason) => Self::StoreUnavailable(reason),
            AdministrationError::StoreTimedOut(reason) => Self::StoreTimedOut(reason),
            AdministrationError::NotSaved(_) => Self::Broken(error.to_string()),
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
        Self::Broken(error.to_string())
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

/// What a person can correct in a form; everything else is an error of the request.
pub(super) fn form_errors(error: AdministrationError) -> Result<FormErrors, PageError> {
    let general = |text: String| FormErrors { general: Some(text), fields: Vec::new() };
    match error {
        AdministrationError::Invalid { field, message } => {
            let error = FieldError { field: field.to_owned(), message };
            Ok(FormErrors { general: None, fields: vec![error] })
        }
        AdministrationError::AlreadyExists { what, .. } => {
            let field = if what == "user" { "email" } else { "name" };
            let message = format!("this {what} exists already; choose another {field}");
            Ok(FormErrors { general: None, fields: vec![FieldError { field: field.to_owned(), message }] })
        }
        AdministrationError::TooManyKeys { plan, max } => {
            let keys = counted(max, "active key");
            Ok(general(format!(
                "The plan {plan} allows {keys}. Revoke keys first; only an operator can choose another plan."
            )))
        }
        other @ (AdministrationError::NotFound { .. }
        | AdministrationError::StoreUnavailable(_)
        | AdministrationError::StoreTimedOut(_)
        | AdministrationError::NotSaved(_)) => Err(other.into()),
    }
}

/// The same for people. Fields of accounts are called `account` in these forms.
pub(super) fn people_form_errors(error: PeopleError) -> Result<FormErrors, PageError> {
    let general = |text: &str| Ok(FormErrors { general: Some(text.to_owned()), fields: Vec::new() });
    match error {
        PeopleError::WrongCredentials => general("Email or password is wrong."),
        PeopleError::TooManyAttempts { wait_s } => {
            general(&format!("Too many attempts. Try again in {}.", counted(wait_s, "second")))
        }
        PeopleError::Busy => general("Too many people are signing in. Try again in a few seconds."),
        PeopleError::InvitationNeeded => general("New people need an invitation. Ask the operator for one."),
        other @ (PeopleError::InvalidLink | PeopleError::SessionEnded) => Err(other.into()),
        PeopleError::Change(error) => {
            let mut errors = form_errors(error)?;
            for error in errors.fields.iter_mut().filter(|error| error.field == "name") {
                error.field = "account".to_owned();
            }
            Ok(errors)
        }
    }
}
