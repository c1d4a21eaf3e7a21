//! The bytes of a request, held to the limit while they arrive and again while they are inflated.

use std::borrow::Cow;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use bytes::Bytes;
use http::header;
use hyper::body::{Body as _, Incoming};

use super::head::Head;
use super::{Refused, inflate};
use crate::limits::Limits;
use crate::listen::Connection;

/// A request's body, and with it the way to its caller.
///
/// HTTP/1 lends its bytes from where they came in (`'a`), HTTP/2 hands over its own.
pub(crate) trait Body<'a>: Send {
    /// The whole body, if it has at most so many bytes.
    fn read(&mut self, bytes_max: usize) -> impl Future<Output = Result<Cow<'a, [u8]>, Refused>> + Send;

    /// Gets the body of a refused request out of the way, where that keeps a connection in use.
    fn skip(&mut self) -> impl Future<Output = ()> + Send;

    /// Waits for an answer for as long as the caller does.
    fn attend<T: Send>(
        &mut self,
        answer: Pin<&mut (impl Future<Output = T> + Send)>,
    ) -> impl Future<Output = Result<T, Refused>> + Send;
}

/// Reads the whole body.
pub(crate) async fn body<'a>(
    connection: &Connection,
    head: &Head<'_>,
    body: &mut impl Body<'a>,
    limits: &Limits,
) -> Result<Cow<'a, [u8]>, Refused> {
    let bytes = body.read(limits.http.body_bytes_max).await?;
    connection.shard().http.bytes_in.fetch_add(bytes.len() as u64, Relaxed);
    let mut encodings = head.headers.all(&header::CONTENT_ENCODING);
    match (encodings.next(), encodings.next()) {
        (None, _) => Ok(bytes),
        (Some(encoding), None) => inflate::inflate(encoding, bytes, limits.http.body_bytes_max),
        // One inside the other: nobody does that to a body of a few kilobytes.
        (Some(_), Some(_)) => Err(Refused::Encoding),
    }
}

/// The body of an HTTP/2 request.
pub(crate) struct StreamBody {
    pub(crate) incoming: Incoming,
    /// How long it may take. On HTTP/1 the connection has an eye on that; here every stream has to have its own.
    pub(crate) time: Duration,
}

impl<'a> Body<'a> for StreamBody {
    async fn read(&mut self, bytes_max: usize) -> Result<Cow<'a, [u8]>, Refused> {
        let read = tokio::time::timeout(self.time, read(&mut self.incoming, bytes_max)).await;
        read.unwrap_or(Err(Refused::TooSlow)).map(Cow::Owned)
    }

    /// Streams do not get in each other's way.
    async fn skip(&mut self) {}

    /// A stream that its caller resets is dropped, and its answer with it.
    async fn attend<T: Send>(
        &mut self,
        answer: Pin<&mut (impl Future<Output = T> + Send)>,
    ) -> Result<T, Refused> {
        Ok(answer.await)
    }
}

async fn read(body: &mut Incoming, bytes_max: usize) -> Result<Vec<u8>, Refused> {
    let mut whole = Vec::new();
    while let Some(piece) = next(body).await? {
        if whole.len() + piece.len() > bytes_max {
            return Err(Refused::TooLarge);
        }
        if whole.is_empty() {
            whole = piece.into();
        } else {
            whole.extend_from_slice(&piece);
        }
    }
    Ok(whole)
}

/// The next piece of data; trailers mean nothing to us.
async fn next(body: &mut Incoming) -> Result<Option<Bytes>, Refused> {
    loop {
        match poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await {
            None => return Ok(None),
            Some(Err(_)) => return Err(Refused::Broken),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}
