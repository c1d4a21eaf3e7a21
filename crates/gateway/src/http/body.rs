//! The bytes of a request, held to the limit while they arrive and again while they are inflated.

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;

use http::header;

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
