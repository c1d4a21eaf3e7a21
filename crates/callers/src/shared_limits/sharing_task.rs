//! When limits are reported, and what happens with the replies.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use parking_lot::Mutex;
use resources::{Clock, SupervisedTask};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::exchange::{self, ScriptItem};
use super::redis_link::{RedisLink, Reporter, ScriptReply};
use super::{LimitState, SharedLimits};
use crate::instance_id::InstanceId;
use crate::limit_share::SharingState;
use crate::limit_state::LimitReport;

/// Time between two exchanges. Several of them pass in the time in which the parts have to follow callers that move.
const EXCHANGE_PAUSE: Duration = Duration::from_millis(200);

/// A limit that is used for the first time is reported sooner, but together with others.
const WAKE_PAUSE: Duration = Duration::from_millis(5);

/// Limits that are reported in one exchange; the others wait for the next, the one that waited longest first. In the 3 seconds
/// for which nobody gets more after Redis has lost its data, about 28,000 limits are reported.
const LIMITS_PER_EXCHANGE_MAX: usize = 2_000;

/// How long the end of a gateway waits for Redis to take back its parts.
const FAREWELL_MAX: Duration = Duration::from_millis(500);

/// The number of instances that an instance reports if it could not reach Redis before, and so cannot know how many there are.
const MANY_INSTANCES: u64 = 1_000_000;

type Limit = Arc<Mutex<LimitState>>;

#[derive(Debug)]
pub(super) struct SharingTask {
    shared: Arc<SharedLimits>,
    link: RedisLink,
    clock: Clock,
    instance: String,
    sequence: u64,
    /// The limits in use; the one that was reported longest ago first.
    in_use: Vec<Limit>,
    has_failed: bool,
}

impl SharingTask {
    pub(super) fn new(shared: Arc<SharedLimits>, link: RedisLink) -> Self {
        let instance = InstanceId::random().to_string();
        let clock = Clock::default();
        Self { shared, link, clock, instance, sequence: 0, in_use: Vec::new(), has_failed: false }
    }

    /// Exchanges reports until the gateway ends, and returns all parts then. `contact` gets one value per answer: whether limits
    /// are divided.
    pub(super) async fn run(
        self,
        task: &SupervisedTask,
        contact: SyncSender<bool>,
        stopped: oneshot::Receiver<()>,
    ) {
        let shared = Arc::clone(&self.shared);
        let sharing = tokio::sync::Mutex::new(self);
        let start = || async { sharing.lock().await.exchange_repeatedly(&contact).await };
        tokio::select! {
            _dropped = stopped => {}
            // After a panic it goes on with the limits that are in use.
            () = task.run_with(start, || shared.others.lock().is_connected = false) => {}
        }
        sharing.into_inner().leave().await;
    }

    async fn exchange_repeatedly(&mut self, contact: &SyncSender<bool>) {
        loop {
            if let Some(is_settled) = self.exchange().await {
                // Only the start of the gateway reads them; a full or closed channel is no error.
                let _unread = contact.try_send(is_settled);
                // A wake-up ends the pause early; which of the two it was does not matter.
                let _elapsed = timeout(EXCHANGE_PAUSE, self.shared.wake.notified()).await;
                sleep(WAKE_PAUSE).await;
            } else {
                sleep(EXCHANGE_PAUSE).await;
            }
        }
    }

    /// Reports the limits that are due, and applies the reply. Returns whether limits are divided; `None` without a reply.
    async fn exchange(&mut self) -> Option<bool> {
        let reports = self.due_reports();
        let items: Vec<ScriptItem> =
            reports.iter().flat_map(|(limit, report)| items_of(limit, report)).collect();
        self.sequence += 1;
        let known = match self.shared.others.lock().instances {
            0 if self.has_failed => MANY_INSTANCES,
            known => known,
        };
        let reporter = Reporter { instance: &self.instance, sequence: self.sequence, known };
        match self.link.exchange(reporter, &items).await {
            Ok(reply) => {
                let is_settled = reply.is_settled;
                self.apply(&reports, reply);
                Some(is_settled)
            }
            Err(error) => {
                // Only the category is logged, because a message may contain the address of Redis.
                self.lose_redis(error.category());
                None
            }
        }
    }

