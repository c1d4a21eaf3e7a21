//! Compressed replies, inflated within the limits that hold for all replies.

use std::io::Read;

use bytes::{Buf, Bytes};
use flate2::read::MultiGzDecoder;

use super::receive::ReceiveContext;
use crate::call::Fault;

/// Bytes that are inflated before other tasks get their turn: about 100 µs.
const STEP_BYTES: usize = 64 << 10;

/// The announced inflated size is trusted up to this multiple of the compressed size.
const ANNOUNCED_TIMES_MAX: usize = 32;

pub(super) async fn inflate(body: Bytes, context: &ReceiveContext<'_>) -> Result<Bytes, Fault> {
    let length = announced(&body).min(context.limits.reply_bytes_max);
    let mut inflated = context.buffer_beside(&body, length).await?;
    let mut decoder = MultiGzDecoder::new(body.reader());
    let mut step = vec![0; STEP_BYTES];
    loop {
        let count = decoder.read(&mut step).map_err(|_| Fault::Garbled)?;
        if count == 0 {
            return Ok(inflated.freeze());
        }
        if inflated.bytes().len() + count > context.limits.reply_bytes_max {
            return Err(Fault::TooLarge);
        }
        inflated.reserve(count, context.until).await?;
        inflated.bytes().extend_from_slice(&step[..count]);
        tokio::task::yield_now().await;
    }
}

/// The inflated size that the last four bytes announce. A node may set it to anything.
fn announced(body: &[u8]) -> usize {
    let size = body.last_chunk::<4>().map_or(0, |size| u32::from_le_bytes(*size) as usize);
    size.min(body.len() * ANNOUNCED_TIMES_MAX)
}
