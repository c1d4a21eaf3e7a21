//! Compressed replies, inflated within the limits that hold for all replies.

use std::io::Write;

use bytes::Bytes;
use flate2::write::MultiGzDecoder;

use super::buffer::Buffer;
use super::receive::ReceiveContext;
use crate::call::Fault;

/// Compressed bytes that are read before other tasks get their turn. They inflate to half a megabyte at most, and even those
/// that inflate to nothing are read in about 100 µs.
const STEP_BYTES: usize = 512;

/// The announced inflated size is trusted up to this multiple of the compressed size.
const ANNOUNCED_TIMES_MAX: usize = 32;

pub(super) async fn inflate(body: Bytes, context: &ReceiveContext<'_>) -> Result<Bytes, Fault> {
    let length = announced(&body).min(context.limits.reply_bytes_max);
    let mut inflated = context.buffer_beside(&body, length).await?;
    let mut decoder = MultiGzDecoder::new(Vec::new());
    for step in body.chunks(STEP_BYTES) {
        decoder.write_all(step).map_err(|_| Fault::Garbled)?;
        take_inflated(decoder.get_mut(), &mut inflated, context).await?;
        tokio::task::yield_now().await;
    }
    let mut rest = decoder.finish().map_err(|_| Fault::Garbled)?;
    take_inflated(&mut rest, &mut inflated, context).await?;
    Ok(inflated.freeze())
}

/// Moves what a decoder has written into the reply.
async fn take_inflated(
    written: &mut Vec<u8>,
    inflated: &mut Buffer,
    context: &ReceiveContext<'_>,
) -> Result<(), Fault> {
    if inflated.bytes().len() + written.len() > context.limits.reply_bytes_max {
        return Err(Fault::TooLarge);
    }
    inflated.reserve(written.len(), context.until).await?;
    inflated.bytes().append(written);
    Ok(())
}

/// The inflated size that the last four bytes announce. A node may set it to anything.
fn announced(body: &[u8]) -> usize {
    let size = body.last_chunk::<4>().map_or(0, |size| u32::from_le_bytes(*size) as usize);
    size.min(body.len() * ANNOUNCED_TIMES_MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::time::Duration;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use resources::AccountId;
    use tokio::time::Instant;

    use super::super::buffer::ReplyBuffers;
    use super::super::limits::EndpointLimits;
    use super::*;

    async fn inflated(body: Vec<u8>) -> Result<Bytes, Fault> {
        let (limits, memory) = (EndpointLimits::default(), ReplyBuffers::new(64 << 20).for_endpoint(1));
        let until = Instant::now() + Duration::from_secs(60);
        let account = AccountId::NONE;
        inflate(body.into(), &ReceiveContext { limits: &limits, memory: &memory, account, until }).await
    }

    fn gzipped(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    #[tokio::test]
    async fn members_are_joined_and_anything_else_is_garbled() {
        let text: Vec<u8> = (0..300_000_u32).map(|number| (number % 251 * (number / 7_000)) as u8).collect();
        let (one, two) = (gzipped(&text), gzipped(b"more"));
        assert_eq!(inflated([&one[..], &two].concat()).await.unwrap(), [&text[..], b"more"].concat());
        assert_eq!(inflated(one[..one.len() - 1].to_vec()).await, Err(Fault::Garbled));
        assert_eq!(inflated(one[..one.len() / 2].to_vec()).await, Err(Fault::Garbled));
        assert_eq!(inflated([&one[..], b"no gzip"].concat()).await, Err(Fault::Garbled));
        assert_eq!(inflated(Vec::new()).await, Err(Fault::Garbled));
    }

    /// A reply that inflates to nothing was read to its end before anyone else on the thread had a turn.
    #[tokio::test]
    async fn others_get_their_turn_while_nothing_is_inflated() {
        const EMPTY_BLOCK: [u8; 5] = [0, 0, 0, 0xff, 0xff];
        let mut body = gzipped(b"")[..10].to_vec();
        (0..40_000).for_each(|_| body.extend(EMPTY_BLOCK));
        body.extend([1, 0, 0, 0xff, 0xff]);
        body.extend([0; 8]);
        let (steps, turns) = (body.len() / STEP_BYTES, Arc::new(AtomicUsize::new(0)));
        let counted = Arc::clone(&turns);
        let other = tokio::spawn(async move {
            loop {
                counted.fetch_add(1, Relaxed);
                tokio::task::yield_now().await;
            }
        });
        assert_eq!(inflated(body).await, Ok(Bytes::new()));
        other.abort();
        assert!(turns.load(Relaxed) >= steps / 2, "{} turns in {steps} steps", turns.load(Relaxed));
    }
}
