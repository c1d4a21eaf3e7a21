//! Tasks that run beside requests: each is caught when it panics, started again after a pause, and known to `/ready`, `/status`,
//! the metrics and the console by the time at which it was last alive.
//!
//! A task is alive if its thread polls it: at least once per [`BEAT_INTERVAL`], also while it waits. So a task that has panicked,
//! that blocks its thread for ever, or whose thread is gone shows no more signs of life. The progress of a task is not known
//! here; it belongs to the task's own status.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::time::MissedTickBehavior;

/// How often a waiting task shows that it is alive.
const BEAT_INTERVAL: Duration = Duration::from_secs(1);

/// Time without a sign of life after which a task counts as down, so that `/ready` names one that hangs within five seconds.
const SILENCE_MAX: Duration = Duration::from_secs(4);

/// [`SILENCE_MAX`] of a task whose thread has a low priority: on a busy machine it may get no time for seconds.
const LOW_PRIORITY_SILENCE_MAX: Duration = Duration::from_secs(30);

/// Panics in a row after which a task counts as down. Fewer are over before anybody could act on them.
const PANICS_IN_A_ROW_MAX: u32 = 3;

/// How long a task has to run before an earlier panic is forgotten.
const STABLE_AFTER: Duration = Duration::from_secs(10);

/// The pause before the first new start; it doubles with each panic in a row.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// Knows all tasks of a gateway. Clones know the same tasks.
#[derive(Clone, Debug, Default)]
pub struct Supervisor {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    tasks: Mutex<Vec<Arc<TaskState>>>,
    /// Panics that a test wants, by the name of the task.
    injected: Mutex<Vec<(String, u32)>>,
}

/// The consequence for the gateway while a task is down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenDown {
    /// It must not be sent callers: it would do wrong, or could do nothing.
    NotReady,
    /// It serves with less: `/ready` names the task.
    Degraded,
}

/// One task as it is at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskReport {
    pub name: String,
    pub when_down: WhenDown,
    pub is_down: bool,
    /// Whether it has shown no sign of life for too long.
    pub is_silent: bool,
    /// Time since its last sign of life; since it was registered, if it has shown none.
    pub silent_for: Duration,
    pub panics: u64,
    /// The message of the last panic.
    pub last_panic: Option<String>,
}

impl TaskReport {
    /// Why it is down, in plain words.
    pub fn reason(&self) -> String {
        match &self.last_panic {
            Some(cause) if !self.is_silent => {
                format!("it panicked {} times ({cause})", self.panics)
            }
            _ => format!("it has shown no sign of life for {} s", self.silent_for.as_secs()),
        }
    }
}

/// A registered task. It is forgotten when this is dropped, because then it has ended in order. If a panic drops it, it stays
/// known, and counts as down once it has been silent for too long.
#[derive(Debug)]
pub struct SupervisedTask {
    supervisor: Supervisor,
    state: Arc<TaskState>,
}

#[derive(Debug)]
struct TaskState {
    name: String,
    when_down: WhenDown,
    silence_max: Duration,
    life: Mutex<TaskLife>,
}

#[derive(Debug)]
struct TaskLife {
    last_alive: Instant,
    started: Instant,
    panics: u64,
    panics_in_a_row: u32,
    last_panic: Option<String>,
}

impl Supervisor {
    /// Registers a task. Its name stands in the log, in `/status` and in metrics; it contains no credentials.
    pub fn task(&self, name: impl Into<String>, when_down: WhenDown) -> SupervisedTask {
        self.task_with(name.into(), when_down, SILENCE_MAX)
    }

    /// Registers a task that lowers the priority of its thread. Nothing but its own work waits for it.
    pub fn low_priority_task(&self, name: impl Into<String>) -> SupervisedTask {
        self.task_with(name.into(), WhenDown::Degraded, LOW_PRIORITY_SILENCE_MAX)
    }

    fn task_with(&self, name: String, when_down: WhenDown, silence_max: Duration) -> SupervisedTask {
        let now = Instant::now();
        let life =
            TaskLife { last_alive: now, started: now, panics: 0, panics_in_a_row: 0, last_panic: None };
        let state = Arc::new(TaskState { name, when_down, silence_max, life: Mutex::new(life) });
        self.shared.tasks.lock().push(Arc::clone(&state));
        SupervisedTask { supervisor: self.clone(), state }
    }

