//! Sends the body of a reply to a caller that may read slowly or not at all.

use std::future::poll_fn;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use h2::{Reason, SendStream};
use tokio::time::{Instant, timeout_at};

use crate::connection_state::ConnectionState;
use crate::limits::HttpLimits;
use crate::reply_parts::ReplyParts;

/// Why a reply was not sent completely.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReplySendError {
    #[error("the caller reads too slowly")]
    TooSlow,
    #[error("the stream was closed")]
    Closed,
    #[error(transparent)]
    Http2(#[from] h2::Error),
}

/// Bytes that are given to `h2` at once. Streams take turns in pieces of this size.
pub(super) const PIECE_BYTES: usize = 16 << 10;

/// Replies up to this size are given to `h2` without flow control. If the caller does not read them, they stay in memory until
/// the connection ends; `h2_streams_max` bounds their number.
const SHORT_REPLY_BYTES: usize = 512;

/// Sends a body that is not empty. A caller that reads less than the minimum rate has its stream reset.
pub(super) async fn send(
    state: &ConnectionState,
    limits: &HttpLimits,
    mut stream: SendStream<Bytes>,
    parts: ReplyParts,
) -> Result<(), ReplySendError> {
    let mut left = parts.total_len();
    if left <= SHORT_REPLY_BYTES {
        state.reply_bytes_sent.fetch_add(left as u64, Relaxed);
        return Ok(stream.send_data(parts.joined(), true)?);
    }
    // Short parts are joined, so that they are sent in one frame.
    let parts = if left > PIECE_BYTES { parts } else { ReplyParts::one(parts.joined()) };
    let mut rate = ReadRate::new(state, limits);
    for mut part in parts.into_array() {
        while !part.is_empty() {
            let wanted = part.len().min(PIECE_BYTES);
            stream.reserve_capacity(wanted);
            let capacity = rate.capacity(&mut stream).await?;
            // A slice keeps the charge for the reply until it is sent; a copy would not be charged.
            let piece = part.split_to(capacity.min(wanted));
            left -= piece.len();
            rate.count(piece.len());
            stream.send_data(piece, left == 0)?;
        }
    }
    Ok(())
}

/// Measures the rate at which a caller reads one reply, in intervals of the write timeout.
struct ReadRate<'a> {
    state: &'a ConnectionState,
    limits: &'a HttpLimits,
    /// Start of the current interval; `None` if the reply has not had to wait.
    began: Option<Instant>,
    /// Bytes of this reply in the interval.
    own: u64,
    /// Bytes of all replies on the connection before the interval.
    all_before: u64,
}

impl<'a> ReadRate<'a> {
    fn new(state: &'a ConnectionState, limits: &'a HttpLimits) -> Self {
        state.replies_waiting.fetch_add(1, Relaxed);
        Self { state, limits, began: None, own: 0, all_before: 0 }
    }

    fn count(&mut self, bytes: usize) {
        self.own += bytes as u64;
        self.state.reply_bytes_sent.fetch_add(bytes as u64, Relaxed);
    }

    /// Waits until the caller accepts more bytes; returns how many.
    async fn capacity(&mut self, stream: &mut SendStream<Bytes>) -> Result<usize, ReplySendError> {
        while stream.capacity() == 0 {
            let began = match self.began {
                Some(began) => began,
                None => self.begin(),
            };
            let late = began.checked_add(self.limits.write_timeout);
            let more = poll_fn(|cx| stream.poll_capacity(cx));
            let more = match late {
                Some(late) => timeout_at(late, more).await,
                None => Ok(more.await),
            };
            match more {
                Ok(Some(more)) => drop(more?),
                Ok(None) => return Err(ReplySendError::Closed),
                Err(_) if self.is_too_slow() => {
                    stream.send_reset(Reason::CANCEL);
                    return Err(ReplySendError::TooSlow);
                }
                Err(_) => drop(self.begin()),
            }
        }
        Ok(stream.capacity())
    }

    fn begin(&mut self) -> Instant {
        let now = Instant::now();
        (self.began, self.own) = (Some(now), 0);
        self.all_before = self.state.reply_bytes_sent.load(Relaxed);
        now
    }

    /// Whether the caller has read too little in the interval: of all replies together, or of this one compared with the
    /// others. A reply that waits for its turn behind others is not too slow.
    fn is_too_slow(&self) -> bool {
        let min = self.limits.read_bytes_min();
        let all = self.state.reply_bytes_sent.load(Relaxed).saturating_sub(self.all_before);
        let waiting = self.state.replies_waiting.load(Relaxed) as u64;
        let half_of_its_share = all / waiting.max(1) / 2;
        all < min || (self.own < min && self.own < half_of_its_share)
    }
}

impl Drop for ReadRate<'_> {
    fn drop(&mut self) {
        self.state.replies_waiting.fetch_sub(1, Relaxed);
    }
}
