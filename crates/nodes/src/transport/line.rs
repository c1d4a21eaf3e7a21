//! One connection at work: takes what waits in its lane, sends it, hands the replies out, and rests when there is
//! nothing to do.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout_at};

use crate::call::{Fault, Reply};

use super::http1::{Http1, Trouble};
use super::http2::Http2;
use super::lane::{Came, Lane, Turn};
use super::outcome::{Answer, BatchFault};
use super::receive::Terms;
use super::request::Request;
use super::stats::Open;
use super::waiting::Waiting;

/// How long before the deadline of a call its reply stops waiting for memory.
const GIVE_UP_BEFORE: Duration = Duration::from_millis(20);

/// Starts a line on the runtime of the caller.
pub(super) fn start(lane: &Arc<Lane>) {
    tokio::spawn(Line::new(Arc::clone(lane)).run());
}

struct Line {
    lane: Arc<Lane>,
    /// Rung when there is something to do.
    bell: Arc<Notify>,
    connection: Option<Connection>,
    request: Request,
    /// The calls of the exchange under way.
    calls: Vec<Waiting>,
    came: Came,
    /// Whether the lane still counts on this line.
    counted: bool,
}

enum Connection {
    Http1(Http1),
    Http2(Http2),
}

impl Connection {
    fn is_alive(&self) -> bool {
        match self {
            Self::Http1(connection) => connection.is_alive(),
            Self::Http2(connection) => connection.is_alive(),
        }
    }
}

impl Line {
    fn new(lane: Arc<Lane>) -> Self {
        Self {
            lane,
            bell: Arc::default(),
            connection: None,
            request: Request::default(),
            calls: Vec::new(),
            came: Came::New,
            counted: true,
        }
    }

    async fn run(mut self) {
        while self.lane.is_wanted() {
            if let Err(fault) = self.connect().await {
                self.lane.unreachable(fault);
                break;
            }
            self.serve().await;
            self.connection = None;
        }
        self.counted = false;
    }

    async fn connect(&mut self) -> Result<(), Fault> {
        if let Some(shared) = self.lane.http2() {
            self.connection = Some(Connection::Http2(shared));
            return Ok(());
        }
        let dialed = self.lane.setup.dialer.dial().await?;
        let open = Open::new(&self.lane.counters);
        self.connection = Some(if dialed.http2 {
            let connection = Http2::begin(dialed.stream, &self.lane.setup.limits, open).await?;
            self.lane.share_http2(&connection);
            Connection::Http2(connection)
        } else {
            Connection::Http1(Http1::new(dialed.stream, open))
        });
        Ok(())
    }

    /// Works until the connection is no longer good, or has rested for too long.
    async fn serve(&mut self) {
        while let Some(first_id) = self.turn().await {
            self.exchange(first_id).await;
            if !self.connection.as_ref().is_some_and(Connection::is_alive) {
                return;
            }
        }
    }

    /// Waits for calls; the id of the first of them is returned.
    async fn turn(&mut self) -> Option<u64> {
        loop {
            let came = std::mem::replace(&mut self.came, Came::New);
            match self.lane.take(&mut self.calls, &self.bell, came) {
                Turn::Send { first_id } => return Some(first_id),
                Turn::End => return None,
                Turn::Rest if self.rest().await => self.came = Came::FromRest,
                Turn::Rest => return None,
            }
        }
    }

    /// Rests until it is called. `false` if the connection ended before that, by the node's will or by ours.
    async fn rest(&mut self) -> bool {
        let idle_timeout = self.lane.setup.limits.idle_timeout;
        tokio::select! {
            biased;
            () = self.bell.notified() => return true,
            () = hang_up(&mut self.connection) => {}
            () = sleep(idle_timeout) => {}
        }
        self.connection = None;
        if self.lane.leave_rest(&self.bell) {
            return false;
        }
        // It was called in the same moment, and somebody counts on it.
        self.bell.notified().await;
        true
    }

