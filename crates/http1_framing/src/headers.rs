//! The headers that determine where a message ends, and whether its connection stays open.

use crate::FramingError;

/// How the end of a body is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFraming {
    /// The body has this many bytes.
    Bytes(u64),
    /// The body is chunked, and has its end in itself.
    Chunks,
}

/// The headers of one message that affect its framing and its connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct FramingHeaders {
    length: Option<u64>,
    chunked: bool,
    close: bool,
    keep_alive: bool,
}

impl FramingHeaders {
    /// Reads one header. It ignores all but `Content-Length`, `Transfer-Encoding` and `Connection`.
    #[inline]
    pub fn read(&mut self, name: &str, value: &[u8]) -> Result<(), FramingError> {
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        match name.len() {
            10 if is("connection") => self.read_connection(value),
            14 if is("content-length") => self.read_length(value.trim_ascii())?,
            17 if is("transfer-encoding") => self.read_encoding(value.trim_ascii())?,
            _ => {}
        }
        Ok(())
    }

    /// Where the body of a request ends. Without a header about it, there is none.
    pub fn request_body(&self, is_http10: bool) -> Result<BodyFraming, FramingError> {
        Ok(self.stated_body(is_http10)?.unwrap_or(BodyFraming::Bytes(0)))
    }

    /// Where the body of a reply to `POST` ends. `None`: it ends with the connection.
    pub fn reply_body(&self, is_http10: bool, status: u16) -> Result<Option<BodyFraming>, FramingError> {
        let stated = self.stated_body(is_http10)?;
        // These replies never have a body, whatever their headers say.
        Ok(if matches!(status, 100..200 | 204 | 304) { Some(BodyFraming::Bytes(0)) } else { stated })
    }

    /// Whether the sender keeps the connection open after the message. `close` cannot be taken back by another header, and
    /// HTTP/1.0 needs `keep-alive`.
    pub fn keeps_connection(&self, is_http10: bool) -> bool {
        !self.close && (!is_http10 || self.keep_alive)
    }

    fn read_length(&mut self, value: &[u8]) -> Result<(), FramingError> {
        let length = parse_length(value).ok_or(FramingError::Ambiguous)?;
        match self.length.replace(length) {
            None => Ok(()),
            Some(_) => Err(FramingError::Ambiguous),
        }
    }

    /// Other encodings than `chunked` are refused, because only the last of a list determines where the body ends.
    fn read_encoding(&mut self, value: &[u8]) -> Result<(), FramingError> {
        if self.chunked || !value.eq_ignore_ascii_case(b"chunked") {
            return Err(FramingError::Ambiguous);
        }
        self.chunked = true;
        Ok(())
    }

