//! Compressed replies, inflated within the limits that hold for all replies.

use std::io::Read;

use bytes::{Buf, Bytes};
use flate2::read::MultiGzDecoder;

use super::receive::Terms;
use crate::call::Fault;

/// Inflated at once before other tasks get their turn: some 100 µs.
const STEP_BYTES: usize = 64 << 10;

/// The inflated size that a reply announces is believed up to this multiple of its compressed size.
const ANNOUNCED_TIMES_MAX: usize = 32;

pub(super) async fn inflate(body: Bytes, terms: &Terms<'_>) -> Result<Bytes, Fault> {
    let length = announced(&body).min(terms.limits.reply_bytes_max);
    let mut inflated = terms.buffer_beside(&body, length).await?;
    let mut decoder = MultiGzDecoder::new(body.reader());
    let mut step = vec![0; STEP_BYTES];
    loop {
        let count = decoder.read(&mut step).map_err(|_| Fault::Garbled)?;
        if count == 0 {
            return Ok(inflated.freeze());
        }
        if inflated.bytes().len() + count > terms.limits.reply_bytes_max {
            return Err(Fault::TooLarge);
        }
        inflated.reserve(count, terms.until).await?;
        inflated.bytes().extend_from_slice(&step[..count]);
        tokio::task::yield_now().await;
    }
}

/// The inflated size in the last four bytes, which a node may set to anything.
fn announced(body: &[u8]) -> usize {
    let size = body.last_chunk::<4>().map_or(0, |size| u32::from_le_bytes(*size) as usize);
    size.min(body.len() * ANNOUNCED_TIMES_MAX)
}
