//! The columns of a table of usage that are summed up.

use resources::BUCKETS;

use super::{UsageDetail, UsageStep};

/// The columns that are summed up.
pub(super) fn count_columns() -> Vec<String> {
    let fixed = ["calls", "credits", "bytes_in", "bytes_out", "latency_ns"].map(str::to_owned);
    fixed.into_iter().chain((0..BUCKETS).map(|bucket| format!("latency_{bucket}"))).collect()
}

/// The end of a statement that adds to rows that exist.
pub(super) fn add_on_conflict(step: UsageStep, detail: UsageDetail) -> String {
    let (table, groups) = (detail.table(step), detail.group_columns().join(", "));
    let sum = |name: &String| match name.as_str() {
        // The latencies of all accounts can exceed the largest number, which must not keep their calls from being stored.
        "latency_ns" => format!(
            "{name} = CASE WHEN {table}.{name} > {max} - excluded.{name} THEN {max} ELSE {table}.{name} + excluded.{name} END",
            max = i64::MAX
        ),
        _ => format!("{name} = {table}.{name} + excluded.{name}"),
    };
    let sums: Vec<_> = count_columns().iter().map(sum).collect();
    format!("ON CONFLICT ({groups}) DO UPDATE SET {}", sums.join(", "))
}