    /// All tasks, in the order in which they were registered.
    pub fn report(&self) -> Vec<TaskReport> {
        let now = Instant::now();
        self.shared.tasks.lock().iter().map(|task| task.report(now)).collect()
    }

    /// Why the task with this name does not run. `None` if it runs, and if there is no such task.
    pub fn why_down(&self, name: &str) -> Option<String> {
        let now = Instant::now();
        let tasks = self.shared.tasks.lock();
        let mut reports = tasks.iter().filter(|task| task.name == name).map(|task| task.report(now));
        reports.find(|task| task.is_down).map(|task| task.reason())
    }

    /// The first task that is down and has this consequence.
    pub fn first_down(&self, when_down: WhenDown) -> Option<TaskReport> {
        let now = Instant::now();
        let tasks = self.shared.tasks.lock();
        tasks
            .iter()
            .filter(|task| task.when_down == when_down)
            .map(|task| task.report(now))
            .find(|task| task.is_down)
    }

    /// For tests: lets the task with this name panic `times` times, each time when it runs next.
    pub fn inject_panics(&self, name: &str, times: u32) {
        self.shared.injected.lock().push((name.to_owned(), times));
    }

    fn panic_if_injected(&self, name: &str) {
        let mut injected = self.shared.injected.lock();
        let Some(entry) = injected.iter_mut().find(|(task, times)| task == name && *times > 0) else {
            return;
        };
        entry.1 -= 1;
        drop(injected);
        panic!("injected panic");
    }
}

impl SupervisedTask {
    /// Runs the future that `start` makes until it ends. Whenever it panics, another one is made after a pause.
    ///
    /// Dropping this future ends the task, so a caller can wait for its own signal to stop beside it.
    pub async fn run<F: Future<Output = ()>>(&self, start: impl FnMut() -> F) {
        self.run_with(start, || {}).await;
    }

    /// Like [`run`](Self::run). `after_panic` takes back at once any state that must not hold while the task does not run.
    pub async fn run_with<F: Future<Output = ()>>(
        &self,
        mut start: impl FnMut() -> F,
        mut after_panic: impl FnMut(),
    ) {
        loop {
            self.state.started();
            let Err(panic) = self.run_once(&mut start).await else { return };
            let pause = self.state.panicked(panic.as_ref());
            if let Err(panic) = catch_unwind(AssertUnwindSafe(&mut after_panic)) {
                self.state.panicked(panic.as_ref());
            }
            tokio::time::sleep(pause).await;
        }
    }

    async fn run_once<F: Future<Output = ()>>(&self, start: &mut impl FnMut() -> F) -> thread::Result<()> {
        let mut beats = tokio::time::interval(BEAT_INTERVAL);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut running = pin!(async {
            start().await;
        });
        poll_fn(|context| {
            while beats.poll_tick(context).is_ready() {}
            let polled = catch_unwind(AssertUnwindSafe(|| {
                self.supervisor.panic_if_injected(&self.state.name);
                running.as_mut().poll(context)
            }));
            match polled {
                Ok(Poll::Pending) => {
                    self.state.alive();
                    Poll::Pending
                }
                Ok(Poll::Ready(())) => Poll::Ready(Ok(())),
                Err(panic) => Poll::Ready(Err(panic)),
            }
        })
        .await
    }

    /// Like [`Self::run`] for a loop that blocks its thread. It has to call [`Self::alive`] at least once per second.
    pub fn run_blocking(&self, mut run: impl FnMut(&Self)) {
        loop {
            self.state.started();
            let Err(panic) = catch_unwind(AssertUnwindSafe(|| run(self))) else { return };
            thread::sleep(self.state.panicked(panic.as_ref()));
        }
    }

    /// Records a sign of life of a loop that blocks its thread.
    pub fn alive(&self) {
        self.supervisor.panic_if_injected(&self.state.name);
        self.state.alive();
    }
}

impl Drop for SupervisedTask {
    fn drop(&mut self) {
        if thread::panicking() {
            return;
        }
        self.supervisor.shared.tasks.lock().retain(|task| !Arc::ptr_eq(task, &self.state));
    }
}

impl TaskState {
    /// A start is a sign of life, too.
    fn started(&self) {
        let mut life = self.life.lock();
        life.started = Instant::now();
        life.last_alive = life.started;
    }

