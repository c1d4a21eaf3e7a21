//! A body that marks its connection as waiting for the next head once it was sent.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use hyper::body::{Body, Frame, SizeHint};

use super::OpenConnection;

pub(super) struct AnsweredBody<B> {
    body: B,
    connection: Arc<OpenConnection>,
    /// Whether another request may follow.
    keep_alive: bool,
}

impl<B> AnsweredBody<B> {
    pub(super) fn new(body: B, connection: Arc<OpenConnection>, keep_alive: bool) -> Self {
        Self { body, connection, keep_alive }
    }
}

impl<B: Body + Unpin> Body for AnsweredBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B> Drop for AnsweredBody<B> {
    fn drop(&mut self) {
        if self.keep_alive {
            *self.connection.incomplete_since.lock() = Some(Instant::now());
        }
    }
}
