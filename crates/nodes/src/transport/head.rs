//! The head of an HTTP/1.1 reply.

use http1_framing::{BodyFraming, FramingHeaders};

use crate::call::Fault;

/// The most headers of a reply. Providers send up to thirty.
const HEADERS_MAX: usize = 64;

/// The head of a reply, as far as it matters for reading the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReplyHead {
    pub(super) bytes: usize,
    pub(super) status: u16,
    /// `None`: the body ends with the connection.
    pub(super) body: Option<BodyFraming>,
    pub(super) gzip: bool,
    pub(super) keep_alive: bool,
}

impl ReplyHead {
    /// Returns `None` while the head is incomplete.
    pub(super) fn parse(bytes: &[u8]) -> Result<Option<Self>, Fault> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut response = httparse::Response::new(&mut headers);
        let length = match response.parse(bytes).map_err(|_| Fault::Garbled)? {
            httparse::Status::Partial => return Ok(None),
            httparse::Status::Complete(length) => length,
        };
        let status = response.code.ok_or(Fault::Garbled)?;
        let is_http10 = response.version != Some(1);
        let (mut framing, mut gzip) = (FramingHeaders::default(), false);
        for header in response.headers.iter() {
            framing.read(header.name, header.value)?;
            gzip |= header.name.eq_ignore_ascii_case("content-encoding") && is_gzip(header.value)?;
        }
        let body = framing.reply_body(is_http10, status)?;
        let keep_alive = framing.keeps_connection(is_http10) && body.is_some();
        Ok(Some(Self { bytes: length, status, body, gzip, keep_alive }))
    }
}

/// Whether the body is compressed. Encodings other than gzip are refused, because they are never requested.
fn is_gzip(encoding: &[u8]) -> Result<bool, Fault> {
    match encoding.trim_ascii() {
        gzip if gzip.eq_ignore_ascii_case(b"gzip") => Ok(true),
        plain if plain.is_empty() || plain.eq_ignore_ascii_case(b"identity") => Ok(false),
        _ => Err(Fault::Garbled),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(lines: &str) -> Result<Option<ReplyHead>, Fault> {
        ReplyHead::parse(format!("{}\r\n\r\n", lines.replace('\n', "\r\n")).as_bytes())
    }

    fn whole(lines: &str) -> ReplyHead {
        head(lines).unwrap().unwrap()
    }

    #[test]
    fn the_body_ends_where_the_head_says() {
        assert_eq!(whole("HTTP/1.1 200 OK\nContent-Length: 12").body, Some(BodyFraming::Bytes(12)));
        assert_eq!(whole("HTTP/1.1 200 OK\ntransfer-encoding: chunked").body, Some(BodyFraming::Chunks));
        assert_eq!(whole("HTTP/1.1 200 OK").body, None);
        assert_eq!(whole("HTTP/1.1 204 No Content").body, Some(BodyFraming::Bytes(0)));
        assert_eq!(ReplyHead::parse(b"HTTP/1.1 200 OK\r\nContent-"), Ok(None));
    }

    #[test]
    fn a_connection_is_kept_only_when_both_sides_agree_where_it_stands() {
        assert!(whole("HTTP/1.1 200 OK\nContent-Length: 1").keep_alive);
        assert!(!whole("HTTP/1.1 200 OK\nContent-Length: 1\nConnection: x, Close").keep_alive);
        assert!(!whole("HTTP/1.0 200 OK\nContent-Length: 1").keep_alive);
        assert!(whole("HTTP/1.0 200 OK\nContent-Length: 1\nConnection: keep-alive").keep_alive);
        let both = "HTTP/1.1 200 OK\nContent-Length: 1\nConnection: close\nConnection: keep-alive";
        assert!(!whole(both).keep_alive, "the first is not taken back");
        assert!(!whole("HTTP/1.1 200 OK").keep_alive);
    }

    #[test]
    fn heads_that_contradict_themselves_are_refused() {
        for lines in [
            "HTTP/1.1 200 OK\nContent-Length: 1\nContent-Length: 2",
            "HTTP/1.1 200 OK\nContent-Length: 1\nContent-Length: 1",
            "HTTP/1.1 200 OK\nContent-Length: 1\nTransfer-Encoding: chunked",
            "HTTP/1.0 200 OK\nTransfer-Encoding: chunked",
            "HTTP/1.1 200 OK\nContent-Length: +1",
            "HTTP/1.1 200 OK\nContent-Length: 99999999999999999999999",
            "HTTP/1.1 200 OK\nTransfer-Encoding: gzip, chunked",
            "HTTP/1.1 200 OK\nContent-Encoding: br",
            "ICY 200 OK",
        ] {
            assert_eq!(head(lines), Err(Fault::Garbled), "{lines}");
        }
    }
}
