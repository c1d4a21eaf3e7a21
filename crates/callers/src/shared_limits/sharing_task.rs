//! When limits are reported, and what happens with the replies.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::SyncSender;

use parking_lot::Mutex;
use resources::{Clock, SupervisedTask};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::exchange::{self, ScriptItem};
use super::redis_link::{RedisLink, Reporter, ScriptReply};
use super::{LimitState, SharedLimits};
use crate::instance_id::InstanceId;
use crate::limit_share::SharingState;
use crate::limit_state::RateReport;
use crate::policy::{EXCHANGE_PAUSE, LEAVE_REDIS_TIMEOUT, LIMITS_PER_EXCHANGE_MAX, WAKE_PAUSE};

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
}

impl SharingTask {
    pub(super) fn new(shared: Arc<SharedLimits>, link: RedisLink) -> Self {
        let instance = InstanceId::random().to_string();
        let clock = Clock::default();
        Self { shared, link, clock, instance, sequence: 0, in_use: Vec::new() }
    }

    /// Exchanges reports until the gateway ends, and returns all parts then. `is_ready` gets a message when Redis divides limits, or
    /// cannot be reached.
    pub(super) async fn run(
        self,
        task: &SupervisedTask,
        is_ready: SyncSender<()>,
        stopped: oneshot::Receiver<()>,
    ) {
        let shared = Arc::clone(&self.shared);
        let sharing = tokio::sync::Mutex::new(self);
        let start = || async { sharing.lock().await.exchange_repeatedly(&is_ready).await };
        tokio::select! {
            _dropped = stopped => {}
            // After a panic it goes on with the limits that are in use.
            () = task.run_with(start, || shared.others.lock().is_connected = false) => {}
        }
        sharing.into_inner().leave().await;
    }

    async fn exchange_repeatedly(&mut self, is_ready: &SyncSender<()>) {
        loop {
            self.exchange().await;
            let others = *self.shared.others.lock();
            if others.is_settled || !others.is_connected {
                // Only the start of the gateway reads it; a full or closed channel is no error.
                let _unread = is_ready.try_send(());
            }
            if others.is_connected {
                // A wake-up ends the pause early; which of the two it was does not matter.
                let _elapsed = timeout(EXCHANGE_PAUSE, self.shared.wake.notified()).await;
                sleep(WAKE_PAUSE).await;
            } else {
                sleep(EXCHANGE_PAUSE).await;
            }
        }
    }

    /// Reports the limits that are due, and applies the reply.
    async fn exchange(&mut self) {
        let reports = self.due_reports();
        let items: Vec<ScriptItem> = reports.iter().map(|(limit, report)| item_of(limit, report)).collect();
        self.sequence += 1;
        let reporter = Reporter { instance: &self.instance, sequence: self.sequence, is_ending: false };
        match self.link.exchange(reporter, &items).await {
            Ok(reply) => self.apply(&reports, reply),
            // Only the category is logged, because a message may contain the address of Redis.
            Err(error) => self.lose_redis(error.category()),
        }
    }

    /// The limits that are due. Those that were not used for long are no longer in use afterwards.
    fn due_reports(&mut self) -> Vec<(Limit, RateReport)> {
        self.in_use.append(&mut self.shared.newly_active.lock());
        let now = self.clock.now();
        let others = *self.shared.others.lock();
        let (mut reported, mut left) = (Vec::new(), Vec::new());
        // They stay in use until all are looked at, so that a panic forgets none of them.
        for limit in &self.in_use {
            let has_room = reported.len() < LIMITS_PER_EXCHANGE_MAX;
            let mut state = limit.lock();
            match has_room.then(|| state.report(others, now)).flatten() {
                Some(report) => reported.push((Arc::clone(limit), report)),
                None if state.is_active() => left.push(Arc::clone(limit)),
                // The limit was removed.
                None => {}
            }
        }
        let staying = reported.iter().filter(|(_, report)| !report.is_leaving);
        left.extend(staying.map(|(limit, _)| Arc::clone(limit)));
        self.in_use = left;
        self.shared.limits_in_use.store(self.in_use.len() as u64, Relaxed);
        reported
    }

    fn apply(&mut self, reports: &[(Limit, RateReport)], reply: ScriptReply) {
        let ScriptReply { instances, is_settled, rates } = reply;
        let others = SharingState { is_connected: true, is_settled, instances };
        let before = std::mem::replace(&mut *self.shared.others.lock(), others);
        self.shared.exchanges.fetch_add(1, Relaxed);
        let now = self.clock.now();
        for ((limit, report), rate) in reports.iter().zip(rates) {
            if let Some(rate) = rate.filter(|_| !report.is_leaving) {
                limit.lock().apply(rate, now);
            }
        }
        if !before.is_connected {
            tracing::info!(instances, "limits are shared over Redis");
        }
    }

    fn lose_redis(&mut self, error: &str) {
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
        let now = self.clock.now();
        let leaving = self.in_use.iter().filter_map(|limit| {
            let report = limit.lock().leave(now)?;
            Some(item_of(limit, &report))
        });
        let items: Vec<ScriptItem> = leaving.collect();
        self.sequence += 1;
        let reporter = Reporter { instance: &self.instance, sequence: self.sequence, is_ending: true };
        // If Redis does not answer, the parts are divided again when this instance has been silent for long.
        let _gone = timeout(LEAVE_REDIS_TIMEOUT, self.link.exchange(reporter, &items)).await;
    }
}

fn item_of(limit: &Limit, report: &RateReport) -> ScriptItem {
    exchange::item(limit.lock().name(), report)
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

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
        let reply = ScriptReply { instances: 3, is_settled: true, rates: vec![Some(166)] };
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
