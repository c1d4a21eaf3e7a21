//! The head of a request, whichever HTTP it came by.

use http::header::HeaderName;
use http::{HeaderMap, Method};

/// What the steps of a request may know of its head. HTTP/1 hands on its lines as they came, HTTP/2 its table.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    pub verb: Verb,
    /// The path, with its query if it has one.
    pub target: &'a str,
    pub headers: Headers<'a>,
}

/// What is wanted, as far as it makes a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Post,
    Options,
    /// Its reply has a head only.
    Head,
    Other,
}

impl From<&str> for Verb {
    fn from(name: &str) -> Self {
        match name {
            "POST" => Self::Post,
            "OPTIONS" => Self::Options,
            "HEAD" => Self::Head,
            _ => Self::Other,
        }
    }
}

impl From<&Method> for Verb {
    fn from(method: &Method) -> Self {
        method.as_str().into()
    }
}

/// The headers of a request.
#[derive(Clone, Copy, Debug)]
pub enum Headers<'a> {
    Lines(&'a [httparse::Header<'a>]),
    Map(&'a HeaderMap),
}

impl<'a> From<&'a HeaderMap> for Headers<'a> {
    fn from(map: &'a HeaderMap) -> Self {
        Self::Map(map)
    }
}

impl<'a> Headers<'a> {
    /// The first value under this name.
    pub fn get(self, name: &HeaderName) -> Option<&'a [u8]> {
        match self {
            Self::Lines(lines) => lines.iter().find(|line| is(line, name)).map(|line| line.value),
            Self::Map(map) => map.get(name).map(|value| value.as_bytes()),
        }
    }

    /// The first value under this name, if it is plain text.
    pub fn text(self, name: &HeaderName) -> Option<&'a str> {
        self.get(name).and_then(plain)
    }

    /// All values under this name.
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

/// Visible ASCII, spaces and tabs: anything else has no meaning that all readers agree on.
pub(crate) fn plain(value: &[u8]) -> Option<&str> {
    let visible = value.iter().all(|&byte| (b' '..=b'~').contains(&byte) || byte == b'\t');
    if visible { std::str::from_utf8(value).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use http::header;

    use super::*;

    #[test]
    fn lines_and_maps_say_the_same() {
        let lines = [("Accept-Encoding", "br"), ("x", "y"), ("accept-encoding", "gzip")];
        let map: HeaderMap = lines
            .iter()
            .map(|(name, value)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap()))
            .collect();
        let lines = lines.map(|(name, value)| httparse::Header { name, value: value.as_bytes() });
        for headers in [Headers::Lines(&lines), Headers::Map(&map)] {
            assert_eq!(headers.text(&header::ACCEPT_ENCODING), Some("br"));
            assert_eq!(headers.all(&header::ACCEPT_ENCODING).collect::<Vec<_>>(), [&b"br"[..], b"gzip"]);
            assert_eq!(headers.get(&header::ORIGIN), None);
        }
    }

    #[test]
    fn what_is_not_plain_is_no_text() {
        assert_eq!(plain(b"a b\t~"), Some("a b\t~"));
        for odd in [&b"\xc3\xa9"[..], b"\x00", b"\x7f", b"a\nb"] {
            assert_eq!(plain(odd), None, "{odd:?}");
        }
    }
}
