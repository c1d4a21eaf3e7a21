//! A socket whose timeouts are really armed.
//!
//! All of them live here, below HTTP: silence before the first byte, a head that trickles in, a body that does, a reader
//! that stops reading, and idling between requests. One timer per connection serves them all, and it is
//! touched only when the socket has nothing to give: a request that arrives whole never pays for it.

mod frames; // where the frames of HTTP/2 begin and end

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use resources::{Clock, Moment};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use crate::connection_state::State;
use crate::limits::Limits;

use self::frames::{FrameFlood, FrameWatch};

pub(crate) use self::frames::PREFACE;

/// Bytes both ways, encrypted or not.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> Stream for S {}

/// A stream, watched.
#[derive(Debug)]
pub(super) struct Socket<S> {
    stream: S,
    state: Arc<State>,
    /// Bytes that were read to tell the protocol, and are still to be handed on.
    replay: Vec<u8>,
    times: Times,
    timer: Pin<Box<Sleep>>,
    /// HTTP/2 only.
    frames: Option<Box<FrameWatch>>,
}

#[derive(Debug)]
struct Times {
    clock: Clock,
    limits: Limits,
    wait: Wait,
    /// Whether the caller may have more to send when the connection ends.
    cut_short: bool,
    /// Since when the rate at which the caller reads is measured; `None` while no reply waits for the caller.
    write_stuck_since: Option<Moment>,
    /// Whether what was written waits to be sent.
    is_flushing: bool,
    /// Bytes that were written since then.
    written: u64,
    /// Bytes that have to be written within the write timeout.
    written_min: u64,
    /// The caller was told that it is too late; nothing else may be said.
    given_up: bool,
    /// When the rest of what the caller sends is not waited for any longer.
    linger_until: Option<Instant>,
    /// When something was last written: a long reply that is being read is no idling.
    wrote: Moment,
}

/// What the connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    Request,
    /// The rest of a head that began at this moment.
    Head(Moment),
    /// The rest of a body whose head ended at this moment.
    Body(Moment),
    /// Us.
    Answer,
    /// HTTP/2: whatever comes next. A head, or a frame other than DATA, may be incomplete since then.
    Frames {
        unfinished_since: Option<Moment>,
    },
}

/// What happens when a deadline passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Late {
    /// The connection ends as if the caller had closed it.
    Close,
    /// The caller is told first.
    Tell,
    Abort,
}

const TOO_SLOW: &[u8] = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// Room that is made for what comes in next: most requests fit.
pub(super) const READ_BYTES: usize = 2 << 10;

/// How long a connection that is closed before its caller was done stays to hear the rest.
const LINGER: Duration = Duration::from_secs(1);

/// Of what is read and forgotten, so many pieces are read at once, with a pause after them: 6 MB/s for each connection. Callers
/// that are refused and go on sending would otherwise use up the processor.
const LINGER_READS: usize = 16;
const LINGER_PAUSE: Duration = Duration::from_millis(10);

/// The longest time that a timer is set to before it is looked at again.
const FAR: Duration = Duration::from_secs(3_600);

impl<S: AsyncRead + AsyncWrite + Unpin> Socket<S> {
    pub(super) fn new(stream: S, state: Arc<State>, clock: Clock, limits: Limits) -> Self {
        state.heard.store(clock.now().0, Relaxed);
        let times = Times {
            clock,
            written_min: limits.read_bytes_min(),
            limits,
            wait: Wait::Request,
            cut_short: false,
            write_stuck_since: None,
            is_flushing: false,
            written: 0,
            given_up: false,
            linger_until: None,
            wrote: clock.now(),
        };
        let timer = Box::pin(tokio::time::sleep(FAR));
        Self { stream, state, replay: Vec::new(), times, timer, frames: None }
    }

    /// Says what is waited for from now on, and with it for how long.
    pub(super) fn waits_for(&mut self, wait: Wait) {
        self.times.wait = wait;
    }

    /// From here on the connection speaks HTTP/2; what was read already is read again.
    pub(super) fn speak_http2(&mut self, read: Vec<u8>) -> io::Result<()> {
        self.frames = Some(Box::new(FrameWatch::new(PREFACE.len(), self.times.clock.now())));
        self.cut_short();
        self.watch_frames(&read)?;
        self.replay = read;
        Ok(())
    }

    /// Looks at the frames in what came in. A flood of them ends the connection.
    fn watch_frames(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(frames) = &mut self.frames else { return Ok(()) };
        let (now, sent) = (self.times.clock.now(), self.state.reply_bytes_sent.load(Relaxed));
        let fed = frames.feed(bytes, now, sent);
        self.times.wait = Wait::Frames { unfinished_since: frames.unfinished_since() };
        fed.map_err(|FrameFlood| io::Error::other("too many HTTP/2 frames that lead to nothing"))
    }

    /// Since when the caller has been free to go on: bytes came in, and its last reply was on its way.
    pub(super) fn free_since(&self) -> Moment {
        self.times.free_since(&self.state)
    }

    /// The connection is going to end although the caller may have more to send.
    pub(super) fn cut_short(&mut self) {
        self.times.cut_short = true;
    }

