//! One function per route. Handlers for developers reach keys and usage only through the account of the session.

pub(super) mod files; // embedded files
pub(super) mod entry; // sign-in, sign-up and links
pub(super) mod key_rows; // keys with what they did today
pub(super) mod overview; // the first page
pub(super) mod key_form; // the settings of a key ↔ its form
pub(super) mod keys; // keys of the account
pub(super) mod usage; // usage of the account
pub(super) mod try_it; // a form for each method
pub(super) mod user; // password and sessions
pub(super) mod live; // the live view
pub(super) mod accounts; // all accounts
pub(super) mod audit; // the audit log
pub(super) mod configuration; // the configuration in effect
