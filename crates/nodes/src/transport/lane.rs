//! Calls that wait for one endpoint on one runtime thread, and the lines that take them.
//!
//! A lane belongs to the thread that made it: callers and lines of that thread meet here, so its lock is never fought
//! over. A call that finds all lines busy waits for the next one to be free, and what waits by then goes out together,
//! as far as it may; nothing is held back to wait for company.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::call::Fault;

use super::http2::Http2;
use super::outcome::Habit;
use super::pace::{Kind, Pace};
use super::setup::Setup;
use super::stats::Counters;
use super::waiting::Waiting;

#[derive(Debug)]
pub(super) struct Lane {
    pub(super) setup: Arc<Setup>,
    pub(super) counters: Arc<Counters>,
    pub(super) habit: Habit,
    state: Mutex<State>,
}

struct State {
    calls: VecDeque<Waiting>,
    /// Lines at rest; the one that rested least is called first, so that the others may end.
    resting: Vec<Arc<Notify>>,
    /// Lines called from their rest that have not come yet.
    called: usize,
    lines: usize,
    next_id: u64,
    pace: Pace,
    no_batch_until: Option<Instant>,
    /// The connection that all lines share, where HTTP/2 is spoken.
    http2: Option<Http2>,
    closed: bool,
}

impl std::fmt::Debug for State {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "State({} calls, {} lines)", self.calls.len(), self.lines)
    }
}

/// Where a line comes from when it asks for its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Came {
    New,
    FromRest,
    FromExchange {
        time: Duration,
        /// What each call of it brought.
        reply_bytes: usize,
    },
}

/// What a line got to do. The calls themselves are in the line's own list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Send { first_id: u64 },
    Rest,
    End,
}

impl Lane {
    pub(super) fn new(setup: Arc<Setup>, kind: Kind) -> Self {
        let state = State {
            calls: VecDeque::new(),
            resting: Vec::new(),
            called: 0,
            lines: 0,
            // Ids begin somewhere else on each lane, so that a reply that strays is recognised.
            next_id: u64::from(rand::random::<u32>()),
            pace: Pace::new(kind, &setup.limits),
            no_batch_until: None,
            http2: None,
            closed: false,
        };
        Self { setup, counters: Arc::default(), habit: Habit::default(), state: Mutex::new(state) }
    }

