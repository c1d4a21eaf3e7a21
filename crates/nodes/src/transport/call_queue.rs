//! The calls that wait for one endpoint on one runtime thread.
//!
//! A queue belongs to the thread that made it: callers and connection tasks of that thread share it, so its lock is never
//! contended. A call that finds all connections busy waits for the next one that is free, and what waits by then may be sent
//! together. No call is delayed to fill a batch.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::call::Fault;

use super::batch_policy::{BatchPolicy, QueueKind};
use super::http_reply::ReplyFormat;
use super::http2::Http2;
use super::pending_call::PendingCall;
use super::setup::EndpointSetup;
use super::stats::Counters;

#[derive(Debug)]
pub(super) struct CallQueue {
    pub(super) setup: Arc<EndpointSetup>,
    pub(super) counters: Arc<Counters>,
    pub(super) format: ReplyFormat,
    state: Mutex<CallQueueState>,
}

struct CallQueueState {
    calls: VecDeque<PendingCall>,
    /// Idle connection tasks, the most recently used last. That one is woken first, so that surplus ones time out.
    idle: Vec<Arc<Notify>>,
    /// Tasks that were woken and have not taken calls yet.
    woken: usize,
    /// All connection tasks of this queue.
    tasks: usize,
    next_id: u64,
    policy: BatchPolicy,
    no_batch_until: Option<Instant>,
    /// The connection that all tasks share, where HTTP/2 is spoken.
    http2: Option<Http2>,
    is_closed: bool,
}

impl std::fmt::Debug for CallQueueState {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "CallQueueState({} calls, {} tasks)", self.calls.len(), self.tasks)
    }
}

/// Why a connection task asks for its next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WakeReason {
    Started,
    Woken,
    ExchangeEnded {
        time: Duration,
        /// Average size of the replies of the exchange.
        reply_bytes: usize,
    },
}

/// What a connection task does next. The calls themselves are in the task's own list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextStep {
    Send { first_id: u64 },
    Idle,
    Stop,
}

impl CallQueue {
    pub(super) fn new(setup: Arc<EndpointSetup>, kind: QueueKind) -> Self {
        let state = CallQueueState {
            calls: VecDeque::new(),
            idle: Vec::new(),
            woken: 0,
            tasks: 0,
            // Ids start at a random number in each queue, so that a reply to another queue's call is recognised.
            next_id: u64::from(rand::random::<u32>()),
            policy: BatchPolicy::new(kind, &setup.limits),
            no_batch_until: None,
            http2: None,
            is_closed: false,
        };
        Self { setup, counters: Arc::default(), format: ReplyFormat::default(), state: Mutex::new(state) }
    }

    /// Adds a call. Returns whether the caller must start a new connection task for it.
    pub(super) fn push(&self, call: PendingCall) -> Result<bool, Fault> {
        let mut state = self.state.lock();
        if state.is_closed {
            return Err(Fault::Closed);
        }
        if state.calls.len() >= self.setup.limits.queue_calls_max {
            state.calls.retain(|call| !call.is_abandoned());
        }
        if state.calls.len() >= self.setup.limits.queue_calls_max {
            return Err(Fault::Timeout);
        }
        state.calls.push_back(call);
        Ok(self.wake_task(&mut state))
    }

    /// Wakes an idle task if another one may be busy. Returns whether a new task must be started instead.
    fn wake_task(&self, state: &mut CallQueueState) -> bool {
        let busy = state.tasks - state.idle.len();
        if busy >= self.busy_max(state, busy) {
            return false;
        }
        match state.idle.pop() {
            Some(task) => {
                state.woken += 1;
                task.notify_one();
                false
            }
            None => {
                state.tasks += 1;
                true
            }
        }
    }

    fn busy_max(&self, state: &CallQueueState, busy: usize) -> usize {
        let limits = &self.setup.limits;
        // A node that refuses batches needs a connection for each call.
        if busy < limits.near_connections_max || !state.may_batch() {
            return limits.connections_max;
        }
        state.policy.connections_max(limits, Instant::now())
    }

