//! Requests as the HTTP/1 reader cuts them out of a connection's bytes, without answering them.
//!
//! The gateway does not use it: fuzzing compares it with another reader.

use super::chunks::Chunks;
use super::head::{Extent, Search, parse};

/// One request that would be answered.
#[derive(Debug)]
pub struct FramedRequest<'a> {
    /// The head as it came in, with the empty line at its end.
    pub head: &'a [u8],
    pub body: Vec<u8>,
}

/// The requests at the beginning of `bytes` that are whole and accepted.
pub fn framed_requests(bytes: &[u8]) -> Vec<FramedRequest<'_>> {
    let mut requests = Vec::new();
    let mut rest = Some(bytes);
    while let Some((request, next)) = rest.and_then(first_request) {
        requests.push(request);
        rest = next;
    }
    requests
}

/// The first request, and what comes behind it if anything may.
fn first_request(bytes: &[u8]) -> Option<(FramedRequest<'_>, Option<&[u8]>)> {
    let mut search = Search::default();
    let end = search.end(bytes).ok()??;
    let (head, rest) = bytes.split_at(end);
    let mut room = vec![httparse::EMPTY_HEADER; search.lines()];
    let parsed = parse(head, &mut room).ok()?;
    match parsed.extent {
        Extent::Bytes(length) => {
            let (body, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
            Some((FramedRequest { head, body: body.to_vec() }, parsed.keep_alive.then_some(rest)))
        }
        Extent::Chunks => {
            let mut chunks = Chunks::default();
            chunks.feed(rest, usize::MAX).ok()?;
            chunks.is_whole().then(|| (FramedRequest { head, body: chunks.into_whole() }, None))
        }
    }
}
