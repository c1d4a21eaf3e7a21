//! The head of an HTTP/1.1 reply.

use crate::call::Fault;

/// The most headers of a reply. Providers send up to thirty.
const HEADERS_MAX: usize = 64;

/// The head of a reply, as far as it matters for reading the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReplyHead {
    pub(super) bytes: usize,
    pub(super) status: u16,
    pub(super) body: BodyLength,
    pub(super) gzip: bool,
    pub(super) keep_alive: bool,
}

/// Where the body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyLength {
    Known(usize),
    Chunked,
    /// The body ends with the connection.
    UntilClose,
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
        let mut fields = HeaderFields { keep_alive: response.version == Some(1), ..HeaderFields::default() };
        for header in response.headers.iter() {
            fields.read(header)?;
        }
        let body = fields.body_length(status);
        let keep_alive = fields.keep_alive && body != BodyLength::UntilClose && !fields.is_ambiguous();
        Ok(Some(Self { bytes: length, status, body, gzip: fields.gzip, keep_alive }))
    }
}

/// The header fields that matter.
#[derive(Default)]
struct HeaderFields {
    length: Option<usize>,
    chunked: bool,
    gzip: bool,
    keep_alive: bool,
}

impl HeaderFields {
    fn read(&mut self, header: &httparse::Header<'_>) -> Result<(), Fault> {
        let is = |name: &str| header.name.eq_ignore_ascii_case(name);
        let value = header.value.trim_ascii();
        if is("content-length") {
            let length = digits(value).ok_or(Fault::Garbled)?;
            if self.length.replace(length).is_some_and(|other| other != length) {
                return Err(Fault::Garbled);
            }
        } else if is("transfer-encoding") {
            if !value.eq_ignore_ascii_case(b"chunked") || self.chunked {
                return Err(Fault::Garbled);
            }
            self.chunked = true;
        } else if is("content-encoding") {
            self.gzip |= value.eq_ignore_ascii_case(b"gzip");
            if !self.gzip && !value.is_empty() && !value.eq_ignore_ascii_case(b"identity") {
                return Err(Fault::Garbled);
            }
        } else if is("connection") {
            self.keep_alive = keeps_alive(value, self.keep_alive);
        }
        Ok(())
    }

    /// Whether two headers say where the body ends. One is followed, and the connection is not used again.
    fn is_ambiguous(&self) -> bool {
        self.chunked && self.length.is_some()
    }

    fn body_length(&self, status: u16) -> BodyLength {
        match self.length {
            _ if matches!(status, 100..200 | 204 | 304) => BodyLength::Known(0),
            _ if self.chunked => BodyLength::Chunked,
            Some(length) => BodyLength::Known(length),
            None => BodyLength::UntilClose,
        }
    }
}

fn digits(value: &[u8]) -> Option<usize> {
    let plain = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    if plain { std::str::from_utf8(value).ok()?.parse().ok() } else { None }
}

fn keeps_alive(value: &[u8], usual: bool) -> bool {
    let says = |word: &[u8]| {
        value.split(|&byte| byte == b',').any(|part| part.trim_ascii().eq_ignore_ascii_case(word))
    };
    !says(b"close") && (usual || says(b"keep-alive"))
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
        assert_eq!(whole("HTTP/1.1 200 OK\nContent-Length: 12").body, BodyLength::Known(12));
        assert_eq!(whole("HTTP/1.1 200 OK\ntransfer-encoding: chunked").body, BodyLength::Chunked);
        assert_eq!(whole("HTTP/1.1 200 OK").body, BodyLength::UntilClose);
        assert_eq!(whole("HTTP/1.1 204 No Content").body, BodyLength::Known(0));
        assert_eq!(ReplyHead::parse(b"HTTP/1.1 200 OK\r\nContent-"), Ok(None));
    }

    #[test]
    fn a_connection_is_kept_only_when_both_sides_agree_where_it_stands() {
        assert!(whole("HTTP/1.1 200 OK\nContent-Length: 1").keep_alive);
        assert!(!whole("HTTP/1.1 200 OK\nContent-Length: 1\nConnection: x, Close").keep_alive);
        assert!(!whole("HTTP/1.0 200 OK\nContent-Length: 1").keep_alive);
        assert!(whole("HTTP/1.0 200 OK\nContent-Length: 1\nConnection: keep-alive").keep_alive);
        assert!(!whole("HTTP/1.1 200 OK\nContent-Length: 1\nTransfer-Encoding: chunked").keep_alive);
        assert!(!whole("HTTP/1.1 200 OK").keep_alive);
    }

    #[test]
    fn heads_that_contradict_themselves_are_refused() {
        for lines in [
            "HTTP/1.1 200 OK\nContent-Length: 1\nContent-Length: 2",
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
