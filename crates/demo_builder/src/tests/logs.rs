use super::*;
use alloy_primitives::Address;
use archive::{LogFilter, LogLimits, LogsError};
use facts::CHATTER_BLOCKS;
use std::ops::ControlFlow;
use story::LOGS_PER_CHATTER_BLOCK;

/// How many topics the logs of a transaction have, in order.
fn topic_counts(demo: &Demo, name: &str) -> Vec<usize> {
    let receipt = demo.snapshot.receipt(demo.transaction(name)).unwrap().unwrap();
    let mut counts = Vec::new();
    let logs = demo.snapshot.logs_by_ordinal(receipt.log_ordinals());
    let ended = logs.read(|log| {
        counts.push(log.topics().len());
        ControlFlow::<()>::Continue(())
    });
    assert!(ended.unwrap().is_continue());
    counts
}

#[test]
fn logs_have_zero_to_four_topics() {
    let demo = Demo::new();
    for name in ["all-topics", "head-topics"] {
        assert_eq!(topic_counts(&demo, name), [0, 0, 1, 1, 2, 3, 4], "{name}");
    }
}

#[test]
fn more_than_ten_thousand_logs_are_in_a_range() {
    const RESULTS_MAX: usize = 10_000;
    let demo = Demo::new();
    let filter = LogFilter { addresses: vec![contracts::CHATTER.address()], topics: Vec::new() };
    let all = demo.snapshot.logs(CHATTER_BLOCKS, &filter, LogLimits::NONE).unwrap();
    assert_eq!(all.len(), 60 * LOGS_PER_CHATTER_BLOCK);
    assert!(all.len() > RESULTS_MAX as u64);

    let limits = LogLimits { results_max: RESULTS_MAX, ..LogLimits::NONE };
    let refused = demo.snapshot.logs(CHATTER_BLOCKS, &filter, limits).unwrap_err();
    let LogsError::TooMany { widest_to: Some(widest) } = refused else { panic!("{refused}") };
    let fits = demo.snapshot.logs(*CHATTER_BLOCKS.start()..=widest, &filter, limits).unwrap();
    assert_eq!(fits.len(), RESULTS_MAX as u64);
}

#[test]
fn every_topic_of_the_facts_is_found() {
    let demo = Demo::new();
    for topic in facts::topics() {
        let filter = LogFilter { addresses: Vec::new(), topics: vec![vec![topic.hash]] };
        let found = demo.snapshot.logs(0..=HEAD_NUMBER, &filter, LogLimits::NONE).unwrap();
        assert!(!found.is_empty(), "{}", topic.signature);
    }
}

#[test]
fn an_account_that_delegates_emits_logs_itself() {
    let demo = Demo::new();
    let emitter = |name: &str| {
        let receipt = demo.snapshot.receipt(demo.transaction(name)).unwrap().unwrap();
        let last = receipt.log_ordinals().end - 1;
        let logs = demo.snapshot.logs_by_ordinal(last..last + 1);
        logs.read(|log| ControlFlow::Break(Address::from(log.address()))).unwrap().break_value()
    };
    for name in ["delegation", "batch", "head-delegation"] {
        assert_eq!(emitter(name), Some(accounts::DAVE.address), "{name}");
    }
}
