//! Step 7: outcome → HTTP reply with its headers.
//!
//! The status of an error is decided in `errors`; here it gets its headers, which are the same over HTTP/1 and HTTP/2.

use std::cell::RefCell;
use std::sync::atomic::Ordering::Relaxed;

use ::http::StatusCode;
use ::http::header::{self, HeaderName};
use http_server::{
    Connection, HeaderWriter, Headers, ReplyCoding, ReplyParts, RequestCoding, RequestId, ServiceReply,
    accepted_encoding, compress,
};
use jsonrpc::Id;
use methods::BlockRef;
use resources::{AccountId, CHARGED_BYTES_MIN, MemoryCharge};
use sources::{Origin, Provenance, Verification};

use crate::errors::ErrorReply;
use crate::gateway_state::GatewayState;
use crate::request_limits::COMPRESS_BYTES_MIN;

/// A reply: its body, and what its head depends on.
#[derive(Debug)]
pub struct Reply {
    status: StatusCode,
    parts: ReplyParts,
    provenance: Option<Provenance>,
    /// How far the least verified answer of a batch is verified.
    batch_verified: Option<Verification>,
    extra: Extra,
    encoding: Option<ReplyCoding>,
    /// The account that the reply is for, in whose share of the pool it is compressed.
    account: AccountId,
    /// Set when the reply is finished.
    request_id: Option<RequestId>,
}

/// Headers that only some replies have.
#[derive(Debug, Default)]
enum Extra {
    #[default]
    None,
    Preflight,
    RetryAfter(u64),
    Challenge,
    Allow,
    /// The codings of requests that are read.
    AcceptEncoding,
    /// The name of the node that answered.
    Node(String),
}

impl Reply {
    fn new(status: StatusCode, parts: ReplyParts) -> Self {
        Self {
            status,
            parts,
            provenance: None,
            batch_verified: None,
            extra: Extra::None,
            encoding: None,
            account: AccountId::NONE,
            request_id: None,
        }
    }

    pub(crate) fn result(parts: ReplyParts, provenance: Provenance) -> Self {
        Self { provenance: Some(provenance), ..Self::new(StatusCode::OK, parts) }
    }

    /// The answers of a batch, of which the least verified is verified as far as this.
    pub(crate) fn batch(parts: ReplyParts, batch_verified: Option<Verification>) -> Self {
        Self { batch_verified, ..Self::new(StatusCode::OK, parts) }
    }

    pub(crate) fn error(id: Id<'_>, error: ErrorReply) -> Self {
        let extra = match (error.status, error.retry_after_s) {
            (_, Some(seconds)) => Extra::RetryAfter(seconds),
            (StatusCode::UNAUTHORIZED, None) => Extra::Challenge,
            (StatusCode::METHOD_NOT_ALLOWED, None) => Extra::Allow,
            _ if error.names_codings => Extra::AcceptEncoding,
            _ => Extra::None,
        };
        let (status, mut out) = (error.status, Vec::new());
        let parts = match error.write(&mut out, id) {
            Some(data) => ReplyParts::around(data, out, jsonrpc::ERROR_END),
            None => ReplyParts::one(out),
        };
        Self { extra, ..Self::new(status, parts) }
    }

    /// The same reply for a known account.
    pub(crate) fn for_account(self, account: AccountId) -> Self {
        Self { account, ..self }
    }

    /// The same reply, with what its account is charged for it; `in_one_piece` if it is short.
    pub(crate) fn charged(mut self, charge: MemoryCharge, in_one_piece: bool) -> Self {
        if in_one_piece && (1..CHARGED_BYTES_MIN).contains(&self.parts.large_len()) {
            self.parts = ReplyParts::one(std::mem::take(&mut self.parts).joined());
        }
        // The largest part is sent last, apart from a bracket or two.
        if let Some(largest) = self.parts.largest_mut() {
            *largest = charge.attach(std::mem::take(largest));
        }
        self
    }

    /// The same reply with the name of the node that answered. Characters that no header can have are replaced.
    pub(crate) fn naming_node(self, node: Option<String>) -> Self {
        let Some(name) = node else { return self };
        let is_sent = |character: &char| (' '..='~').contains(character);
        let name = name.chars().map(|character| if is_sent(&character) { character } else { '?' }).collect();
        Self { extra: Extra::Node(name), ..self }
    }

    /// A batch of which the rate limit refused every call; `parts` has their errors.
    pub(crate) fn refused_batch(parts: ReplyParts, retry_after_s: u64) -> Self {
        let extra = Extra::RetryAfter(retry_after_s);
        Self { extra, ..Self::new(StatusCode::TOO_MANY_REQUESTS, parts) }
    }

    /// The same reply with the id of its request, for replies that do not pass through [`respond`].
    pub(crate) fn with_request_id(self, id: RequestId) -> Self {
        Self { request_id: Some(id), ..self }
    }

    /// The reply to notifications, which has no body.
    pub(crate) fn silent() -> Self {
        Self::new(StatusCode::NO_CONTENT, ReplyParts::default())
    }

    pub(crate) fn preflight() -> Self {
        Self { extra: Extra::Preflight, ..Self::silent() }
    }
}

