//! The task of one connection: takes calls from its queue, sends them, and hands out their replies.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use resources::AccountId;
use tokio::sync::Notify;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, sleep_until};

use crate::call::{Fault, RpcReply};

use super::call_queue::{CallQueue, NextStep, WakeReason};
use super::http_reply::{BatchFault, NodeHttpReply};
use super::http1::{ExchangeError, Http1};
use super::http2::Http2;
use super::pending_call::PendingCall;
use super::receive::ReceiveContext;
use super::request::RequestBuffer;
use super::stats::ConnectionGuard;

/// Time before the deadline of a call at which its reply stops waiting for memory, so that the caller still learns the reason.
const GIVE_UP_BEFORE: Duration = Duration::from_millis(20);

/// How long an exchange goes on that nobody waits for. Most replies come within this time, and the connection can be used
/// again. After it, the connection and the memory of the reply are worth more to others.
const ABANDONED_GRACE: Duration = Duration::from_millis(500);

/// Starts a connection task on the runtime of the caller.
pub(super) fn start(queue: &Arc<CallQueue>) {
    tokio::spawn(ConnectionTask::new(Arc::clone(queue)).run());
}

struct ConnectionTask {
    queue: Arc<CallQueue>,
    /// Notified when there are calls.
    wake: Arc<Notify>,
    connection: Option<NodeConnection>,
    request: RequestBuffer,
    /// The calls of the exchange under way.
    calls: Vec<PendingCall>,
    reason: WakeReason,
    /// The account that the exchange under way counts for.
    account: Option<AccountId>,
    /// Whether the queue still counts this task.
    is_counted: bool,
}

enum NodeConnection {
    Http1(Http1),
    Http2(Http2),
}

impl NodeConnection {
    fn is_alive(&self) -> bool {
        match self {
            Self::Http1(connection) => connection.is_alive(),
            Self::Http2(connection) => connection.is_alive(),
        }
    }
}

impl ConnectionTask {
    fn new(queue: Arc<CallQueue>) -> Self {
        Self {
            queue,
            wake: Arc::default(),
            connection: None,
            request: RequestBuffer::default(),
            calls: Vec::new(),
            reason: WakeReason::Free,
            account: None,
            is_counted: true,
        }
    }

    async fn run(mut self) {
        while self.queue.is_connection_needed() {
            if let Err(fault) = self.connect().await {
                self.queue.record_unreachable(fault);
                break;
            }
            self.serve().await;
            self.connection = None;
        }
        self.is_counted = false;
    }

    async fn connect(&mut self) -> Result<(), Fault> {
        if let Some(shared) = self.queue.http2() {
            self.connection = Some(NodeConnection::Http2(shared));
            return Ok(());
        }
        let dialed = self.queue.setup.dialer.dial().await?;
        let open = ConnectionGuard::new(&self.queue.counters);
        self.connection = Some(if dialed.http2 {
            let connection = Http2::begin(dialed.stream, &self.queue.setup.limits, open).await?;
            self.queue.share_http2(&connection);
            NodeConnection::Http2(connection)
        } else {
            NodeConnection::Http1(Http1::new(dialed.stream, open))
        });
        Ok(())
    }

    /// Works until the connection cannot be used any more, or was idle for too long.
    async fn serve(&mut self) {
        while let Some(first_id) = self.next_calls().await {
            self.exchange(first_id).await;
            if !self.connection.as_ref().is_some_and(NodeConnection::is_alive) {
                return;
            }
        }
    }

    /// Waits for calls. Returns the id of the first of them, or `None` if the connection ends.
    async fn next_calls(&mut self) -> Option<u64> {
        loop {
            let reason = std::mem::replace(&mut self.reason, WakeReason::Free);
            match self.queue.next_step(&mut self.calls, &self.wake, reason) {
                NextStep::Send { first_id, account, is_task_needed } => {
                    self.account = Some(account);
                    if is_task_needed {
                        start(&self.queue);
                    }
                    return Some(first_id);
                }
                NextStep::Stop => return None,
                NextStep::Idle if self.wait_idle().await => self.reason = WakeReason::Woken,
                NextStep::Idle => return None,
            }
        }
    }

    /// Waits until it is woken. Returns `false` if the connection ended before that: the node closed it, or it was idle for too long.
    async fn wait_idle(&mut self) -> bool {
        let idle_timeout = self.queue.setup.limits.idle_timeout;
        tokio::select! {
            biased;
            () = self.wake.notified() => return true,
            () = closed_by_node(&mut self.connection) => {}
            () = sleep(idle_timeout) => {}
        }
        self.connection = None;
        if self.queue.remove_idle(&self.wake) {
            return false;
        }
        // It was woken in the same moment, and calls wait for it.
        self.wake.notified().await;
        true
    }

    async fn exchange(&mut self, first_id: u64) {
        self.request.write(&self.queue.setup.template, &self.calls, first_id);
        self.count_sent();
        let began = Instant::now();
        let answer = self.send_while_awaited().await;
        self.request.clear();
        let bytes = answer.as_ref().map_or(0, |answer| answer.body.len());
        self.end_exchange(began.elapsed(), bytes / self.calls.len().max(1));
        match answer {
            Ok(answer) => self.hand_out(answer, first_id).await,
            // The replies together are too large; each by itself may fit.
            Err(Fault::TooLarge | Fault::LargerThanMemory) if self.calls.len() > 1 => self.split(),
            Err(fault) => self.fail(fault),
        }
    }

