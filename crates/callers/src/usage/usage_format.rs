//! Reports of usage as text: CSV, JSON Lines, one JSON object, or a table for people.

use std::fmt::Write;

use resources::BOUNDS_US;
use serde_json::{Map, Value, json};
use store::{UsageCounts, UsageDimension, UsageGroup, UsageRow, UsedKey};

use super::usage_report::UsageReport;
use super::utc_time::format_time;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageFormat {
    /// Comma-separated values with a header.
    Csv,
    /// One JSON object per row.
    JsonLines,
    Table,
}

impl UsageFormat {
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "csv" => Some(Self::Csv),
            "jsonl" => Some(Self::JsonLines),
            "table" => Some(Self::Table),
            _ => None,
        }
    }
}

impl UsageReport {
    pub fn text(&self, format: UsageFormat) -> String {
        match format {
            UsageFormat::Csv => self.csv(),
            UsageFormat::JsonLines => {
                self.rows.iter().map(|row| format!("{}\n", self.row_json(row))).collect()
            }
            UsageFormat::Table => self.table(),
        }
    }

    /// The rows of one page of a report that has several.
    pub fn text_of_page(&self, format: UsageFormat, is_first: bool) -> String {
        let text = self.text(format);
        match (format, text.split_once('\n')) {
            // Only the first page has the header.
            (UsageFormat::Csv, Some((_header, rows))) if !is_first => rows.to_owned(),
            _ => text,
        }
    }

    pub fn json(&self) -> Value {
        let mut report = Map::new();
        report.insert("since".to_owned(), json!(format_time(self.since)));
        report.insert("until".to_owned(), json!(format_time(self.until)));
        insert_counts(&mut report, &self.total);
        let rows = self.rows.iter().map(|row| self.row_json(row)).collect();
        report.insert("rows".to_owned(), Value::Array(rows));
        if let Some(UsedKey { account, key }) = &self.next {
            report.insert("next".to_owned(), json!({"after_account": account, "after_key": key}));
        }
        Value::Object(report)
    }

    fn row_json(&self, row: &UsageRow) -> Value {
        let mut object = Map::new();
        for dimension in &self.by {
            let value = value(&row.group, *dimension);
            object.insert(dimension.name().to_owned(), Value::String(value));
        }
        insert_counts(&mut object, &row.counts);
        Value::Object(object)
    }

    fn csv(&self) -> String {
        let dimensions = self.by.iter().map(|dimension| dimension.name().to_owned());
        let counts = COUNT_NAMES.map(str::to_owned).into_iter();
        let buckets = BOUNDS_US.iter().map(|bound| format!("latency_le_{bound}_us"));
        let header = dimensions.chain(counts).chain(buckets).chain(["latency_longer".to_owned()]);
        let mut out = header.collect::<Vec<_>>().join(",") + "\n";
        for UsageRow { group, counts } in &self.rows {
            let dimensions = self.by.iter().map(|dimension| csv_field(&value(group, *dimension)));
            let numbers = counted(counts).into_iter().chain(counts.latency_buckets);
            let fields = dimensions.chain(numbers.map(|number| number.to_string()));
            out.push_str(&fields.collect::<Vec<_>>().join(","));
            out.push('\n');
        }
        out
    }

    fn table(&self) -> String {
        let mut head: Vec<String> = self.by.iter().map(|dimension| dimension.name().to_owned()).collect();
        head.extend(["calls", "credits", "bytes in", "bytes out", "mean ms"].map(str::to_owned));
        let mut lines = vec![head];
        for UsageRow { group, counts } in &self.rows {
            let dimensions = self.by.iter().map(|dimension| value(group, *dimension));
            lines.push(dimensions.chain(table_numbers(counts)).collect());
        }
        if self.rows.len() != 1 || !self.by.is_empty() {
            let mut total = vec![String::new(); self.by.len()];
            total.first_mut().into_iter().for_each(|first| "total".clone_into(first));
            lines.push(total.into_iter().chain(table_numbers(&self.total)).collect());
        }
        let span = format!("{} to {}\n", format_time(self.since), format_time(self.until));
        span + &aligned(&lines, self.by.len())
    }
}

/// Characters that spreadsheets take for the start of a formula.
const FORMULA_STARTS: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

const COUNT_NAMES: [&str; 5] = ["calls", "credits", "bytes_in", "bytes_out", "latency_ns"];

fn counted(counts: &UsageCounts) -> [u64; 5] {
    let UsageCounts { calls, credits, bytes_in, bytes_out, latency_ns, .. } = counts;
    [*calls, *credits, *bytes_in, *bytes_out, *latency_ns]
}

fn insert_counts(object: &mut Map<String, Value>, counts: &UsageCounts) {
    for (name, number) in COUNT_NAMES.into_iter().zip(counted(counts)) {
        object.insert(name.to_owned(), number.into());
    }
    object.insert("latency_buckets".to_owned(), json!(counts.latency_buckets));
}

