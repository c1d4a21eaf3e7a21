//! `errors.md`: every error reply. The rows are made by the same conversion as the replies.

use std::fmt::Write as _;
use std::time::Duration;

use alloy_primitives::Bytes;
use answers::Unresolved;
use archive::StopReason;
use callers::{Denied, KeyRestriction, LimitExceeded};
use gateway::{ErrorReply, NotAdmitted, ReplyRefused, Unanswerable};
use http_server::{Refused, TooManyUnauthenticated};
use jsonrpc::{BodyFault, CallFault};
use methods::{ParamFault, Tag};
use sources::{CALL_MEMORY_BYTES_MAX, Failure};

use crate::GENERATED;

pub(crate) fn document() -> String {
    let mut text = format!(
        "# Errors\n\n{GENERATED}\n\n\
         An error is a JSON-RPC 2.0 reply:\n\n\
         ```json\n{{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{{\"code\":-32602,\"message\":\"missing value for required argument 0\"}}}}\n```\n\n\
         * The HTTP status in the tables is that of a single call, or of a request as a whole.\n\
         * In a batch, each call has its own error, and the status is 200. If the rate limit refused every call, it is 429 with `Retry-After`.\n\
         * Replies have the header `Chaingate-Request-Id`. The log has this id for internal errors, and at the level debug for every request.\n\
         * Numbers and names in the messages are examples.\n\
         * [When to try again](wire.md#when-to-try-again) lists the errors after which a retry can help.\n"
    );
    let sections = [
        ("Keys", "the request is refused because", keys()),
        ("Rates and capacity", "the request is refused because", rates()),
        ("HTTP", "the HTTP request", http_requests()),
        ("Body", "the body", bodies()),
        ("Call", "the call", calls()),
        ("Block", "the call asks for", blocks()),
        ("Answer", "when", answers()),
    ];
    for (title, when, rows) in sections {
        let _ = write!(
            text,
            "\n## {title}\n\n| {when} | status | code | message | more |\n|---|---|---|---|---|\n"
        );
        for (when, error) in rows {
            row(&mut text, when, &error);
        }
    }
    text
}

