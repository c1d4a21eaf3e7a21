//! Limits of one request.

use settings::Section;

/// Bytes of the smallest reply that is compressed. Below it, compressing costs more than the saved bytes.
pub(crate) const COMPRESS_BYTES_MIN: usize = 1 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLimits {
    /// Bytes of a body, received and inflated. The default is what common nodes accept; the largest contract creation is a
    /// fraction of it.
    pub body_bytes_max: usize,
    /// Calls of a batch. The default is the largest batch that common client libraries send.
    pub batch_calls_max: usize,
    pub batch_reply_bytes_max: usize,
    /// Calls in flight over all connections. More are refused, because queueing them would slow down all callers.
    pub calls_in_flight_max: usize,
}

impl Default for RequestLimits {
    fn default() -> Self {
        Self {
            body_bytes_max: 5 << 20,
            batch_calls_max: jsonrpc::BATCH_CALLS_MAX,
            batch_reply_bytes_max: 25 << 20,
            calls_in_flight_max: 16_384,
        }
    }
}

impl RequestLimits {
    pub fn read(section: &mut Section<'_>) -> Self {
        let usual = Self::default();
        section.removed("compress_bytes_min", "replies of 1 KiB or more are compressed");
        Self {
            body_bytes_max: section.size("body_bytes_max", usual.body_bytes_max),
            batch_calls_max: section.size("batch_calls_max", usual.batch_calls_max),
            batch_reply_bytes_max: section.size("batch_reply_bytes_max", usual.batch_reply_bytes_max),
            calls_in_flight_max: section.size("calls_in_flight_max", usual.calls_in_flight_max),
        }
    }
}