fn table_numbers(counts: &UsageCounts) -> [String; 5] {
    let [calls, credits, bytes_in, bytes_out, latency_ns] = counted(counts);
    let mean_ms = latency_ns as f64 / calls.max(1) as f64 / 1e6;
    let number = |number: u64| number.to_string();
    [number(calls), number(credits), number(bytes_in), number(bytes_out), format!("{mean_ms:.3}")]
}

/// A table for people, with columns as wide as their longest cell: first texts, to the left, and then numbers, to the right.
pub fn aligned(lines: &[Vec<String>], texts: usize) -> String {
    let columns = lines.first().map_or(0, Vec::len);
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for line in lines {
        let start = out.len();
        for (column, (text, width)) in line.iter().zip(&widths).enumerate() {
            // Writing to a string cannot fail.
            let _ok = match column < texts {
                true => write!(out, "{text:width$}  "),
                false => write!(out, "{text:>width$}  "),
            };
        }
        out.truncate(start + out[start..].trim_end().len());
        out.push('\n');
    }
    out
}

fn value(group: &UsageGroup, dimension: UsageDimension) -> String {
    match dimension {
        UsageDimension::Time => format_time(group.starts_at),
        UsageDimension::Network => group.network.to_string(),
        UsageDimension::Account => group.account.to_string(),
        UsageDimension::Key => group.key.to_string(),
        UsageDimension::Method => group.method.to_string(),
        UsageDimension::Outcome => group.outcome.to_string(),
        UsageDimension::Tag => group.tag.to_string(),
    }
}

/// A text as RFC 4180 has it. Spreadsheets would execute a text that begins like a formula, and people choose the names of
/// their accounts, so such a text begins with an apostrophe.
fn csv_field(text: &str) -> String {
    let text = match text.starts_with(FORMULA_STARTS) {
        true => &format!("'{text}"),
        false => text,
    };
    if text.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use store::UsageStep;

    use super::*;

    fn report() -> UsageReport {
        let group = UsageGroup {
            starts_at: 1_794_873_600,
            network: "demo".into(),
            account: "Smith, \"J\"".into(),
            key: "k_1".into(),
            method: "eth_call".into(),
            outcome: "ok".into(),
            tag: "".into(),
        };
        let mut counts = UsageCounts {
            calls: 2,
            credits: 160,
            bytes_in: 90,
            bytes_out: 70,
            latency_ns: 3_000_000,
            ..UsageCounts::default()
        };
        counts.latency_buckets[7] = 2;
        UsageReport {
            since: 1_794_873_600,
            until: 1_794_960_000,
            step: UsageStep::Day,
            by: BTreeSet::from([UsageDimension::Time, UsageDimension::Account]),
            rows: vec![UsageRow { group, counts: counts.clone() }],
            next: None,
            total: counts,
        }
    }

    #[test]
    fn csv_has_a_header_and_quotes_what_needs_quotes() {
        let text = report().text(UsageFormat::Csv);
        let lines: Vec<_> = text.lines().collect();
        assert!(
            lines[0].starts_with("time,account,calls,credits,bytes_in,bytes_out,latency_ns,latency_le_5_us,")
        );
        assert_eq!(
            lines[1],
            "2026-11-17T00:00:00Z,\"Smith, \"\"J\"\"\",2,160,90,70,3000000,0,0,0,0,0,0,0,2,0,0,0,0,0,0,0"
        );
        assert_eq!(lines[0].split(',').count(), 2 + 5 + 15);
        assert_eq!(lines.len(), 2);
    }

    /// Somebody signed up with the account `=HYPERLINK(…)`, and the spreadsheet of the operator executed it.
    #[test]
    fn csv_has_no_formulas() {
        for (text, field) in [
            ("=1+1", "'=1+1"),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "'\t=1"),
            ("\r=1", "\"'\r=1\""),
            ("=1,\"2\"", "\"'=1,\"\"2\"\"\""),
            ("a=1", "a=1"),
            ("", ""),
        ] {
            assert_eq!(csv_field(text), field, "{text:?}");
        }
    }

    #[test]
    fn json_lines_have_one_object_per_row() {
        let text = report().text(UsageFormat::JsonLines);
        let row: Value = serde_json::from_str(text.trim_end()).unwrap();
        assert_eq!((&row["account"], &row["calls"]), (&json!("Smith, \"J\""), &json!(2)));
        assert_eq!(row["latency_buckets"][7], 2);
        let whole = report().json();
        assert_eq!((&whole["credits"], &whole["rows"][0]), (&json!(160), &row));
        assert_eq!(whole["until"], "2026-11-18T00:00:00Z");
    }

    #[test]
    fn a_table_has_a_total() {
        let text = report().text(UsageFormat::Table);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "2026-11-17T00:00:00Z to 2026-11-18T00:00:00Z");
        assert!(lines[2].ends_with("2      160        90         70    1.500"), "{text}");
        assert!(lines[3].starts_with("total") && lines.len() == 4, "{text}");
    }
}