    fn alive(&self) {
        let now = Instant::now();
        let mut life = self.life.lock();
        life.last_alive = now;
        if life.panics_in_a_row > 0 && now.duration_since(life.started) >= STABLE_AFTER {
            life.panics_in_a_row = 0;
        }
    }

    /// Records and logs a panic. Returns the pause before the next start.
    fn panicked(&self, panic: &(dyn std::any::Any + Send)) -> Duration {
        let text = panic.downcast_ref::<&str>().copied();
        let cause = text
            .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("unknown")
            .to_owned();
        let mut life = self.life.lock();
        life.panics += 1;
        life.panics_in_a_row = life.panics_in_a_row.saturating_add(1);
        life.last_panic = Some(cause.clone());
        let doublings = (life.panics_in_a_row - 1).min(16);
        let (panics, pause) = (life.panics, PAUSE_MIN.saturating_mul(1 << doublings).min(PAUSE_MAX));
        // The pause is no silence: why the task is down is that it panics.
        life.last_alive = Instant::now() + pause;
        drop(life);
        let starts_again_ms = pause.as_millis();
        tracing::error!(
            task = self.name,
            cause,
            panics,
            starts_again_ms,
            "a background task panicked; it is started again"
        );
        pause
    }

    fn report(&self, now: Instant) -> TaskReport {
        let life = self.life.lock();
        let silent_for = now.saturating_duration_since(life.last_alive);
        let is_silent = silent_for > self.silence_max;
        TaskReport {
            name: self.name.clone(),
            when_down: self.when_down,
            is_down: life.panics_in_a_row >= PANICS_IN_A_ROW_MAX || is_silent,
            is_silent,
            silent_for,
            panics: life.panics,
            last_panic: life.last_panic.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    use super::*;

    /// Background threads that panicked were gone for good, and health said that all was well.
    #[tokio::test]
    async fn a_task_that_panics_starts_again() {
        let supervisor = Supervisor::default();
        let task = supervisor.task("follow", WhenDown::NotReady);
        let starts = AtomicU32::new(0);
        task.run(|| async {
            assert!(starts.fetch_add(1, Relaxed) > 0, "no block 7");
        })
        .await;
        assert_eq!(starts.load(Relaxed), 2);
        let report = &supervisor.report()[0];
        assert_eq!((report.panics, report.last_panic.as_deref()), (1, Some("no block 7")));
        assert!(!report.is_down, "one panic is over before anybody could act on it");
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_for_ever_is_down_with_its_reason() {
        let supervisor = Supervisor::default();
        supervisor.inject_panics("feed", u32::MAX);
        let task = supervisor.task("feed", WhenDown::NotReady);
        let ran = tokio::time::timeout(Duration::from_secs(5), task.run(pending)).await;
        assert!(ran.is_err(), "it is tried again for ever");
        let down = supervisor.first_down(WhenDown::NotReady).unwrap();
        assert_eq!((&*down.name, down.last_panic.as_deref()), ("feed", Some("injected panic")));
        assert!((5..=7).contains(&down.panics), "{} panics in 5 s, with pauses that double", down.panics);
        assert_eq!(supervisor.first_down(WhenDown::Degraded), None);
    }

    #[test]
    fn a_blocking_task_starts_again_and_is_forgotten_when_it_ends() {
        let supervisor = Supervisor::default();
        supervisor.inject_panics("collector", 1);
        let task = supervisor.task("collector", WhenDown::Degraded);
        task.run_blocking(SupervisedTask::alive);
        assert_eq!(supervisor.report()[0].panics, 1);
        drop(task);
        assert!(supervisor.report().is_empty());
    }

    /// A task that hung was told after half a minute. One whose thread has a low priority may only have to wait for its turn.
    #[test]
    fn a_task_that_hangs_is_down_within_five_seconds() {
        let supervisor = Supervisor::default();
        let (task, low) =
            (supervisor.task("watch", WhenDown::Degraded), supervisor.low_priority_task("follow"));
        let is_down = |task: &SupervisedTask, after: u64| {
            task.state.report(Instant::now() + Duration::from_secs(after)).is_down
        };
        assert_eq!((is_down(&task, 0), is_down(&task, 3), is_down(&task, 5)), (false, false, true));
        assert_eq!((is_down(&low, 5), is_down(&low, 31)), (false, true));
        let report = task.state.report(Instant::now() + Duration::from_secs(5));
        assert!(report.reason().starts_with("it has shown no sign of life for "), "{}", report.reason());
    }
}
