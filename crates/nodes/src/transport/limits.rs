//! The limits of the transport, with their reasons.

use std::time::Duration;

/// What one endpoint may take of us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long each stage of connecting may take: the look-up of the name, one address, the handshake of TLS. Within
    /// a continent each takes under 100 ms; who needs a second is not there.
    pub connect_timeout: Duration,
    /// How long a node may think before the first byte of its reply; above the ten seconds that a log query may take.
    pub first_byte_timeout: Duration,
    /// How long a connection may rest unused; below the 60 s after which common load balancers drop it silently.
    pub idle_timeout: Duration,
    /// Bytes of one reply, also after inflating. Ten thousand logs are some 6 MB; a large block's receipts some 20 MB.
    pub reply_bytes_max: usize,
    /// Bytes of a reply's head. Providers send one or two KB of cookies and policies.
    pub head_bytes_max: usize,
    /// Connections of one runtime thread for quick calls, as many again for simulations, and for logs and blocks.
    pub connections_max: usize,
    /// Connections of a kind while a node answers within `near`: its replies come so fast that waiting for the next one
    /// and travelling together is cheaper for both sides than a connection each.
    pub near_connections_max: usize,
    /// Below which time of an exchange a node counts as near.
    pub near: Duration,
    /// Calls that wait for a connection of one thread. More than that would not be answered in time anyway,
    /// and the next one is told so at once.
    pub queue_calls_max: usize,
    /// Calls in one batch; providers refuse at 100 and more.
    pub batch_calls_max: usize,
    /// The same for calls other than quick ones: nodes work through a batch one by one.
    pub slow_batch_calls_max: usize,
    /// Bytes that the replies of one batch should not exceed, by what replies were like lately: the first of them is not
    /// read before the last has come.
    pub batch_reply_bytes: usize,
    /// Bytes of the calls in one batch, so that one huge call does not hold up small ones.
    pub batch_bytes_max: usize,
    /// How long no batch is sent to a node that has refused one. Learning it again costs one round trip.
    pub batch_pause: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(1),
            first_byte_timeout: Duration::from_secs(12),
            idle_timeout: Duration::from_secs(50),
            reply_bytes_max: 64 << 20,
            head_bytes_max: 16 << 10,
            connections_max: 32,
            near_connections_max: 2,
            near: Duration::from_millis(2),
            queue_calls_max: 4_096,
            batch_calls_max: 50,
            slow_batch_calls_max: 8,
            batch_reply_bytes: 256 << 10,
            batch_bytes_max: 128 << 10,
            batch_pause: Duration::from_secs(60),
        }
    }
}