    /// Adds a call. Says whether a new line is needed for it, which the caller then starts.
    pub(super) fn push(&self, call: Waiting) -> Result<bool, Fault> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(Fault::Closed);
        }
        if state.calls.len() >= self.setup.limits.queue_calls_max {
            state.calls.retain(|call| !call.is_abandoned());
        }
        if state.calls.len() >= self.setup.limits.queue_calls_max {
            return Err(Fault::Timeout);
        }
        state.calls.push_back(call);
        Ok(self.call_a_line(&mut state))
    }

    /// Calls a line from its rest if another one may be busy; `true` if a new one should be started instead.
    fn call_a_line(&self, state: &mut State) -> bool {
        let busy = state.lines - state.resting.len();
        if busy >= self.busy_max(state, busy) {
            return false;
        }
        match state.resting.pop() {
            Some(line) => {
                state.called += 1;
                line.notify_one();
                false
            }
            None => {
                state.lines += 1;
                true
            }
        }
    }

    fn busy_max(&self, state: &State, busy: usize) -> usize {
        let limits = &self.setup.limits;
        // One that refuses batches needs a line for each call.
        if busy < limits.near_connections_max || !state.may_batch() {
            return limits.connections_max;
        }
        state.pace.lines_max(limits, Instant::now())
    }

    /// The turn of a line that has nothing to do.
    pub(super) fn take(&self, calls: &mut Vec<Waiting>, line: &Arc<Notify>, came: Came) -> Turn {
        let mut state = self.state.lock();
        match came {
            Came::New => {}
            Came::FromRest => state.called = state.called.saturating_sub(1),
            Came::FromExchange { time, reply_bytes } => state.pace.note(time, reply_bytes),
        }
        if state.closed {
            return Turn::End;
        }
        self.gather(&mut state, calls);
        if calls.is_empty() {
            state.resting.push(Arc::clone(line));
            return Turn::Rest;
        }
        let first_id = state.next_id;
        state.next_id += calls.len() as u64;
        state.pace.moves(Instant::now());
        Turn::Send { first_id }
    }

    fn gather(&self, state: &mut State, calls: &mut Vec<Waiting>) {
        let limits = &self.setup.limits;
        let batch_max = if state.may_batch() { state.pace.batch_max(limits) } else { 1 };
        // Lines that come for the same calls get a share each.
        let share = state.calls.len().div_ceil(state.called + 1);
        let count_max = share.min(batch_max);
        let mut bytes = 0;
        while calls.len() < count_max {
            let Some(call) = state.calls.pop_front() else { return };
            if call.is_abandoned() {
                continue;
            }
            bytes += call.bytes();
            if bytes > limits.batch_bytes_max && !calls.is_empty() {
                state.calls.push_front(call);
                return;
            }
            calls.push(call);
        }
    }

    /// A line wants to leave its rest by itself. `false` if it has been called meanwhile: then it must stay.
    pub(super) fn leave_rest(&self, line: &Arc<Notify>) -> bool {
        let mut state = self.state.lock();
        let place = state.resting.iter().position(|other| Arc::ptr_eq(other, line));
        place.map(|place| state.resting.remove(place)).is_some()
    }

    /// A line without a connection asks whether it should make one. If nobody waits it counts as gone.
    pub(super) fn is_wanted(&self) -> bool {
        let mut state = self.state.lock();
        state.calls.retain(|call| !call.is_abandoned());
        let wanted = !state.closed && !state.calls.is_empty();
        if !wanted {
            state.line_ends();
        }
        wanted
    }

    /// A line could not connect, and counts as gone. Those who wait are told, unless another line has a connection.
    pub(super) fn unreachable(&self, fault: Fault) {
        let mut state = self.state.lock();
        state.line_ends();
        let connected = self.counters.connections_open.load(Relaxed) > 0;
        let calls = if connected { VecDeque::new() } else { std::mem::take(&mut state.calls) };
        drop(state);
        for call in calls {
            call.answer(Err(fault));
        }
    }

    /// A line was dropped, together with its runtime.
    pub(super) fn lost(&self, line: &Arc<Notify>) {
        self.leave_rest(line);
        self.state.lock().line_ends();
    }

    /// The node does not take these together: they go to the front of the queue, and out one by one. Says how
    /// many new lines should be started for them.
    pub(super) fn split(&self, calls: &mut Vec<Waiting>) -> usize {
        let mut state = self.state.lock();
        state.no_batch_until = Some(Instant::now() + self.setup.limits.batch_pause);
        let count = calls.len();
        for call in calls.drain(..).rev() {
            state.calls.push_front(call);
        }
        // The line that brought them back takes one itself.
        (1..count).filter(|_| self.call_a_line(&mut state)).count()
    }

    pub(super) fn http2(&self) -> Option<Http2> {
        let state = self.state.lock();
        state.http2.as_ref().filter(|shared| shared.is_alive()).map(Http2::share)
    }

    pub(super) fn share_http2(&self, connection: &Http2) {
        self.state.lock().http2 = Some(connection.share());
    }

    /// The shared connection has failed; whoever comes next makes a new one.
    pub(super) fn forget_http2(&self) {
        self.state.lock().http2 = None;
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    /// No more calls: lines at rest end, the others when they have their reply.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        state.http2 = None;
        let calls = std::mem::take(&mut state.calls);
        let resting = std::mem::take(&mut state.resting);
        drop(state);
        for line in resting {
            line.notify_one();
        }
        for call in calls {
            call.answer(Err(Fault::Closed));
        }
    }
}

impl State {
    fn line_ends(&mut self) {
        self.lines = self.lines.saturating_sub(1);
        if self.lines == 0 {
            self.http2 = None;
        }
    }

    fn may_batch(&self) -> bool {
        self.no_batch_until.is_none_or(|until| Instant::now() >= until)
    }
}