    /// Gives calls to a task that has none.
    pub(super) fn next_step(
        &self,
        calls: &mut Vec<PendingCall>,
        task: &Arc<Notify>,
        reason: WakeReason,
    ) -> NextStep {
        let mut state = self.state.lock();
        match reason {
            WakeReason::Started => {}
            WakeReason::Woken => state.woken = state.woken.saturating_sub(1),
            WakeReason::ExchangeEnded { time, reply_bytes } => {
                state.policy.record_exchange(time, reply_bytes);
            }
        }
        if state.is_closed {
            return NextStep::Stop;
        }
        self.take_calls(&mut state, calls);
        if calls.is_empty() {
            state.idle.push(Arc::clone(task));
            return NextStep::Idle;
        }
        let first_id = state.next_id;
        state.next_id += calls.len() as u64;
        state.policy.record_send(Instant::now());
        NextStep::Send { first_id }
    }

    fn take_calls(&self, state: &mut CallQueueState, calls: &mut Vec<PendingCall>) {
        let limits = &self.setup.limits;
        let batch_max = if state.may_batch() { state.policy.batch_max(limits) } else { 1 };
        // Tasks that were woken for the same calls get a share each.
        let share = state.calls.len().div_ceil(state.woken + 1);
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

    /// Removes a task from the idle ones. Returns `false` if it has been woken meanwhile and must go on.
    pub(super) fn remove_idle(&self, task: &Arc<Notify>) -> bool {
        let mut state = self.state.lock();
        let position = state.idle.iter().position(|other| Arc::ptr_eq(other, task));
        position.map(|position| state.idle.remove(position)).is_some()
    }

    /// Whether a task without a connection should make one. If no call waits, the task no longer counts and must end.
    pub(super) fn is_connection_needed(&self) -> bool {
        let mut state = self.state.lock();
        state.calls.retain(|call| !call.is_abandoned());
        let is_needed = !state.is_closed && !state.calls.is_empty();
        if !is_needed {
            state.remove_task();
        }
        is_needed
    }

    /// Removes a task that could not connect. Calls that wait fail, unless another task has a connection.
    pub(super) fn record_unreachable(&self, fault: Fault) {
        let mut state = self.state.lock();
        state.remove_task();
        let is_connected = self.counters.connections_open.load(Relaxed) > 0;
        let calls = if is_connected { VecDeque::new() } else { std::mem::take(&mut state.calls) };
        drop(state);
        for call in calls {
            call.answer(Err(fault));
        }
    }

    /// Removes a task that was dropped together with its runtime.
    pub(super) fn record_dropped(&self, task: &Arc<Notify>) {
        self.remove_idle(task);
        self.state.lock().remove_task();
    }

    /// Puts back the calls of a batch that the node refused. They are sent one by one. Returns how many new tasks must be started for
    /// them.
    pub(super) fn put_back(&self, calls: &mut Vec<PendingCall>) -> usize {
        let mut state = self.state.lock();
        state.no_batch_until = Some(Instant::now() + self.setup.limits.batch_pause);
        let count = calls.len();
        for call in calls.drain(..).rev() {
            state.calls.push_front(call);
        }
        // The task that put them back takes one itself.
        (1..count).filter(|_| self.wake_task(&mut state)).count()
    }

    pub(super) fn http2(&self) -> Option<Http2> {
        let state = self.state.lock();
        state.http2.as_ref().filter(|shared| shared.is_alive()).map(Http2::share)
    }

    pub(super) fn share_http2(&self, connection: &Http2) {
        self.state.lock().http2 = Some(connection.share());
    }

    /// Forgets the shared connection, because it has failed. The next task makes a new one.
    pub(super) fn forget_http2(&self) {
        self.state.lock().http2 = None;
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state.lock().is_closed
    }

    /// Takes no more calls. Idle tasks end now, the others when they have their reply.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        state.http2 = None;
        let calls = std::mem::take(&mut state.calls);
        let idle = std::mem::take(&mut state.idle);
        drop(state);
        for task in idle {
            task.notify_one();
        }
        for call in calls {
            call.answer(Err(Fault::Closed));
        }
    }
}

impl CallQueueState {
    fn remove_task(&mut self) {
        self.tasks = self.tasks.saturating_sub(1);
        if self.tasks == 0 {
            self.http2 = None;
        }
    }

    fn may_batch(&self) -> bool {
        self.no_batch_until.is_none_or(|until| Instant::now() >= until)
    }
}
