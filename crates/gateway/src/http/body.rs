//! The bytes of a request, held to the limit while they arrive and again while they are inflated.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use http::request::Parts;
use http::{Version, header};
use hyper::body::{Body, Incoming};

use super::{Refused, inflate, route::number};
use crate::limits::Limits;
use crate::listen::Connection;

/// Reads the whole body.
///
/// On HTTP/1 the connection itself watches how long this takes; on HTTP/2 a stream has to have its own eye on it.
pub(crate) async fn body(
    connection: &Connection,
    head: &Parts,
    mut body: Incoming,
    limits: &Limits,
) -> Result<Bytes, Refused> {
    let reading = connection.reading_body();
    let read = read(&mut body, limits.http.body_bytes_max);
    let bytes = if head.version < Version::HTTP_2 {
        read.await
    } else {
        tokio::time::timeout(limits.listen.body_timeout, read).await.unwrap_or(Err(Refused::TooSlow))
    };
    drop(reading);
    let bytes = bytes.inspect_err(|_| connection.close_after_reply())?;
    connection.shard().http.bytes_in.fetch_add(bytes.len() as u64, Relaxed);
    let mut encodings = head.headers.get_all(header::CONTENT_ENCODING).iter();
    match (encodings.next(), encodings.next()) {
        (None, _) => Ok(bytes),
        (Some(encoding), None) => inflate::inflate(encoding, &bytes, limits.http.body_bytes_max),
        // One inside the other: nobody does that to a body of a few kilobytes.
        (Some(_), Some(_)) => Err(Refused::Encoding),
    }
}

async fn read(body: &mut Incoming, bytes_max: usize) -> Result<Bytes, Refused> {
    let Some(first) = next(body).await? else { return Ok(Bytes::new()) };
    if first.len() > bytes_max {
        return Err(Refused::TooLarge);
    }
    // Nearly always the body is one piece, and that piece is what the parser borrows from.
    if body.is_end_stream() {
        return Ok(first);
    }
    let mut whole = Vec::from(first);
    while let Some(piece) = next(body).await? {
        if whole.len() + piece.len() > bytes_max {
            return Err(Refused::TooLarge);
        }
        whole.extend_from_slice(&piece);
    }
    Ok(whole.into())
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

/// A refused request's body, up to here, is read and thrown away to keep its connection; a longer one is not worth it.
const SKIPPED_BYTES_MAX: usize = 64 << 10;

/// Gets the body of a refused request out of the way, or gives the connection up.
pub(crate) async fn skip_body(connection: &Connection, head: &Parts, body: &mut Incoming) {
    let short =
        number(&head.headers, header::CONTENT_LENGTH).is_none_or(|len| len <= SKIPPED_BYTES_MAX as u64);
    // Who asks before sending has nothing under way yet, and should not be told to go on.
    let waits = head.headers.contains_key(header::EXPECT);
    if head.version >= Version::HTTP_2 {
        return;
    }
    let _reading = connection.reading_body();
    if waits || !short || read(body, SKIPPED_BYTES_MAX).await.is_err() {
        connection.close_after_reply();
    }
}
