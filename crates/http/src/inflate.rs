//! Inflates request bodies, up to the limit on bodies, the account's share of memory, and what the account can pay.
//!
//! A body has one gzip member or one zstd frame, because thousands of empty ones take milliseconds and inflate to nothing.

use std::io::Read;

use resources::{AccountMemory, ChargedBuffer, MemoryCharge};

use crate::content_coding::RequestCoding;
use crate::refused::Refused;

/// Binary logarithm of the largest zstd window: 8 MiB, which RFC 9659 lets every sender use.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

/// Memory of a zstd decoder beside its window: its tables and two blocks.
const ZSTD_TABLES_BYTES: usize = 512 << 10;

/// Memory of a gzip decoder: its window of 32 KiB and its tables.
const GZIP_DECODER_BYTES: usize = 64 << 10;

/// Bytes inflated in one step.
const STEP_BYTES: usize = 8 << 10;

/// Inflates a body. `pay` is called with the inflated size after each step; its error ends the work.
pub fn inflate<E: From<Refused>>(
    coding: RequestCoding,
    body: &[u8],
    bytes_max: usize,
    memory: AccountMemory<'_>,
    pay: impl FnMut(usize) -> Result<(), E>,
) -> Result<ChargedBuffer, E> {
    let mut decoder_charge = MemoryCharge::default();
    let mut charge_decoder = |bytes| memory.grow(&mut decoder_charge, bytes).map_err(Refused::from);
    let (inflated, rest) = match coding {
        RequestCoding::Gzip => {
            charge_decoder(GZIP_DECODER_BYTES)?;
            let mut decoder = flate2::bufread::GzDecoder::new(body);
            (read_all(&mut decoder, bytes_max, memory, pay)?, decoder.into_inner())
        }
        RequestCoding::Zstd => {
            charge_decoder((1 << ZSTD_WINDOW_LOG_MAX) + ZSTD_TABLES_BYTES)?;
            let mut decoder = zstd_decoder(body)?;
            (read_all(&mut decoder, bytes_max, memory, pay)?, decoder.finish())
        }
    };
    if rest.is_empty() { Ok(inflated) } else { Err(Refused::BadEncoding.into()) }
}

fn zstd_decoder(body: &[u8]) -> Result<zstd::stream::read::Decoder<'static, &[u8]>, Refused> {
    let decoder = zstd::stream::read::Decoder::with_buffer(body).map_err(|_| Refused::BadEncoding)?;
    let mut decoder = decoder.single_frame();
    decoder.window_log_max(ZSTD_WINDOW_LOG_MAX).map_err(|_| Refused::BadEncoding)?;
    Ok(decoder)
}

fn read_all<E: From<Refused>>(
    decoder: &mut impl Read,
    bytes_max: usize,
    memory: AccountMemory<'_>,
    mut pay: impl FnMut(usize) -> Result<(), E>,
) -> Result<ChargedBuffer, E> {
    let (mut inflated, mut step) = (ChargedBuffer::default(), [0; STEP_BYTES]);
    loop {
        let len = decoder.read(&mut step).map_err(|_| Refused::BadEncoding)?;
        let total = inflated.bytes().len() + len;
        pay(total)?;
        if len == 0 {
            return Ok(inflated);
        }
        if total > bytes_max {
            return Err(Refused::TooLarge.into());
        }
        inflated.reserve(memory, len, bytes_max).map_err(Refused::from)?;
        inflated.bytes_mut().extend_from_slice(&step[..len]);
    }
}

#[cfg(test)]
mod tests;
