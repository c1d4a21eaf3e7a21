//! Strict parsing of heads.
//!
//! Request smuggling needs two servers that disagree on where a request ends, and proxies in front of the gateway may be
//! strict or lenient. Ambiguous requests are therefore refused: those of which [`http1_framing`] does not know the end, lines
//! that end without a carriage return, and a missing, duplicate or malformed `Host`.

use http1_framing::{BodyFraming, FramingHeaders};

use crate::head::{Headers, RequestHead};
use crate::refused::Refused;

/// Searches the end of a head, which may arrive in pieces.
#[derive(Debug, Default)]
pub(super) struct HeadEndSearch {
    /// Start of the current line.
    line: usize,
    /// Bytes that were searched.
    searched: usize,
    lines: usize,
}

impl HeadEndSearch {
    /// The end of the head at the start of `input`; `None` if the head is incomplete.
    pub(super) fn end(&mut self, input: &[u8]) -> Result<Option<usize>, Refused> {
        for found in memchr::memchr_iter(b'\n', &input[self.searched..]) {
            let at = self.searched + found;
            let Some((b'\r', line)) = input[self.line..at].split_last() else {
                return Err(Refused::Ambiguous);
            };
            self.line = at + 1;
            if !line.is_empty() {
                self.lines += 1;
            } else if self.lines > 0 {
                return Ok(Some(self.line));
            }
            // Empty lines before a request are ignored.
        }
        self.searched = input.len();
        Ok(None)
    }

    /// Lines found so far, including the request line.
    pub(super) fn lines(&self) -> usize {
        self.lines
    }
}

/// A valid head.
#[derive(Debug)]
pub(super) struct ParsedHead<'a> {
    pub(super) head: RequestHead<'a>,
    pub(super) framing: BodyFraming,
    /// Whether the caller wants to keep the connection open.
    pub(super) keep_alive: bool,
    pub(super) expects_continue: bool,
    pub(super) is_http10: bool,
}

/// Parses a complete head. `room` has an entry for each of its lines.
pub(super) fn parse<'h, 'b: 'h>(
    text: &'b [u8],
    room: &'h mut [httparse::Header<'b>],
) -> Result<ParsedHead<'h>, Refused> {
    let mut request = httparse::Request::new(room);
    let whole = request.parse(text).is_ok_and(|status| status.is_complete());
    let httparse::Request { method: Some(method), path: Some(target), version: Some(version), headers } =
        request
    else {
        return Err(Refused::BadHead);
    };
    if !whole {
        return Err(Refused::BadHead);
    }
    let is_http10 = version == 0;
    let mut fields = RequestFields::default();
    for header in headers.iter() {
        fields.read(header)?;
    }
    // HTTP/1.0 had no Host.
    if !fields.host && !is_http10 {
        return Err(Refused::BadHost);
    }
    Ok(ParsedHead {
        head: RequestHead {
            method: method.into(),
            target: path_of(target),
            headers: Headers::Lines(headers),
        },
        framing: fields.framing.request_body(is_http10)?,
        keep_alive: fields.framing.keeps_connection(is_http10),
        expects_continue: fields.expects_continue && !is_http10,
        is_http10,
    })
}

/// The headers that the server needs itself.
#[derive(Debug, Default)]
struct RequestFields {
    framing: FramingHeaders,
    expects_continue: bool,
    host: bool,
}

impl RequestFields {
    fn read(&mut self, header: &httparse::Header<'_>) -> Result<(), Refused> {
        let is = |name: &str| header.name.eq_ignore_ascii_case(name);
        match header.name.len() {
            4 if is("host") => {
                // With two hosts, a proxy may have routed the request by the other one.
                let is_second = std::mem::replace(&mut self.host, true);
                if is_second || !is_host(header.value.trim_ascii()) {
                    return Err(Refused::BadHost);
                }
            }
            6 if is("expect") => {
                self.expects_continue = header.value.trim_ascii().eq_ignore_ascii_case(b"100-continue");
            }
            _ => self.framing.read(header.name, header.value)?,
        }
        Ok(())
    }
}

/// Whether the value is a host name or an address, with or without a port.
fn is_host(value: &[u8]) -> bool {
    let (name, port) = match value.iter().rposition(|&byte| byte == b':') {
        Some(colon) if !value.ends_with(b"]") => (&value[..colon], &value[colon + 1..]),
        _ => (value, &[][..]),
    };
    let name_is_valid = match name.strip_prefix(b"[").map(|rest| rest.strip_suffix(b"]")) {
        Some(address) => address.is_some_and(|address| {
            !address.is_empty()
                && address.iter().all(|&byte| byte.is_ascii_alphanumeric() || b":.".contains(&byte))
        }),
        None => !name.is_empty() && name.iter().all(|&byte| is_name_byte(byte)),
    };
    name_is_valid && port.iter().all(u8::is_ascii_digit)
}

/// The bytes that RFC 3986 allows in a registered name.
fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=".contains(&byte)
}

