//! Limits of one request.

use settings::Section;

/// The limits of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestLimits {
    /// Bytes of a body, received and inflated. The default is what common nodes accept; the largest contract creation is a
    /// fraction of it.
    pub body_bytes_max: usize,
    /// Calls of a batch. The default is the largest batch that common client libraries send.
    pub batch_calls_max: usize,
    /// Bytes of the reply to one batch.
    pub batch_reply_bytes_max: usize,
    /// Bytes of the smallest reply that is compressed. Below the default, compressing costs more than the saved bytes.
    pub compress_bytes_min: usize,
    /// Calls in flight over all connections. More are refused, because queueing them would slow down all callers.
    pub calls_in_flight_max: usize,
}

impl Default for RequestLimits {
    fn default() -> Self {
        Self {
            body_bytes_max: 5 << 20,
            batch_calls_max: jsonrpc::BATCH_CALLS_MAX,
            batch_reply_bytes_max: 25 << 20,
            compress_bytes_min: 1 << 10,
            calls_in_flight_max: 16_384,
        }
    }
}

impl RequestLimits {
    pub fn read(section: &mut Section<'_>) -> Self {
        let usual = Self::default();
        Self {
            body_bytes_max: section.size("body_bytes_max", usual.body_bytes_max),
            batch_calls_max: section.size("batch_calls_max", usual.batch_calls_max),
            batch_reply_bytes_max: section.size("batch_reply_bytes_max", usual.batch_reply_bytes_max),
            compress_bytes_min: section.size("compress_bytes_min", usual.compress_bytes_min),
            calls_in_flight_max: section.size("calls_in_flight_max", usual.calls_in_flight_max),
        }
    }
}
