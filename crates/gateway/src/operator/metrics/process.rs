//! Metrics of the process from `/proc`, under the names that Prometheus' own libraries use for them.

use std::fs;

use super::{MetricTable, gauge, series};
use crate::gateway_state::GatewayState;

/// Ticks per second in which Linux reports times of processes, on every machine of today.
const TICKS_PER_SECOND: f64 = 100.0;

#[rustfmt::skip]
pub(super) const PROCESS: MetricTable<ProcessFacts> = MetricTable {
    title: "The process",
    about: "Present on Linux.",
    with_source: |gateway, read| if let Some(facts) = ProcessFacts::read(gateway) {
        read(&facts);
    },
    metrics: &[
        series("counter", "process_cpu_seconds_total", &[], "CPU time of the process in user and system mode, in seconds.",
            |facts, series| series.add(&[], facts.cpu_seconds)),
        gauge("process_resident_memory_bytes", "Bytes of memory that the process has in RAM.",
            |facts| facts.resident_bytes),
        gauge("process_threads", "Threads of the process.", |facts| facts.threads),
        gauge("process_open_fds", "File descriptors that the process has open.", |facts| facts.open_files),
        gauge("process_max_fds", "Limit of process_open_fds (ulimit -n, LimitNOFILE).", |facts| facts.open_files_max),
        gauge("process_start_time_seconds", "Time at which the process started, in seconds since 1970.",
            |facts| facts.started_at),
    ],
};

/// Facts about the process from `/proc`.
#[derive(Debug, PartialEq)]
pub(super) struct ProcessFacts {
    cpu_seconds: f64,
    resident_bytes: u64,
    threads: u64,
    open_files: u64,
    open_files_max: u64,
    started_at: u64,
}

impl ProcessFacts {
    /// Reads the facts; `None` where there is no `/proc`. It reads only `/proc/self`, because a service may see nothing else.
    fn read(gateway: &GatewayState) -> Option<Self> {
        let stat = fs::read_to_string("/proc/self/stat").ok()?;
        let status = fs::read_to_string("/proc/self/status").ok()?;
        let limits = fs::read_to_string("/proc/self/limits").ok()?;
        let (cpu_ticks, threads) = ticks_and_threads(&stat)?;
        Some(Self {
            cpu_seconds: cpu_ticks as f64 / TICKS_PER_SECOND,
            resident_bytes: number_after(&status, "VmRSS:")? << 10,
            threads,
            open_files: fs::read_dir("/proc/self/fd").ok()?.count() as u64,
            // `unlimited` is not a number.
            open_files_max: number_after(&limits, "Max open files").unwrap_or(u64::MAX),
            started_at: gateway.started_at.try_into().unwrap_or(0),
        })
    }
}

/// The 14th and 15th field of `/proc/self/stat` together, and the 20th. The second field is a name in parentheses, which may
/// contain spaces and parentheses.
fn ticks_and_threads(stat: &str) -> Option<(u64, u64)> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let fields: Vec<_> = after_name.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    Some((field(14)? + field(15)?, field(20)?))
}

/// The first number behind a name at the start of a line.
fn number_after(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_process_may_look_like_fields() {
        let stat = "7 (a) b 1 2) S 1 7 7 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 12 0 400 9000 800 184";
        assert_eq!(ticks_and_threads(stat), Some((300, 12)));
        assert_eq!(ticks_and_threads("7 (a) S 1"), None);
    }

    #[test]
    fn numbers_are_found_by_their_names() {
        let status = "Name:\tVmRSS:\nVmRSS:\t    2048 kB\nThreads:\t3\n";
        assert_eq!(number_after(status, "VmRSS:"), Some(2_048));
        let limits = "Max open files            1024                 524288               files     \n";
        assert_eq!(number_after(limits, "Max open files"), Some(1_024));
        assert_eq!(number_after("Max open files            unlimited\n", "Max open files"), None);
    }
}
