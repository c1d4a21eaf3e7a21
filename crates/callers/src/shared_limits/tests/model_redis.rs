//! What `divide.lua` does, written a second time. Simulations run against it, and a test compares it with a real Redis.

use std::collections::BTreeMap;

use super::super::exchange::ScriptItem;
use super::super::redis_link::ScriptReply;

const SILENT_MS: u64 = 10_000;
const PAUSE_MS: u64 = 2_000;
const MANY: u64 = 1_000;
const SETTLE_MS: u64 = 3_000;

#[derive(Clone, Copy, Debug)]
struct Row {
    sequence: u64,
    at: u64,
    amount: u64,
    /// `None` after the instance has left.
    held: Option<u64>,
}

impl Row {
    fn has_ended(&self, now: u64, pause: &Pause) -> bool {
        let was_silent_before = self.at < pause.to && pause.from.saturating_sub(self.at) > SILENT_MS;
        let is_silent = now.saturating_sub(self.at.max(pause.to)) > SILENT_MS;
        self.at > now + PAUSE_MS || was_silent_before || is_silent
    }
}

/// The last time without any report.
#[derive(Debug, Default)]
struct Pause {
    from: u64,
    to: u64,
}

#[derive(Debug, Default)]
pub(super) struct ModelRedis {
    seen: BTreeMap<String, u64>,
    latest: Option<u64>,
    pause: Pause,
    expected: u64,
    fresh: u64,
    hashes: BTreeMap<String, ModelHash>,
}

#[derive(Debug, Default)]
struct ModelHash {
    rows: BTreeMap<String, Row>,
    since: u64,
    used_by_all: u64,
    unreported: u64,
    checked: u64,
}

/// Who reports, and when.
#[derive(Clone, Debug)]
pub(super) struct ModelReport {
    pub(super) instance: String,
    pub(super) sequence: u64,
    pub(super) known: u64,
    pub(super) now: u64,
}

impl ModelRedis {
    pub(super) fn divide(&mut self, report: &ModelReport, items: &[ScriptItem]) -> ScriptReply {
        let (live, is_settled) = self.register(report);
        let dividers = live.max(if report.known < MANY && is_settled { report.known } else { 4 });
        let values = items.iter().map(|item| {
            let hash = self.hashes.entry(item.key.clone()).or_default();
            match item.operation {
                "rate" => hash.rate(report, item.arguments, is_settled, dividers, &self.pause),
                "day" => hash.day(report, item.arguments, is_settled, &self.pause),
                _ if hash.is_late(report) => (0, 0),
                "leave-rate" => {
                    hash.rows.remove(&report.instance);
                    (0, 0)
                }
                _ => {
                    hash.keep(report, item.arguments[1], None);
                    (0, 0)
                }
            }
        });
        ScriptReply { instances: live, is_settled, values: values.collect() }
    }

    fn register(&mut self, ModelReport { instance, known, now, .. }: &ModelReport) -> (u64, bool) {
        if self.latest.is_some_and(|latest| latest > now + PAUSE_MS) {
            self.latest = None;
            self.seen.clear();
        }
        if self.latest.is_none_or(|latest| now.saturating_sub(latest) > PAUSE_MS) {
            let latest = self.latest.unwrap_or(*now);
            self.expected = self.seen.values().filter(|&&at| latest - at <= SILENT_MS).count() as u64;
            (self.pause, self.fresh) = (Pause { from: latest, to: *now }, 0);
        }
        let seen_at = self.seen.get(instance).copied();
        if seen_at.is_none_or(|at| at < self.pause.to) {
            if (1..MANY).contains(known) {
                self.expected = self.expected.max(*known);
            } else if seen_at.is_none() {
                self.fresh += 1;
            }
        }
        self.seen.insert(instance.clone(), *now);
        self.seen.retain(|_, at| now.saturating_sub((*at).max(self.pause.to)) <= SILENT_MS);
        self.latest = Some(*now);
        let live = self.seen.len() as u64;
        let back = self.seen.values().filter(|at| **at >= self.pause.to).count() as u64;
        let age = now.saturating_sub(self.pause.to);
        if age > SILENT_MS {
            return (live, true);
        }
        let all = self.expected + self.fresh;
        (live.max(all), back >= all && age >= SETTLE_MS)
    }
}

