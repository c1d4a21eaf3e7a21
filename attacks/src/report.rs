//! Figures of one attack, the limits that they must keep, and the table of all.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::honest::HonestFigures;
use crate::hostile::HostileFigures;
use crate::run::AttackOptions;

/// The figures of one attack.
#[derive(Debug, Default)]
pub(crate) struct AttackReport {
    pub(crate) name: &'static str,
    pub(crate) idle: HonestFigures,
    pub(crate) attacked: HonestFigures,
    pub(crate) memory: MemoryFigures,
    /// The highest value of each gauge of memory that the gateway reports.
    pub(crate) gauges: BTreeMap<String, u64>,
    /// Processor time of the gateway per second of the attack.
    pub(crate) cores: f64,
    /// Processor time of the gateway per hostile request, in attacks that count them.
    pub(crate) cpu_per_request: Option<Duration>,
    pub(crate) hostile: HostileFigures,
    /// How the gateway ended.
    pub(crate) exit: String,
    /// Further figures, as text.
    pub(crate) notes: Vec<String>,
    /// The limits that were exceeded.
    pub(crate) exceeded: Vec<String>,
}

/// Resident memory of the gateway.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MemoryFigures {
    pub(crate) before: u64,
    pub(crate) peak: u64,
    pub(crate) after: u64,
}

/// The limits that an attack must not exceed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AttackLimits {
    pub(crate) honest_errors: u64,
    pub(crate) memory_growth: u64,
    /// How many times the idle p99 the honest p99 may be.
    pub(crate) latency_ratio: f64,
    /// The life of a hostile connection, in multiples of the gateway's read timeout. `None` is no limit.
    pub(crate) hostile_life: Option<f64>,
    /// Cores that the gateway may use.
    pub(crate) cores: f64,
    /// Processor time that a hostile request may take. `None` is no limit.
    pub(crate) cpu_per_request: Option<Duration>,
}

/// Time that may pass on a busy machine between a timeout and the moment in which the end of a connection is seen.
const LIFE_SLACK: Duration = Duration::from_secs(5);

/// The allocator keeps memory of its own for each thread, however small the attack is.
const UNSCALED_GROWTH_MAX: u64 = 160 << 20;

impl AttackReport {
    /// Compares the figures with the limits.
    pub(crate) fn judge(&mut self, limits: &AttackLimits, options: &AttackOptions) {
        let errors = self.attacked.error_count();
        self.require(errors <= limits.honest_errors, || {
            format!("{errors} honest calls failed, at most {} may", limits.honest_errors)
        });
        let idle_errors = self.idle.error_count();
        self.require(idle_errors == 0, || format!("{idle_errors} honest calls failed before the attack"));
        let p99_max = self.idle.percentile(0.99).mul_f64(limits.latency_ratio).max(options.latency_floor);
        let p99 = self.attacked.percentile(0.99);
        self.require(p99 <= p99_max, || format!("honest p99 is {p99:.0?}, at most {p99_max:.0?} is allowed"));
        let grown = self.memory.peak.saturating_sub(self.memory.before);
        let growth_max =
            options.scaled_memory(limits.memory_growth).max(limits.memory_growth.min(UNSCALED_GROWTH_MAX));
        self.require(grown <= growth_max, || {
            format!("memory grew by {} MiB, at most {} MiB is allowed", grown >> 20, growth_max >> 20)
        });
        let life = self.hostile.longest;
        let life_max =
            limits.hostile_life.map(|multiple| options.read_timeout().mul_f64(multiple) + LIFE_SLACK);
        self.require(life_max.is_none_or(|life_max| life <= life_max), || {
            format!(
                "a hostile connection lived for {life:.1?}, at most {:.1?} is allowed",
                life_max.unwrap_or_default()
            )
        });
        let cores = self.cores;
        self.require(cores <= limits.cores, || {
            format!("{cores:.2} cores in use, at most {} may be", limits.cores)
        });
        let (cpu, cpu_max) = (self.cpu_per_request, limits.cpu_per_request);
        self.require(cpu_max.is_none() || cpu.is_some(), || "no hostile request was answered".to_owned());
        self.require(cpu.zip(cpu_max).is_none_or(|(cpu, cpu_max)| cpu <= cpu_max), || {
            format!(
                "a hostile request took {:.1?} of CPU, at most {:.1?} is allowed",
                cpu.unwrap_or_default(),
                cpu_max.unwrap_or_default()
            )
        });
        let exit = self.exit.clone();
        self.require(exit == "exit status: 0", || format!("the gateway ended with {exit}"));
    }

