//! Why a request is refused before anything is parsed.

/// Why a request is refused before anything is parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    OtherPath,
    OtherMethod,
    ContentType,
    Encoding,
    BadEncoding,
    TooLarge,
    /// Two readers could disagree on where the request ends.
    Ambiguous,
    BadHead,
    /// HTTP/1.1 without exactly one valid `Host`.
    BadHost,
    HeadTooLarge,
    Broken,
    TooSlow,
    /// The account has no memory left for the body.
    OverCapacity,
}
