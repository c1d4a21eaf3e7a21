//! A socket with timeouts.
//!
//! It applies all timeouts of a connection: before the first byte, for a slow head, for a slow body, for a slow reader, and
//! between requests. One timer serves them all. It is set only when the socket has to wait, so a request that arrives at once
//! does not touch it.

mod frames; // received HTTP/2 frames

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use resources::{Clock, MonoTime};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use crate::connection_state::ConnectionState;
use crate::limits::HttpLimits;
use crate::policy::{LINGER, LINGER_PAUSE, LINGER_READS};

use self::frames::{FrameFlood, FrameWatch};

pub(crate) use self::frames::PREFACE;

/// A bidirectional stream of bytes, encrypted or not.
pub(crate) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> ByteStream for S {}

/// A stream with timeouts.
#[derive(Debug)]
pub(super) struct Socket<S> {
    stream: S,
    state: Arc<ConnectionState>,
    /// Bytes that were read to detect the protocol and have to be read again.
    replay: Vec<u8>,
    timers: SocketTimers,
    timer: Pin<Box<Sleep>>,
    /// HTTP/2 only.
    frames: Option<Box<FrameWatch>>,
}

#[derive(Debug)]
struct SocketTimers {
    clock: Clock,
    limits: Arc<HttpLimits>,
    /// End of the time for the first head, and for everything before it.
    first_head_deadline: MonoTime,
    wait: Wait,
    /// Whether the caller may have more to send when the connection is closed.
    linger_on_close: bool,
    /// Start of the interval in which the rate of the reader is measured; `None` while no write is blocked.
    write_blocked_since: Option<MonoTime>,
    /// Whether written bytes are being flushed.
    is_flushing: bool,
    /// Bytes written in the interval.
    written: u64,
    /// Bytes that have to be written within the write timeout.
    written_min: u64,
    /// Whether the reply 408 was sent; nothing else may be written after it.
    timed_out: bool,
    /// End of the time in which received bytes are discarded before the connection is closed.
    linger_until: Option<Instant>,
    /// Time of the last write; a connection that reads a long reply is not idle.
    last_write_at: MonoTime,
}

/// The next thing that a connection waits for, which determines the timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    Request,
    /// The rest of a head, since this time.
    Head(MonoTime),
    /// The rest of a body, since this time.
    Body(MonoTime),
    /// The answer of the gateway, which has no timeout here.
    Answer,
    /// HTTP/2 frames. A head, or a frame other than DATA, may be incomplete since `unfinished_since`.
    Frames {
        unfinished_since: Option<MonoTime>,
    },
}

/// The end of a connection after a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimeoutAction {
    /// The connection ends as if the caller had closed it.
    Close,
    /// The reply 408 is sent, and the connection ends.
    Reply408,
    Abort,
}

const TOO_SLOW: &[u8] = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// Bytes reserved for a read; most requests fit.
pub(super) const READ_BYTES: usize = 2 << 10;

/// The longest time that the timer is set to.
const TIMER_MAX: Duration = Duration::from_secs(3_600);

impl<S: AsyncRead + AsyncWrite + Unpin> Socket<S> {
    /// A socket of a connection that was accepted at that time.
    pub(super) fn new(
        stream: S,
        state: Arc<ConnectionState>,
        accepted: MonoTime,
        clock: Clock,
        limits: Arc<HttpLimits>,
    ) -> Self {
        state.last_read_at.store(clock.now().0, Relaxed);
        let timers = SocketTimers {
            clock,
            first_head_deadline: accepted.after(limits.first_head_timeout()),
            written_min: limits.read_bytes_min(),
            limits,
            wait: Wait::Request,
            linger_on_close: false,
            write_blocked_since: None,
            is_flushing: false,
            written: 0,
            timed_out: false,
            linger_until: None,
            last_write_at: clock.now(),
        };
        let timer = Box::pin(tokio::time::sleep(TIMER_MAX));
        Self { stream, state, replay: Vec::new(), timers, timer, frames: None }
    }

    /// Sets what the connection waits for, and with it the timeout.
    pub(super) fn set_wait(&mut self, wait: Wait) {
        self.state.is_idle.store(wait != Wait::Answer, Relaxed);
        self.timers.wait = wait;
    }

    /// Switches to HTTP/2; the bytes `read` so far are read again.
    pub(super) fn switch_to_http2(&mut self, read: Vec<u8>) -> io::Result<()> {
        self.frames = Some(Box::new(FrameWatch::new(PREFACE.len())));
        self.linger_on_close();
        self.watch_frames(&read)?;
        self.replay = read;
        Ok(())
    }

    /// Watches the frames in received bytes. A flood of frames ends the connection.
    fn watch_frames(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(frames) = &mut self.frames else { return Ok(()) };
        let (now, sent) = (self.timers.clock.now(), self.state.reply_bytes_sent.load(Relaxed));
        let fed = frames.feed(bytes, now, sent);
        self.timers.wait = Wait::Frames { unfinished_since: frames.unfinished_since() };
        fed.map_err(|FrameFlood| io::Error::other("too many HTTP/2 frames that request nothing"))
    }

