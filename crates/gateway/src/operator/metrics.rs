//! `/metrics`: every figure as Prometheus text. A figure is one row of the tables below this module, from which
//! `docs/metrics.md` is generated, too. Every label comes from a closed set, so the number of series is known.

mod calls; // calls, memory, threads and the cache
mod listeners; // the gateway, its connections and its certificate
mod nodes; // nodes, partners and their blocks
mod process; // facts from `/proc`
mod store; // accounts, keys, usage and shared limits
mod tasks; // the tasks beside requests, the disk, and backups

use std::fmt::{Display, Write};

use resources::{BOUNDS_US, HistogramSum};

use crate::gateway_state::GatewayState;

/// A metric as the documentation lists it.
#[derive(Clone, Copy, Debug)]
pub struct MetricDescription {
    pub name: &'static str,
    /// `counter`, `gauge` or `histogram`.
    pub kind: &'static str,
    pub labels: &'static [&'static str],
    pub help: &'static str,
}

/// Metrics that are present at the same time.
#[derive(Clone, Debug)]
pub struct MetricGroup {
    pub title: &'static str,
    /// When they are present, and what their labels mean.
    pub about: &'static str,
    pub metrics: Vec<MetricDescription>,
}

/// All metrics, in the order in which `/metrics` has them.
pub fn metric_groups() -> Vec<MetricGroup> {
    GROUPS.iter().map(|group| group.describe()).collect()
}

pub(super) fn text(gateway: &GatewayState) -> String {
    let mut out = String::with_capacity(32 << 10);
    for group in GROUPS {
        group.write(gateway, &mut out);
    }
    out
}

const GROUPS: &[&dyn Group] = &[
    &listeners::GATEWAY,
    &listeners::ACCESS_LOG,
    &process::PROCESS,
    &tasks::TASKS,
    &tasks::DISK,
    &tasks::BACKUP,
    &store::CALLERS,
    &listeners::CONNECTIONS,
    &listeners::CERTIFICATE,
    &calls::CALLS,
    &store::ACCOUNTS,
    &calls::RESOURCES,
    &store::USAGE,
    &calls::ARCHIVE,
    &nodes::CHAIN,
    &nodes::VERIFICATION,
    &nodes::NODES,
    &nodes::STORED_BLOCKS,
    &nodes::EXECUTED_BLOCKS,
    &store::SHARED_LIMITS,
];

/// A table of metrics, whatever it reads them from.
trait Group {
    fn write(&self, gateway: &GatewayState, out: &mut String);
    fn describe(&self) -> MetricGroup;
}

/// Calls the second function with a source of metrics, unless this gateway has none.
type WithSource<S> = fn(&GatewayState, &mut dyn FnMut(&S));

/// Metrics that are read from an `S`.
struct MetricTable<S: 'static> {
    title: &'static str,
    about: &'static str,
    with_source: WithSource<S>,
    metrics: &'static [Metric<S>],
}

struct Metric<S> {
    description: MetricDescription,
    read: Reader<S>,
}

enum Reader<S> {
    /// The value of a metric without labels.
    Value(fn(&S) -> u64),
    Series(fn(&S, &mut SeriesWriter<'_>)),
}

const fn gauge<S>(name: &'static str, help: &'static str, read: fn(&S) -> u64) -> Metric<S> {
    Metric {
        description: MetricDescription { name, kind: "gauge", labels: &[], help },
        read: Reader::Value(read),
    }
}

const fn counter<S>(name: &'static str, help: &'static str, read: fn(&S) -> u64) -> Metric<S> {
    Metric {
        description: MetricDescription { name, kind: "counter", labels: &[], help },
        read: Reader::Value(read),
    }
}

/// A metric with labels, or whose values are not whole numbers.
const fn series<S>(
    kind: &'static str,
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
    read: fn(&S, &mut SeriesWriter<'_>),
) -> Metric<S> {
    Metric { description: MetricDescription { name, kind, labels, help }, read: Reader::Series(read) }
}

impl<S> Group for MetricTable<S> {
    fn write(&self, gateway: &GatewayState, out: &mut String) {
        (self.with_source)(gateway, &mut |source| write_metrics(out, self.metrics, source));
    }

    fn describe(&self) -> MetricGroup {
        let metrics = self.metrics.iter().map(|metric| metric.description).collect();
        MetricGroup { title: self.title, about: self.about, metrics }
    }
}

fn write_metrics<S>(out: &mut String, metrics: &[Metric<S>], source: &S) {
    for Metric { description: MetricDescription { name, kind, help, .. }, read } in metrics {
        // Writing to a string cannot fail.
        let _ok = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
        let mut series = SeriesWriter { out, name };
        match read {
            Reader::Value(read) => series.add(&[], read(source)),
            Reader::Series(read) => read(source, &mut series),
        }
    }
}

/// Writes the series of one metric.
struct SeriesWriter<'a> {
    out: &'a mut String,
    name: &'static str,
}

impl SeriesWriter<'_> {
    fn add(&mut self, labels: &[(&str, &str)], value: impl Display) {
        self.line("", labels, value);
    }

    fn add_histogram(&mut self, labels: &[(&str, &str)], times: &HistogramSum) {
        let mut below = 0;
        for (bound, inside) in BOUNDS_US.iter().zip(&times.buckets) {
            below += inside;
            self.bucket(labels, &(*bound as f64 / 1e6).to_string(), below);
        }
        self.bucket(labels, "+Inf", times.count());
        self.line("_sum", labels, times.sum_ns as f64 / 1e9);
        self.line("_count", labels, times.count());
    }

    fn bucket(&mut self, labels: &[(&str, &str)], bound: &str, count: u64) {
        let labels: Vec<_> = labels.iter().copied().chain([("le", bound)]).collect();
        self.line("_bucket", &labels, count);
    }

    fn line(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl Display) {
        let labels: Vec<_> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let braced = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ok = writeln!(self.out, "{}{suffix}{braced} {value}", self.name);
    }
}

/// Text as it stands between the quotes of a label. The format has three escapes and no others.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_label_may_be_any_text() {
        assert_eq!(escaped("a\"b\\c\nd ü"), "a\\\"b\\\\c\\nd ü");
    }

    /// Texts continued the one before them: "Those that another had failed before."
    #[test]
    fn every_help_text_can_be_read_alone() {
        let metrics: Vec<_> = metric_groups().into_iter().flat_map(|group| group.metrics).collect();
        let (mut names, mut texts) = (BTreeSet::new(), BTreeSet::new());
        for MetricDescription { name, kind, help, .. } in metrics {
            let first = help.split(' ').next().unwrap();
            assert!(
                !["Those", "These", "They", "That", "This", "It", "Beyond", "The"].contains(&first),
                "{name} {help}"
            );
            assert!(help.len() > 20 && help.ends_with('.') && !help.contains('\\'), "{name} {help}");
            assert!(texts.insert(help), "two metrics cannot mean the same: {name} {help}");
            let is_prefixed = ["chaingate_", "process_"].iter().any(|prefix| name.starts_with(prefix));
            assert!(names.insert(name) && is_prefixed, "{name}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{name}");
        }
    }
}