/// The path of a request target. Clients of a proxy send a whole URL.
fn path_of(target: &str) -> &str {
    let whole = ["http://", "https://"].into_iter().find_map(|scheme| {
        let (start, rest) = target.split_at_checked(scheme.len())?;
        start.eq_ignore_ascii_case(scheme).then_some(rest)
    });
    match whole.and_then(|rest| Some((rest, rest.find(['/', '?', '#'])?))) {
        Some((rest, path @ 1..)) => &rest[path..],
        _ => target,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches the end at once and byte by byte; the results must be equal.
    fn end(text: &str) -> Result<Option<usize>, Refused> {
        let mut search = HeadEndSearch::default();
        let bytewise =
            (1..=text.len()).find_map(|len| search.end(&text.as_bytes()[..len]).transpose()).transpose();
        let whole = HeadEndSearch::default().end(text.as_bytes());
        assert_eq!(whole, bytewise, "{text:?}");
        whole
    }

    fn parsed(lines: &str) -> Result<(BodyFraming, bool), Refused> {
        let text = format!("POST /v3/demo HTTP/1.1\r\nhost: x\r\n{lines}\r\n");
        let end = end(&text)?.ok_or(Refused::BadHead)?;
        let mut room = [httparse::EMPTY_HEADER; 8];
        parse(&text.as_bytes()[..end], &mut room).map(|parsed| (parsed.framing, parsed.keep_alive))
    }

    #[test]
    fn a_head_ends_with_an_empty_line() {
        let get = "GET / HTTP/1.1\r\nhost: x\r\n\r\n";
        assert_eq!(end(get), Ok(Some(get.len())));
        assert_eq!(end(&format!("{get}{get}")), Ok(Some(get.len())));
        assert_eq!(end(&format!("\r\n\r\n{get}")), Ok(Some(get.len() + 4)));
        assert_eq!(end("GET / HTTP/1.1\r\nhost: x\r\n"), Ok(None));
        assert_eq!(end(""), Ok(None));
    }

    #[test]
    fn lines_end_with_carriage_return_and_line_feed() {
        for text in ["\n", "GET / HTTP/1.1\n", "GET / HTTP/1.1\r\nx: y\n\r\n", "GET / HTTP/1.1\r\n\n"] {
            assert_eq!(end(text), Err(Refused::Ambiguous), "{text:?}");
        }
    }

    #[test]
    fn one_header_determines_the_length_of_the_body() {
        assert_eq!(parsed(""), Ok((BodyFraming::Bytes(0), true)));
        assert_eq!(parsed("Content-Length:  12 \r\n"), Ok((BodyFraming::Bytes(12), true)));
        assert_eq!(parsed("Transfer-Encoding: Chunked\r\n"), Ok((BodyFraming::Chunks, true)));
        assert_eq!(parsed("Connection: x, Close\r\n"), Ok((BodyFraming::Bytes(0), false)));
    }

    #[test]
    fn ambiguous_heads_are_refused() {
        for lines in [
            "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
            "Content-Length: 3\r\nContent-Length: 3\r\n",
            "Content-Length: 3, 3\r\n",
            "Transfer-Encoding: gzip, chunked\r\n",
            "Transfer-Encoding: chunked\n",
            "X: y\n",
        ] {
            assert_eq!(parsed(lines), Err(Refused::Ambiguous), "{lines:?}");
        }
        for lines in [
            "X: y\r\n folded: z\r\n",
            "X: y\r\n\tfolded: z\r\n",
            "Content-Length : 3\r\n",
            "X: y\rContent-Length: 3\r\n",
            "no colon\r\n",
            "X\0: y\r\n",
        ] {
            assert_eq!(parsed(lines), Err(Refused::BadHead), "{lines:?}");
        }
    }

    #[test]
    fn http_1_1_needs_exactly_one_valid_host() {
        let parsed = |version: &str, lines: &str| {
            let text = format!("POST / HTTP/{version}\r\n{lines}\r\n");
            let mut room = [httparse::EMPTY_HEADER; 8];
            parse(text.as_bytes(), &mut room).map(|_| ())
        };
        for host in [
            "x",
            "a.b-c_d",
            "x:8545",
            "x:",
            "127.0.0.1:1",
            "[::1]",
            "[::1]:8545",
            "xn--bcher-kva.example",
            " x ",
        ] {
            assert_eq!(parsed("1.1", &format!("Host: {host}\r\n")), Ok(()), "{host:?}");
        }
        for host in [
            "", " ", ":80", "a b", "a/b", "a@b", "a?b", "a#b", "a:b", "a:1:2", "a\\b", "\"a\"", "<a>", "é",
            "[::1", "::1]", "[]", "[a]b", "a[b]",
        ] {
            assert_eq!(parsed("1.1", &format!("Host: {host}\r\n")), Err(Refused::BadHost), "{host:?}");
        }
        assert_eq!(parsed("1.1", ""), Err(Refused::BadHost));
        assert_eq!(parsed("1.1", "Host: a\r\nHost: a\r\n"), Err(Refused::BadHost));
        assert_eq!(parsed("1.0", ""), Ok(()));
        assert_eq!(parsed("1.0", "Host: a b\r\n"), Err(Refused::BadHost));
    }

    #[test]
    fn http_1_0_stays_open_only_with_keep_alive() {
        let kept = |text: &str| {
            let mut room = [httparse::EMPTY_HEADER; 8];
            parse(text.as_bytes(), &mut room).map(|parsed| parsed.keep_alive)
        };
        assert_eq!(kept("POST / HTTP/1.0\r\n\r\n"), Ok(false));
        assert_eq!(kept("POST / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"), Ok(true));
        assert_eq!(kept("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), Err(Refused::Ambiguous));
        assert_eq!(kept("POST / HTTP/2.0\r\n\r\n"), Err(Refused::BadHead));
    }

    #[test]
    fn the_path_of_a_whole_url_is_used() {
        assert_eq!(path_of("/v3/demo"), "/v3/demo");
        assert_eq!(path_of("http://localhost:8545/v3/demo"), "/v3/demo");
        assert_eq!(path_of("HTTPS://x/"), "/");
        assert_eq!(path_of("http://x?/v3/demo"), "?/v3/demo");
        for odd in ["*", "http://x", "http:///v3/demo", "v3/demo"] {
            assert_eq!(path_of(odd), odd);
        }
    }
}