    /// Ends the wait for bytes when it has lasted too long.
    fn poll_late(&mut self, cx: &mut Context<'_>) -> Poll<Late> {
        loop {
            let Some((deadline, late)) = self.times.deadline(&self.state) else { return Poll::Pending };
            let deadline = Instant::from_std(self.times.clock.instant(deadline));
            // A timer that is set too early costs one look; resetting it for every request would cost every request.
            if self.timer.deadline() > deadline {
                self.timer.as_mut().reset(deadline);
            }
            ready!(self.timer.as_mut().poll(cx));
            if Instant::now() >= deadline {
                return Poll::Ready(late);
            }
            self.timer.as_mut().reset(Instant::now() + FAR);
        }
    }

    /// Reads and forgets what the caller still sends. Closing over unread bytes would reset the connection, and the
    /// reset would overtake the last reply.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.times.cut_short {
            return Poll::Ready(Ok(()));
        }
        let now = Instant::now();
        let until = *self.times.linger_until.get_or_insert(now + LINGER);
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
        // If the pause is over already, the task is polled again, after others.
        if self.timer.as_mut().poll(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    /// Measures the rate at which the caller reads: below the minimum over the write timeout is an error.
    fn watch_write(
        &mut self,
        cx: &mut Context<'_>,
        poll: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(written) = &poll {
            self.times.has_written(written.as_ref().copied().unwrap_or_default());
            return poll;
        }
        self.times.is_stuck();
        ready!(self.poll_late(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    /// Gives the caller the write timeout to take what TLS still holds, which is not more than a few records: TLS takes
    /// bytes before they are sent, so a caller that reads nothing of a short reply is noticed only here.
    fn watch_flush(&mut self, cx: &mut Context<'_>, poll: Poll<io::Result<()>>) -> Poll<io::Result<()>> {
        if poll.is_ready() {
            self.times.write_stuck_since = None;
            self.times.is_flushing = false;
            return poll;
        }
        if !self.times.is_flushing {
            self.times.is_flushing = true;
            self.times.write_stuck_since = None;
        }
        self.times.is_stuck();
        ready!(self.poll_late(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl Limits {
    /// Bytes that a caller has to read within the write timeout; at least one, or a caller that reads nothing would stay.
    pub(super) fn read_bytes_min(&self) -> u64 {
        let bytes = self.write_timeout.as_millis().saturating_mul(self.read_rate_min_bytes.into()) / 1_000;
        u64::try_from(bytes).unwrap_or(u64::MAX).max(1)
    }
}

impl Times {
    fn has_written(&mut self, bytes: usize) {
        self.wrote = self.clock.now();
        self.written = self.written.saturating_add(bytes as u64);
        if self.written >= self.written_min {
            self.write_stuck_since = None;
        }
    }

    fn is_stuck(&mut self) {
        if self.write_stuck_since.is_none() {
            self.write_stuck_since = Some(self.clock.now());
            self.written = 0;
        }
    }

    fn free_since(&self, state: &State) -> Moment {
        self.wrote.max(Moment(state.heard.load(Relaxed)))
    }

    /// The next moment at which something is too late, and what then.
    fn deadline(&self, state: &State) -> Option<(Moment, Late)> {
        let limits = &self.limits;
        if let Some(since) = self.write_stuck_since {
            return Some((since.after(limits.write_timeout), Late::Abort));
        }
        let quiet = self.free_since(state);
        match self.wait {
            Wait::Answer => None,
            Wait::Body(began) => Some((began.after(limits.body_timeout), Late::Tell)),
            Wait::Head(began) => Some((began.after(limits.header_timeout), Late::Tell)),
            Wait::Request if state.is_new() => Some((quiet.after(limits.first_byte_timeout), Late::Close)),
            Wait::Request => Some((quiet.after(limits.keep_alive_timeout), Late::Close)),
            // How long an HTTP/2 connection may idle, and a body may take, is watched above the socket.
            Wait::Frames { unfinished_since } => {
                unfinished_since.map(|since| (since.after(limits.header_timeout), Late::Close))
            }
        }
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
                self.state.heard.store(self.times.clock.now().0, Relaxed);
                Poll::Ready(self.watch_frames(&buf.filled()[before..]))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => match ready!(self.poll_late(cx)) {
                Late::Close => Poll::Ready(Ok(())),
                Late::Abort => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
                Late::Tell => {
                    // Nothing of an earlier reply can be under way here, so this stands by itself. If it does not fit
                    // into the socket's buffer now, the caller is not told.
                    let _told = Pin::new(&mut self.stream).poll_write(cx, TOO_SLOW);
                    let _sent = Pin::new(&mut self.stream).poll_flush(cx);
                    self.times.given_up = true;
                    Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
                }
            },
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Socket<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if self.times.given_up {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        let poll = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.watch_write(cx, poll)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.times.given_up {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        let poll = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.watch_write(cx, poll)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_flush(cx);
        self.watch_flush(cx, poll)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.times.linger_until.is_none() {
            let poll = Pin::new(&mut self.stream).poll_shutdown(cx);
            ready!(self.watch_flush(cx, poll))?;
        }
        self.poll_linger(cx)
    }
}
