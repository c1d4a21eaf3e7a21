//! Calls → the bytes of one request, in a buffer that a connection reuses.

use std::io::Write as _;

use super::endpoint::Endpoint;
use super::pending_call::PendingCall;
use crate::trace_context::{TRACEPARENT, TraceContext};

/// Room for the digits of `Content-Length`. The value is written last, with spaces before it.
const LENGTH_DIGITS: usize = 10;

/// The head of all requests to one endpoint, up to the digits of the length.
pub(super) struct RequestTemplate(Vec<u8>);

impl RequestTemplate {
    pub(super) fn new(endpoint: &Endpoint) -> Self {
        let mut head = format!("POST {} HTTP/1.1\r\nhost: {}\r\n", endpoint.target(), endpoint.authority());
        head.push_str("content-type: application/json\r\naccept: application/json\r\n");
        head.push_str(if endpoint.gzip() { "accept-encoding: gzip\r\n" } else { "" });
        let mut head = head.into_bytes();
        for (name, value) in endpoint.headers() {
            head.extend_from_slice(name.as_str().as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value.as_bytes());
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(b"content-length: ");
        Self(head)
    }
}

/// The largest buffer that a connection keeps for its next request. Calls can have megabytes of parameters, and connections
/// live long.
const REUSED_BYTES_MAX: usize = 64 << 10;

/// The bytes of one request.
#[derive(Default)]
pub(super) struct RequestBuffer {
    bytes: Vec<u8>,
    body_start: usize,
    /// The trace that the node is told.
    trace: Option<TraceContext>,
}

impl RequestBuffer {
    /// Writes the calls with running ids from `first_id`: one as an object, several as an array.
    pub(super) fn write(&mut self, template: &RequestTemplate, calls: &[PendingCall], first_id: u64) {
        self.bytes.clear();
        self.bytes.extend_from_slice(&template.0);
        let length_start = self.bytes.len();
        self.bytes.extend_from_slice(&[b' '; LENGTH_DIGITS]);
        self.bytes.extend_from_slice(b"\r\n");
        self.trace = common_trace(calls);
        if let Some(trace) = self.trace {
            let written = write!(self.bytes, "{TRACEPARENT}: {trace}\r\n");
            debug_assert!(written.is_ok(), "a vector grows");
        }
        self.bytes.extend_from_slice(b"\r\n");
        self.body_start = self.bytes.len();
        self.write_body(calls, first_id);

        let mut digits = itoa::Buffer::new();
        let digits = digits.format(self.bytes.len() - self.body_start).as_bytes();
        let end = length_start + LENGTH_DIGITS;
        self.bytes[end - digits.len()..end].copy_from_slice(digits);
    }

    fn write_body(&mut self, calls: &[PendingCall], first_id: u64) {
        let many = calls.len() > 1;
        for (id, call) in (first_id..).zip(calls) {
            if many {
                self.bytes.push(if id == first_id { b'[' } else { b',' });
            }
            self.write_call(call, id);
        }
        if many {
            self.bytes.push(b']');
        }
    }

    fn write_call(&mut self, call: &PendingCall, id: u64) {
        self.bytes.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        self.bytes.extend_from_slice(itoa::Buffer::new().format(id).as_bytes());
        self.bytes.extend_from_slice(br#","method":""#);
        self.bytes.extend_from_slice(call.method.as_bytes());
        self.bytes.extend_from_slice(br#"","params":"#);
        self.bytes.extend_from_slice(&call.params);
        self.bytes.push(b'}');
    }

    /// Frees the buffer if the request was large.
    pub(super) fn clear(&mut self) {
        if self.bytes.capacity() > REUSED_BYTES_MAX {
            *self = Self::default();
        }
    }

    /// Head and body.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn body(&self) -> &[u8] {
        &self.bytes[self.body_start..]
    }

    pub(super) fn trace(&self) -> Option<TraceContext> {
        self.trace
    }
}

/// The trace of calls that are sent together: that of the first if all belong to the same one. A request has one header, and a node
/// would otherwise count the work for one caller in the trace of another.
fn common_trace(calls: &[PendingCall]) -> Option<TraceContext> {
    let first = calls.first()?.trace?;
    let is_same = |call: &PendingCall| call.trace.is_some_and(|trace| trace.trace_id == first.trace_id);
    calls.iter().all(is_same).then_some(first)
}
