//! The content codings of requests and replies.

use http::header;

use crate::head::Headers;
use crate::refused::Refused;

/// A compression of request bodies.
///
/// Brotli is missing: a body of 67 bytes may demand a window of 16 MiB, and one of 165 bytes took 73 ms to decompress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestCoding {
    Gzip,
    Zstd,
}

impl RequestCoding {
    /// All of them, as `Accept-Encoding` of a reply names them (RFC 9110, 12.5.3).
    pub const ACCEPTED: &str = "gzip, zstd";

    /// The coding that `Content-Encoding` names, case-insensitive; `None` for a body that is not encoded.
    pub fn of_request(headers: Headers<'_>) -> Result<Option<Self>, Refused> {
        let mut names = headers.all(&header::CONTENT_ENCODING);
        match (names.next(), names.next()) {
            (None, _) => Ok(None),
            (Some(name), None) => Self::read(name),
            // Nested encodings are not supported.
            (Some(_), Some(_)) => Err(Refused::Encoding),
        }
    }

    fn read(name: &[u8]) -> Result<Option<Self>, Refused> {
        let is = |coding: &str| name.eq_ignore_ascii_case(coding.as_bytes());
        if is("gzip") || is("x-gzip") {
            Ok(Some(Self::Gzip))
        } else if is("zstd") {
            Ok(Some(Self::Zstd))
        } else if is("identity") || is("") {
            Ok(None)
        } else {
            Err(Refused::Encoding)
        }
    }
}

/// A compression of replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyCoding {
    Zstd,
    Gzip,
    Brotli,
}

impl ReplyCoding {
    /// In order of preference, by the CPU time per saved byte.
    pub(crate) const ALL: [Self; 3] = [Self::Zstd, Self::Gzip, Self::Brotli];

    pub fn name(self) -> &'static str {
        match self {
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
            Self::Brotli => "br",
        }
    }
}
