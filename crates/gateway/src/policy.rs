//! The times and limits of this crate that no setting changes: each with what happens at it, and why it has this value. Sizes of
//! buffers stand where the buffers are.

use std::time::Duration;

// Credits for calls that are not answered.

/// Credits for a method that does not exist. More than most calls cost, because only scanners make many of them.
pub const UNKNOWN_METHOD_CREDITS: u64 = 160;

/// Credits for any other call that is malformed or refused.
pub const REFUSED_CREDITS: u64 = 5;

/// Bytes of a refused or compressed body that `REFUSED_CREDITS` pay for. Finding out that a body is malformed takes as long as
/// reading it, and a body may inflate to thousands of times its size.
pub const REFUSED_BYTES: usize = 64 << 10;

// Work on the thread of a connection.

/// Larger bodies are answered in the turns of their account: they may have more calls than a thread answers in 50 µs, and an
/// account with hundreds of connections would have most of the thread.
pub(crate) const BODY_WITHOUT_TURN_BYTES_MAX: usize = 1 << 10;

/// Calls of a batch that are answered before other connections of the thread get their turn.
pub(crate) const CALLS_PER_TURN: usize = 32;

/// Calls of one batch that wait for nodes at the same time: enough to be sent together, too few to delay other callers.
pub(crate) const CALLS_AT_ONCE: usize = 64;

/// Bytes of a revert that are written as JSON on the thread of the connection, which takes some 20 µs. More than that is
/// written in the pool, and is not copied.
pub(crate) const INLINE_REVERT_BYTES_MAX: usize = 32 << 10;

// Errors.

/// Seconds until a retry when the gateway is over capacity. Short, because most calls take milliseconds.
pub(crate) const OVER_CAPACITY_RETRY_S: u64 = 1;

/// Bytes of revert data whose reason is part of the message. Escaping makes a reason up to six times as large, and each byte
/// that is not UTF-8 takes three, so a caller could make a message of 100 MB with data of 12 MB.
pub(crate) const REASON_DATA_BYTES_MAX: usize = 4 << 10;

// The admin API.

/// Bytes of a body of the admin API; larger ones are refused. The settings of a key with some public keys have a few
/// kilobytes.
pub(crate) const ADMIN_BODY_BYTES_MAX: usize = 64 << 10;

// The log, and the access log.

/// Bytes of log lines that may wait to be written: several thousand lines, enough for a burst that a healthy reader catches
/// up with. Lines beyond it are dropped.
pub(crate) const LOG_QUEUE_BYTES_MAX: usize = 1 << 20;

/// How long the thread of a log waits when somebody has made its file non-blocking and the reader is slow.
pub(crate) const LOG_RETRY_DELAY: Duration = Duration::from_millis(10);

/// How long the thread of a log waits for lines before it shows again that it is alive.
pub(crate) const LOG_ALIVE_INTERVAL: Duration = Duration::from_millis(500);

/// How long the process waits at its end for the reader of a log.
pub(crate) const LOG_FINISH_TIMEOUT: Duration = Duration::from_secs(1);

/// Bytes of a `User-Agent` in a line of the access log. Those of browsers have 100 to 200; callers could fill the disk with more.
pub(crate) const LOGGED_AGENT_BYTES_MAX: usize = 256;