    /// Time of the last read or write.
    pub(super) fn last_activity(&self) -> MonoTime {
        self.timers.last_activity(&self.state)
    }

    /// Makes `shutdown` discard what the caller still sends.
    pub(super) fn linger_on_close(&mut self) {
        self.timers.linger_on_close = true;
    }

    /// Ready when the current wait has timed out.
    fn poll_timeout(&mut self, cx: &mut Context<'_>) -> Poll<TimeoutAction> {
        loop {
            let Some((deadline, action)) = self.timers.deadline(&self.state) else { return Poll::Pending };
            let deadline = Instant::from_std(self.timers.clock.instant(deadline));
            // A timer that fires too early costs one poll; resetting it for every request would cost more.
            if self.timer.deadline() > deadline {
                self.timer.as_mut().reset(deadline);
            }
            ready!(self.timer.as_mut().poll(cx));
            if Instant::now() >= deadline {
                return Poll::Ready(action);
            }
            self.timer.as_mut().reset(Instant::now() + TIMER_MAX);
        }
    }

    /// Reads and discards what the caller still sends. Closing with unread bytes would reset the connection, and the caller
    /// could lose the last reply.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.timers.linger_on_close {
            return Poll::Ready(Ok(()));
        }
        let now = Instant::now();
        let until = *self.timers.linger_until.get_or_insert(now + LINGER);
        if now >= until {
            return Poll::Ready(Ok(()));
        }
        let mut unread = [0; 4 << 10];
        for _ in 0..LINGER_READS {
            let mut buf = ReadBuf::new(&mut unread);
            match Pin::new(&mut self.stream).poll_read(cx, &mut buf) {
                Poll::Ready(Ok(())) if !buf.filled().is_empty() => {}
                Poll::Ready(_) => return Poll::Ready(Ok(())),
                Poll::Pending => {
                    self.timer.as_mut().reset(until);
                    return self.timer.as_mut().poll(cx).map(Ok);
                }
            }
        }
        self.timer.as_mut().reset(until.min(now + LINGER_PAUSE));
        // If the pause is already over, the task is polled again after others.
        if self.timer.as_mut().poll(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    /// Measures the rate at which the caller reads; less than the minimum over the write timeout is an error.
    fn check_write_rate(
        &mut self,
        cx: &mut Context<'_>,
        poll: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(written) = &poll {
            self.timers.count_written(written.as_ref().copied().unwrap_or_default());
            return poll;
        }
        self.timers.begin_write_wait();
        ready!(self.poll_timeout(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    /// Limits a flush to the write timeout. TLS buffers a few records before they are sent, so a caller that reads nothing of a
    /// short reply is noticed only here.
    fn check_flush_time(&mut self, cx: &mut Context<'_>, poll: Poll<io::Result<()>>) -> Poll<io::Result<()>> {
        if poll.is_ready() {
            self.timers.write_blocked_since = None;
            self.timers.is_flushing = false;
            return poll;
        }
        if !self.timers.is_flushing {
            self.timers.is_flushing = true;
            self.timers.write_blocked_since = None;
        }
        self.timers.begin_write_wait();
        ready!(self.poll_timeout(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl HttpLimits {
    /// Bytes that a caller has to read within the write timeout; at least one, so that a caller that reads nothing is
    /// disconnected.
    pub(super) fn read_bytes_min(&self) -> u64 {
        let bytes = self.write_timeout.as_millis().saturating_mul(self.read_rate_min_bytes.into()) / 1_000;
        u64::try_from(bytes).unwrap_or(u64::MAX).max(1)
    }
}

impl SocketTimers {
    fn count_written(&mut self, bytes: usize) {
        self.last_write_at = self.clock.now();
        self.written = self.written.saturating_add(bytes as u64);
        if self.written >= self.written_min {
            self.write_blocked_since = None;
        }
    }

    fn begin_write_wait(&mut self) {
        if self.write_blocked_since.is_none() {
            self.write_blocked_since = Some(self.clock.now());
            self.written = 0;
        }
    }

    fn last_activity(&self, state: &ConnectionState) -> MonoTime {
        self.last_write_at.max(MonoTime(state.last_read_at.load(Relaxed)))
    }

    /// The time of the next timeout, and what happens then.
    fn deadline(&self, state: &ConnectionState) -> Option<(MonoTime, TimeoutAction)> {
        let limits = &self.limits;
        if let Some(since) = self.write_blocked_since {
            return Some((since.after(limits.write_timeout), TimeoutAction::Abort));
        }
        let idle_since = self.last_activity(state);
        let deadline = match self.wait {
            Wait::Answer => None,
            Wait::Body(began) => Some((began.after(limits.body_timeout), TimeoutAction::Reply408)),
            Wait::Head(began) => Some((began.after(limits.header_timeout), TimeoutAction::Reply408)),
            Wait::Request if state.is_new() => {
                Some((idle_since.after(limits.first_byte_timeout), TimeoutAction::Close))
            }
            Wait::Request => Some((idle_since.after(limits.keep_alive_timeout), TimeoutAction::Close)),
            // `http2` applies the timeouts of idle connections and of bodies.
            Wait::Frames { unfinished_since } => {
                unfinished_since.map(|since| (since.after(limits.header_timeout), TimeoutAction::Close))
            }
        };
        let latest = if state.is_new() { self.first_head_deadline } else { MonoTime(u64::MAX) };
        deadline.map(|(deadline, action)| (deadline.min(latest), action))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Socket<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.replay.is_empty() {
            let len = self.replay.len().min(buf.remaining());
            buf.put_slice(&self.replay[..len]);
            self.replay.drain(..len);
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        match Pin::new(&mut self.stream).poll_read(cx, buf) {
            Poll::Ready(Ok(())) => {
                self.state.last_read_at.store(self.timers.clock.now().0, Relaxed);
                Poll::Ready(self.watch_frames(&buf.filled()[before..]))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => match ready!(self.poll_timeout(cx)) {
                TimeoutAction::Close => Poll::Ready(Ok(())),
                TimeoutAction::Abort => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
                TimeoutAction::Reply408 => {
                    // No other reply is being written here. If this one does not fit into the buffer of the socket, it is not
                    // sent.
                    let _written = Pin::new(&mut self.stream).poll_write(cx, TOO_SLOW);
                    let _sent = Pin::new(&mut self.stream).poll_flush(cx);
                    self.timers.timed_out = true;
                    Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
                }
            },
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Socket<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if self.timers.timed_out {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        let poll = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.check_write_rate(cx, poll)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.timers.timed_out {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        let poll = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.check_write_rate(cx, poll)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_flush(cx);
        self.check_flush_time(cx, poll)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.timers.linger_until.is_none() {
            let poll = Pin::new(&mut self.stream).poll_shutdown(cx);
            ready!(self.check_flush_time(cx, poll))?;
        }
        self.poll_linger(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST_BYTE_TIMEOUT: Duration = Duration::from_secs(4);
    const HEADER_TIMEOUT: Duration = Duration::from_secs(10);

    /// The time of the next timeout, in seconds after the accept, of a connection that waits since `began`.
    fn timeout_at(wait: impl Fn(MonoTime) -> Wait, began: u64, requests: u64) -> Option<u64> {
        let (accepted, state) = (MonoTime(0), Arc::new(ConnectionState::default()));
        let limits = HttpLimits {
            first_byte_timeout: FIRST_BYTE_TIMEOUT,
            header_timeout: HEADER_TIMEOUT,
            ..HttpLimits::default()
        };
        let (stream, clock) = (tokio::io::empty(), Clock::default());
        let mut socket = Socket::new(stream, Arc::clone(&state), accepted, clock, Arc::new(limits));
        let began = accepted.after(Duration::from_secs(began));
        state.last_read_at.store(began.0, Relaxed);
        state.requests.store(requests, Relaxed);
        socket.timers.last_write_at = accepted;
        socket.set_wait(wait(began));
        let deadline = socket.timers.deadline(&state).map(|(deadline, _)| deadline.since(accepted));
        deadline.map(|time| time.as_secs())
    }

    /// The times for the PROXY header, TLS, the first byte and the head added up: a caller could stay for 40 s without a
    /// request.
    #[tokio::test]
    async fn the_first_head_has_to_be_complete_some_time_after_the_accept() {
        assert_eq!(timeout_at(|_| Wait::Request, 0, 0), Some(4), "the first byte");
        assert_eq!(
            timeout_at(|_| Wait::Request, 9, 0),
            Some(10),
            "the first byte, after a long TLS handshake"
        );
        assert_eq!(timeout_at(Wait::Head, 0, 0), Some(10));
        assert_eq!(timeout_at(Wait::Head, 9, 0), Some(10), "a head that began late");
        let frames = |began| Wait::Frames { unfinished_since: Some(began) };
        assert_eq!(timeout_at(frames, 9, 0), Some(10));
        assert_eq!(
            (timeout_at(Wait::Head, 9, 1), timeout_at(frames, 9, 1)),
            (Some(19), Some(19)),
            "later requests"
        );
    }

    #[tokio::test]
    async fn a_connection_is_idle_unless_it_works_on_an_answer() {
        let state = Arc::new(ConnectionState::default());
        let (clock, limits) = (Clock::default(), Arc::default());
        let mut socket = Socket::new(tokio::io::empty(), Arc::clone(&state), clock.now(), clock, limits);
        for (wait, is_idle) in [
            (Wait::Body(clock.now()), true),
            (Wait::Answer, false),
            (Wait::Request, true),
            (Wait::Head(clock.now()), true),
        ] {
            socket.set_wait(wait);
            assert_eq!(state.may_make_room(), is_idle, "{wait:?}");
        }
    }
}
