//! The admin API: accounts, keys and the audit log over HTTP, on the operator's listener. Its rules are in
//! `callers::administration`; this crate translates them from and to JSON, and decides who may use them.

mod admin_token; // the token of the admin API
mod address_file; // where the admin API of a running gateway is
mod api_error; // errors as JSON
mod guard; // who may use the API, and how often
mod documents; // bodies of requests and replies
mod json_body; // reads bodies
mod routes; // one function per operation
mod router; // paths, and the OpenAPI document
mod admin_api; // the service for the operator's listener

pub use address_file::AdminAddressFile;
pub use admin_api::AdminApi;
pub use admin_token::{AdminToken, AdminTokenError};
pub use api_error::{ErrorDetails, ErrorDocument};
pub use documents::{
    AccountDocument, AccountListDocument, AuditDocument, AuditListDocument, KeyDocument, KeyListDocument,
    KeySettingsDocument, NewKeyDocument,
};
pub use guard::ACTOR_HEADER;
pub use router::AdminRouter;
