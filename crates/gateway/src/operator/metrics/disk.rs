//! The disk that has the data directory.

use std::fmt::Write;

use resources::{DiskHealth, DiskWriterReport};

use super::{describe, one};

pub(super) fn write(out: &mut String, disk: &DiskHealth) {
    let reports = disk.report();
    let mut each = |name: &str, kind: &str, help: &str, value: &dyn Fn(&DiskWriterReport) -> u64| {
        describe(out, name, kind, help);
        for report in &reports {
            let _ok = writeln!(out, "{name}{{writer=\"{}\"}} {}", report.writer.name(), value(report));
        }
    };
    each(
        "chaingate_disk_write_failing",
        "gauge",
        "1 while the last write of this writer to data_dir has failed, else 0.",
        &|report| report.failing.is_some().into(),
    );
    each(
        "chaingate_disk_write_failures_total",
        "counter",
        "Writes to data_dir that have failed, by writer.",
        &|report| report.failures,
    );
    let space = disk.space();
    one(
        out,
        "chaingate_disk_free_bytes",
        "gauge",
        "Bytes that can still be written to the disk of data_dir; 0 if the directory cannot be looked at.",
        space.map_or(0, |space| space.free_bytes),
    );
    one(
        out,
        "chaingate_disk_size_bytes",
        "gauge",
        "Size of the disk of data_dir; 0 if the directory cannot be looked at.",
        space.map_or(0, |space| space.size_bytes),
    );
}