type ErrorExample = (&'static str, ErrorReply);

fn row(text: &mut String, when: &str, error: &ErrorReply) {
    let mut more = Vec::new();
    if let Some(data) = &error.data {
        more.push(format!("`data`: `{data}`"));
    }
    if error.retry_after_s.is_some() {
        more.push("`Retry-After`".to_owned());
    }
    let (status, code, message) = (error.status.as_u16(), error.code, &error.message);
    let _ = writeln!(text, "| {when} | {status} | {code} | `{message}` | {} |", more.join(", "));
}

fn keys() -> Vec<ErrorExample> {
    vec![
        ("the path has no key", Denied::NoKey.into()),
        ("the key is unknown or malformed", Denied::UnknownKey.into()),
        ("the secret is wrong", Denied::WrongSecret.into()),
        ("the required secret is missing", KeyRestriction::Secret.into()),
        ("the token is wrong or expired, or the required token is missing", Denied::BadToken.into()),
        ("the key's `networks` do not include this network", KeyRestriction::Network.into()),
        ("the key's `origins` do not include the web page", KeyRestriction::Origin.into()),
        ("the key's `user_agents` do not include the client", KeyRestriction::Agent.into()),
        ("the key's `addresses` do not include a contract of the call", KeyRestriction::Address.into()),
        ("the key's `methods` do not include the method", KeyRestriction::Method.into()),
    ]
}

fn rates() -> Vec<ErrorExample> {
    let second = LimitExceeded::Second { allowed: 500, current: 560, wait_ms: 120 };
    vec![
        (
            "the credits per second of the plan or the key are used up",
            NotAdmitted::LimitExceeded(second).into(),
        ),
        (
            "the credits of the day of the plan or the key are used up",
            NotAdmitted::LimitExceeded(LimitExceeded::Day { wait_s: 1 }).into(),
        ),
        (
            "one address sent more requests without a valid key than `unauthenticated_per_second_max`",
            TooManyUnauthenticated { wait_ms: 1 }.into(),
        ),
        (
            "there are too many connections, calls in progress or bytes in memory",
            NotAdmitted::OverCapacity.into(),
        ),
    ]
}

fn http_requests() -> Vec<ErrorExample> {
    vec![
        ("has an unknown path or version", Refused::OtherPath.into()),
        ("has an HTTP method other than those in `Allow`", Refused::OtherMethod.into()),
        ("has another content type", Refused::ContentType.into()),
        ("has another content encoding", Refused::Encoding.into()),
        ("has a body that does not match its content encoding", Refused::BadEncoding.into()),
        ("has a body of more than `body_bytes_max`", Refused::TooLarge.into()),
        ("could be framed in two ways (request smuggling)", Refused::Ambiguous.into()),
        ("has a head that is not HTTP", Refused::BadHead.into()),
        ("has no `Host` header, more than one, or an invalid one", Refused::BadHost.into()),
        (
            "has a head of more than 16 KiB (over HTTP/2, without a body) or more than 100 headers",
            Refused::HeadTooLarge.into(),
        ),
        ("has a body that ended early", Refused::Broken.into()),
        (
            "has a body that took longer than `body_timeout_ms` (over HTTP/1, the 408 has no body)",
            Refused::TooSlow.into(),
        ),
    ]
}

fn bodies() -> Vec<ErrorExample> {
    vec![
        ("is not JSON", BodyFault::NotJson.into()),
        ("is JSON, but neither an object nor an array", BodyFault::NotACall.into()),
        ("is an empty batch", BodyFault::EmptyBatch.into()),
        ("is a batch of more than `batch_calls_max` calls", BodyFault::BatchTooLarge.into()),
    ]
}

fn calls() -> Vec<ErrorExample> {
    let bad = |fault| Unanswerable::InvalidCall(fault).into();
    let params = |fault| Unanswerable::Params(fault).into();
    vec![
        ("is an element of a batch, but not an object", bad(CallFault::NotAnObject)),
        ("has the same member twice", bad(CallFault::DuplicateMember)),
        ("has an `id` of another type, or one that is too long", bad(CallFault::BadId)),
        ("has no `jsonrpc`", bad(CallFault::NoVersion)),
        ("has another version in `jsonrpc`", bad(CallFault::OtherVersion)),
        ("has no `method`, or one that is not a string", bad(CallFault::NoMethod)),
        ("has a method name of more than 128 bytes", bad(CallFault::MethodTooLong)),
        ("has more than 32 members that JSON-RPC does not define", bad(CallFault::TooManyMembers)),
        ("names an unknown method", Unanswerable::NoMethod("eth_nonsense".to_owned()).into()),
        (
            "names a method that changes state, or that only other services have",
            Unanswerable::NoMethod("eth_sendRawTransaction".to_owned()).into(),
        ),
        ("names a method of other networks", Unanswerable::NotHere("zks_getRawBlockTransactions").into()),
        ("has named parameters", params(ParamFault::NotArray)),
        ("has too many parameters", params(ParamFault::TooMany { max: 3 })),
        ("lacks a parameter (counted from 0)", params(ParamFault::Missing { position: 1 })),
        (
            "has an invalid parameter",
            params(ParamFault::Invalid { position: 1, reason: "hex string without 0x prefix".into() }),
        ),
        (
            "has an invalid field in a filter or an object",
            params(ParamFault::Invalid {
                position: 0,
                reason: "fromBlock: hex string without 0x prefix".into(),
            }),
        ),
        (
            "has more addresses and topics in a filter than `log_params_max`",
            params(ParamFault::TooManyLogParams { count: 5_001, max: 5_000 }),
        ),
    ]
}

fn blocks() -> Vec<ErrorExample> {
    let method = "eth_getStorageAt";
    vec![
        (
            "a tag in `[network] unsupported_tags`",
            Unresolved::TagNotSupported { tag: Tag::Safe, method }.into(),
        ),
        ("state at a block number that does not exist", Unresolved::NoHeader.into()),
        ("state at a block hash that does not exist", Unresolved::NoHeaderForHash.into()),
        (
            "state at a block that was reorganised away, with `requireCanonical`",
            Unresolved::NotCanonical.into(),
        ),
        (
            "`finalized` or `safe` before the nodes have named such a block",
            Unresolved::NoBlockForTag(Tag::Finalized).into(),
        ),
        ("logs of `pending`", Unresolved::PendingLogs.into()),
        ("logs of a block hash that does not exist", Unresolved::UnknownLogsBlock.into()),
        ("logs of a range that ends before it begins", Unresolved::BadRange.into()),
        ("logs of a range that ends after the newest block", Unresolved::BeyondHead.into()),
        (
            "logs of more blocks than `log_blocks_max`",
            Unresolved::RangeTooLong { blocks: 2_001, most: 2_000 }.into(),
        ),
    ]
}

fn answers() -> Vec<ErrorExample> {
    let failures = [
        Failure::Reverted { data: Bytes::new() },
        Failure::Execution("out of gas".to_owned()),
        Failure::Refused("nonce too high".to_owned()),
        Failure::TooManyResults { from: 0xb4, to: 0xe5, most: 10_000 },
        Failure::QueryTimeout,
        Failure::NotIndexed { from: 4_096, to: 65_535 },
        Failure::CallTimeout(Duration::from_secs(5)),
        Failure::Unavailable,
        Failure::NotServed {
            reason: "2 of 3 nodes: does not have the method eth_getProof; 1 of 3 nodes: does not answer"
                .to_owned(),
        },
        Failure::AbsenceUnknown,
        Failure::Lacking,
        Failure::CannotBeProven { transaction_type: 0x7e },
        Failure::OddHeader,
        Failure::StateNotProven,
        Failure::SideStateGone,
        Failure::OverCapacity,
        Failure::Broken(String::new()),
    ];
    let rows = failures.into_iter().filter_map(|failure| Some((when(&failure)?, failure.into())));
    let stopped = |reason: StopReason| Failure::Execution(reason.to_string()).into();
    rows.chain([
        (
            "a call needs more than 64 MiB of EVM memory",
            stopped(StopReason::Memory { bytes_max: CALL_MEMORY_BYTES_MAX }),
        ),
        (
            "one precompiled contract would run for longer than 3 seconds",
            stopped(StopReason::Precompile { timeout: Duration::from_secs(3) }),
        ),
        ("the result does not fit into the reply of its batch", ReplyRefused::TooLarge.into()),
    ])
    .collect()
}

/// When an answer fails like this. `None` if the same error is in another row.
fn when(failure: &Failure) -> Option<&'static str> {
    match failure {
        Failure::Reverted { .. } => {
            Some("the contract reverts; the message ends with the reason, if there is one")
        }
        Failure::Execution(_) => Some("the EVM stops for another reason"),
        Failure::Refused(_) => Some("the message cannot be executed on this chain"),
        Failure::TooManyResults { .. } => Some(
            "there are more logs than `log_results_max`; `data` is the longest range from the same start that fits",
        ),
        Failure::QueryTimeout => Some(
            "a log query takes longer than `log_timeout_ms`, or on an embedded chain blocks, receipts or fees longer than `call_timeout_ms`",
        ),
        Failure::NotIndexed { .. } => {
            Some("the same, while the headers of old blocks are being fetched from nodes")
        }
        Failure::CallTimeout(_) => Some("a call takes longer than `call_timeout_ms`"),
        Failure::Unavailable => Some("no node or partner can answer now"),
        Failure::NotServed { .. } => Some(
            "the same, if the call goes to nodes; `reason` says what keeps each of them from answering it",
        ),
        Failure::AbsenceUnknown => Some(
            "no node that answered finds it, but nodes that may lack old data do not count, and another node did not answer in time",
        ),
        Failure::CannotBeProven { .. } => {
            Some("the block has a transaction of an unknown type and cannot be proven")
        }
        Failure::OddHeader => Some(
            "the header of the block has members of a later fork without those of an earlier one, as the first blocks of some test nodes have, and no quorum says what is in the block",
        ),
        Failure::StateNotProven => {
            Some("with `[integrity] state = \"prove\"` and a quorum of one node, no node gives proofs")
        }
        Failure::Broken(_) => Some("the gateway has a fault"),
        Failure::Lacking | Failure::SideStateGone | Failure::OverCapacity => None,
    }
}
