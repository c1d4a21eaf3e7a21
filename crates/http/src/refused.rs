//! Why a request is refused before its body is parsed.

use http1_framing::FramingError;

/// Why a request is refused before its body is parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    OtherPath,
    OtherMethod,
    ContentType,
    Encoding,
    BadEncoding,
    TooLarge,
    /// Two readers could disagree on where the request ends (request smuggling).
    Ambiguous,
    BadHead,
    /// HTTP/1.1 without exactly one valid `Host`.
    BadHost,
    HeadTooLarge,
    /// The connection ended before the request was complete or answered.
    Broken,
    TooSlow,
    /// The account has used up its share of memory or threads.
    OverCapacity,
    /// Reading the request panicked, which is our fault.
    InternalError,
}

impl From<FramingError> for Refused {
    fn from(error: FramingError) -> Self {
        match error {
            FramingError::Ambiguous => Self::Ambiguous,
            FramingError::LinesTooLong => Self::TooLarge,
        }
    }
}