    pub(crate) fn require(&mut self, kept: bool, exceeded: impl FnOnce() -> String) {
        if !kept {
            self.exceeded.push(exceeded());
        }
    }

    pub(crate) fn print(&self) {
        let Self { idle, attacked, memory, hostile, .. } = self;
        let times = |figures: &HonestFigures| {
            let [p50, p99] = [0.5, 0.99].map(|share| figures.percentile(share).as_secs_f64() * 1e3);
            format!(
                "{} calls, {} errors, p50 {p50:.1} ms, p99 {p99:.1} ms",
                figures.sent(),
                figures.error_count()
            )
        };
        println!("  honest, idle:      {}", times(idle));
        println!("  honest, attacked:  {}", times(attacked));
        for (error, count) in idle.errors.iter().chain(&attacked.errors) {
            println!("    {count} x {error}");
        }
        let MemoryFigures { before, peak, after } = *memory;
        println!("  memory MiB:        before {}, peak {}, after {}", before >> 20, peak >> 20, after >> 20);
        for (name, value) in self.gauges.iter().filter(|(_, value)| **value > 0) {
            println!("    {name} up to {} MiB", value >> 20);
        }
        println!("  gateway:           {:.2} cores, {}", self.cores, self.exit);
        let HostileFigures { opened, refused, cut, longest, answered } = *hostile;
        println!(
            "  hostile:           {opened} opened, {refused} refused, {cut} cut, longest life {longest:.1?}"
        );
        if let Some(cpu) = self.cpu_per_request {
            println!("  hostile requests:  {answered}, {:.3} ms of CPU each", cpu.as_secs_f64() * 1e3);
        }
        self.notes.iter().for_each(|note| println!("  note:              {note}"));
        self.exceeded.iter().for_each(|exceeded| println!("  EXCEEDED:          {exceeded}"));
    }
}

/// One row per attack.
pub(crate) fn print_table(reports: &[AttackReport]) {
    println!(
        "\n{:<22}{:>8}{:>18}{:>20}{:>22}{:>7}{:>13}{:>9}  verdict",
        "attack",
        "errors",
        "p50 ms idle/att.",
        "p99 ms idle/att.",
        "MiB before/peak/after",
        "cores",
        "CPU ms/req.",
        "life s"
    );
    for report in reports {
        let pair = |share: f64| {
            let of = |figures: &HonestFigures| figures.percentile(share).as_secs_f64() * 1e3;
            format!("{:.1}/{:.1}", of(&report.idle), of(&report.attacked))
        };
        let MemoryFigures { before, peak, after } = report.memory;
        println!(
            "{:<22}{:>8}{:>18}{:>20}{:>22}{:>7.2}{:>13}{:>9.1}  {}",
            report.name,
            report.attacked.error_count(),
            pair(0.5),
            pair(0.99),
            format!("{}/{}/{}", before >> 20, peak >> 20, after >> 20),
            report.cores,
            report.cpu_per_request.map_or("-".to_owned(), |cpu| format!("{:.3}", cpu.as_secs_f64() * 1e3)),
            report.hostile.longest.as_secs_f64(),
            if report.exceeded.is_empty() {
                "ok".to_owned()
            } else {
                format!("EXCEEDED: {}", report.exceeded.join("; "))
            }
        );
    }
}
