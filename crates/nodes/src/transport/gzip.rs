//! Compressed replies, inflated within the limit that holds for all replies.

use std::io::Read;

use bytes::{Buf, Bytes, BytesMut};
use flate2::read::MultiGzDecoder;

use crate::call::Fault;

/// Inflated at once before other tasks get their turn: some 100 µs.
const STEP_BYTES: usize = 64 << 10;

pub(super) async fn inflate(body: Bytes, bytes_max: usize) -> Result<Bytes, Fault> {
    let mut decoder = MultiGzDecoder::new(body.reader());
    let mut inflated = BytesMut::new();
    let mut step = vec![0; STEP_BYTES];
    loop {
        let count = decoder.read(&mut step).map_err(|_| Fault::Garbled)?;
        if count == 0 {
            return Ok(inflated.freeze());
        }
        if inflated.len() + count > bytes_max {
            return Err(Fault::TooLarge);
        }
        inflated.extend_from_slice(&step[..count]);
        tokio::task::yield_now().await;
    }
}
