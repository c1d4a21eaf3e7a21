//! Limits per second that hold over all instances of a deployment, divided by Redis.
//!
//! Each instance uses a part of each limit. A thread reports what callers ask for, a few times per second and for all limits
//! in use together, and gets new parts. The request path never waits for it. `divide.lua` has the rules; `limit_share` has
//! those for the time before the first answer and without Redis.

mod exchange; // reports as arguments of the script, and its replies
mod redis_link; // the connection to Redis
mod sharing_task; // when limits are reported

#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::Mutex;
use resources::{MonoTime, Supervisor, WhenDown};
use settings::Section;
use tokio::sync::{Notify, oneshot};

use crate::limit_share::SharingState;
use crate::limit_state::LimitState;
use crate::policy::REDIS_READY_MAX;
use redis_link::RedisLink;
use sharing_task::SharingTask;

/// The address of Redis. It may contain a password, so it is never shown.
#[derive(Clone)]
pub struct RedisUrl(redis::Client);

impl std::fmt::Debug for RedisUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RedisUrl")
    }
}

impl RedisUrl {
    /// Reads `redis_url` of the section `[shared]`.
    pub fn read(section: &mut Section<'_>) -> Option<Self> {
        let url = section.optional_text("redis_url")?;
        let parsed = Self::parse(&url);
        if parsed.is_none() {
            section
                .error("redis_url", "must be a URL such as redis://127.0.0.1:6379/0, or rediss:// for TLS");
        }
        parsed
    }

    pub fn parse(url: &str) -> Option<Self> {
        redis::Client::open(url).ok().map(Self)
    }

    /// Where it is, without user and password.
    pub fn address(&self) -> String {
        self.0.get_connection_info().addr().to_string()
    }

    /// How long Redis takes to connect and to run a script, or why it does not. Nothing is changed.
    pub async fn inspect(&self) -> Result<Duration, String> {
        RedisLink::new(self.0.clone()).inspect().await.map_err(|error| error.to_string())
    }
}

/// The limits of this instance that others use, too.
#[derive(Debug, Default)]
pub struct SharedLimits {
    /// Limits that were used for the first time since the last exchange; each is in this list at most once.
    newly_active: Mutex<Vec<Arc<Mutex<LimitState>>>>,
    wake: Notify,
    /// The other instances, as far as known. It changes with each exchange, as a whole.
    others: Mutex<SharingState>,
    limits_in_use: AtomicU64,
    exchanges: AtomicU64,
    failures: AtomicU64,
}

/// The state of shared limits, for operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedLimitsStatus {
    pub is_connected: bool,
    /// Instances that share limits, as far as known.
    pub instances: u64,
    /// Limits of which this instance uses a part.
    pub limits_in_use: u64,
    /// Reports that Redis has answered.
    pub exchanges: u64,
    /// Reports that Redis has not answered, and connections that failed.
    pub failures: u64,
}

impl SharedLimits {
    pub fn status(&self) -> SharedLimitsStatus {
        let SharingState { is_connected, instances, .. } = *self.others.lock();
        SharedLimitsStatus {
            is_connected,
            instances,
            limits_in_use: self.limits_in_use.load(Relaxed),
            exchanges: self.exchanges.load(Relaxed),
            failures: self.failures.load(Relaxed),
        }
    }

    /// Begins to use a limit. The caller holds the lock of its state.
    pub(crate) fn activate(&self, limit: &Arc<Mutex<LimitState>>, state: &mut LimitState, now: MonoTime) {
        let others = *self.others.lock();
        state.activate(others, now);
        self.newly_active.lock().push(Arc::clone(limit));
        self.wake.notify_one();
    }
}

/// The thread that exchanges reports with Redis. Dropping it returns the parts of this instance and ends the thread.
#[derive(Debug)]
pub struct LimitSharing {
    shared: Arc<SharedLimits>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl LimitSharing {
    /// Starts the thread, and waits a few seconds until Redis divides limits, or until it cannot be reached. Then the gateway serves
    /// with the small parts that it has.
    pub fn start(url: RedisUrl, supervisor: &Supervisor) -> io::Result<Self> {
        let shared = Arc::new(SharedLimits::default());
        let (is_ready, ready) = mpsc::sync_channel(1);
        let sharing = SharingTask::new(Arc::clone(&shared), RedisLink::new(url.0));
        let task = supervisor.task("shared limits", WhenDown::Degraded);
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = thread::Builder::new()
            .name("shared-limits".to_owned())
            .spawn(move || runtime.block_on(sharing.run(&task, is_ready, stopped)))?;
        // Whether it is ready or late, the gateway starts.
        let _ready_or_late = ready.recv_timeout(REDIS_READY_MAX);
        Ok(Self { shared, stop: Some(stop), thread: Some(thread) })
    }

    pub fn limits(&self) -> &Arc<SharedLimits> {
        &self.shared
    }
}

impl Drop for LimitSharing {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A thread that has panicked has nothing to return.
            let _panicked = thread.join();
        }
    }
}
