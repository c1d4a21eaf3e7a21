//! The error table: the only place that knows our codes, statuses and messages.
//!
//! Each step has a small error of its own, born beside its cause. Here they become what a caller sees: HTTP status,
//! JSON-RPC code, message and data. Texts that clients compare are kept to the letter.

mod data; // the member `data` of an error
mod revert; // the reason in a revert's data

use std::borrow::Cow;
use std::time::Duration;

use ::http::StatusCode;
use answers::Unresolved;
use bytes::Bytes;
use callers::usage::Outcome;
use callers::{Denied, KeyRestriction, LimitExceeded};
use http_server::{Refused, TooManyUnauthenticated};
use jsonrpc::{BodyFault, CallFault, Id};
use methods::{ParamFault, Tag};
use resources::PoolFailure;
use sources::Failure;

use crate::admit::NotAdmitted;
use crate::parse::Unanswerable;
use crate::policy::OVER_CAPACITY_RETRY_S;
use crate::shape::ReplyRefused;

use self::data::ErrorData;

/// The reply to a call or a request without a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorReply {
    /// The HTTP status of a single call; in a batch, the error is an element of the reply, which has its own status.
    pub status: StatusCode,
    pub code: i32,
    pub message: Cow<'static, str>,
    pub data: Option<ErrorData>,
    pub retry_after_s: Option<u64>,
    /// Whether the reply says in `Accept-Encoding` which codings of a request are read.
    pub names_codings: bool,
    /// How the meter counts it.
    pub outcome: Outcome,
}

impl ErrorReply {
    /// An error of the call itself; the same call gets the same error again.
    fn call(code: i32, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            status: StatusCode::OK,
            code,
            message: message.into(),
            data: None,
            retry_after_s: None,
            names_codings: false,
            outcome: Outcome::Invalid,
        }
    }

    fn http(status: StatusCode, code: i32, message: impl Into<Cow<'static, str>>) -> Self {
        Self { status, outcome: Outcome::Refused, ..Self::call(code, message) }
    }

    /// Writes the reply of a call that ends with this error. Large data is not copied but returned, and has to follow, with
    /// [`jsonrpc::ERROR_END`] behind it.
    pub(crate) fn write(self, out: &mut Vec<u8>, id: Id<'_>) -> Option<Bytes> {
        jsonrpc::begin_error(out, id, self.code, &self.message, self.data.is_some());
        let large = self.data.and_then(|data| data.write(out));
        if large.is_none() {
            out.extend_from_slice(jsonrpc::ERROR_END);
        }
        large
    }

    /// Bytes of the reply, or a few more.
    pub(crate) fn reply_bytes(&self, id_bytes: usize) -> usize {
        jsonrpc::error_bytes(id_bytes, &self.message, self.data.as_ref().map_or(0, ErrorData::json_bytes))
    }

    /// The seconds to wait, if this is the refusal of the rate limit.
    pub(crate) fn rate_limit_wait_s(&self) -> Option<u64> {
        self.retry_after_s.filter(|_| self.status == StatusCode::TOO_MANY_REQUESTS)
    }

    fn counted(self, outcome: Outcome) -> Self {
        Self { outcome, ..self }
    }
}

const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;
const NO_METHOD: i32 = -32601;
const INVALID_PARAMS: i32 = -32602;
const INTERNAL: i32 = -32603;
const EXECUTION: i32 = -32000;
const DENIED: i32 = -32002;
const RESPONSE_TOO_LARGE: i32 = -32003;
const NOT_SUPPORTED: i32 = -32004;
const LIMIT: i32 = -32005;
const VERSION: i32 = -32006;
const REVERTED: i32 = 3;

impl From<Refused> for ErrorReply {
    fn from(refused: Refused) -> Self {
        let (status, message) = match refused {
            Refused::OtherPath => (StatusCode::NOT_FOUND, "not found, calls go to {base_url}/v3/<API_KEY>"),
            Refused::OtherMethod => (StatusCode::METHOD_NOT_ALLOWED, "method not allowed, use POST"),
            Refused::ContentType => (
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "invalid content type, only application/json is supported",
            ),
            Refused::Encoding => {
                (StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported content encoding, use gzip or zstd")
            }
            Refused::BadEncoding => (StatusCode::BAD_REQUEST, "the body does not match its Content-Encoding"),
            Refused::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "content length too large"),
            Refused::Ambiguous => (StatusCode::BAD_REQUEST, "ambiguous framing"),
            Refused::BadHead => (StatusCode::BAD_REQUEST, "the head of the request is not HTTP"),
            Refused::BadHost => (StatusCode::BAD_REQUEST, "HTTP/1.1 needs exactly one valid Host header"),
            Refused::HeadTooLarge => {
                (StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "the head of the request is too large")
            }
            Refused::Broken => (StatusCode::BAD_REQUEST, "the body ended early"),
            Refused::TooSlow => (StatusCode::REQUEST_TIMEOUT, "the body came too slowly"),
            Refused::OverCapacity => return over_capacity(),
            Refused::InternalError => return internal_error(),
        };
        let names_codings = refused == Refused::Encoding;
        Self { names_codings, ..Self::http(status, INVALID_REQUEST, message) }
    }
}