    /// What has to be reported. Limits that were not used for long are no longer in use afterwards.
    fn due_reports(&mut self) -> Vec<(Limit, LimitReport)> {
        self.in_use.append(&mut self.shared.newly_active.lock());
        let (now, unix_seconds) = (self.clock.now(), self.clock.unix_seconds());
        let others = *self.shared.others.lock();
        let (mut reported, mut left) = (Vec::new(), Vec::new());
        // They stay in use until all are looked at, so that a panic forgets none of them.
        for limit in &self.in_use {
            let has_room = reported.len() < LIMITS_PER_EXCHANGE_MAX;
            let report = has_room.then(|| limit.lock().report(others, now, unix_seconds)).flatten();
            match report {
                Some(report) => reported.push((Arc::clone(limit), report)),
                None => left.push(Arc::clone(limit)),
            }
        }
        let staying = reported.iter().filter(|(_, report)| !report.is_leaving);
        left.extend(staying.map(|(limit, _)| Arc::clone(limit)));
        self.in_use = left;
        self.shared.limits_in_use.store(self.in_use.len() as u64, Relaxed);
        reported
    }

    fn apply(&mut self, reports: &[(Limit, LimitReport)], reply: ScriptReply) {
        let ScriptReply { instances, is_settled, values } = reply;
        let others = SharingState { is_connected: true, is_settled, instances };
        let before = std::mem::replace(&mut *self.shared.others.lock(), others);
        self.shared.exchanges.fetch_add(1, Relaxed);
        let now = self.clock.now();
        let mut values = values.into_iter();
        for (limit, report) in reports {
            let reply = exchange::reply(report, &mut values);
            limit.lock().apply(report, &reply, now);
        }
        if !before.is_connected {
            tracing::info!(instances, "limits are shared over Redis");
        }
    }

    fn lose_redis(&mut self, error: &str) {
        self.has_failed = true;
        self.shared.failures.fetch_add(1, Relaxed);
        let before = *self.shared.others.lock();
        let others = SharingState { is_connected: false, ..before };
        *self.shared.others.lock() = others;
        if before.is_connected || self.shared.failures.load(Relaxed) == 1 {
            tracing::warn!(error, "cannot reach Redis: this instance keeps its part of each limit");
        }
        let now = self.clock.now();
        for limit in &self.in_use {
            limit.lock().lose_redis(others, now);
        }
    }

    /// Returns all parts to the other instances.
    async fn leave(mut self) {
        let (now, unix_seconds) = (self.clock.now(), self.clock.unix_seconds());
        let leaving = self.in_use.iter().filter_map(|limit| {
            let report = limit.lock().leave(now, unix_seconds)?;
            Some(items_of(limit, &report))
        });
        let mut items: Vec<ScriptItem> = leaving.flatten().collect();
        items.push(exchange::leave_instance());
        self.sequence += 1;
        let reporter = Reporter { instance: &self.instance, sequence: self.sequence, known: 0 };
        // If Redis does not answer, the parts are divided again when this instance has been silent for long.
        let _gone = timeout(FAREWELL_MAX, self.link.exchange(reporter, &items)).await;
    }
}

fn items_of(limit: &Limit, report: &LimitReport) -> Vec<ScriptItem> {
    exchange::items(limit.lock().name(), report).collect()
}

#[cfg(test)]
mod tests {
    use std::thread;

    use resources::MonoTime;

    use super::*;
    use crate::RedisUrl;

    /// The number of instances was set before the rest of a reply, and a limit that was activated in between began with a
    /// part that fits neither the old reply nor the new one.
    #[test]
    fn a_reply_changes_what_is_known_of_other_instances_as_a_whole() {
        let shared = Arc::new(SharedLimits::default());
        let link = RedisLink::new(RedisUrl::parse("redis://127.0.0.1:1").unwrap().0);
        let mut task = SharingTask::new(Arc::clone(&shared), link);
        let limit = Limit::default();
        limit.lock().set_limits(Some(500), None, MonoTime::default());
        limit.lock().share_as("account:7");
        shared.activate(&limit, &mut limit.lock(), task.clock.now());
        let reports = task.due_reports();
        assert_eq!(reports.len(), 1);

        // The reply is applied up to this limit.
        let blocked = limit.lock();
        let reply = ScriptReply { instances: 3, is_settled: true, values: vec![(166, 0)] };
        thread::scope(|scope| {
            scope.spawn(|| task.apply(&reports, reply));
            let late = std::time::Instant::now() + Duration::from_secs(60);
            let seen = loop {
                let others = *shared.others.lock();
                if others != SharingState::default() || std::time::Instant::now() > late {
                    break others;
                }
                thread::yield_now();
            };
            drop(blocked);
            assert_eq!(seen, SharingState { is_connected: true, is_settled: true, instances: 3 });
        });
    }
}