impl ModelHash {
    fn keep(&mut self, report: &ModelReport, amount: u64, held: Option<u64>) {
        let row = Row { sequence: report.sequence, at: report.now, amount, held };
        self.rows.insert(report.instance.clone(), row);
    }

    fn is_late(&self, report: &ModelReport) -> bool {
        self.rows.get(&report.instance).is_some_and(|row| row.sequence >= report.sequence)
    }

    fn others<'a>(&'a self, report: &'a ModelReport) -> impl Iterator<Item = &'a Row> {
        self.rows.iter().filter(|(name, _)| **name != report.instance).map(|(_, row)| row)
    }

    fn rate(
        &mut self,
        report: &ModelReport,
        [limit, demand, rate, _]: [u64; 4],
        is_settled: bool,
        dividers: u64,
        pause: &Pause,
    ) -> (i64, i64) {
        if self.is_late(report) {
            return (-1, 0);
        }
        let joins = !self.rows.contains_key(&report.instance);
        self.rows.retain(|name, row| *name == report.instance || !row.has_ended(report.now, pause));
        let demands: Vec<u64> = self.others(report).map(|row| row.amount).chain([demand]).collect();
        let held: u64 = self.others(report).filter_map(|row| row.held).sum();
        if demands.len() == 1 && joins {
            self.since = report.now;
        }
        let fair = fair_share(limit as f64, &demands, demand as f64).ceil();
        let most = if is_settled { fair.min(limit as f64 - held as f64) } else { rate.min(limit) as f64 };
        let share = most.max(fair.min((limit as f64 / 10.0 / dividers as f64).ceil()));
        self.keep(report, demand, Some((share as u64).max(rate)));
        let asked: u64 = demands.iter().sum();
        let joins_late = joins && demands.len() > 1 && report.now - self.since > 1_000 && asked > limit / 2;
        (share as i64, joins_late.into())
    }

    fn day(
        &mut self,
        report: &ModelReport,
        [limit, used, unused, used_by_all]: [u64; 4],
        is_settled: bool,
        pause: &Pause,
    ) -> (i64, i64) {
        if self.is_late(report) {
            return (-1, 0);
        }
        let own = self.rows.get(&report.instance).filter(|own| own.at >= pause.to);
        let own_most = own.and_then(|own| Some(own.amount + own.held?));
        self.used_by_all = self.used_by_all.max(used_by_all);
        if !self.rows.contains_key(&report.instance) {
            self.unreported = self.unreported.saturating_sub(used);
        }
        let mut total = used + self.unreported + self.others(report).map(|row| row.amount).sum::<u64>();
        if is_settled && self.checked != pause.to {
            self.unreported += self.used_by_all.saturating_sub(total);
            total = total.max(self.used_by_all);
            self.checked = pause.to;
        }
        let left = limit.saturating_sub(total.max(self.used_by_all));
        let live = || self.others(report).filter(|row| !row.has_ended(report.now, pause));
        let held: u64 = live().filter_map(|row| row.held).sum();
        let count = 1 + live().filter(|row| row.held.is_some()).count();
        let first = (limit / 400).max(1_000).min(limit);
        let lease = ((left as f64 * 0.9 / count as f64).ceil() as u64).max(left.min(first));
        let most = left.saturating_sub(held);
        let allowed = own_most.map_or(left.div_ceil(100), |most| most.saturating_sub(used));
        let most = if is_settled { most } else { most.min(unused.max(allowed)) };
        let lease = lease.min(most).max(left.min(first.saturating_sub(used)));
        self.keep(report, used, Some(lease.max(unused)));
        (lease as i64, left as i64)
    }
}

/// Raises the share of all demands together until nothing is left.
fn fair_share(limit: f64, demands: &[u64], own: f64) -> f64 {
    let count = demands.len() as f64;
    let least = limit / 100.0 / count;
    let demands: Vec<f64> = demands.iter().map(|&demand| demand as f64 + least).collect();
    let own = own + least;
    let asked: f64 = demands.iter().sum();
    if asked <= limit {
        return own + (limit - asked) / count;
    }
    let given = |level: f64| demands.iter().map(|demand| demand.min(level)).sum::<f64>();
    let (mut low, mut high) = (0.0, limit);
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        if given(middle) > limit { high = middle } else { low = middle }
    }
    // The level is found by halving; a share that is all but a whole number is that number.
    own.min((low * 1e6).round() / 1e6)
}
