//! The limits of a client, with their reasons.

use std::time::Duration;

/// Limits for one endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EndpointLimits {
    /// How long each stage of connecting may take: DNS, one address, the TLS handshake. Within a continent each takes under 100 ms.
    pub(crate) connect_timeout: Duration,
    /// How long a node may take until the first byte of its reply. It is above the ten seconds that a log query may take.
    pub(crate) first_byte_timeout: Duration,
    /// How long a connection may be idle. It is below the 60 s after which common load balancers drop connections silently.
    pub(crate) idle_timeout: Duration,
    /// Bytes of one reply, also after inflating. Ten thousand logs take about 6 MB, the receipts of a large block about 20 MB.
    pub(crate) reply_bytes_max: usize,
    /// Bytes of a reply's head. Providers send one or two KB of cookies and policies.
    pub(crate) head_bytes_max: usize,
    /// Connections of one runtime thread for calls of one kind: quick ones, simulations, or logs and blocks. One account uses
    /// half of them at most.
    pub(crate) connections_max: usize,
    /// Connections for calls of one kind while a node answers within `near`. Replies then come so fast that batches cost both sides
    /// less than more connections.
    pub(crate) near_connections_max: usize,
    /// A node whose exchanges take less time than this counts as near.
    pub(crate) near: Duration,
    /// Calls that wait for a connection of one thread, half of them of one account at most. Further calls fail at once,
    /// because they would not be answered in time.
    pub(crate) queue_calls_max: usize,
    /// Calls in one batch. Providers refuse 100 and more.
    pub(crate) batch_calls_max: usize,
    /// Calls in one batch of other than quick calls, because nodes work through a batch one by one.
    pub(crate) slow_batch_calls_max: usize,
    /// Bytes that the replies of one batch should not exceed, estimated from recent replies. The first reply is not read before the
    /// last has arrived.
    pub(crate) batch_reply_bytes: usize,
    /// Bytes of the calls in one batch, so that one huge call does not delay small ones.
    pub(crate) batch_bytes_max: usize,
    /// How long no batch is sent to a node that has refused one. Learning it again costs one round trip.
    pub(crate) batch_pause: Duration,
}

impl Default for EndpointLimits {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(1),
            first_byte_timeout: Duration::from_secs(12),
            idle_timeout: Duration::from_secs(50),
            reply_bytes_max: 64 << 20,
            head_bytes_max: 16 << 10,
            connections_max: 64,
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
