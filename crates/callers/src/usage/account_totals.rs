//! The usage of each account since the process started, for the metrics. It is summed up from the rows of the ledger, away from
//! the request path.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use store::UsageRow;

use super::outcome::Outcome;

/// The usage of each account since the process started.
#[derive(Debug, Default)]
pub struct AccountTotals(Mutex<HashMap<Arc<str>, AccountUsage>>);

/// The usage of one account since the process started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccountUsage {
    pub calls: u64,
    /// Calls among them that a limit of the plan or of a key has refused.
    pub refused_calls: u64,
    pub credits: u64,
}

impl AccountTotals {
    /// Adds rows of callers.
    pub(super) fn add(&self, rows: &[UsageRow]) {
        let mut accounts = self.0.lock();
        for UsageRow { group, counts } in rows {
            let usage = accounts.entry(Arc::clone(&group.account)).or_default();
            usage.calls += counts.calls;
            usage.credits = usage.credits.saturating_add(counts.credits);
            if *group.outcome == *Outcome::Refused.label() {
                usage.refused_calls += counts.calls;
            }
        }
    }

    /// The accounts that have used most credits, in the order of their names.
    pub fn largest(&self, accounts_max: usize) -> Vec<(Arc<str>, AccountUsage)> {
        let accounts = self.0.lock();
        let mut largest: Vec<_> = accounts.iter().map(|(name, usage)| (Arc::clone(name), *usage)).collect();
        drop(accounts);
        largest
            .sort_unstable_by_key(|(name, usage)| (Reverse((usage.credits, usage.calls)), Arc::clone(name)));
        largest.truncate(accounts_max);
        largest.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        largest
    }
}

#[cfg(test)]
mod tests {
    use store::{UsageCounts, UsageGroup};

    use super::*;

    fn row(account: &str, outcome: Outcome, calls: u64, credits: u64) -> UsageRow {
        let [network, key, method] = ["demo", "static:key", "eth_call"].map(Arc::from);
        let (account, outcome, tag) = (account.into(), outcome.label().into(), "".into());
        let group = UsageGroup { starts_at: 0, network, account, key, method, outcome, tag };
        UsageRow { group, counts: UsageCounts { calls, credits, ..UsageCounts::default() } }
    }

    #[test]
    fn the_accounts_with_most_credits_are_shown() {
        let totals = AccountTotals::default();
        totals.add(&[row("small", Outcome::Ok, 9, 9), row("large", Outcome::Ok, 2, 160)]);
        totals.add(&[row("large", Outcome::Refused, 3, 0), row("medium", Outcome::Reverted, 1, 80)]);
        let shown = totals.largest(2);
        let expected = [
            ("large".into(), AccountUsage { calls: 5, refused_calls: 3, credits: 160 }),
            ("medium".into(), AccountUsage { calls: 1, refused_calls: 0, credits: 80 }),
        ];
        assert_eq!(shown, expected);
    }
}
