//! `errors.md`: what a caller may be told. Every row is made by the same conversion that makes the reply.

use std::fmt::Write as _;
use std::time::Duration;

use alloy_primitives::Bytes;
use answers::{Failure, Unresolved};
use callers::{Denied, RefusingSetting, Spent};
use gateway::admit::NotAdmitted;
use gateway::errors::ErrorReply;
use gateway::parse::Unanswerable;
use gateway::shape::ReplyRefused;
use http_server::{Refused, TooManyUnauthenticated};
use jsonrpc::{BodyFault, CallFault};
use methods::{ParamFault, Tag};

use super::GENERATED;

pub(super) fn document() -> String {
    let mut text = format!(
        "# Errors\n\n{GENERATED}\n\nEvery reply is JSON-RPC 2.0 and has the header `Chaingate-Request-Id`; the log has the same id. \
         Statuses other than 200 are for single calls and for requests as a whole. In a batch, each call has its own error \
         and the status is 200, unless the rate limit refused every call: then it is 429 with `Retry-After`. \
         Numbers and names are examples.\n"
    );
    for (title, rows) in
        [("Requests", requests()), ("Calls", calls()), ("Blocks", blocks()), ("Answers", answers())]
    {
        let _ = write!(
            text,
            "\n## {title}\n\n| when | status | code | message | more |\n|---|---|---|---|---|\n"
        );
        for (when, error) in rows {
            row(&mut text, when, &error);
        }
    }
    text
}

