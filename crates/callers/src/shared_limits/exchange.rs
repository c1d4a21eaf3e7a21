//! Reports as arguments of the script `divide.lua`, and its replies. Pure functions.

use crate::limit_state::{DayReply, LimitReply, LimitReport, RateReply};

/// The hash of all instances. The braces put all keys into one slot of a Redis cluster.
pub(super) const INSTANCES_KEY: &str = "chaingate:{limits}:instances";

/// One hash of Redis, and what the script does with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ScriptItem {
    pub(super) key: String,
    pub(super) operation: &'static str,
    pub(super) arguments: [u64; 4],
}

/// The items of one limit: none, one or two.
pub(super) fn items(name: &str, report: &LimitReport) -> impl Iterator<Item = ScriptItem> {
    let second = report.second.map(|second| ScriptItem {
        key: format!("chaingate:{{limits}}:second:{name}"),
        operation: if report.is_leaving { "leave-rate" } else { "rate" },
        arguments: [second.limit, second.demand, second.rate, 0],
    });
    let day = report.day.map(|day| ScriptItem {
        key: format!("chaingate:{{limits}}:day:{}:{name}", day.day),
        operation: if report.is_leaving { "leave-day" } else { "day" },
        arguments: [day.limit, day.used, day.unused, day.used_by_all],
    });
    second.into_iter().chain(day)
}

/// Removes the instance from the list of all instances.
pub(super) fn leave_instance() -> ScriptItem {
    ScriptItem { key: INSTANCES_KEY.to_owned(), operation: "leave-instance", arguments: [0; 4] }
}

/// The reply to the items of one report. `values` are the two numbers of each item, in the same order.
pub(super) fn reply(report: &LimitReport, mut values: impl Iterator<Item = (i64, i64)>) -> LimitReply {
    // A negative number says that Redis has seen a later report.
    let mut next = |is_reported: bool| {
        let (first, second) = if is_reported { values.next()? } else { return None };
        Some((u64::try_from(first).ok()?, u64::try_from(second).ok()?))
    };
    let second = next(report.second.is_some());
    let day = next(report.day.is_some());
    if report.is_leaving {
        return LimitReply::default();
    }
    LimitReply {
        second: second.map(|(rate, owes)| RateReply { rate, owes_first_burst: owes > 0 }),
        day: day.map(|(lease, left)| DayReply { lease, left }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit_state::{DayReport, RateReport};

    fn report(is_leaving: bool) -> LimitReport {
        LimitReport {
            second: Some(RateReport { limit: 500, demand: 80, rate: 100 }),
            day: Some(DayReport { day: 20_000, limit: 9_000, used: 70, unused: 30, used_by_all: 60 }),
            is_leaving,
        }
    }

    #[test]
    fn a_report_names_its_hashes_and_operations() {
        let found: Vec<_> = items("account:7", &report(false)).collect();
        assert_eq!(found[0].key, "chaingate:{limits}:second:account:7");
        assert_eq!((found[0].operation, found[0].arguments), ("rate", [500, 80, 100, 0]));
        assert_eq!(found[1].key, "chaingate:{limits}:day:20000:account:7");
        assert_eq!((found[1].operation, found[1].arguments), ("day", [9_000, 70, 30, 60]));
        assert_eq!(items("account:7", &report(true)).next().map(|item| item.operation), Some("leave-rate"));
    }

    #[test]
    fn a_reply_to_an_old_report_changes_nothing() {
        let read = |values: [(i64, i64); 2]| reply(&report(false), values.into_iter());
        assert_eq!(read([(-1, 0), (-1, 0)]), LimitReply::default());
        let day = Some(DayReply { lease: 9, left: 20 });
        assert_eq!(read([(-1, 0), (9, 20)]), LimitReply { second: None, day });
        let second = Some(RateReply { rate: 166, owes_first_burst: true });
        assert_eq!(read([(166, 1), (9, 20)]), LimitReply { second, day });
    }
}
