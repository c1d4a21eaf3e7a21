//! The ledger of usage.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use callers::usage::LedgerCounts;

use super::one;

pub(super) fn write(out: &mut String, ledger: &LedgerCounts) {
    let count = |counter: &AtomicU64| counter.load(Relaxed);
    let mut gauge = |name: &str, help: &str, value: u64| one(out, name, "gauge", help, value);
    gauge(
        "chaingate_usage_waiting_bytes",
        "Bytes of usage in data_dir and in memory that wait for the store, those of earlier processes included.",
        count(&ledger.waiting_bytes) + count(&ledger.left_over_bytes) + count(&ledger.memory_bytes),
    );
    gauge(
        "chaingate_usage_store_failing",
        "1 while the store does not take usage, else 0.",
        ledger.is_store_failing.load(Relaxed).into(),
    );
    let mut counter = |name: &str, help: &str, value: u64| one(out, name, "counter", help, value);
    counter(
        "chaingate_usage_flushes_total",
        "Transactions with which usage was moved to the store.",
        count(&ledger.flushes),
    );
    counter(
        "chaingate_usage_flush_failures_total",
        "Times that the store did not take usage.",
        count(&ledger.flush_failures),
    );
    counter(
        "chaingate_usage_written_calls_total",
        "Calls whose usage was written to data_dir.",
        count(&ledger.spooled_calls),
    );
    counter(
        "chaingate_usage_write_failures_total",
        "Times that usage could not be written to data_dir, because the disk was full or failed, or spool_bytes_max was reached.",
        count(&ledger.spool_failures),
    );
    counter(
        "chaingate_usage_lost_calls_total",
        "Calls whose usage is lost, because it could neither be written nor kept in memory.",
        count(&ledger.lost_calls),
    );
    counter(
        "chaingate_usage_lost_credits_total",
        "Credits of the calls whose usage is lost.",
        count(&ledger.lost_credits),
    );
}
