//! `metrics.md`: every metric, from the tables that print `/metrics`.

use std::fmt::Write as _;

use gateway::{MetricDescription, metric_groups};

use super::GENERATED;

pub(super) fn document() -> String {
    let mut text = format!("# Metrics\n\n{GENERATED}\n\n{INTRODUCTION}\n");
    for group in metric_groups() {
        let _ = write!(
            text,
            "\n## {}\n\n{}\n\n| metric | kind | labels | meaning |\n|---|---|---|---|\n",
            group.title, group.about
        );
        for MetricDescription { name, kind, labels, help } in group.metrics {
            let labels = if labels.is_empty() { "–".to_owned() } else { label_names(labels) };
            let _ = writeln!(text, "| `{name}` | {kind} | {labels} | {help} |");
        }
    }
    text.push_str("\n## Values of labels\n\n| metric | label | values |\n|---|---|---|\n");
    for (metric, label, values) in LABEL_VALUES {
        let _ = writeln!(text, "| `{metric}` | `{label}` | {values} |");
    }
    text
}

fn label_names(labels: &[&str]) -> String {
    let quoted: Vec<_> =
        labels.iter().map(|label| format!("`{}`", label.replace(" or ", "` or `"))).collect();
    quoted.join(", ")
}

const INTRODUCTION: &str = "\
`/metrics` at the operator address returns all metrics in the text format of Prometheus:

```
curl -s http://127.0.0.1:8546/metrics
```

Every label has a closed set of values, and at most 50 accounts have series, so callers cannot add series without bound. No label
contains an API key. Counters start at 0 when the process starts. Histograms have the suffixes `_bucket`, `_sum` and `_count`, and
count seconds.

[`deploy/prometheus/rules.yml`](../deploy/prometheus/rules.yml) has alerts, and [operation.md](operation.md#alerts) says what to do
about each.";

#[rustfmt::skip]
const LABEL_VALUES: &[(&str, &str, &str)] = &[
    ("chaingate_calls_total", "outcome",
        "those in [usage.md](usage.md#what-is-counted)"),
    ("chaingate_responses_total", "status",
        "`2xx`, `3xx`, `4xx`, `5xx`"),
    ("chaingate_node_excluded", "reason",
        "`other_chain`, `other_genesis`, `checkpoint`, `syncing`, `too_few` (too few nodes have reported their chain), `undecided` (the nodes do not agree on a chain), `wrong_answer`"),
    ("chaingate_node_faults_total", "fault",
        "of the node or the network: `connect`, `dns`, `tls`, `closed`, `timeout`, `too_large`, `status` (an HTTP status other than 200), `refused`, `rate_limited`, `garbled` (no JSON-RPC), `wrong_id`, `wrong`; of this gateway: `no_memory`, `larger_than_memory`, `queue_full`"),
    ("chaingate_wrong_answers_total", "check",
        "`shape`, `header_hash`, `number`, `transactions_root`, `withdrawals_root`, `uncles`, `receipts_root`, `bloom`, `gas`, `other_block`, `state_root`, `storage_root`, `code_hash`"),
    ("chaingate_confirmations_total", "outcome",
        "`undisputed`, `disputed` (nodes disagreed; a quorum or a proof decided), `proven` (too few nodes answered, and a proof decided), `failed`"),
    ("chaingate_partner_answers_total", "reason",
        "`no_answer`"),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;

    fn deploy() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
    }

    #[test]
    fn labels_are_those_of_metrics_that_exist() {
        let metrics: Vec<_> = metric_groups().into_iter().flat_map(|group| group.metrics).collect();
        for (name, label, _) in LABEL_VALUES {
            let metric = metrics.iter().find(|metric| metric.name == *name);
            assert!(metric.is_some_and(|metric| metric.labels.contains(label)), "{name} {label}");
        }
    }

    #[test]
    fn alerts_name_metrics_that_exist() {
        let mut series = BTreeSet::new();
        for MetricDescription { name, kind, .. } in
            metric_groups().into_iter().flat_map(|group| group.metrics)
        {
            let suffixes: &[&str] = if kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
            series.extend(suffixes.iter().map(|suffix| format!("{name}{suffix}")));
        }
        let files = [deploy().join("prometheus/rules.yml"), deploy().join("prometheus/rules.test.yml")];
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
            let words = text.split(|letter| !is_part(letter));
            let names = words.filter(|word| word.starts_with("chaingate_") || word.starts_with("process_"));
            let unknown: BTreeSet<_> = names.filter(|name| !series.contains(*name)).collect();
            assert!(unknown.is_empty(), "{}: {unknown:?}", file.display());
        }
    }

    #[test]
    fn every_alert_has_a_section_that_says_what_to_do() {
        let rules = fs::read_to_string(deploy().join("prometheus/rules.yml")).unwrap();
        let operation =
            fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operation.md"))
                .unwrap();
        let alerts: Vec<_> = rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
        let sections: Vec<_> =
            operation.lines().filter_map(|line| line.strip_prefix("### Chaingate")).collect();
        let names: Vec<_> = alerts.iter().map(|alert| alert.strip_prefix("Chaingate").unwrap()).collect();
        assert_eq!(sections, names, "the same alerts in the same order");
        for alert in alerts {
            let url = format!("runbook_url: docs/operation.md#{}\n", alert.to_lowercase());
            assert_eq!(rules.matches(&url).count(), 1, "{url}");
        }
    }
}
