//! The tasks beside requests. Their names come from the program and the names of nodes and partners.

use std::collections::BTreeMap;
use std::fmt::Write;

use resources::TaskReport;

use super::{describe, label};

pub(super) fn write(out: &mut String, reports: &[TaskReport]) {
    let mut tasks: BTreeMap<&str, &TaskReport> = BTreeMap::new();
    for task in reports {
        // Several of one name are one series: the one that is down, or else the newest.
        let shown = tasks.entry(&task.name).or_insert(task);
        if task.is_down || !shown.is_down {
            *shown = task;
        }
    }
    let mut each = |name: &str, kind: &str, help: &str, value: &dyn Fn(&TaskReport) -> u64| {
        describe(out, name, kind, help);
        for (task, report) in &tasks {
            let _ok = writeln!(out, "{name}{{task=\"{}\"}} {}", label(task), value(report));
        }
    };
    each(
        "chaingate_task_up",
        "gauge",
        "1 while the task beside requests runs, 0 after several panics in a row or without a sign of life for 30 seconds.",
        &|task| u64::from(!task.is_down),
    );
    each(
        "chaingate_task_panics_total",
        "counter",
        "Panics of the task; it starts again after each.",
        &|task| task.panics,
    );
    each(
        "chaingate_task_last_alive_seconds",
        "gauge",
        "Seconds since the last sign of life of the task, which shows one every second.",
        &|task| task.silent_for.as_secs(),
    );
}

#[cfg(test)]
mod tests {
    use resources::{Supervisor, WhenDown};

    use super::*;

    /// Two nodes may have the same name. The one whose task ran hid the other.
    #[test]
    fn a_task_that_is_down_is_not_hidden_by_another_of_its_name() {
        let supervisor = Supervisor::default();
        let _tasks = [0, 1, 2].map(|_| supervisor.task("watcher of node n", WhenDown::Degraded));
        let mut reports = supervisor.report();
        (reports[1].is_down, reports[1].panics) = (true, 4);
        let mut out = String::new();
        write(&mut out, &reports);
        let series: Vec<_> = out.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            series,
            [
                "chaingate_task_up{task=\"watcher of node n\"} 0",
                "chaingate_task_panics_total{task=\"watcher of node n\"} 4",
                "chaingate_task_last_alive_seconds{task=\"watcher of node n\"} 0",
            ]
        );
    }
}
