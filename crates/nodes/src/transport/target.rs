//! Requests over HTTP/2.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;

use super::endpoint::Endpoint;
use crate::trace_context::{TRACEPARENT, TraceContext};

/// Builds requests to one endpoint.
#[derive(Clone)]
pub(super) struct Http2Target {
    endpoint: Arc<Endpoint>,
}

impl Http2Target {
    pub(super) fn new(endpoint: Arc<Endpoint>) -> Self {
        Self { endpoint }
    }

    pub(super) fn request(
        &self,
        body: &[u8],
        trace: Option<TraceContext>,
    ) -> Option<http::Request<Full<Bytes>>> {
        let mut request = http::Request::post(self.endpoint.url())
            .header("content-type", "application/json")
            .header("accept", "application/json");
        if self.endpoint.gzip() {
            request = request.header("accept-encoding", "gzip");
        }
        for (name, value) in self.endpoint.headers() {
            request = request.header(name, value);
        }
        if let Some(trace) = trace {
            request = request.header(TRACEPARENT, trace.to_string());
        }
        request.body(Full::new(Bytes::copy_from_slice(body))).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_tells_the_trace_of_its_calls() {
        let endpoint = Endpoint::parse("http://node").unwrap();
        let target = Http2Target::new(Arc::new(endpoint));
        let trace = TraceContext { trace_id: 1, span_id: 2, is_sampled: false };
        let traced = target.request(b"{}", Some(trace)).unwrap();
        assert_eq!(traced.headers()[TRACEPARENT], "00-00000000000000000000000000000001-0000000000000002-00");
        assert!(!target.request(b"{}", None).unwrap().headers().contains_key(TRACEPARENT));
    }
}