/// Compresses a reply if its caller accepts that, counts it and gives it the id of its request.
pub(crate) async fn respond(
    gateway: &GatewayState,
    connection: &Connection,
    id: RequestId,
    headers: Headers<'_>,
    mut reply: Reply,
) -> Reply {
    reply.request_id = Some(id);
    if reply.body_len() >= COMPRESS_BYTES_MIN
        && let Some(encoding) = accepted_encoding(headers, reply.body_len())
        && let Some(smaller) =
            compress(encoding, &reply.parts, reply.account, gateway.answers.threads()).await
        && let Ok(smaller) = connection.memory(reply.account).hold(smaller)
    {
        reply.parts = ReplyParts::one(smaller);
        reply.encoding = Some(encoding);
    }
    count(connection, &reply);
    reply
}

impl ServiceReply for Reply {
    fn status(&self) -> StatusCode {
        self.status
    }

    fn body_len(&self) -> usize {
        self.parts.total_len()
    }

    fn into_parts(self) -> ReplyParts {
        self.parts
    }

    fn write_headers(&self, headers: &mut impl HeaderWriter) {
        let vary = if self.encoding.is_some() { "Origin, Accept-Encoding" } else { "Origin" };
        headers.header(&header::VARY, vary);
        headers.header(&header::X_CONTENT_TYPE_OPTIONS, "nosniff");
        headers.header(&header::ACCESS_CONTROL_ALLOW_ORIGIN, "*");
        headers.header(&header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
        if self.body_len() > 0 {
            headers.header(&header::CONTENT_TYPE, "application/json");
        }
        if let Some(id) = self.request_id {
            id.with_text(|text| {
                headers.header(&REQUEST_ID, text);
                headers.header(&TRACE_ID, text);
            });
        }
        if let Some(provenance) = self.provenance {
            write_provenance(headers, provenance);
        } else if let Some(verified) = self.batch_verified {
            write_verification(headers, verified);
        }
        write_extra(headers, &self.extra);
        if let Some(encoding) = self.encoding {
            headers.header(&header::CONTENT_ENCODING, encoding.name());
        }
    }
}

/// Headers that scripts of a web page may read.
const EXPOSED: &str = "chaingate-source, chaingate-block, chaingate-verified, chaingate-node, chaingate-request-id, x-trace-id, \
     retry-after";
/// Headers that scripts of a web page may send. `*` does not cover `authorization`, and some browsers do not know `*`.
const ALLOWED: &str = "*, authorization, content-type, enable-failover, chaingate-request-id, traceparent";
/// The id of a request, which its caller may choose.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("chaingate-request-id");
/// The same id under the name that other providers use.
const TRACE_ID: HeaderName = HeaderName::from_static("x-trace-id");
const SOURCE: HeaderName = HeaderName::from_static("chaingate-source");
const BLOCK: HeaderName = HeaderName::from_static("chaingate-block");
const VERIFIED: HeaderName = HeaderName::from_static("chaingate-verified");
const NODE: HeaderName = HeaderName::from_static("chaingate-node");

fn write_provenance(headers: &mut impl HeaderWriter, provenance: Provenance) {
    let name = match provenance.origin {
        Origin::Cache | Origin::Stored => "cache",
        Origin::Archive => "archive",
        Origin::Node => "node",
        Origin::Partner => "partner",
    };
    headers.header(&SOURCE, name);
    if let Some(block) = provenance.block {
        write_block(headers, block);
    }
    write_verification(headers, provenance.verified);
}

fn write_verification(headers: &mut impl HeaderWriter, verified: Verification) {
    headers.header(&VERIFIED, verified.name());
}

thread_local! {
    /// The last block that was named. Most answers are about the head, whose name changes every few seconds.
    static LAST_BLOCK: RefCell<Option<(BlockRef, String)>> = const { RefCell::new(None) };
}

fn write_block(headers: &mut impl HeaderWriter, block: BlockRef) {
    LAST_BLOCK.with_borrow_mut(|last| {
        if !last.as_ref().is_some_and(|(known, _)| *known == block) {
            *last = Some((block, format!("{:#x} {}", block.number, block.hash)));
        }
        let name = last.as_ref().map_or("", |(_, name)| name.as_str());
        headers.header(&BLOCK, name);
    });
}

fn write_extra(headers: &mut impl HeaderWriter, extra: &Extra) {
    match extra {
        Extra::None => {}
        Extra::RetryAfter(seconds) => headers.header(&header::RETRY_AFTER, &seconds.to_string()),
        Extra::Challenge => headers.header(&header::WWW_AUTHENTICATE, "Basic realm=\"chaingate\""),
        Extra::Allow => headers.header(&header::ALLOW, "POST, OPTIONS"),
        Extra::Node(name) => headers.header(&NODE, name),
        Extra::AcceptEncoding => headers.header(&header::ACCEPT_ENCODING, RequestCoding::ACCEPTED),
        Extra::Preflight => {
            headers.header(&header::ACCESS_CONTROL_ALLOW_METHODS, "POST, OPTIONS");
            headers.header(&header::ACCESS_CONTROL_ALLOW_HEADERS, ALLOWED);
            headers.header(&header::ACCESS_CONTROL_MAX_AGE, "86400");
        }
    }
}

fn count(connection: &Connection, reply: &Reply) {
    let counts = connection.counts();
    counts.requests.fetch_add(1, Relaxed);
    counts.bytes_out.fetch_add(reply.body_len() as u64, Relaxed);
    counts.statuses[usize::from(reply.status.as_u16() / 100).min(5)].fetch_add(1, Relaxed);
}
