//! Pages for everything that did not work, each with what to do.

use askama::Template;

use super::PageFrame;

#[derive(Template)]
#[template(path = "error.html")]
pub(crate) struct ErrorPage {
    pub(crate) frame: PageFrame,
    pub(crate) status: u16,
    pub(crate) heading: String,
    /// The event and its remedy.
    pub(crate) message: String,
    /// The link at the end: label and path.
    pub(crate) way_out: (String, String),
}

const NOT_VALID: &str = "This request is not valid";

impl ErrorPage {
    /// The page of an HTTP status: 400, 403, 404, 405, 413, 429, 500, 503 or 504. Other statuses are described like 500.
    pub(crate) fn of_status(frame: PageFrame, status: u16) -> Self {
        let (heading, message) = match status {
            400 => (NOT_VALID, "Go back, reload the page and try again."),
            403 => (
                "Not allowed",
                "Your user may not open this page, or the form was too old. Reload the page and send the form again. If you need \
                 access, ask the operator.",
            ),
            404 => ("Page not found", "There is nothing at this address, or it belongs to another account."),
            405 => ("Not possible at this address", "Go back and use the form of the page."),
            504 => (
                "The database is too slow",
                "It can be reached, but has not answered in time. Choose a shorter time. If that does not help, ask the operator \
                 what else the database is doing.",
            ),
            413 => (
                "Too much data",
                "The form is larger than the console accepts. Shorten the lists and try again.",
            ),
            429 => (
                "Too many requests",
                "You made many attempts or changes in a short time, many of your pages are still loading, or a download of yours \
                 is still running. Wait a minute, and then try again.",
            ),
            503 => (
                "The console cannot answer now",
                "It cannot reach its database, or too many people use it. Calls with existing keys are still answered. Try again in a \
                 minute. If it stays like this, the operator finds the reason in the log of the gateway.",
            ),
            _ => (
                "Something went wrong",
                "This is a fault of the console, not yours. Try again. The operator finds the reason in the log of the gateway.",
            ),
        };
        let way_out = match &frame.user {
            Some(_) => ("Back to the start page", "/"),
            None => ("Sign in", "/sign-in"),
        };
        Self::new(frame, status, heading, message, way_out)
    }

    /// A request with a value that is not valid; `message` says which, and what to do.
    pub(crate) fn invalid_value(frame: PageFrame, message: &str) -> Self {
        Self::new(frame, 400, NOT_VALID, message, ("Back to the start page", "/"))
    }

    /// A one-time link that is unknown, used or expired.
    pub(crate) fn invalid_link(frame: PageFrame) -> Self {
        let message = "Each link works once and for a limited time. Ask the operator for a new one, or sign in if you have used it \
                       already.";
        Self::new(frame, 404, "This link does not work any more", message, ("Sign in", "/sign-in"))
    }

    fn new(frame: PageFrame, status: u16, heading: &str, message: &str, way_out: (&str, &str)) -> Self {
        let way_out = (way_out.0.to_owned(), way_out.1.to_owned());
        Self { frame, status, heading: heading.to_owned(), message: message.to_owned(), way_out }
    }
}
