//! The phases of an attack: honest load alone, honest load beside the attack, and a while to recover.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};

use crate::attack::{Attack, Procedure};
use crate::gateway::{GatewayProcess, GatewayStart, LogTarget};
use crate::honest::HonestCallers;
use crate::hostile::Attacker;
use crate::report::{AttackReport, MemoryFigures};

/// The longest time that a caller may be silent; the gateway's own default.
const READ_TIMEOUT_MAX: Duration = Duration::from_secs(10);

/// Shorter timeouts would cut honest callers on a busy machine.
const READ_TIMEOUT_MIN: Duration = Duration::from_secs(1);

/// How long honest load runs before anything is measured, and then alone; in a short run, parts of the attack's length.
const WARM_UP_MAX: Duration = Duration::from_secs(1);
const IDLE_MAX: Duration = Duration::from_secs(3);

/// How long the gateway has to give memory back.
const RECOVERY_MAX: Duration = Duration::from_secs(2);

/// The gateway's default for bodies and replies together.
const MEMORY_BYTES_MAX: u64 = 512 << 20;

/// Honest load alone takes less, also in an attack that is small.
const MEMORY_GROWTH_MIN: u64 = 64 << 20;

const SAMPLE_INTERVAL: Duration = Duration::from_millis(100);

/// The options of all attacks of a run.
#[derive(Debug)]
pub(crate) struct AttackOptions {
    pub(crate) gateway: PathBuf,
    pub(crate) folder: PathBuf,
    pub(crate) duration: Duration,
    /// Percentage of the full size.
    pub(crate) scale: u64,
    pub(crate) latency_floor: Duration,
}

impl AttackOptions {
    /// The share of a full size that this run uses, at least one.
    pub(crate) fn scaled(&self, full: usize) -> usize {
        (full * self.scale as usize / 100).max(1)
    }

    /// The limit `full`, scaled down to the size of this attack.
    pub(crate) fn scaled_memory(&self, full: u64) -> u64 {
        (full * self.scale / 100).max(MEMORY_GROWTH_MIN)
    }

    /// How long the gateway waits for bytes from a caller.
    pub(crate) fn read_timeout(&self) -> Duration {
        (self.duration / 3).clamp(READ_TIMEOUT_MIN, READ_TIMEOUT_MAX)
    }

    /// The gateway's limits: defaults, but timeouts follow the length of the attack, and memory its scale.
    fn limits(&self, write_timeout: Duration) -> String {
        let read = self.read_timeout().as_millis();
        let memory = self.scaled_memory(MEMORY_BYTES_MAX);
        format!(
            "[limits]\npool_threads = 2\nfirst_byte_timeout_ms = {read}\nheader_timeout_ms = {read}\nbody_timeout_ms = {read}\n\
             write_timeout_ms = {}\nmemory_bytes_max = {memory}\n",
            write_timeout.as_millis()
        )
    }

    /// Starts a gateway with default limits, which writes its log to `log` at `log_level`.
    pub(crate) fn start(&self, log: LogTarget, log_level: &str) -> io::Result<GatewayProcess> {
        let (program, folder) = (&*self.gateway, &*self.folder);
        GatewayProcess::start(&GatewayStart {
            program,
            folder,
            config: "",
            open_files_max: None,
            log,
            log_level,
        })
    }

    /// Starts a gateway for an attack beside honest load.
    fn start_limited(&self, files: Option<u64>, write_timeout: Duration) -> io::Result<GatewayProcess> {
        GatewayProcess::start(&GatewayStart {
            program: &self.gateway,
            folder: &self.folder,
            config: &self.limits(write_timeout),
            open_files_max: files,
            log: LogTarget::File,
            log_level: "info",
        })
    }
}

/// The gateway, the attacker and the end of one running attack, and the notes that it takes.
#[derive(Clone, Debug)]
pub(crate) struct AttackContext {
    pub(crate) options: Arc<AttackOptions>,
    pub(crate) gateway: Arc<Mutex<GatewayProcess>>,
    pub(crate) attacker: Attacker,
    pub(crate) ends: Instant,
    notes: Arc<Mutex<Vec<String>>>,
    exceeded: Arc<Mutex<Vec<String>>>,
}

impl AttackContext {
    pub(crate) fn note(&self, note: String) {
        self.notes.lock().push(note);
    }

    /// Reports a limit that only this attack has.
    pub(crate) fn exceeded(&self, limit: String) {
        self.exceeded.lock().push(limit);
    }

    pub(crate) fn is_over(&self) -> bool {
        Instant::now() >= self.ends
    }

    /// A gauge of the gateway, if its operator listener answers.
    pub(crate) fn metric(&self, name: &str) -> Option<f64> {
        let page = self.gateway.lock().operator_page("/metrics")?;
        page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
    }
}

/// Runs attacks one after the other, and prints the figures of each.
pub(crate) fn run_all(chosen: &[&Attack], options: &AttackOptions) -> Result<Vec<AttackReport>, String> {
    let mut reports = Vec::new();
    for attack in chosen {
        println!("\n{}: {}", attack.name, attack.about);
        let report = match attack.procedure {
            Procedure::Beside { .. } => run_beside(attack, options),
            Procedure::Alone(run) => run(options).map_err(|error| error.to_string()),
        };
        let mut report =
            report.unwrap_or_else(|error| AttackReport { exceeded: vec![error], ..Default::default() });
        report.name = attack.name;
        report.print();
        reports.push(report);
    }
    Ok(reports)
}

