//! The content codings of bodies, in both directions.

use crate::refused::Refused;

/// A coding that request bodies may have and that replies are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentCoding {
    Zstd,
    Brotli,
    Gzip,
}

impl ContentCoding {
    /// In our order of preference for replies: by what a byte saved costs.
    pub(crate) const ALL: [Self; 3] = [Self::Zstd, Self::Brotli, Self::Gzip];

    pub fn name(self) -> &'static str {
        match self {
            Self::Zstd => "zstd",
            Self::Brotli => "br",
            Self::Gzip => "gzip",
        }
    }

    /// The coding that `Content-Encoding` names, in upper or lower case; `None` for a body that is not encoded.
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
