//! `divide.lua` written a second time. Simulations run against it, and a test compares it with a real Redis.

use std::collections::BTreeMap;

use super::super::exchange::ScriptItem;
use super::super::redis_link::ScriptReply;

const SILENT_MS: u64 = 10_000;
const PAUSE_MS: u64 = 2_000;
const SETTLE_MS: u64 = 3_000;

#[derive(Clone, Copy, Debug)]
struct Row {
    sequence: u64,
    at: u64,
    demand: u64,
    held: u64,
}

#[derive(Debug, Default)]
pub(super) struct ModelRedis {
    /// When each instance reported last.
    seen: BTreeMap<String, u64>,
    latest: u64,
    since: u64,
    limits: BTreeMap<String, BTreeMap<String, Row>>,
}

/// The instance that reports, and the time.
#[derive(Clone, Debug)]
pub(super) struct ModelReport {
    pub(super) instance: String,
    pub(super) sequence: u64,
    pub(super) now: u64,
}

impl ModelRedis {
    pub(super) fn divide(&mut self, report: &ModelReport, items: &[ScriptItem]) -> ScriptReply {
        if report.now.saturating_sub(self.latest) > PAUSE_MS {
            self.since = report.now;
        }
        self.latest = report.now;
        self.seen.insert(report.instance.clone(), report.now);
        let has_ended = |at: u64| report.now - at.max(self.since) > SILENT_MS;
        self.seen.retain(|_, at| !has_ended(*at));
        let (instances, is_settled) = (self.seen.len() as u64, report.now - self.since >= SETTLE_MS);
        let rates = items.iter().map(|ScriptItem { key, arguments }| {
            let rows = self.limits.entry(key.clone()).or_default();
            rows.retain(|name, row| *name == report.instance || !has_ended(row.at));
            rate(rows, report, *arguments, instances, is_settled)
        });
        let rates = rates.collect();
        ScriptReply { instances, is_settled, rates }
    }
}

fn rate(
    rows: &mut BTreeMap<String, Row>,
    ModelReport { instance, sequence, now }: &ModelReport,
    [limit, demand, used_rate]: [u64; 3],
    instances: u64,
    is_settled: bool,
) -> Option<u64> {
    if rows.get(instance).is_some_and(|own| own.sequence >= *sequence) {
        return None;
    }
    rows.remove(instance);
    if limit == 0 {
        return Some(0);
    }
    let demands: Vec<u64> = rows.values().map(|row| row.demand).chain([demand]).collect();
    let held: u64 = rows.values().map(|row| row.held).sum();
    let fair = fair_share(limit as f64, &demands, demand as f64).ceil();
    let least = fair.min((limit as f64 / 10.0 / instances.max(4) as f64).ceil());
    let most = if is_settled { fair.min(limit as f64 - held as f64) } else { used_rate.min(limit) as f64 };
    let share = most.max(least) as u64;
    rows.insert(instance.clone(), Row { sequence: *sequence, at: *now, demand, held: share.max(used_rate) });
    Some(share)
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