type Row = (&'static str, ErrorReply);

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

fn requests() -> Vec<Row> {
    let second = Spent::Second { allowed: 500, current: 560, wait_ms: 120 };
    vec![
        ("the body is not JSON", BodyFault::NotJson.into()),
        ("JSON, but no call", BodyFault::NotACall.into()),
        ("a batch without calls", BodyFault::EmptyBatch.into()),
        ("a batch of more calls than `batch_calls_max`", BodyFault::BatchTooLarge.into()),
        ("no key in the path", Denied::NoKey.into()),
        ("an unknown, revoked or malformed key", Denied::UnknownKey.into()),
        ("the secret is wrong", Denied::WrongSecret.into()),
        ("the secret is missing and required", RefusingSetting::Secret.into()),
        ("the token is wrong, expired, or missing and required", Denied::BadToken.into()),
        ("the key is not enabled for this network", RefusingSetting::Network.into()),
        ("the key's `origins` do not include the page", RefusingSetting::Origin.into()),
        ("the key's `user_agents` do not include the client", RefusingSetting::Agent.into()),
        ("the key's `addresses` do not include a contract of the call", RefusingSetting::Address.into()),
        ("the key's `methods` do not include the method", RefusingSetting::Method.into()),
        (
            "more requests without a valid key from one address than `unauthenticated_per_second_max`",
            TooManyUnauthenticated { wait_ms: 1 }.into(),
        ),
        ("the throughput of the plan or the key is used up", NotAdmitted::Spent(second).into()),
        ("the day of the plan or the key is used up", NotAdmitted::Spent(Spent::Day { wait_s: 1 }).into()),
        ("too many connections or calls in flight", NotAdmitted::OverCapacity.into()),
        ("another path or version", Refused::OtherPath.into()),
        ("another HTTP method; `Allow` says which", Refused::OtherMethod.into()),
        ("another content type", Refused::ContentType.into()),
        ("another encoding of the body", Refused::Encoding.into()),
        ("a body that is not in its encoding", Refused::BadEncoding.into()),
        ("a body of more than `body_bytes_max`", Refused::TooLarge.into()),
        ("two readers could disagree on where the request ends", Refused::Ambiguous.into()),
        ("a head that is not HTTP", Refused::BadHead.into()),
        ("no `Host` header, more than one, or an invalid one", Refused::BadHost.into()),
        ("a head of more than `header_bytes_max` or `headers_max`", Refused::HeadTooLarge.into()),
        ("the connection ended within the body", Refused::Broken.into()),
        ("the body took longer than `body_timeout_ms`", Refused::TooSlow.into()),
    ]
}

fn calls() -> Vec<Row> {
    let bad = |fault| Unanswerable::Bad(fault).into();
    let params = |fault| Unanswerable::Params(fault).into();
    vec![
        ("an element of a batch that is no object", bad(CallFault::NotAnObject)),
        ("a member stands there twice", bad(CallFault::DuplicateMember)),
        ("the id is neither number, string nor null, or is too long", bad(CallFault::BadId)),
        ("`jsonrpc` is missing", bad(CallFault::NoVersion)),
        ("another version", bad(CallFault::OtherVersion)),
        ("`method` is missing or no string", bad(CallFault::NoMethod)),
        ("a method name of more than 128 bytes", bad(CallFault::MethodTooLong)),
        ("more than 32 members that JSON-RPC does not have", bad(CallFault::TooManyMembers)),
        ("no such method", Unanswerable::NoMethod("eth_nonsense".to_owned()).into()),
        (
            "a method that changes state, or that only other services have",
            Unanswerable::NoMethod("eth_sendRawTransaction".to_owned()).into(),
        ),
        ("a method of other networks", Unanswerable::NotHere("zks_getRawBlockTransactions").into()),
        ("named parameters", params(ParamFault::NotArray)),
        ("too many parameters", params(ParamFault::TooMany { most: 3 })),
        ("a parameter is missing; they count from 0", params(ParamFault::Missing { position: 1 })),
        (
            "a parameter is wrong",
            params(ParamFault::Wrong { position: 1, what: "hex string without 0x prefix".into() }),
        ),
        (
            "a field of a filter or of an object is wrong",
            params(ParamFault::Wrong { position: 0, what: "fromBlock: hex string without 0x prefix".into() }),
        ),
        (
            "more values in a filter than `log_params_max`",
            params(ParamFault::TooManyLogParams { count: 5_001, most: 5_000 }),
        ),
    ]
}

fn blocks() -> Vec<Row> {
    let method = "eth_getStorageAt";
    vec![
        ("a tag that this network refuses", Unresolved::TagNotSupported { tag: Tag::Safe, method }.into()),
        ("state at a number that is not there", Unresolved::NoHeader.into()),
        ("state at a hash that is not there", Unresolved::NoHeaderForHash.into()),
        (
            "state at a block that was reorganised away, with `requireCanonical`",
            Unresolved::NotCanonical.into(),
        ),
        ("no finalized or safe block is known", Unresolved::NoBlockForTag(Tag::Finalized).into()),
        ("logs of `pending`", Unresolved::PendingLogs.into()),
        ("logs of a hash that is not there", Unresolved::UnknownLogsBlock.into()),
        ("logs of a range that ends before it begins", Unresolved::BadRange.into()),
        ("logs beyond the newest block", Unresolved::BeyondHead.into()),
        (
            "logs of more blocks than `log_blocks_max`",
            Unresolved::RangeTooLong { blocks: 2_001, most: 2_000 }.into(),
        ),
    ]
}

fn answers() -> Vec<Row> {
    vec![
        (
            "the EVM met REVERT; a reason follows if there is one",
            Failure::Reverted { data: Bytes::new() }.into(),
        ),
        ("the EVM stopped for another reason", Failure::Execution("out of gas".to_owned()).into()),
        (
            "more logs than `log_results_max`; the widest range from the same start that fits",
            Failure::TooManyResults { from: 0xb4, to: 0xe5, most: 10_000 }.into(),
        ),
        ("a log query beyond `log_timeout_ms`", Failure::QueryTimeout.into()),
        (
            "the same before the headers of old blocks were fetched from nodes; the next one gets further",
            Failure::NotIndexed { from: 4_096, to: 65_535 }.into(),
        ),
        ("a call beyond `call_timeout_ms`", Failure::CallTimeout(Duration::from_secs(5)).into()),
        ("what does not fit into a batch's reply", ReplyRefused::TooLarge.into()),
        ("nobody can answer now", Failure::Unavailable.into()),
        (
            "the block has a transaction of a type that is unknown here",
            Failure::CannotBeProven { transaction_type: 0x7e }.into(),
        ),
        (
            "`[integrity] state = \"prove\"` with one node that gives no proofs",
            Failure::StateNotProven.into(),
        ),
        ("our fault", Failure::Broken(String::new()).into()),
    ]
}
