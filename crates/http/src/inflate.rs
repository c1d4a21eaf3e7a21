//! Inflates request bodies, up to the limit on bodies and the account's share of memory.

use std::io::Read;

use resources::{AccountMemory, ChargedBuffer};

use crate::content_coding::ContentCoding;
use crate::refused::Refused;

/// Binary logarithm of the largest zstd window. A body within the limit does not need more.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;
const BROTLI_BUFFER_BYTES: usize = 4 << 10;

/// Bytes inflated in one step.
const STEP_BYTES: usize = 8 << 10;

/// Why a body could not be inflated, and how many bytes were inflated before the error.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct InflateError {
    pub(super) refused: Refused,
    pub(super) inflated: usize,
}

pub(super) fn inflate(
    coding: ContentCoding,
    body: &[u8],
    bytes_max: usize,
    memory: AccountMemory<'_>,
) -> Result<ChargedBuffer, InflateError> {
    let mut inflated = ChargedBuffer::default();
    let outcome = match coding {
        ContentCoding::Gzip => {
            read_all(flate2::read::MultiGzDecoder::new(body), bytes_max, memory, &mut inflated)
        }
        ContentCoding::Brotli => {
            let decoder = brotli::Decompressor::new(body, BROTLI_BUFFER_BYTES);
            read_all(decoder, bytes_max, memory, &mut inflated)
        }
        ContentCoding::Zstd => {
            zstd_decoder(body).and_then(|decoder| read_all(decoder, bytes_max, memory, &mut inflated))
        }
    };
    match outcome {
        Ok(()) => Ok(inflated),
        Err(refused) => Err(InflateError { refused, inflated: inflated.bytes().len() }),
    }
}

fn zstd_decoder(body: &[u8]) -> Result<zstd::stream::read::Decoder<'static, &[u8]>, Refused> {
    let mut decoder = zstd::stream::read::Decoder::with_buffer(body).map_err(|_| Refused::BadEncoding)?;
    decoder.window_log_max(ZSTD_WINDOW_LOG_MAX).map_err(|_| Refused::BadEncoding)?;
    Ok(decoder)
}

fn read_all(
    mut decoder: impl Read,
    bytes_max: usize,
    memory: AccountMemory<'_>,
    inflated: &mut ChargedBuffer,
) -> Result<(), Refused> {
    let mut step = [0; STEP_BYTES];
    loop {
        let len = decoder.read(&mut step).map_err(|_| Refused::BadEncoding)?;
        if len == 0 {
            return Ok(());
        }
        if inflated.bytes().len() + len > bytes_max {
            return Err(Refused::TooLarge);
        }
        inflated.reserve(memory, len, bytes_max)?;
        inflated.bytes_mut().extend_from_slice(&step[..len]);
    }
}
