//! Where each HTTP/1 request on a connection ends, judged to the letter.
//!
//! The HTTP library is lenient where readers in front of us may be strict, and it hides what it passed over: a
//! `Content-Length` beside a `Transfer-Encoding`, lines that end without a carriage return, lengths said twice. Two readers
//! that disagree on where a request ends are what request smuggling lives on. So the bytes are watched as they come
//! in, and a request that could be read in two ways is refused.

/// The watch over one connection.
#[derive(Debug)]
pub(super) struct Framing {
    state: State,
    /// The beginning of a line whose end has not come yet.
    partial: Vec<u8>,
    head: Head,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Head,
    Body {
        left: u64,
    },
    /// Nothing that follows is looked at: it is HTTP/2, or the connection ends with this request.
    Unwatched,
}

#[derive(Debug, Default)]
struct Head {
    begun: bool,
    length: Option<u64>,
    chunked: bool,
}

/// What was fed so far could be read in two ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ambiguous;

/// Longer than any head that the library accepts.
const PARTIAL_BYTES_MAX: usize = 64 << 10;

impl Framing {
    pub(super) fn new() -> Self {
        Self { state: State::Head, partial: Vec::new(), head: Head::default() }
    }

    /// From here on, nothing is looked at.
    pub(super) fn unwatch(&mut self) {
        self.state = State::Unwatched;
    }

    /// Whether a head has begun and not ended.
    pub(super) fn is_inside_head(&self) -> bool {
        self.state == State::Head && (self.head.begun || !self.partial.is_empty())
    }

    /// Whether what came in ends in the middle of a request.
    pub(super) fn is_inside_request(&self) -> bool {
        self.is_inside_head() || matches!(self.state, State::Body { .. })
    }

    /// Takes the bytes that came in.
    pub(super) fn feed(&mut self, mut bytes: &[u8]) -> Result<(), Ambiguous> {
        while !bytes.is_empty() {
            match self.state {
                State::Unwatched => return Ok(()),
                State::Body { left } => {
                    let here = left.min(bytes.len() as u64);
                    bytes = &bytes[here as usize..];
                    self.state = if here == left { State::Head } else { State::Body { left: left - here } };
                }
                State::Head => bytes = self.feed_head(bytes).inspect_err(|_| self.unwatch())?,
            }
        }
        Ok(())
    }

    /// One line, or the beginning of one; returns what comes after it.
    fn feed_head<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], Ambiguous> {
        let Some(end) = memchr::memchr(b'\n', bytes) else {
            if self.partial.len() + bytes.len() > PARTIAL_BYTES_MAX {
                return Err(Ambiguous);
            }
            self.partial.extend_from_slice(bytes);
            return Ok(&[]);
        };
        if self.partial.is_empty() {
            self.line(&bytes[..end])?;
        } else {
            let mut line = std::mem::take(&mut self.partial);
            line.extend_from_slice(&bytes[..end]);
            self.line(&line)?;
        }
        Ok(&bytes[end + 1..])
    }

    /// A line without its line feed.
    fn line(&mut self, line: &[u8]) -> Result<(), Ambiguous> {
        let Some((b'\r', line)) = line.split_last() else { return Err(Ambiguous) };
        match line.first() {
            // An empty line before a request means nothing.
            None if !self.head.begun => {}
            None => return self.end_of_head(),
            Some(_) if !self.head.begun => self.head.begun = true,
            Some(b' ' | b'\t') => return Err(Ambiguous),
            Some(b'c' | b'C' | b't' | b'T') => self.head.header(line)?,
            Some(_) => {}
        }
        Ok(())
    }

    fn end_of_head(&mut self) -> Result<(), Ambiguous> {
        let head = std::mem::take(&mut self.head);
        self.state = match (head.length, head.chunked) {
            (Some(_), true) => return Err(Ambiguous),
            (None, true) => State::Unwatched,
            (None | Some(0), false) => State::Head,
            (Some(left), false) => State::Body { left },
        };
        Ok(())
    }
}

impl Head {
    fn header(&mut self, line: &[u8]) -> Result<(), Ambiguous> {
        if let Some(value) = value_of(line, b"content-length:") {
            let digits = std::str::from_utf8(value).map_err(|_| Ambiguous)?;
            let plain = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
            let length = if plain { digits.parse().ok() } else { None };
            if self.length.replace(length.ok_or(Ambiguous)?).is_some() {
                return Err(Ambiguous);
            }
        } else if let Some(value) = value_of(line, b"transfer-encoding:") {
            if self.chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return Err(Ambiguous);
            }
            self.chunked = true;
        }
        Ok(())
    }
}

fn value_of<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (start, value) = line.split_at_checked(name.len())?;
    start.eq_ignore_ascii_case(name).then(|| value.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds `text` whole and byte by byte, which must not differ.
    fn judged(text: &str) -> Result<State, Ambiguous> {
        let (mut whole, mut bytewise) = (Framing::new(), Framing::new());
        let result = whole.feed(text.as_bytes());
        let by_bytes = text.as_bytes().chunks(1).try_for_each(|byte| bytewise.feed(byte));
        assert_eq!((result, whole.state), (by_bytes, bytewise.state), "{text:?}");
        result.map(|()| whole.state)
    }

    #[test]
    fn plain_requests_are_followed_one_after_another() {
        let get = "GET / HTTP/1.1\r\nhost: x\r\n\r\n";
        let post = "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\n{\n}";
        assert_eq!(judged(&format!("{get}{post}\r\n{get}{post}{post}")), Ok(State::Head));
        assert_eq!(judged("POST / HTTP/1.1\r\ncontent-length:5\r\n\r\nab"), Ok(State::Body { left: 3 }));
    }

    #[test]
    fn nothing_is_looked_at_behind_a_chunked_request() {
        let chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n";
        assert_eq!(judged(&format!("{chunked}3\r\nabc\nContent-Length: x\n")), Ok(State::Unwatched));
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_ambiguous() {
        let heads = [
            "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
            "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n",
            "Content-Length: 3\r\nContent-Length: 3\r\n",
            "Content-Length: 3\r\ncontent-length: 4\r\n",
            "Content-Length: 3, 3\r\n",
            "Content-Length: +3\r\n",
            "Content-Length: -3\r\n",
            "Content-Length: 0x3\r\n",
            "Content-Length:\r\n",
            "Content-Length: 99999999999999999999\r\n",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
            "Transfer-Encoding: xchunked\r\n",
            "Transfer-Encoding: gzip, chunked\r\n",
            "Transfer-Encoding: chunked\n",
            "X: y\n",
            "X: y\r\n folded: z\r\n",
            "X: y\r\n\tfolded: z\r\n",
        ];
        for head in heads {
            assert_eq!(judged(&format!("POST / HTTP/1.1\r\n{head}")), Err(Ambiguous), "{head:?}");
        }
    }
}
