//! The calls that wait for one endpoint on one runtime thread.
//!
//! A queue belongs to the thread that made it: callers and connection tasks of that thread share it, so its lock is never
//! contended. A call that finds all connections busy waits for the next one that is free, and what waits by then may be sent
//! together. No call is delayed to fill a batch.
//!
//! Accounts do not wait for each other: they take turns, and each has its share of the waiting places and of the exchanges
//! under way ([`FairQueue`]). An exchange counts for the account of its first call. Only look-ups of several accounts are
//! sent together, because other calls of one account may take seconds, and the replies of a batch come together.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use parking_lot::Mutex;
use resources::{AccountId, FairQueue};
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
    calls: FairQueue<PendingCall>,
    /// Idle connection tasks, the most recently used last. That one is woken first, so that surplus ones time out.
    idle: Vec<Arc<Notify>>,
    /// Tasks that were woken and have not taken calls yet.
    woken: usize,
    /// All connection tasks of this queue.
    tasks: usize,
    next_id: u64,
    policy: BatchPolicy,
    /// Whether calls of several accounts may be sent together.
    may_mix_accounts: bool,
    no_batch_until: Option<Instant>,
    /// The connection that all tasks share, where HTTP/2 is spoken.
    http2: Option<Http2>,
    is_closed: bool,
}

impl std::fmt::Debug for CallQueueState {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "CallQueueState({} calls, {} tasks)", self.calls.waiting(), self.tasks)
    }
}

/// Why a connection task asks for its next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WakeReason {
    /// It is new, or its exchange has ended.
    Free,
    Woken,
}

/// The next step of a connection task. The calls themselves are in the task's own list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextStep {
    Send {
        first_id: u64,
        /// The account that the exchange counts for.
        account: AccountId,
        /// Whether a new task must be started for calls that may be sent as well.
        is_task_needed: bool,
    },
    Idle,
    Stop,
}

