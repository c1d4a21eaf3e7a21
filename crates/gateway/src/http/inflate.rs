//! Compressed request bodies, inflated no further than the limit on bodies.

use std::io::{self, Read};

use bytes::Bytes;
use http::HeaderValue;

use super::Refused;

/// Memory that a zstd frame may ask for, as a power of two. A body within the limit never needs more.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;
const BROTLI_BUFFER_BYTES: usize = 4 << 10;

pub(super) fn inflate(encoding: &HeaderValue, body: &[u8], bytes_max: usize) -> Result<Bytes, Refused> {
    // Names of encodings are the same in upper and lower case.
    match encoding.as_bytes().to_ascii_lowercase().as_slice() {
        b"gzip" | b"x-gzip" => bounded(flate2::read::MultiGzDecoder::new(body), bytes_max),
        b"br" => bounded(brotli::Decompressor::new(body, BROTLI_BUFFER_BYTES), bytes_max),
        b"zstd" => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(body).map_err(broken)?;
            decoder.window_log_max(ZSTD_WINDOW_LOG_MAX).map_err(broken)?;
            bounded(decoder, bytes_max)
        }
        b"identity" | b"" => Ok(Bytes::copy_from_slice(body)),
        _ => Err(Refused::Encoding),
    }
}

/// Reads one byte more than is allowed, to tell a body that fits from one that does not.
fn bounded(decoder: impl Read, bytes_max: usize) -> Result<Bytes, Refused> {
    let mut inflated = Vec::new();
    decoder.take(bytes_max as u64 + 1).read_to_end(&mut inflated).map_err(broken)?;
    if inflated.len() > bytes_max {
        return Err(Refused::TooLarge);
    }
    Ok(inflated.into())
}

fn broken(_: io::Error) -> Refused {
    Refused::BadEncoding
}
