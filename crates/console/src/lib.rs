//! The console, web pages for developers and operators on a listener of its own, and the admin API on the operator's
//! listener. Their rules are in `callers::administration` and `callers::people`; this crate translates them from and to HTML
//! and JSON, and decides who may use them.
//!
//! `chaingate` starts it beside a gateway. Every path is a row of [`ROUTES`], with who may use it:
//!
//! ```no_run
//! for route in console::ROUTES.iter().filter(|route| route.access() == console::Access::Anyone) {
//!     println!("{} {}", route.method, route.path);
//! }
//! ```

mod admin_token; // the token of the admin API
mod address_file; // addresses of the admin API and the console of a running gateway
mod api_error; // errors as JSON
mod guard; // access to the API, and its rate limit
mod documents; // bodies of requests and replies
mod json_body; // reads bodies
mod path_value; // reads paths
mod routes; // one function per operation
mod router; // paths, and the OpenAPI document
mod admin_api; // the service for the operator's listener
mod pages; // the pages of the console: plain data in, HTML out
mod web; // the console

pub use address_file::{AddressFile, AnnouncedListener, reachable_address};
pub use admin_api::AdminApi;
pub use admin_token::{AdminToken, AdminTokenError};
pub use api_error::{ErrorDetails, ErrorDocument};
pub use documents::{
    AccountDocument, AccountListDocument, AuditDocument, AuditListDocument, KeyDocument, KeyListDocument,
    KeySettingsDocument, LocalRevocationDocument, NewKeyDocument, ReloadReport,
};
pub use guard::ACTOR_HEADER;
pub use pages::configuration::{
    ConfigurationRow, ConfigurationSection, ConfigurationSource, ConfigurationValue,
};
pub use pages::try_it::{MethodForm, ParamForm, ParamInput};
pub use router::AdminRouter;
pub use routes::reload::ReloadConfiguration;
pub use web::{
    Access, ClientAddress, ConsoleAddress, ConsoleServer, ConsoleSettings, ConsoleSite,
    InvalidConsoleAddress, LiveSource, ROUTES, SignUpMode, SiteFacts, WebRoute,
};