    /// Sends the request, until the last deadline of its calls or until all callers have gone. Then the connection ends, and
    /// the stream where it is a shared one.
    async fn send_while_awaited(&mut self) -> Result<NodeHttpReply, Fault> {
        let mut calls = std::mem::take(&mut self.calls);
        let deadlines = || calls.iter().map(|call| call.deadline);
        let first_deadline = deadlines().min().unwrap_or_else(Instant::now);
        let last_deadline = deadlines().max().unwrap_or_else(Instant::now);
        let queue = Arc::clone(&self.queue);
        let answer = tokio::select! {
            biased;
            answer = self.send(first_deadline) => answer,
            () = all_abandoned(&mut calls) => Err(Fault::Closed),
            () = time_up(&queue, last_deadline) => Err(Fault::Timeout),
        };
        self.calls = calls;
        answer
    }

    fn end_exchange(&mut self, time: Duration, reply_bytes: usize) {
        if let Some(account) = self.account.take() {
            self.queue.end_exchange(account, time, reply_bytes);
        }
    }

    /// Sends the request. If the node had closed the idle connection, it is sent once more on a new one. `deadline` is the
    /// first one of its calls.
    async fn send(&mut self, deadline: Instant) -> Result<NodeHttpReply, Fault> {
        match self.try_send(deadline).await {
            Ok(answer) => Ok(answer),
            Err(ExchangeError::Fault(fault)) => Err(fault),
            Err(ExchangeError::Stale) => {
                if let Some(NodeConnection::Http2(failed)) = self.connection.take() {
                    self.queue.forget_http2(&failed);
                }
                self.try_send(deadline).await.map_err(|error| match error {
                    ExchangeError::Stale => Fault::Closed,
                    ExchangeError::Fault(fault) => fault,
                })
            }
        }
    }

    async fn try_send(&mut self, deadline: Instant) -> Result<NodeHttpReply, ExchangeError> {
        if self.connection.is_none() {
            self.connect().await?;
        }
        let setup = &self.queue.setup;
        let until = deadline - GIVE_UP_BEFORE;
        let account = self.account.unwrap_or(AccountId::GATEWAY);
        let context = ReceiveContext { limits: &setup.limits, memory: &setup.memory, account, until };
        match &mut self.connection {
            Some(NodeConnection::Http1(connection)) => {
                connection.exchange(self.request.bytes(), &context).await
            }
            Some(NodeConnection::Http2(connection)) => {
                connection.exchange(&self.request, &setup.target, &context).await
            }
            None => Err(Fault::Connect.into()),
        }
    }

    async fn hand_out(&mut self, answer: NodeHttpReply, first_id: u64) {
        let (queue, count) = (Arc::clone(&self.queue), self.calls.len());
        queue.counters.bytes_in.fetch_add(answer.body.len() as u64, Relaxed);
        if let Some(results) = answer.split_results(first_id, count, &queue.format) {
            let replies = results.into_iter().map(|result| Ok(RpcReply::Result(result)));
            self.calls.drain(..).zip(replies).for_each(|(call, reply)| call.answer(reply));
            return;
        }
        let replies = if answer.takes_long_to_read() {
            #[expect(clippy::disallowed_methods, reason = "at most one waits for each connection to a node")]
            let read = spawn_blocking(move || answer.read(first_id, count, &queue.format));
            read.await.unwrap_or_else(|error| {
                tracing::error!(%error, "reading a reply failed");
                Err(BatchFault::Fault(Fault::Closed))
            })
        } else {
            answer.read(first_id, count, &queue.format)
        };
        match replies {
            Ok(replies) => self.calls.drain(..).zip(replies).for_each(|(call, reply)| call.answer(reply)),
            Err(BatchFault::Refused) => self.split(),
            Err(BatchFault::Fault(fault)) => self.fail(fault),
        }
    }

    fn split(&mut self) {
        tracing::debug!(node = %self.queue.setup.endpoint, "batch refused; sending its calls one by one");
        for _ in 0..self.queue.put_back(&mut self.calls) {
            start(&self.queue);
        }
    }

    fn fail(&mut self, fault: Fault) {
        self.calls.drain(..).for_each(|call| call.answer(Err(fault)));
    }

    fn count_sent(&self) {
        let counters = &self.queue.counters;
        counters.calls.fetch_add(self.calls.len() as u64, Relaxed);
        counters.bytes_out.fetch_add(self.request.bytes().len() as u64, Relaxed);
        if self.calls.len() > 1 {
            counters.batches.fetch_add(1, Relaxed);
            counters.batched_calls.fetch_add(self.calls.len() as u64, Relaxed);
        }
    }
}

impl Drop for ConnectionTask {
    fn drop(&mut self) {
        self.end_exchange(Duration::ZERO, 0);
        if self.is_counted {
            self.queue.record_dropped(&self.wake);
        }
    }
}

/// Waits until nobody has waited for any of the calls for a while.
async fn all_abandoned(calls: &mut [PendingCall]) {
    for call in calls {
        call.abandoned().await;
    }
    sleep(ABANDONED_GRACE).await;
}

/// Waits for the deadline of an exchange. If the node does not answer at once, calls that have waited for that get a
/// connection.
async fn time_up(queue: &Arc<CallQueue>, deadline: Instant) {
    sleep_until(deadline.min(Instant::now() + queue.setup.limits.near)).await;
    if queue.wake_for_waiting() {
        start(queue);
    }
    sleep_until(deadline).await;
}

/// Waits for the node to close the connection. The users of a shared one learn it from their exchanges.
async fn closed_by_node(connection: &mut Option<NodeConnection>) {
    match connection {
        Some(NodeConnection::Http1(connection)) => connection.closed().await,
        _ => std::future::pending().await,
    }
}
