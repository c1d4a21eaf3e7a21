//! Requests over HTTP/2.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;

use super::endpoint::Endpoint;

/// Builds requests to one endpoint.
#[derive(Clone)]
pub(super) struct Http2Target {
    endpoint: Arc<Endpoint>,
}

impl Http2Target {
    pub(super) fn new(endpoint: Arc<Endpoint>) -> Self {
        Self { endpoint }
    }

    pub(super) fn request(&self, body: &[u8]) -> Option<http::Request<Full<Bytes>>> {
        let mut request = http::Request::post(self.endpoint.url())
            .header("content-type", "application/json")
            .header("accept", "application/json");
        if self.endpoint.gzip() {
            request = request.header("accept-encoding", "gzip");
        }
        for (name, value) in self.endpoint.headers() {
            request = request.header(name, value);
        }
        request.body(Full::new(Bytes::copy_from_slice(body))).ok()
    }
}
