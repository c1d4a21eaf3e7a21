//! The tasks beside requests, the disk that has the data directory, and its backups.

use std::collections::BTreeMap;

use resources::{DiskHealth, TaskReport};

use super::{MetricTable, SeriesWriter, gauge, series};

/// Tasks by their names, which come from the program and the names of nodes and partners.
type TasksByName = BTreeMap<String, TaskReport>;

#[rustfmt::skip]
pub(super) const TASKS: MetricTable<TasksByName> = MetricTable {
    title: "Tasks beside requests",
    about: "Always present. A task that panics is started again after a pause. The label `task` is the name in `/status`, the \
            log and the console; tasks of nodes and partners have their names in it.",
    with_source: |gateway, read| read(&by_name(gateway.supervisor.report())),
    metrics: &[
        series("gauge", "chaingate_task_up", &["task"],
            "1 while the task beside requests runs, 0 after several panics in a row or without a sign of life for 4 seconds (30 for the follower of blocks, which has a low priority).",
            |tasks, series| each_task(tasks, series, |task| u64::from(!task.is_down))),
        series("counter", "chaingate_task_panics_total", &["task"],
            "Panics of the task; it starts again after each.",
            |tasks, series| each_task(tasks, series, |task| task.panics)),
        series("gauge", "chaingate_task_last_alive_seconds", &["task"],
            "Seconds since the last sign of life of the task, which shows one every second.",
            |tasks, series| each_task(tasks, series, |task| task.silent_for.as_secs())),
    ],
};

#[rustfmt::skip]
pub(super) const DISK: MetricTable<DiskHealth> = MetricTable {
    title: "The disk",
    about: "Always present. `writer` is `usage`, `keys_copy` (the local copy of accounts and keys), `archive` or `blocks` \
            (stored blocks of nodes).",
    with_source: |gateway, read| read(&gateway.disk),
    metrics: &[
        series("gauge", "chaingate_disk_write_failing", &["writer"],
            "1 while the last write of this writer to data_dir has failed, else 0.",
            |disk, series| for report in disk.report() {
                series.add(&[("writer", report.writer.name())], u64::from(report.failing.is_some()));
            }),
        series("counter", "chaingate_disk_write_failures_total", &["writer"],
            "Writes to data_dir that have failed, by writer.",
            |disk, series| for report in disk.report() {
                series.add(&[("writer", report.writer.name())], report.failures);
            }),
        gauge("chaingate_disk_free_bytes",
            "Bytes that can still be written to the disk of data_dir; 0 if the directory cannot be looked at.",
            |disk| disk.space().map_or(0, |space| space.free_bytes)),
        gauge("chaingate_disk_size_bytes",
            "Size of the disk of data_dir; 0 if the directory cannot be looked at.",
            |disk| disk.space().map_or(0, |space| space.size_bytes)),
    ],
};

#[rustfmt::skip]
pub(super) const BACKUP: MetricTable<u64> = MetricTable {
    title: "Backups",
    about: "Present after the first `chaingate backup` of `data_dir`.",
    with_source: |gateway, read| {
        if let Some(finished_at) = gateway.disk.last_backup_at() {
            read(&finished_at.max(0).unsigned_abs());
        }
    },
    metrics: &[
        gauge("chaingate_last_backup_at_seconds",
            "Time at which the last backup of data_dir was finished, in seconds since 1970.",
            |finished_at| *finished_at),
    ],
};

/// Several tasks of one name are one series: the one that is down, or else the newest.
fn by_name(reports: Vec<TaskReport>) -> TasksByName {
    let mut tasks = TasksByName::new();
    for task in reports {
        if task.is_down || tasks.get(&task.name).is_none_or(|known| !known.is_down) {
            tasks.insert(task.name.clone(), task);
        }
    }
    tasks
}

fn each_task(tasks: &TasksByName, series: &mut SeriesWriter<'_>, read: fn(&TaskReport) -> u64) {
    for (name, task) in tasks {
        series.add(&[("task", name)], read(task));
    }
}

#[cfg(test)]
mod tests {
    use resources::{Supervisor, WhenDown};

    use super::super::write_metrics;
    use super::*;

    /// Two nodes may have the same name. The one whose task ran hid the other.
    #[test]
    fn a_task_that_is_down_is_not_hidden_by_another_of_its_name() {
        let supervisor = Supervisor::default();
        let _tasks = [0, 1, 2].map(|_| supervisor.task("watcher of node n", WhenDown::Degraded));
        let mut reports = supervisor.report();
        (reports[1].is_down, reports[1].panics) = (true, 4);
        let mut out = String::new();
        write_metrics(&mut out, TASKS.metrics, &by_name(reports));
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
