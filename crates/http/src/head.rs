//! The head of an HTTP/1 or HTTP/2 request.

use http::header::HeaderName;
use http::{HeaderMap, Method};

/// The head of an HTTP/1 or HTTP/2 request.
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'a> {
    pub method: RequestMethod,
    /// The path, with its query if it has one.
    pub target: &'a str,
    pub headers: Headers<'a>,
}

/// The HTTP method, as far as the server distinguishes methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestMethod {
    Post,
    Options,
    /// The reply has no body.
    Head,
    Other,
}

impl From<&str> for RequestMethod {
    fn from(name: &str) -> Self {
        match name {
            "POST" => Self::Post,
            "OPTIONS" => Self::Options,
            "HEAD" => Self::Head,
            _ => Self::Other,
        }
    }
}

impl From<&Method> for RequestMethod {
    fn from(method: &Method) -> Self {
        method.as_str().into()
    }
}

/// The headers of a request.
#[derive(Clone, Copy, Debug)]
pub enum Headers<'a> {
    /// HTTP/1.
    Lines(&'a [httparse::Header<'a>]),
    /// HTTP/2.
    Map(&'a HeaderMap),
}

impl<'a> From<&'a HeaderMap> for Headers<'a> {
    fn from(map: &'a HeaderMap) -> Self {
        Self::Map(map)
    }
}

impl<'a> Headers<'a> {
    /// The first value of a header.
    pub fn get(self, name: &HeaderName) -> Option<&'a [u8]> {
        match self {
            Self::Lines(lines) => lines.iter().find(|line| is(line, name)).map(|line| line.value),
            Self::Map(map) => map.get(name).map(|value| value.as_bytes()),
        }
    }

    /// The value of a header that is there once, if it is visible ASCII. Of several values, a proxy in front of the gateway may
    /// have checked another one than the gateway would.
    pub fn text(self, name: &HeaderName) -> Option<&'a str> {
        let mut values = self.all(name);
        let only = values.next().filter(|_| values.next().is_none());
        only.and_then(visible_ascii)
    }

    /// All values of a header.
    pub fn all(self, name: &HeaderName) -> impl Iterator<Item = &'a [u8]> {
        let (lines, map) = match self {
            Self::Lines(lines) => (lines, None),
            Self::Map(map) => (&[][..], Some(map)),
        };
        let of_lines = lines.iter().filter(move |line| is(line, name)).map(|line| line.value);
        of_lines.chain(map.into_iter().flat_map(move |map| map.get_all(name)).map(|value| value.as_bytes()))
    }
}

fn is(line: &httparse::Header<'_>, name: &HeaderName) -> bool {
    line.name.len() == name.as_str().len() && line.name.eq_ignore_ascii_case(name.as_str())
}

/// The value as text, if it has only visible ASCII, spaces and tabs. Readers disagree on the meaning of other bytes.
pub(crate) fn visible_ascii(value: &[u8]) -> Option<&str> {
    let visible = value.iter().all(|&byte| (b' '..=b'~').contains(&byte) || byte == b'\t');
    if visible { std::str::from_utf8(value).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use http::header;

    use super::*;

    #[test]
    fn lines_and_maps_are_read_alike() {
        let lines = [("Accept-Encoding", "br"), ("x", "y"), ("accept-encoding", "gzip")];
        let map: HeaderMap = lines
            .iter()
            .map(|(name, value)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap()))
            .collect();
        let lines = lines.map(|(name, value)| httparse::Header { name, value: value.as_bytes() });
        for headers in [Headers::Lines(&lines), Headers::Map(&map)] {
            assert_eq!(headers.get(&header::ACCEPT_ENCODING), Some(&b"br"[..]));
            assert_eq!(headers.text(&header::ACCEPT_ENCODING), None, "there are two");
            assert_eq!(headers.text(&HeaderName::from_static("x")), Some("y"));
            assert_eq!(headers.all(&header::ACCEPT_ENCODING).collect::<Vec<_>>(), [&b"br"[..], b"gzip"]);
            assert_eq!(headers.get(&header::ORIGIN), None);
        }
    }

    #[test]
    fn values_with_other_bytes_are_not_text() {
        assert_eq!(visible_ascii(b"a b\t~"), Some("a b\t~"));
        for odd in [&b"\xc3\xa9"[..], b"\x00", b"\x7f", b"a\nb"] {
            assert_eq!(visible_ascii(odd), None, "{odd:?}");
        }
    }
}
