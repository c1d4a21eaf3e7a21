//! Accounts, keys, plans, restrictions of keys, and credit limits. This crate does not know HTTP: it gets the values of
//! headers as arguments.
//!
//! `gateway` finds the caller of a request here and takes its credits; `console` and the commands change accounts and keys:
//!
//! ```no_run
//! let plans = callers::Plans::default();
//! let developer = plans.named("developer").unwrap();
//! println!("{:?} credits per second", developer.credits_per_second);
//! ```

mod policy; // times and limits of this crate
mod plans; // plans and their defaults
mod instance_id; // the id of the process
mod demand; // credits that callers ask for
mod limit_share; // the part of a limit that belongs to this instance
mod limit_state; // the rest of one limit
mod shared_limits; // limits per second over many instances, divided by Redis
mod credit_limits; // credits per second and per day
mod denied; // why a request was rejected
mod hashed_secret; // secrets stored as keyed hashes
mod origins; // web origins that may use a key
mod token_verifier; // JSON Web Tokens
mod key_settings; // restrictions of one key
mod key_fields; // one row per setting of a key
mod key_rules; // the same as plain data
mod stored_settings; // the settings of stored keys
mod configured_key; // a key of the configuration file, or its hash
mod static_key; // keys of the configuration file
mod account; // accounts and their limits
mod api_key; // keys that callers use
mod stored_keys; // the keys of the store in memory
mod local_revocations; // keys that were revoked on this gateway alone
mod feed_status; // where accounts and keys come from
mod directory; // all valid keys
mod feed; // follows the store
pub mod administration; // changes of accounts and keys
pub mod people; // users of the console and their sessions
pub mod usage; // usage of callers
mod partner_calls; // calls to partners, which cost money

pub use account::Account;
pub use api_key::{API_KEY_BYTES_MAX, ApiKey, KeyId};
pub use configured_key::ConfiguredKey;
pub use denied::{Denied, KeyRestriction};
pub use directory::Directory;
pub use feed::{CallersFeed, ChangeEffect, FeedConfig, FeedHandle};
pub use feed_status::{FeedFacts, FeedStatus, KeysOrigin};
pub use instance_id::InstanceId;
pub use key_fields::{KEY_FIELDS, KeyField, KeyFieldKind, KeyFieldSection};
pub use key_rules::KeyRules;
pub use key_settings::KeySettings;
pub use limit_state::{BATCH_CREDITS, LimitExceeded};
pub use local_revocations::{LOCAL_REVOCATIONS_FILE, LocalRevocation, LocalRevocations};
pub use partner_calls::PartnerCalls;
pub use plans::{CurrentPlans, Plans};
pub use shared_limits::{LimitSharing, RedisUrl, SharedLimits, SharedLimitsStatus};
pub use static_key::{StaticKey, add_demo_key, read_keys};
pub use stored_settings::KeyPatch;
