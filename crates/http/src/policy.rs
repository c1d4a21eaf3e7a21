//! The times and limits of this crate that no setting changes: each with what happens at it, and why it has this value. Sizes of
//! buffers stand where the buffers are.

use std::time::Duration;

// Accepting connections.

/// Connections that the kernel queues; callers beyond it try again a second later. More than a burst of reconnecting callers.
pub(crate) const BACKLOG: i32 = 1_024;

/// Pause after a failed accept, which happens when the process is out of file descriptors.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Refusals that are sent at the same time; further connections are closed without one. Each takes a file descriptor for up to
/// a second.
pub(crate) const REFUSALS_MAX: usize = 100;

/// How long sending a refusal and waiting for the caller to close may take, so that refused callers do not use up file
/// descriptors.
pub(crate) const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);

/// How long a head or a body may be incomplete before its connection is closed for another one. Honest clients send both at
/// once.
pub(crate) const REQUEST_GRACE: Duration = Duration::from_millis(500);

/// Connections of one account that one search examines, so that many busy connections do not delay accepting.
pub(crate) const SEARCHED_MAX: usize = 32;

/// Accounts that one search examines, so that many busy accounts do not delay accepting.
pub(crate) const SEARCHED_ACCOUNTS_MAX: usize = 8;

/// Addresses whose rate is stored; further ones share one rate. Each takes about 80 bytes.
pub(crate) const REFUSED_ADDRESSES_MAX: usize = 1 << 16;

/// Minimum time between two searches of a full table for addresses whose rate has recovered.
pub(crate) const CLEAR_INTERVAL_NS: u64 = 100_000_000;

// Reading requests.

/// Larger bodies are parsed in the thread pool, because they would delay other connections of the thread.
pub const INLINE_BODY_BYTES_MAX: usize = 64 << 10;

/// Bytes of a request's id that a caller chooses; a longer one is replaced. Ids of other systems, such as UUIDs and those of load
/// balancers, are shorter.
pub(crate) const REQUEST_ID_BYTES_MAX: usize = 64;

/// Limit on sizes, extensions and trailers of a chunked body, which do not count towards the limit on bodies. A body with more
/// is refused.
pub(crate) const CHUNK_LINES_BYTES_MAX: usize = 64 << 10;

/// Shorter bodies of refused requests are read and discarded, so that an HTTP/1 connection stays open.
pub(crate) const SKIPPED_BYTES_MAX: u64 = 64 << 10;

/// Bytes that are read ahead while an answer is computed. When they are used up, the socket is not read until the answer is
/// sent, and a disconnect of the caller is not noticed.
pub(crate) const AHEAD_BYTES_MAX: usize = 16 << 10;

/// How long an answer may still take after the caller has closed its sending side. TCP does not distinguish a caller that has
/// closed only its sending side, and still reads the reply, from one that has closed the connection. After this time the
/// answer is cancelled.
pub(crate) const HALF_CLOSED_TIME: Duration = Duration::from_secs(2);

/// Bytes of the body of a refused HTTP/2 request that are read and discarded, so that the reply is not followed by a reset.
pub(crate) const DISCARDED_BYTES_MAX: usize = 64 << 10;

/// How long a caller may take to send the rest of a body that is discarded.
pub(crate) const DISCARD_TIME: Duration = Duration::from_secs(1);

// HTTP/2, whose frames cost time without requesting anything.

/// The connection ends after this many streams were reset before they were accepted (rapid reset).
pub(crate) const PENDING_RESETS_MAX: usize = 20;

/// Unread bytes that a caller may send on one stream; it waits for a window update after them. Most bodies are smaller.
pub(crate) const STREAM_WINDOW_BYTES: u32 = 64 << 10;

/// Unread bytes that a caller may send on all streams of a connection, so that many streams cannot hold more.
pub(crate) const CONNECTION_WINDOW_BYTES: u32 = 1 << 20;

/// Shorter DATA frames count as frames that request nothing; no client splits a body into such pieces.
pub(crate) const DATA_BYTES_MIN: usize = 64;

/// Frames that belong to a request: window updates and a short body.
pub(crate) const REQUEST_FRAMES: u64 = 8;

/// A reset costs more than its request earns, so that requests that are reset at once (rapid reset) use up the budget.
pub(crate) const RESET_FRAMES: u64 = 10;

/// Bytes of replies that earn one frame. Clients send two window updates for each frame that they read, mostly of 16 KiB.
pub(crate) const SENT_BYTES_PER_FRAME: u64 = 512;

// Writing replies, and closing connections.

/// Larger replies are compressed in the thread pool, because they would delay other connections of the thread.
pub(crate) const INLINE_COMPRESSION_BYTES_MAX: usize = 32 << 10;

/// How long a connection counts as busy after its last request, because the end of the reply may still be buffered.
pub(crate) const FLUSH_TIME: Duration = Duration::from_secs(2);

/// How long received bytes are discarded before a connection with unread bytes is closed.
pub(crate) const LINGER: Duration = Duration::from_secs(1);

/// Pieces that are discarded before a pause. With `LINGER_PAUSE` the limit is 6 MB/s per connection, so that refused callers
/// that continue to send do not use up the CPU.
pub(crate) const LINGER_READS: usize = 16;

/// Pause after `LINGER_READS` discarded pieces.
pub(crate) const LINGER_PAUSE: Duration = Duration::from_millis(10);

// Draining.

/// How long an idle connection stays open after its last activity during a shutdown, because a request may be in transit.
/// Longer than a packet takes around the world.
pub(crate) const LAST_REQUEST_TIME: Duration = Duration::from_millis(500);

/// How long a connection accepts requests after GOAWAY, because the caller may have sent some before it received the frame.
/// Later requests are refused, and an idle connection is closed.
pub(crate) const GOAWAY_TIME: Duration = Duration::from_secs(2);

/// How long the last step of a TCP handshake may take when the listener closes. Longer than a packet takes around the world.
pub(crate) const HANDSHAKE_TIME: Duration = Duration::from_millis(250);

/// How often a draining worker checks whether its connections have ended.
pub(crate) const DRAIN_POLL_INTERVAL: Duration = Duration::from_millis(5);
