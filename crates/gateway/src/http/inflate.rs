//! Compressed request bodies, inflated no further than the limit on bodies.

use std::borrow::Cow;
use std::io::{self, Read};

use super::Refused;

/// Memory that a zstd frame may ask for, as a power of two. A body within the limit never needs more.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;
const BROTLI_BUFFER_BYTES: usize = 4 << 10;

pub(super) fn inflate<'a>(
    encoding: &[u8],
    body: Cow<'a, [u8]>,
    bytes_max: usize,
) -> Result<Cow<'a, [u8]>, Refused> {
    let inflated = match encoding {
        name if is(name, "gzip") || is(name, "x-gzip") => {
            bounded(flate2::read::MultiGzDecoder::new(&*body), bytes_max)
        }
        name if is(name, "br") => bounded(brotli::Decompressor::new(&*body, BROTLI_BUFFER_BYTES), bytes_max),
        name if is(name, "zstd") => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(&*body).map_err(broken)?;
            decoder.window_log_max(ZSTD_WINDOW_LOG_MAX).map_err(broken)?;
            bounded(decoder, bytes_max)
        }
        name if is(name, "identity") || name.is_empty() => return Ok(body),
        _ => Err(Refused::Encoding),
    };
    inflated.map(Cow::Owned)
}

/// Names of encodings are the same in upper and lower case.
fn is(name: &[u8], encoding: &str) -> bool {
    name.eq_ignore_ascii_case(encoding.as_bytes())
}

/// Reads one byte more than is allowed, to tell a body that fits from one that does not.
fn bounded(decoder: impl Read, bytes_max: usize) -> Result<Vec<u8>, Refused> {
    let mut inflated = Vec::new();
    decoder.take(bytes_max as u64 + 1).read_to_end(&mut inflated).map_err(broken)?;
    if inflated.len() > bytes_max {
        return Err(Refused::TooLarge);
    }
    Ok(inflated)
}

fn broken(_: io::Error) -> Refused {
    Refused::BadEncoding
}
