//! Callers: accounts, their keys and their plans, what a key allows, and how much of a limit is used. Knows nothing of
//! HTTP: it is handed the values of headers.

mod plans; // the plans and their defaults
mod allowance; // how much may be used, per second and per day
mod denied; // why a key does not let a request in
mod hashed; // texts known by a keyed hash
mod origins; // which web pages may use a key
mod tokens; // JSON Web Tokens
mod key_settings; // what a key may do beyond its plan
mod static_key; // the keys of the configuration
mod directory; // accounts and their keys

pub use allowance::{Allowance, Spent};
pub use denied::{Denied, RefusingSetting};
pub use directory::{Account, Directory, Key};
pub use key_settings::{Credentials, Settings};
pub use plans::{Plan, Plans};
pub use static_key::{StaticKey, add_demo_key, read_keys};
