//! The content codings of bodies, in both directions.

use crate::refused::Refused;

/// A compression of request bodies and replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentCoding {
    Zstd,
    Brotli,
    Gzip,
}

impl ContentCoding {
    /// In order of preference for replies, by the CPU time per saved byte.
    pub(crate) const ALL: [Self; 3] = [Self::Zstd, Self::Brotli, Self::Gzip];

    pub fn name(self) -> &'static str {
        match self {
            Self::Zstd => "zstd",
            Self::Brotli => "br",
            Self::Gzip => "gzip",
        }
    }

    /// The coding that `Content-Encoding` names, case-insensitive; `None` for a body that is not encoded.
    pub(crate) fn read(name: &[u8]) -> Result<Option<Self>, Refused> {
        let is = |coding: &str| name.eq_ignore_ascii_case(coding.as_bytes());
        match Self::ALL.into_iter().find(|coding| is(coding.name())) {
            Some(coding) => Ok(Some(coding)),
            None if is("x-gzip") => Ok(Some(Self::Gzip)),
            None if is("identity") || is("") => Ok(None),
            None => Err(Refused::Encoding),
        }
    }
}
