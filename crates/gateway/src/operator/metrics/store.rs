//! Accounts and keys, the ledger of usage, and limits that several gateways share.

use std::sync::atomic::Ordering::Relaxed;

use callers::usage::{AccountTotals, AccountUsage, LedgerCounts};
use callers::{FeedFacts, KeysOrigin, SharedLimitsStatus};
use resources::unix_seconds;

use super::{MetricTable, SeriesWriter, counter, gauge, series};

#[rustfmt::skip]
pub(super) const CALLERS: MetricTable<FeedFacts> = MetricTable {
    title: "Accounts and keys",
    about: "Always present.",
    with_source: |gateway, read| read(&gateway.callers.feed_status().facts()),
    metrics: &[
        gauge("chaingate_store_connected", "1 while the store of accounts and keys can be reached, else 0.",
            |feed| feed.is_connected.into()),
        gauge("chaingate_store_copy_used",
            "1 while accounts and keys come from the local copy, because the store could not be reached at the start, else 0.",
            |feed| (feed.origin == KeysOrigin::Copy).into()),
        gauge("chaingate_store_accounts", "Accounts of the store in memory.", |feed| feed.accounts),
        gauge("chaingate_store_keys", "Keys of the store in memory.", |feed| feed.keys),
        gauge("chaingate_store_bad_rows",
            "Rows of the store that are refused because something in them is wrong; the log names them.",
            |feed| feed.bad_rows),
        gauge("chaingate_store_revision", "Number of the newest change of the store that is in effect.",
            |feed| feed.revision.try_into().unwrap_or(0)),
        series("gauge", "chaingate_store_age_seconds", &[],
            "Seconds since accounts and keys were last known to be those of the store; absent before they are loaded.",
            |feed, series| if let Some(followed_at) = feed.followed_at {
                series.add(&[], unix_seconds().saturating_sub(followed_at).max(0));
            }),
        series("gauge", "chaingate_store_age_max_seconds", &[],
            "Limit of chaingate_store_age_seconds (copy_age_max_s), above which the gateway is not ready; absent without a limit.",
            |feed, series| if let Some(max) = feed.age_max {
                series.add(&[], max.as_secs());
            }),
        counter("chaingate_store_copy_failures_total", "Failures to write the local copy of accounts and keys.",
            |feed| feed.copy_failures),
    ],
};

/// Accounts with series of their own, so that their number is bounded however many accounts there are.
const ACCOUNTS_MAX: usize = 50;

#[rustfmt::skip]
pub(super) const ACCOUNTS: MetricTable<AccountTotals> = MetricTable {
    title: "Accounts",
    about: "Always present, for the 50 accounts that have used most credits since the process started.",
    with_source: |gateway, read| read(gateway.usage.accounts()),
    metrics: &[
        series("counter", "chaingate_account_calls_total", &["account"], "Calls of an account, refused ones included.",
            |accounts, series| each_account(accounts, series, |usage| usage.calls)),
        series("counter", "chaingate_account_refused_calls_total", &["account"],
            "Calls of an account that a limit of its plan or of its key has refused.",
            |accounts, series| each_account(accounts, series, |usage| usage.refused_calls)),
        series("counter", "chaingate_account_credits_total", &["account"], "Credits charged to an account.",
            |accounts, series| each_account(accounts, series, |usage| usage.credits)),
    ],
};

fn each_account(accounts: &AccountTotals, series: &mut SeriesWriter<'_>, read: fn(&AccountUsage) -> u64) {
    for (name, usage) in accounts.largest(ACCOUNTS_MAX) {
        series.add(&[("account", &name)], read(&usage));
    }
}

#[rustfmt::skip]
pub(super) const USAGE: MetricTable<LedgerCounts> = MetricTable {
    title: "Usage",
    about: "Always present. [usage.md](usage.md) describes the ledger.",
    with_source: |gateway, read| read(gateway.usage.ledger()),
    metrics: &[
        gauge("chaingate_usage_waiting_bytes",
            "Bytes of usage in data_dir and in memory that wait for the store, those of earlier processes included.",
            |ledger| {
                let parts = [&ledger.waiting_bytes, &ledger.left_over_bytes, &ledger.memory_bytes];
                parts.map(|bytes| bytes.load(Relaxed)).iter().sum()
            }),
        gauge("chaingate_usage_store_failing", "1 while the store does not take usage, else 0.",
            |ledger| ledger.is_store_failing.load(Relaxed).into()),
        counter("chaingate_usage_flushes_total", "Transactions with which usage was moved to the store.",
            |ledger| ledger.flushes.load(Relaxed)),
        counter("chaingate_usage_flush_failures_total", "Times that the store did not take usage.",
            |ledger| ledger.flush_failures.load(Relaxed)),
        counter("chaingate_usage_written_calls_total", "Calls whose usage was written to data_dir.",
            |ledger| ledger.spooled_calls.load(Relaxed)),
        counter("chaingate_usage_write_failures_total",
            "Times that usage could not be written to data_dir, because the disk was full or failed, or spool_bytes_max was reached.",
            |ledger| ledger.spool_failures.load(Relaxed)),
        counter("chaingate_usage_lost_calls_total",
            "Calls whose usage is lost, because it could neither be written nor kept in memory.",
            |ledger| ledger.lost_calls.load(Relaxed)),
        counter("chaingate_usage_lost_credits_total", "Credits of the calls whose usage is lost.",
            |ledger| ledger.lost_credits.load(Relaxed)),
    ],
};

#[rustfmt::skip]
pub(super) const SHARED_LIMITS: MetricTable<SharedLimitsStatus> = MetricTable {
    title: "Shared limits",
    about: "With `[shared] redis_url`.",
    with_source: |gateway, read| {
        if let Some(limits) = gateway.callers.shared_limits() {
            read(&limits.status());
        }
    },
    metrics: &[
        gauge("chaingate_shared_limits_connected",
            "1 while Redis answers, else 0: each instance then keeps its part of each limit.",
            |status| status.is_connected.into()),
        gauge("chaingate_shared_limits_instances",
            "Instances that share limits over Redis, as far as this one knows; 0 before the first answer.",
            |status| status.instances),
        gauge("chaingate_shared_limits_in_use",
            "Limits of accounts and keys of which this instance uses a part.",
            |status| status.limits_in_use),
        counter("chaingate_shared_limits_exchanges_total", "Reports about shared limits that Redis has answered.",
            |status| status.exchanges),
        counter("chaingate_shared_limits_failures_total",
            "Reports about shared limits that Redis has not answered, and connections to it that failed.",
            |status| status.failures),
    ],
};