impl CallQueue {
    pub(super) fn new(setup: Arc<EndpointSetup>, kind: QueueKind) -> Self {
        let state = CallQueueState {
            calls: FairQueue::new(usize::MAX, setup.limits.connections_max, setup.limits.queue_calls_max),
            idle: Vec::new(),
            woken: 0,
            tasks: 0,
            // Ids start at a random number in each queue, so that a reply to another queue's call is recognised.
            next_id: u64::from(rand::random::<u32>()),
            policy: BatchPolicy::new(kind, &setup.limits),
            may_mix_accounts: kind == QueueKind::Quick,
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
        let account = call.account;
        if !state.calls.has_room(account) {
            state.calls.retain(|call| !call.is_abandoned());
        }
        state.calls.push(account, call).map_err(|_| Fault::QueueFull)?;
        // A call of an account that has its share of the exchanges waits for one of them to end.
        Ok(state.calls.may_run(account) && self.wake_task(&mut state))
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
        // Calls that cannot be sent together need a connection each.
        let may_batch = state.may_batch() && (state.may_mix_accounts || state.calls.waiting_accounts() <= 1);
        if busy < limits.near_connections_max || !may_batch {
            return limits.connections_max;
        }
        state.policy.connections_max(limits, Instant::now())
    }

    /// Wakes a task for calls that have waited although another connection is allowed by now: the node does not answer at
    /// once, as it did when they came. Returns whether a new task must be started instead.
    pub(super) fn wake_for_waiting(&self) -> bool {
        self.wake_another(&mut self.state.lock())
    }

    /// Wakes a task if calls may be sent and no task is about to look for them. The end of one exchange may allow two others.
    fn wake_another(&self, state: &mut CallQueueState) -> bool {
        let busy = state.tasks - state.idle.len();
        busy <= state.calls.running() && state.calls.can_start() && self.wake_task(state)
    }

    /// Gives calls to a task that has none.
    pub(super) fn next_step(
        &self,
        calls: &mut Vec<PendingCall>,
        task: &Arc<Notify>,
        reason: WakeReason,
    ) -> NextStep {
        let mut state = self.state.lock();
        if reason == WakeReason::Woken {
            state.woken = state.woken.saturating_sub(1);
        }
        if state.is_closed {
            return NextStep::Stop;
        }
        let Some(account) = self.take_calls(&mut state, calls) else {
            state.idle.push(Arc::clone(task));
            return NextStep::Idle;
        };
        let first_id = state.next_id;
        state.next_id += calls.len() as u64;
        state.policy.record_send(Instant::now());
        NextStep::Send { first_id, account, is_task_needed: self.wake_another(&mut state) }
    }

    /// Takes the calls of one exchange, which counts as under way from now on. Returns the account that it counts for.
    fn take_calls(&self, state: &mut CallQueueState, calls: &mut Vec<PendingCall>) -> Option<AccountId> {
        let limits = &self.setup.limits;
        let batch_max = if state.may_batch() { state.policy.batch_max(limits) } else { 1 };
        // Tasks that were woken for the same calls get a share each.
        let share = state.calls.waiting().div_ceil(state.woken + 1);
        let (account, first) = state.start_first()?;
        let mut bytes = first.bytes();
        calls.push(first);
        while calls.len() < share.min(batch_max) {
            let Some((owner, call)) = state.calls.take_along(account, state.may_mix_accounts) else { break };
            if call.is_abandoned() {
                continue;
            }
            bytes += call.bytes();
            if bytes > limits.batch_bytes_max {
                state.calls.put_back(owner, call);
                break;
            }
            calls.push(call);
        }
        Some(account)
    }

    /// Records the end of an exchange. `reply_bytes` is the average size of its replies.
    pub(super) fn end_exchange(&self, account: AccountId, time: Duration, reply_bytes: usize) {
        let mut state = self.state.lock();
        state.policy.record_exchange(time, reply_bytes);
        state.calls.finish(account, time);
    }

    /// Removes a task from the idle ones. Returns `false` if it has been woken meanwhile and must go on.
    pub(super) fn remove_idle(&self, task: &Arc<Notify>) -> bool {
        let mut state = self.state.lock();
        let position = state.idle.iter().position(|other| Arc::ptr_eq(other, task));
        position.map(|position| state.idle.remove(position)).is_some()
    }

    /// Whether a task without a connection should make one. If no call waits that may be sent, the task no longer counts and
    /// must end.
    pub(super) fn is_connection_needed(&self) -> bool {
        let mut state = self.state.lock();
        state.calls.retain(|call| !call.is_abandoned());
        let is_needed = !state.is_closed && state.calls.can_start();
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
        let calls = if is_connected { Vec::new() } else { state.calls.take_all() };
        // Another task may be idle because the calls could not be sent before.
        if !state.idle.is_empty() {
            self.wake_another(&mut state);
        }
        drop(state);
        for call in calls {
            call.answer(Err(fault));
        }
    }

    /// Removes a task that was dropped, together with its runtime or by a panic. Calls that no other task is left to send fail at
    /// once, so that they are made elsewhere.
    pub(super) fn record_dropped(&self, task: &Arc<Notify>) {
        self.remove_idle(task);
        let mut state = self.state.lock();
        state.remove_task();
        let calls = if state.tasks == 0 { state.calls.take_all() } else { Vec::new() };
        if !state.idle.is_empty() {
            self.wake_another(&mut state);
        }
        drop(state);
        for call in calls {
            call.answer(Err(Fault::Closed));
        }
    }

    /// Puts back the calls of a batch that the node refused. They are sent one by one. Returns how many new tasks must be started for
    /// them.
    pub(super) fn put_back(&self, calls: &mut Vec<PendingCall>) -> usize {
        let mut state = self.state.lock();
        state.no_batch_until = Some(Instant::now() + self.setup.limits.batch_pause);
        let count = calls.len();
        for call in calls.drain(..).rev() {
            state.calls.put_back(call.account, call);
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

    /// Forgets a shared connection that has failed. The next task makes a new one.
    pub(super) fn forget_http2(&self, failed: &Http2) {
        let mut state = self.state.lock();
        if state.http2.as_ref().is_some_and(|shared| shared.is_same_connection(failed)) {
            state.http2 = None;
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state.lock().is_closed
    }

    /// Takes no more calls. Idle tasks end now, the others when they have their reply.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        state.http2 = None;
        let calls = state.calls.take_all();
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
    /// The next call that somebody waits for, as the first of an exchange.
    fn start_first(&mut self) -> Option<(AccountId, PendingCall)> {
        loop {
            let (account, call) = self.calls.start_next()?;
            if !call.is_abandoned() {
                return Some((account, call));
            }
            self.calls.finish(account, Duration::ZERO);
        }
    }

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
