//! The console: web pages for developers and operators, on a listener of its own.
//!
//! `listener` accepts connections; `dispatch` checks where a request comes from, who sends it and whether the form is ours;
//! `routes` names the handler of each path and who may use it. Handlers fill the structs of `pages`.

mod console_settings; // [console]
mod assets; // embedded files
mod own_path; // paths of this site
mod form_fields; // queries and forms
mod cookies; // cookies of the console
mod user_limits; // requests, changes and downloads of one user
mod page_error; // requests that failed
mod site; // state that all requests share
mod web_request; // one request
mod operator_session; // the session of an operator
mod account_scope; // whose keys and usage a page is about
mod list_position; // positions in lists
mod reply; // replies and their headers
mod usage_sums; // usage as the pages show it
mod traffic_history; // the traffic of the last minutes
mod notices; // messages about the last action
mod handlers; // one function per route
mod routes; // all paths, and who may use them
mod dispatch; // from a request to its handler
mod listener; // sockets

pub use console_settings::{ConsoleAddress, ConsoleSettings, InvalidConsoleAddress, SignUpMode};
pub use listener::ConsoleServer;
pub use routes::{Access, ROUTES, WebRoute};
pub use site::{ClientAddress, ConsoleSite, LiveSource, SiteFacts};
