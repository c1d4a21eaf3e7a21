//! Reports as arguments of the script `divide.lua`. Pure functions.

use crate::limit_state::RateReport;

/// The hash of all instances. The braces put all keys into one slot of a Redis cluster.
pub(super) const INSTANCES_KEY: &str = "chaingate:{limits}:instances";

/// One limit in a call of the script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ScriptItem {
    pub(super) key: String,
    /// The limit, the demand and the rate in use. A limit of 0 says that the instance stops using it.
    pub(super) arguments: [u64; 3],
}

pub(super) fn item(name: &str, report: &RateReport) -> ScriptItem {
    let limit = if report.is_leaving { 0 } else { report.limit };
    let key = format!("chaingate:{{limits}}:second:{name}");
    ScriptItem { key, arguments: [limit, report.demand, report.rate] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_names_its_hash_and_a_limit_that_is_left_is_0() {
        let report = RateReport { limit: 500, demand: 80, rate: 100, is_leaving: false };
        let found = item("account:7", &report);
        assert_eq!(found.key, "chaingate:{limits}:second:account:7");
        assert_eq!(found.arguments, [500, 80, 100]);
        assert_eq!(item("account:7", &RateReport { is_leaving: true, ..report }).arguments[0], 0);
    }
}
