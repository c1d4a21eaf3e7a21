//! Splits the bytes of a connection into requests, without answering them.
//!
//! Only fuzzing uses it, to compare the framing with another HTTP server.

use http1_framing::BodyFraming;

use super::chunks::ChunkedBody;
use super::head::{HeadEndSearch, parse};

/// An accepted request.
#[derive(Debug)]
pub struct FramedRequest<'a> {
    /// The head, including the empty line at its end.
    pub head: &'a [u8],
    pub body: Vec<u8>,
}

/// The complete, accepted requests at the start of `bytes`.
pub fn framed_requests(bytes: &[u8]) -> Vec<FramedRequest<'_>> {
    let mut requests = Vec::new();
    let mut rest = Some(bytes);
    while let Some((request, next)) = rest.and_then(first_request) {
        requests.push(request);
        rest = next;
    }
    requests
}

/// The first request, and the bytes after it if another request may follow.
fn first_request(bytes: &[u8]) -> Option<(FramedRequest<'_>, Option<&[u8]>)> {
    let mut search = HeadEndSearch::default();
    let end = search.end(bytes).ok()??;
    let (head, rest) = bytes.split_at(end);
    let mut room = vec![httparse::EMPTY_HEADER; search.lines()];
    let parsed = parse(head, &mut room).ok()?;
    match parsed.framing {
        BodyFraming::Bytes(length) => {
            let (body, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
            Some((FramedRequest { head, body: body.to_vec() }, parsed.keep_alive.then_some(rest)))
        }
        BodyFraming::Chunks => {
            let mut chunks = ChunkedBody::new();
            chunks.feed(rest, usize::MAX).ok()?;
            chunks.is_whole().then(|| (FramedRequest { head, body: chunks.into_data() }, None))
        }
    }
}