pub(crate) fn runtime() -> io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(2).enable_all().build()
}

/// An attack while honest callers go on.
fn run_beside(attack: &Attack, options: &AttackOptions) -> Result<AttackReport, String> {
    let Procedure::Beside { run, fresh, open_files_max, write_timeout } = attack.procedure else {
        return Err("this attack runs alone".to_owned());
    };
    let gateway = options.start_limited(open_files_max, write_timeout(options));
    let gateway = gateway.map_err(|error| error.to_string())?;
    let runtime = runtime().map_err(|error| error.to_string())?;
    let callers = HonestCallers::new(gateway.public, fresh);
    runtime.block_on(callers.connect()).map_err(|error| format!("no honest connection: {error}"))?;
    // Answers that are kept and memory that is used once are there before anything is measured.
    runtime.block_on(callers.call_for(WARM_UP_MAX.min(options.duration / 4)));
    let (idle_duration, cpu_before_idle) = (IDLE_MAX.min(options.duration / 2), gateway.cpu_seconds());
    let idle = runtime.block_on(callers.call_for(idle_duration));
    let idle_cores = (gateway.cpu_seconds() - cpu_before_idle) / idle_duration.as_secs_f64();

    let attacker = Attacker::new(gateway.public);
    let (before, cpu_before) = (gateway.memory_bytes(), gateway.cpu_seconds());
    let gateway = Arc::new(Mutex::new(gateway));
    let context = AttackContext {
        options: Arc::new(options.clone_without_folder()),
        gateway: Arc::clone(&gateway),
        attacker: attacker.clone(),
        ends: Instant::now() + options.duration,
        notes: Arc::default(),
        exceeded: Arc::default(),
    };
    let sampler = Sampler::start(Arc::clone(&gateway));
    let attacked = runtime.block_on(async {
        let attack = tokio::spawn(run(context.clone()));
        let attacked = callers.call_for(options.duration).await;
        attack.abort();
        // An attack may have ended before it was aborted.
        let _ended = attack.await;
        attacked
    });
    let cores = (gateway.lock().cpu_seconds() - cpu_before) / options.duration.as_secs_f64();
    runtime.shutdown_timeout(Duration::from_secs(1));
    thread::sleep(RECOVERY_MAX.min(options.duration / 4));
    let (peak, gauges) = sampler.stop();
    let mut report =
        AttackReport { idle, attacked, gauges, cores, hostile: attacker.figures(), ..Default::default() };
    let hostile_cpu = (cores - idle_cores).max(0.0) * options.duration.as_secs_f64();
    report.cpu_per_request = Duration::from_secs_f64(hostile_cpu).checked_div(report.hostile.answered);
    report.memory = MemoryFigures { before, peak: peak.max(before), after: gateway.lock().memory_bytes() };
    report.notes = std::mem::take(&mut context.notes.lock());
    report.exceeded = std::mem::take(&mut context.exceeded.lock());
    drop(context);
    report.exit = match Arc::try_unwrap(gateway) {
        Ok(gateway) => end(gateway.into_inner()),
        Err(_) => "still in use".to_owned(),
    };
    report.judge(&attack.limits, options);
    Ok(report)
}

/// How the gateway ends. One that has ended before it was asked to has failed.
fn end(mut gateway: GatewayProcess) -> String {
    match gateway.ended() {
        Some(status) => format!("an exit under attack: {status}"),
        None => gateway.stop(),
    }
}

impl AttackOptions {
    fn clone_without_folder(&self) -> Self {
        Self { gateway: self.gateway.clone(), folder: PathBuf::new(), ..*self }
    }
}

/// Watches memory from a thread of its own, because the runtime is busy with the attack.
struct Sampler {
    stopping: Arc<AtomicBool>,
    thread: thread::JoinHandle<(u64, BTreeMap<String, u64>)>,
}

impl Sampler {
    fn start(gateway: Arc<Mutex<GatewayProcess>>) -> Self {
        let stopping = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&stopping);
        let thread = thread::spawn(move || {
            let (mut peak, mut gauges) = (0, BTreeMap::new());
            while !stop.load(Relaxed) {
                let page = {
                    let gateway = gateway.lock();
                    peak = peak.max(gateway.memory_bytes());
                    gateway.operator_page("/metrics").unwrap_or_default()
                };
                memory_gauges(&page, &mut gauges);
                thread::sleep(SAMPLE_INTERVAL);
            }
            (peak, gauges)
        });
        Self { stopping, thread }
    }

    fn stop(self) -> (u64, BTreeMap<String, u64>) {
        self.stopping.store(true, Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

/// Keeps the highest value of every gauge that counts bytes.
fn memory_gauges(page: &str, gauges: &mut BTreeMap<String, u64>) {
    for line in page.lines().filter(|line| line.starts_with("chaingate_")) {
        let Some((name, value)) = line.rsplit_once(' ') else { continue };
        let Ok(value) = value.parse::<f64>() else { continue };
        if name.ends_with("_bytes") && !name.contains("cache") {
            let highest = gauges.entry(name.to_owned()).or_default();
            *highest = (*highest).max(value as u64);
        }
    }
}