impl From<Denied> for ErrorReply {
    fn from(denied: Denied) -> Self {
        let message = match denied {
            Denied::NoKey => "project id required in the URL",
            Denied::UnknownKey => "invalid project id",
            Denied::WrongSecret => "invalid project id or project secret",
            Denied::BadToken => "invalid JWT",
            Denied::Setting(setting) => return setting.into(),
        };
        Self::http(StatusCode::UNAUTHORIZED, DENIED, message).counted(Outcome::Denied)
    }
}

impl From<KeyRestriction> for ErrorReply {
    fn from(setting: KeyRestriction) -> Self {
        let message = match setting {
            KeyRestriction::Network => "project ID does not have access to this network",
            KeyRestriction::Origin
            | KeyRestriction::Agent
            | KeyRestriction::Address
            | KeyRestriction::Method
            | KeyRestriction::Secret => "rejected due to project ID settings",
        };
        let data = format!(r#"{{"setting":"{}"}}"#, setting.name());
        let error = Self::http(StatusCode::FORBIDDEN, DENIED, message).counted(Outcome::Denied);
        Self { data: Some(data.into()), ..error }
    }
}

impl From<TooManyUnauthenticated> for ErrorReply {
    fn from(TooManyUnauthenticated { wait_ms }: TooManyUnauthenticated) -> Self {
        Self {
            retry_after_s: Some(wait_ms.div_ceil(1_000).max(1)),
            ..Self::http(
                StatusCode::TOO_MANY_REQUESTS,
                LIMIT,
                "too many requests without a valid project id from this address",
            )
        }
    }
}

impl From<BodyFault> for ErrorReply {
    fn from(fault: BodyFault) -> Self {
        let bad = StatusCode::BAD_REQUEST;
        match fault {
            BodyFault::NotJson => Self::http(bad, PARSE_ERROR, "parse error"),
            BodyFault::NotACall => Self::http(bad, INVALID_REQUEST, "invalid request"),
            BodyFault::EmptyBatch => Self::http(bad, INVALID_REQUEST, "empty batch"),
            BodyFault::BatchTooLarge => Self::call(INVALID_REQUEST, "batch too large"),
        }
        .counted(Outcome::Invalid)
    }
}

impl From<CallFault> for ErrorReply {
    fn from(fault: CallFault) -> Self {
        let message = match fault {
            CallFault::NotAnObject => "invalid request",
            CallFault::DuplicateMember => "duplicate member",
            CallFault::BadId => "invalid id, want a number, a string or null, of at most 1024 bytes",
            CallFault::NoVersion => "jsonrpc version missing, want \"2.0\"",
            CallFault::OtherVersion => {
                return Self::call(VERSION, "jsonrpc version not supported, want \"2.0\"");
            }
            CallFault::NoMethod => "method missing or not a string",
            CallFault::MethodTooLong => "method name too long",
            CallFault::TooManyMembers => "too many members",
        };
        Self::call(INVALID_REQUEST, message)
    }
}

impl From<Unanswerable> for ErrorReply {
    fn from(fault: Unanswerable) -> Self {
        match fault {
            Unanswerable::InvalidCall(fault) => fault.into(),
            Unanswerable::NoMethod(name) => {
                let message = format!("the method {name} does not exist/is not available");
                match methods::why_not_available(&name) {
                    // Most clients show the message alone.
                    Some(why) => Self {
                        data: Some(format!(r#"{{"reason":"{why}"}}"#).into()),
                        ..Self::call(NO_METHOD, format!("{message}: {why}"))
                    },
                    None => Self::call(NO_METHOD, message),
                }
            }
            Unanswerable::NotHere(name) => {
                Self::call(NOT_SUPPORTED, format!("method not supported on this network: {name}"))
            }
            Unanswerable::Params(fault) => fault.into(),
            Unanswerable::NotAllowed(setting) => setting.into(),
            Unanswerable::Panicked => internal_error(),
        }
    }
}

impl From<ParamFault> for ErrorReply {
    fn from(fault: ParamFault) -> Self {
        match fault {
            ParamFault::NotArray => Self::call(INVALID_PARAMS, "non-array args"),
            ParamFault::TooMany { max } => {
                Self::call(INVALID_PARAMS, format!("too many arguments, want at most {max}"))
            }
            ParamFault::Missing { position } => {
                Self::call(INVALID_PARAMS, format!("missing value for required argument {position}"))
            }
            ParamFault::Invalid { position, reason } => {
                Self::call(INVALID_PARAMS, format!("invalid argument {position}: {reason}"))
            }
            ParamFault::Text(text) => Self::call(INVALID_PARAMS, text),
            ParamFault::TooManyLogParams { count, max } => {
                Self::call(LIMIT, format!("query contains {count} parameters, the limit is {max}"))
            }
        }
    }
}

impl From<NotAdmitted> for ErrorReply {
    fn from(refused: NotAdmitted) -> Self {
        match refused {
            NotAdmitted::OverCapacity => over_capacity(),
            NotAdmitted::LimitExceeded(LimitExceeded::Day { wait_s }) => {
                let message = "daily request count exceeded, request rate limited";
                Self {
                    retry_after_s: Some(wait_s),
                    ..Self::http(StatusCode::PAYMENT_REQUIRED, LIMIT, message)
                }
            }
            NotAdmitted::LimitExceeded(LimitExceeded::Second { allowed, current, wait_ms }) => {
                let (message, seconds) = ("project ID request rate exceeded", wait_ms.div_ceil(1_000).max(1));
                let data = format!(
                    r#"{{"rate":{{"allowed_rps":{allowed},"backoff_seconds":{seconds},"current_rps":{current}}}}}"#
                );
                Self {
                    data: Some(data.into()),
                    retry_after_s: Some(seconds),
                    ..Self::http(StatusCode::TOO_MANY_REQUESTS, LIMIT, message)
                }
            }
        }
    }
}

/// The error for a fault of ours, which costs nothing.
pub(crate) fn internal_error() -> ErrorReply {
    ErrorReply::call(INTERNAL, "internal error").counted(Outcome::InternalError)
}

impl From<PoolFailure> for ErrorReply {
    fn from(failure: PoolFailure) -> Self {
        match failure {
            PoolFailure::Refused => over_capacity(),
            PoolFailure::Panicked => internal_error(),
        }
    }
}

pub(crate) fn over_capacity() -> ErrorReply {
    ErrorReply {
        retry_after_s: Some(OVER_CAPACITY_RETRY_S),
        ..ErrorReply::http(StatusCode::SERVICE_UNAVAILABLE, LIMIT, "over capacity")
            .counted(Outcome::OverCapacity)
    }
}

impl From<Unresolved> for ErrorReply {
    fn from(error: Unresolved) -> Self {
        match error {
            Unresolved::TagNotSupported { tag, method } => {
                let (tag, instead) = (tag.name(), instead_of(tag));
                Self::call(
                    INVALID_PARAMS,
                    format!("the {tag} tag is not supported for {method}, use {instead}"),
                )
            }
            Unresolved::PendingLogs => Self::call(INVALID_PARAMS, "pending logs are not supported"),
            Unresolved::BadRange => Self::call(INVALID_PARAMS, "invalid block range params"),
            Unresolved::BeyondHead => {
                Self::call(INVALID_PARAMS, "block range extends beyond current head block")
            }
            Unresolved::RangeTooLong { blocks, most } => {
                Self::call(INVALID_PARAMS, format!("range {blocks} exceeds limit of {most}"))
            }
            Unresolved::NoHeader => Self::call(EXECUTION, "header not found"),
            Unresolved::FeesBeyondHead { requested, head } => Self::call(
                EXECUTION,
                format!("request beyond head block: requested {requested}, head {head}"),
            ),
            Unresolved::NotCanonical => Self::call(EXECUTION, "hash is not currently canonical"),
            Unresolved::NoHeaderForHash => Self::call(EXECUTION, "header for hash not found"),
            Unresolved::UnknownLogsBlock => Self::call(EXECUTION, "unknown block"),
            Unresolved::NoBlockForTag(tag) => {
                Self::call(EXECUTION, format!("{} block not found", tag.name()))
            }
            Unresolved::Failed(failure) => failure.into(),
        }
    }
}

/// The tag that a caller can use instead of one that is not supported.
fn instead_of(tag: Tag) -> &'static str {
    match tag {
        Tag::Safe => "finalized",
        Tag::Pending => "latest",
        Tag::Latest | Tag::Earliest | Tag::Finalized => "a block number",
    }
}

/// A time in seconds, or in milliseconds below one second.
fn seconds(time: Duration) -> String {
    let milliseconds = time.as_millis();
    match (milliseconds / 1_000, milliseconds % 1_000) {
        (0, 0) => "0s".to_owned(),
        (0, rest) => format!("{rest}ms"),
        (whole, 0) => format!("{whole}s"),
        (whole, rest) => format!("{whole}.{}s", format!("{rest:03}").trim_end_matches('0')),
    }
}

impl From<Failure> for ErrorReply {
    fn from(failure: Failure) -> Self {
        let unavailable = || Self::call(DENIED, "resource unavailable").counted(Outcome::Unavailable);
        match failure {
            Failure::Reverted { data } => Self {
                message: revert::message(&data),
                data: Some(ErrorData::Revert(data)),
                ..Self::call(REVERTED, "").counted(Outcome::Reverted)
            },
            Failure::Execution(text) => Self::call(EXECUTION, text).counted(Outcome::Reverted),
            Failure::Refused(text) => Self::call(EXECUTION, text),
            Failure::TooManyResults { from, to, most } => Self {
                data: Some(format!(r#"{{"from":"{from:#x}","to":"{to:#x}","limit":{most}}}"#).into()),
                ..Self::call(LIMIT, format!("query returned more than {most} results"))
            },
            Failure::QueryTimeout => Self::call(LIMIT, "query timeout exceeded"),
            Failure::NotIndexed { from, to } => Self {
                data: Some(format!(
                    r#"{{"from":"{from:#x}","to":"{to:#x}","reason":"the headers of these blocks are not fetched yet; repeat the query to go on, or ask for a smaller range"}}"#
                ).into()),
                ..Self::call(LIMIT, "query timeout exceeded")
            },
            Failure::CallTimeout(time) => {
                Self::call(EXECUTION, format!("execution aborted (timeout = {})", seconds(time)))
            }
            Failure::Unavailable | Failure::Lacking => unavailable(),
            Failure::NotServed { reason } => {
                Self { data: Some(format!(r#"{{"reason":"{reason}"}}"#).into()), ..unavailable() }
            }
            Failure::AbsenceUnknown => Self {
                data: Some(
                    r#"{"reason":"the nodes that answered may lack old data, and another node did not answer in time"}"#
                        .to_owned()
                        .into(),
                ),
                ..unavailable()
            },
            Failure::CannotBeProven { transaction_type } => Self::call(
                DENIED,
                format!("block data cannot be proven: unknown transaction type {transaction_type:#x}"),
            )
            .counted(Outcome::Unavailable),
            Failure::OddHeader => Self::call(
                DENIED,
                "block data cannot be proven: its header has members of a later fork without those of an earlier one",
            )
            .counted(Outcome::Unavailable),
            Failure::StateNotProven => Self::call(DENIED, "state cannot be proven: no node gives proofs")
                .counted(Outcome::Unavailable),
            Failure::SideStateGone => Unresolved::NoHeaderForHash.into(),
            Failure::OverCapacity => over_capacity(),
            Failure::Broken(_) => internal_error(),
        }
    }
}

impl From<ReplyRefused> for ErrorReply {
    fn from(refused: ReplyRefused) -> Self {
        match refused {
            ReplyRefused::TooLarge => Self::call(RESPONSE_TOO_LARGE, "response too large"),
            ReplyRefused::OverCapacity => over_capacity(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A limit of 300 ms was reported as "timeout = 0s".
    #[test]
    fn a_timeout_below_a_second_is_not_reported_as_zero() {
        for (milliseconds, text) in [(300, "300ms"), (5_000, "5s"), (1_500, "1.5s"), (60_050, "60.05s")] {
            let error = ErrorReply::from(Failure::CallTimeout(Duration::from_millis(milliseconds)));
            assert_eq!(error.message, format!("execution aborted (timeout = {text})"));
        }
    }

    /// A network that refused `finalized` advised to use `finalized`.
    #[test]
    fn the_advice_for_an_unsupported_tag_is_never_that_tag() {
        for tag in Tag::ALL {
            let error = ErrorReply::from(Unresolved::TagNotSupported { tag, method: "eth_call" });
            let (_, advice) = error.message.rsplit_once(", use ").unwrap_or_default();
            assert!(!advice.is_empty() && advice != tag.name(), "{}", error.message);
        }
    }
}
