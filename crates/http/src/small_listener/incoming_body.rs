//! The body of a request, which marks its connection as being answered once it was received.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use super::OpenConnection;

/// The body of a request. Its connection may be closed for another one until the body was received, or dropped.
#[derive(Debug)]
pub struct IncomingBody {
    body: Incoming,
    connection: Arc<OpenConnection>,
}

impl IncomingBody {
    /// The body after a head that has just been received.
    pub(super) fn new(body: Incoming, connection: Arc<OpenConnection>) -> Self {
        *connection.incomplete_since.lock() = (!body.is_end_stream()).then(Instant::now);
        Self { body, connection }
    }

    fn completed(&self) {
        *self.connection.incomplete_since.lock() = None;
    }
}

impl Body for IncomingBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if self.body.is_end_stream() {
            self.completed();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A service that drops the body has read it, or answers without it.
impl Drop for IncomingBody {
    fn drop(&mut self) {
        self.completed();
    }
}
