//! JSON-RPC 2.0 as bytes: calls are slices of the body they came in, replies are written into one buffer.
//!
//! No async, no HTTP, no Ethereum. A body is walked once, by a scanner written for this purpose: no JSON tree is
//! built, nothing is copied, and what a general parser cannot give is found on the way: members that occur twice
//! (a limiter must never see another method than the one that is answered), the caller's `id` byte for byte, the
//! bounds of each positional parameter, and nesting that goes too deep. `serde_json` with `RawValue` walks a body
//! once per level, keeps the last of two equal members and costs several times as much; it is the oracle of this
//! crate's tests instead.

mod call; // a body → calls
mod reply; // results and errors → bytes
mod outcome; // a node's body → outcomes
mod scan; // the grammar of JSON, strictly
mod skip; // where a value ends, whatever it is
mod value; // one JSON value, read as what a parameter should be

pub use call::{
    BATCH_CALLS_MAX, BadCall, BodyFault, Call, CallFault, ID_BYTES_MAX, Id, Item, METHOD_BYTES_MAX,
    POSITIONS_MAX, Params, Request, UNKNOWN_MEMBERS_MAX, parse, parse_within,
};
pub use outcome::{Outcome, Outcomes};
pub use reply::{ErrorObject, begin_result, end_result, escape_into, write_error};
pub use scan::DEPTH_MAX;
pub use skip::value_len;
pub use value::{Elements, Kind, Member, Members, Value};
