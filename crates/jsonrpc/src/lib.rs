//! JSON-RPC 2.0: calls are slices of the request body, replies are written into one buffer.
//!
//! No async, no HTTP, no Ethereum. The scanner walks a body once, builds no tree and copies nothing. It also finds what a
//! general parser does not report: duplicate members (limits must apply to the same method that is answered), the exact bytes
//! of the caller's `id`, the bounds of each positional parameter, and nesting beyond a limit. `serde_json` with `RawValue`
//! walks a body once per level, keeps the last of two equal members and costs several times as much; the tests compare the
//! scanner with it.
//!
//! `gateway` parses the bodies of callers with it, `nodes` the replies of nodes, and `methods` their values:
//!
//! ```
//! let body = br#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}"#;
//! let Ok(jsonrpc::Request::Single(Ok(call))) = jsonrpc::parse(body) else { panic!("one call") };
//! assert_eq!(call.method, "eth_chainId");
//! let mut reply = Vec::new();
//! jsonrpc::begin_result(&mut reply, call.id.unwrap());
//! reply.extend_from_slice(b"\"0x1\"");
//! jsonrpc::end_result(&mut reply);
//! assert_eq!(reply, br#"{"jsonrpc":"2.0","id":1,"result":"0x1"}"#);
//! ```

mod call; // request body → calls
mod reply; // results and errors → bytes
mod response; // response body of a node → responses
mod scan; // strict JSON scanner
mod skip; // length of a value without validation
mod value; // one JSON value

pub use call::{
    BATCH_CALLS_MAX, BodyFault, Call, CallFault, Id, POSITIONS_MAX, Params, Request, RequestItem, parse,
    parse_within,
};
pub use reply::{ERROR_END, RESULT_END, begin_error, begin_result, end_result, error_bytes};
pub use response::{RpcResponse, RpcResponses};
pub use scan::DEPTH_MAX;
pub use skip::value_len;
pub use value::{Member, Value, ValueKind};