    fn read_connection(&mut self, value: &[u8]) {
        for option in value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    /// Where the body ends according to the headers; `None` if they do not say it.
    fn stated_body(&self, is_http10: bool) -> Result<Option<BodyFraming>, FramingError> {
        match (self.length, self.chunked) {
            (Some(_), true) => Err(FramingError::Ambiguous),
            // HTTP/1.0 has no chunked encoding.
            (None, true) if is_http10 => Err(FramingError::Ambiguous),
            (None, true) => Ok(Some(BodyFraming::Chunks)),
            (length, false) => Ok(length.map(BodyFraming::Bytes)),
        }
    }
}

/// Parses a length that has only digits: no sign, no list, no other base.
fn parse_length(value: &[u8]) -> Option<u64> {
    let is_plain = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    if is_plain { std::str::from_utf8(value).ok()?.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HTTP10: bool = true;
    const HTTP11: bool = false;

    fn read(lines: &[&str]) -> Result<FramingHeaders, FramingError> {
        let mut headers = FramingHeaders::default();
        for line in lines {
            let (name, value) = line.split_once(':').unwrap();
            headers.read(name, value.as_bytes())?;
        }
        Ok(headers)
    }

    #[test]
    fn one_header_determines_the_length_of_a_body() {
        let cases: [(&[&str], Option<BodyFraming>); 6] = [
            (&[], None),
            (&["host: x", "content-type: 7"], None),
            (&["Content-Length: \t12 "], Some(BodyFraming::Bytes(12))),
            (&["content-length:007"], Some(BodyFraming::Bytes(7))),
            (&["content-length: 18446744073709551615"], Some(BodyFraming::Bytes(u64::MAX))),
            (&["Transfer-Encoding:  Chunked "], Some(BodyFraming::Chunks)),
        ];
        for (lines, body) in cases {
            let headers = read(lines).unwrap();
            assert_eq!(headers.request_body(HTTP11), Ok(body.unwrap_or(BodyFraming::Bytes(0))), "{lines:?}");
            assert_eq!(headers.reply_body(HTTP11, 200), Ok(body), "{lines:?}");
        }
    }

    #[test]
    fn ambiguous_lengths_are_refused() {
        let cases: [&[&str]; 15] = [
            &["content-length: 3", "content-length: 3"],
            &["content-length: 3", "content-length: 4"],
            &["content-length: 3, 3"],
            &["content-length: +3"],
            &["content-length: -3"],
            &["content-length: 0x3"],
            &["content-length: 3 3"],
            &["content-length:"],
            &["content-length: 18446744073709551616"],
            &["content-length: ٣"],
            &["transfer-encoding: chunked", "transfer-encoding: chunked"],
            &["transfer-encoding: gzip, chunked"],
            &["transfer-encoding: xchunked"],
            &["transfer-encoding: identity"],
            &["transfer-encoding:"],
        ];
        for lines in cases {
            assert_eq!(read(lines).err(), Some(FramingError::Ambiguous), "{lines:?}");
        }
    }

    #[test]
    fn a_length_and_chunks_contradict_each_other() {
        for lines in [
            ["content-length: 3", "transfer-encoding: chunked"],
            ["transfer-encoding: chunked", "content-length: 3"],
        ] {
            let headers = read(&lines).unwrap();
            assert_eq!(headers.request_body(HTTP11), Err(FramingError::Ambiguous));
            for status in [200, 204] {
                assert_eq!(headers.reply_body(HTTP11, status), Err(FramingError::Ambiguous));
            }
        }
    }

    #[test]
    fn http_1_0_has_no_chunks() {
        let headers = read(&["transfer-encoding: chunked"]).unwrap();
        assert_eq!(headers.request_body(HTTP10), Err(FramingError::Ambiguous));
        assert_eq!(headers.reply_body(HTTP10, 200), Err(FramingError::Ambiguous));
    }

    #[test]
    fn some_replies_never_have_a_body() {
        for status in [100, 103, 204, 304] {
            for lines in [&[][..], &["content-length: 3"], &["transfer-encoding: chunked"]] {
                let body = read(lines).unwrap().reply_body(HTTP11, status);
                assert_eq!(body, Ok(Some(BodyFraming::Bytes(0))), "{status} {lines:?}");
            }
        }
    }

    /// `close` and then `keep-alive` in another header kept the connection to a node, which the node then closed.
    #[test]
    fn a_connection_ends_once_close_is_seen() {
        let cases: [(&[&str], bool, bool); 8] = [
            (&[], true, false),
            (&["connection: keep-alive"], true, true),
            (&["Connection: x,\tKeep-Alive "], true, true),
            (&["connection: upgrade"], true, false),
            (&["connection: x, Close"], false, false),
            (&["connection: close", "connection: keep-alive"], false, false),
            (&["connection: keep-alive", "connection: close"], false, false),
            (&["connection: keep-alive, close"], false, false),
        ];
        for (lines, http11, http10) in cases {
            let headers = read(lines).unwrap();
            let kept = (headers.keeps_connection(HTTP11), headers.keeps_connection(HTTP10));
            assert_eq!(kept, (http11, http10), "{lines:?}");
        }
    }

    /// The framing that the headers state, found by looking at all of them at once.
    fn naive_body(lines: &[(&str, &str)], is_http10: bool) -> Result<Option<BodyFraming>, FramingError> {
        let values = |wanted: &str| -> Vec<String> {
            let same = lines.iter().filter(|(name, _)| name.to_lowercase() == wanted);
            same.map(|(_, value)| value.trim().to_lowercase()).collect()
        };
        let (lengths, encodings) = (values("content-length"), values("transfer-encoding"));
        match (lengths.as_slice(), encodings.as_slice()) {
            ([], []) => Ok(None),
            ([length], []) if length.chars().all(|digit| digit.is_ascii_digit()) => {
                length.parse().map(|length| Some(BodyFraming::Bytes(length))).or(Err(FramingError::Ambiguous))
            }
            ([], [encoding]) if encoding == "chunked" && !is_http10 => Ok(Some(BodyFraming::Chunks)),
            _ => Err(FramingError::Ambiguous),
        }
    }

    fn header() -> impl Strategy<Value = (&'static str, &'static str)> {
        let name = prop::sample::select(vec!["content-length", "Transfer-Encoding", "Connection", "host"]);
        let value =
            prop::sample::select(vec!["5", " 5 ", "", "+5", "chunked", " Chunked", "close", "keep-alive, x"]);
        (name, value)
    }

    proptest! {
        #[test]
        fn headers_say_what_a_naive_reader_sees(
            lines in prop::collection::vec(header(), 0..5),
            is_http10: bool,
        ) {
            let mut headers = FramingHeaders::default();
            let read = lines.iter().try_for_each(|(name, value)| headers.read(name, value.as_bytes()));
            let body = read.and_then(|()| headers.reply_body(is_http10, 200));
            prop_assert_eq!(body, naive_body(&lines, is_http10));
            if read.is_ok() {
                let says = |option: &str| lines.iter().any(|(name, value)| {
                    *name == "Connection" && value.split(',').any(|part| part.trim() == option)
                });
                let keeps = !says("close") && (says("keep-alive") || !is_http10);
                prop_assert_eq!(headers.keeps_connection(is_http10), keeps);
            }
        }
    }
}