    async fn exchange(&mut self, first_id: u64) {
        self.request.write(&self.lane.setup.template, &self.calls, first_id);
        self.count_sent();
        // A caller who gives up earlier waits no longer; the connection is kept for the most patient one.
        let deadline = self.calls.iter().map(|call| call.deadline).max().unwrap_or_else(Instant::now);
        let began = Instant::now();
        let answer = timeout_at(deadline, self.send()).await.unwrap_or(Err(Fault::Timeout));
        let bytes = answer.as_ref().map_or(0, |answer| answer.body.len());
        self.came =
            Came::FromExchange { time: began.elapsed(), reply_bytes: bytes / self.calls.len().max(1) };
        match answer {
            Ok(answer) => self.hand_out(answer, first_id).await,
            // Together they are more than may be read at once; each by itself may fit.
            Err(Fault::TooLarge | Fault::LargerThanMemory) if self.calls.len() > 1 => self.split(),
            Err(fault) => self.fail(fault),
        }
    }

    /// Sends the request; once more on a new connection if the old one turns out to have ended at rest.
    async fn send(&mut self) -> Result<Answer, Fault> {
        match self.try_send().await {
            Ok(answer) => Ok(answer),
            Err(Trouble::Fault(fault)) => Err(fault),
            Err(Trouble::Stale) => {
                self.connection = None;
                self.lane.forget_http2();
                self.try_send().await.map_err(|trouble| match trouble {
                    Trouble::Stale => Fault::Closed,
                    Trouble::Fault(fault) => fault,
                })
            }
        }
    }

    async fn try_send(&mut self) -> Result<Answer, Trouble> {
        if self.connection.is_none() {
            self.connect().await?;
        }
        let setup = &self.lane.setup;
        // A little before the first call gives up, so that it still learns the reason.
        let until = self.calls.iter().map(|call| call.deadline).min().unwrap_or_else(Instant::now);
        let terms = Terms { limits: &setup.limits, memory: &setup.memory, until: until - GIVE_UP_BEFORE };
        match &mut self.connection {
            Some(Connection::Http1(connection)) => connection.exchange(self.request.bytes(), &terms).await,
            Some(Connection::Http2(connection)) => {
                connection.exchange(self.request.body(), &setup.target, &terms).await
            }
            None => Err(Fault::Connect.into()),
        }
    }

    async fn hand_out(&mut self, answer: Answer, first_id: u64) {
        let (lane, count) = (Arc::clone(&self.lane), self.calls.len());
        lane.counters.bytes_in.fetch_add(answer.body.len() as u64, Relaxed);
        if let Some(results) = answer.results_from_outside(first_id, count, &lane.habit) {
            let replies = results.into_iter().map(|result| Ok(Reply::Result(result)));
            self.calls.drain(..).zip(replies).for_each(|(call, reply)| call.answer(reply));
            return;
        }
        let replies = if answer.takes_long_to_read() {
            #[expect(clippy::disallowed_methods, reason = "at most one waits for each connection to a node")]
            let read = spawn_blocking(move || answer.read(first_id, count, &lane.habit));
            read.await.unwrap_or_else(|error| {
                tracing::error!(%error, "a reply could not be read");
                Err(BatchFault::Fault(Fault::Closed))
            })
        } else {
            answer.read(first_id, count, &lane.habit)
        };
        match replies {
            Ok(replies) => self.calls.drain(..).zip(replies).for_each(|(call, reply)| call.answer(reply)),
            Err(BatchFault::Refused) => self.split(),
            Err(BatchFault::Fault(fault)) => self.fail(fault),
        }
    }

    fn split(&mut self) {
        tracing::debug!(node = %self.lane.setup.endpoint, "takes no batches");
        for _ in 0..self.lane.split(&mut self.calls) {
            start(&self.lane);
        }
    }

    fn fail(&mut self, fault: Fault) {
        self.calls.drain(..).for_each(|call| call.answer(Err(fault)));
    }

    fn count_sent(&self) {
        let counters = &self.lane.counters;
        counters.calls.fetch_add(self.calls.len() as u64, Relaxed);
        counters.bytes_out.fetch_add(self.request.bytes().len() as u64, Relaxed);
        if self.calls.len() > 1 {
            counters.batches.fetch_add(1, Relaxed);
            counters.batched_calls.fetch_add(self.calls.len() as u64, Relaxed);
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if self.counted {
            self.lane.lost(&self.bell);
        }
    }
}

/// Waits for the node to end the connection. A shared one tells those who use it.
async fn hang_up(connection: &mut Option<Connection>) {
    match connection {
        Some(Connection::Http1(connection)) => connection.hang_up().await,
        _ => std::future::pending().await,
    }
}
