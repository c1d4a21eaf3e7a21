//! Step 9: what came out → an HTTP reply.
//!
//! The status of an error is decided in `errors`; here it gets its headers. Every reply carries the same few, made once.

use std::cell::RefCell;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};

use ::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use ::http::request::Parts;
use ::http::{StatusCode, Version};
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use jsonrpc::Id;

use crate::answer::{Origin, Provenance};
use crate::errors::ErrorReply;
use crate::http::compress;
use crate::listen::Connection;
use crate::resolve::BlockRef;

pub(crate) type Response = hyper::Response<ReplyBody>;

/// A reply before it has headers.
#[derive(Debug)]
pub(crate) struct Reply {
    status: StatusCode,
    parts: [Bytes; 3],
    provenance: Option<Provenance>,
    extra: Extra,
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
}

impl Reply {
    pub(crate) fn result(parts: [Bytes; 3], provenance: Option<Provenance>) -> Self {
        Self { status: StatusCode::OK, parts, provenance, extra: Extra::None }
    }

    pub(crate) fn error(id: Id<'_>, error: &ErrorReply) -> Self {
        let mut out = Vec::new();
        error.write(&mut out, id);
        let extra = match (error.status, error.retry_after_s) {
            (_, Some(seconds)) => Extra::RetryAfter(seconds),
            (StatusCode::UNAUTHORIZED, None) => Extra::Challenge,
            (StatusCode::METHOD_NOT_ALLOWED, None) => Extra::Allow,
            _ => Extra::None,
        };
        Self {
            status: error.status,
            parts: [out.into(), Bytes::new(), Bytes::new()],
            provenance: None,
            extra,
        }
    }

    /// There is nothing to say: notifications.
    pub(crate) fn silent() -> Self {
        Self {
            status: StatusCode::NO_CONTENT,
            parts: Default::default(),
            provenance: None,
            extra: Extra::None,
        }
    }

    pub(crate) fn preflight() -> Self {
        Self { extra: Extra::Preflight, ..Self::silent() }
    }

    fn len(&self) -> usize {
        self.parts.iter().map(Bytes::len).sum()
    }
}

/// Makes the reply to the request with this head.
pub(crate) async fn respond(connection: &Connection, mut head: Parts, mut reply: Reply) -> Response {
    let edge = connection.edge();
    let is_long = reply.len() >= edge.limits.http.compress_bytes_min;
    let encoding = if is_long { compress::accepted(&head.headers) } else { None };
    // The map of the request becomes that of the reply, and hyper makes it that of the next request.
    let mut headers = std::mem::take(&mut head.headers);
    headers.clear();
    headers.insert(header::VARY, HeaderValue::from_static("Origin"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
    if reply.len() > 0 {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    say_where_from(&mut headers, reply.provenance);
    say_extra(&mut headers, &reply.extra);
    if let Some(encoding) = encoding
        && let Some(smaller) = compress::compress(encoding, &reply.parts, edge.answers.threads()).await
    {
        reply.parts = [smaller, Bytes::new(), Bytes::new()];
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding.name()));
        headers.append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    }
    if connection.is_last() && head.version < Version::HTTP_2 {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    count(connection, &reply);
    let mut response = Response::new(ReplyBody::new(reply.parts));
    *response.status_mut() = reply.status;
    *response.headers_mut() = headers;
    response
}

const EXPOSED: &str = "chaingate-source, chaingate-block, retry-after";
const SOURCE: HeaderName = HeaderName::from_static("chaingate-source");
const BLOCK: HeaderName = HeaderName::from_static("chaingate-block");

fn say_where_from(headers: &mut HeaderMap, provenance: Option<Provenance>) {
    let Some(Provenance { origin, block }) = provenance else { return };
    let name = match origin {
        Origin::Cache => "cache",
        Origin::Archive => "archive",
        Origin::Node => "node",
        Origin::Partner => "partner",
    };
    headers.insert(SOURCE, HeaderValue::from_static(name));
    if let Some(block) = block {
        headers.insert(BLOCK, block_value(block));
    }
}

thread_local! {
    /// The last block that was named. Most answers are about the head, whose name changes every few seconds.
    static LAST_BLOCK: RefCell<Option<(BlockRef, HeaderValue)>> = const { RefCell::new(None) };
}

fn block_value(block: BlockRef) -> HeaderValue {
    LAST_BLOCK.with_borrow_mut(|last| {
        if let Some((known, value)) = last
            && *known == block
        {
            return value.clone();
        }
        let text = format!("{:#x} {}", block.number, block.hash);
        let value = HeaderValue::from_maybe_shared(Bytes::from(text));
        let value = value.unwrap_or_else(|_| HeaderValue::from_static(""));
        *last = Some((block, value.clone()));
        value
    })
}

fn say_extra(headers: &mut HeaderMap, extra: &Extra) {
    let value = HeaderValue::from_static;
    match extra {
        Extra::None => {}
        Extra::RetryAfter(seconds) => drop(headers.insert(header::RETRY_AFTER, HeaderValue::from(*seconds))),
        Extra::Challenge => {
            headers.insert(header::WWW_AUTHENTICATE, value("Basic realm=\"chaingate\""));
        }
        Extra::Allow => drop(headers.insert(header::ALLOW, value("POST, OPTIONS"))),
        Extra::Preflight => {
            headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, value("POST, OPTIONS"));
            // A star does not cover this one header, so it is named.
            headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, value("*, authorization, content-type"));
            headers.insert(header::ACCESS_CONTROL_MAX_AGE, value("86400"));
        }
    }
}

fn count(connection: &Connection, reply: &Reply) {
    let counts = &connection.shard().http;
    counts.requests.fetch_add(1, Relaxed);
    counts.bytes_out.fetch_add(reply.len() as u64, Relaxed);
    counts.statuses[usize::from(reply.status.as_u16() / 100).min(5)].fetch_add(1, Relaxed);
}

/// A body whose length is known, in at most three pieces that go out in one write.
#[derive(Debug)]
pub(crate) struct ReplyBody {
    parts: [Bytes; 3],
}

impl ReplyBody {
    pub(crate) fn new(parts: [Bytes; 3]) -> Self {
        Self { parts }
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = self.parts.iter_mut().find(|part| !part.is_empty()).map(std::mem::take);
        Poll::Ready(next.map(|part| Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.parts.iter().all(Bytes::is_empty)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.parts.iter().map(|part| part.len() as u64).sum())
    }
}

/// A whole reply for a connection that there is no place for, before it has said anything.
pub(crate) fn over_capacity_bytes() -> Vec<u8> {
    let error = crate::errors::over_capacity();
    let mut body = Vec::new();
    error.write(&mut body, Id::NULL);
    let mut reply = format!(
        "HTTP/1.1 {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nretry-after: {}\r\n\
         access-control-allow-origin: *\r\nvary: Origin\r\nx-content-type-options: nosniff\r\nconnection: close\r\n\r\n",
        error.status,
        body.len(),
        error.retry_after_s.unwrap_or_default(),
    )
    .into_bytes();
    reply.extend_from_slice(&body);
    reply
}
