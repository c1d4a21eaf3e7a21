//! Log queries.

use std::time::Instant;

use alloy_primitives::Address;
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};

use super::mutate::all_found_out;
use super::sample::{address, word};
use super::*;

/// A log as a test wants it. Members are written in any order.
#[derive(Clone)]
pub(super) struct TestLog {
    address: Address,
    topics: Vec<B256>,
    block: BlockId,
    transaction: u64,
    index: u64,
}

impl TestLog {
    fn members(&self) -> Vec<(&'static str, String)> {
        let topics: Vec<_> = self.topics.iter().map(|topic| format!("\"{topic}\"")).collect();
        let transaction_hash = word(self.block.number * 1_000 + self.transaction);
        vec![
            ("address", format!("\"{}\"", const_hex::encode_prefixed(self.address))),
            ("topics", format!("[{}]", topics.join(","))),
            ("data", format!("\"0x{}\"", "00".repeat(32 * (self.index as usize % 4)))),
            ("blockNumber", format!("\"{:#x}\"", self.block.number)),
            ("transactionHash", format!("\"{transaction_hash}\"")),
            ("transactionIndex", format!("\"{:#x}\"", self.transaction)),
            ("blockHash", format!("\"{}\"", self.block.hash)),
            ("blockTimestamp", "\"0x6553f100\"".to_owned()),
            ("logIndex", format!("\"{:#x}\"", self.index)),
            ("removed", "false".to_owned()),
        ]
    }

    fn write(&self) -> String {
        object(&self.members())
    }
}

fn object(members: &[(&str, String)]) -> String {
    let members: Vec<_> = members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    format!("{{{}}}", members.join(","))
}

pub(super) fn list(logs: &[TestLog]) -> String {
    format!("[{}]", logs.iter().map(TestLog::write).collect::<Vec<_>>().join(","))
}

/// Logs of a handful of contracts in the blocks from 100 on, three to a block and two to a transaction.
pub(super) fn some_logs(count: u64, rng: &mut StdRng) -> Vec<TestLog> {
    let log = |place: u64| {
        let number = 100 + place / 3;
        let topics = (0..rng.random_range(0..=4)).map(|_| word(rng.random_range(0..3))).collect();
        let block = BlockId { number, hash: word(1_000_000 + number) };
        TestLog {
            address: address(place % 3),
            topics,
            block,
            transaction: place % 3 / 2,
            index: 5 + place % 3,
        }
    };
    (0..count).map(log).collect()
}

fn query(from: u64, to: u64) -> LogQuery {
    LogQuery::new(from, to, vec![], vec![], 10_000)
}

fn asked(query: LogQuery) -> Expect {
    Expect::Logs(Arc::new(query))
}

fn verdict(query: LogQuery, result: &str) -> Verdict {
    check(&asked(query), result.as_bytes(), Family::Ethereum)
}

fn rng() -> StdRng {
    StdRng::seed_from_u64(7)
}

#[test]
fn logs_in_their_order_are_sound_and_name_their_blocks() {
    let logs = some_logs(7, &mut rng());
    let facts = sound(&asked(query(100, 102)), &list(&logs));
    assert_eq!(facts.count, 7);
    assert_eq!(facts.blocks, [logs[0].block, logs[3].block, logs[6].block]);
    assert_eq!(verdict(query(1, 2), " [ ]\n"), Verdict::Empty);
    assert_eq!(verdict(query(1, 2), "null"), Verdict::Null);
}

#[test]
fn members_come_in_any_order_case_and_company() {
    let (logs, mut rng) = (some_logs(60, &mut rng()), rng());
    let odd = |log: &TestLog| {
        let mut members = log.members();
        members.push(("logType", "null".to_owned()));
        members.push(("l1BatchNumber", "{\"a\":[1,\"}\",2]}".to_owned()));
        members.push(("l1BatchNumber", "\"twice, and none of ours: \\\"\"".to_owned()));
        members.shuffle(&mut rng);
        members.retain(|(name, _)| *name != "removed" || log.index.is_multiple_of(2));
        let space = if log.index == 6 { " \n" } else { "" };
        object(&members)
            .replace("\":", &format!("\"{space}:{space}"))
            .replace(",\"", &format!("{space},{space}\""))
    };
    let result = format!("[ {} ]", logs.iter().map(odd).collect::<Vec<_>>().join(" , "));
    assert_eq!(sound(&asked(query(100, 120)), &result).count, 60);
    assert_eq!(log_blocks(result.as_bytes()).count(), 60);
    let upper =
        list(&logs).replace(&format!("{}", logs[1].block.hash), &format!("0x{:X}", logs[1].block.hash));
    sound(&asked(query(100, 120)), &upper);
}

#[test]
fn a_filter_is_applied_as_it_is_by_going_through_all_logs() {
    let (logs, mut rng) = (some_logs(300, &mut rng()), rng());
    for _ in 0..500 {
        let addresses: Vec<_> =
            (0..rng.random_range(0..3)).map(|_| address(rng.random_range(0..3))).collect();
        let topics: Vec<Vec<B256>> = (0..rng.random_range(0..4))
            .map(|_| (0..rng.random_range(0..3)).map(|_| word(rng.random_range(0..3))).collect())
            .collect();
        let matches = |log: &&TestLog| {
            let fits = |(wanted, topic): (&Vec<B256>, &B256)| wanted.is_empty() || wanted.contains(topic);
            (addresses.is_empty() || addresses.contains(&log.address))
                && log.topics.len() >= topics.len()
                && topics.iter().zip(&log.topics).all(fits)
        };
        let query = LogQuery::new(100, 199, addresses.clone(), topics.clone(), 10_000);
        let matching: Vec<_> = logs.iter().filter(matches).cloned().collect();
        let expected = if matching.is_empty() { Verdict::Empty } else { Verdict::Sound(Facts::default()) };
        let got = verdict(query.clone(), &list(&matching));
        assert_eq!(std::mem::discriminant(&got), std::mem::discriminant(&expected), "{got:?}");
        // One more that does not match, wherever it stands, spoils it.
        let Some(stray) =
            logs.iter().filter(|log| !matches(log)).collect::<Vec<_>>().choose(&mut rng).copied()
        else {
            continue;
        };
        let spoilt: Vec<_> =
            logs.iter().filter(|log| matches(log) || std::ptr::eq(*log, stray)).cloned().collect();
        assert_eq!(verdict(query, &list(&spoilt)), Verdict::Wrong(Lie::Filter));
    }
}

/// What one change of a good answer comes to.
fn changed(change: impl Fn(&mut Vec<TestLog>)) -> Verdict {
    let mut logs = some_logs(9, &mut rng());
    change(&mut logs);
    verdict(query(100, 102), &list(&logs))
}

#[test]
fn disorder_is_found_out() {
    let wrong = Verdict::Wrong;
    assert_eq!(changed(|logs| logs.swap(0, 1)), wrong(Lie::Order));
    assert_eq!(changed(|logs| logs.swap(0, 8)), wrong(Lie::Order));
    assert_eq!(changed(|logs| logs.insert(0, logs[0].clone())), wrong(Lie::Order));
    assert_eq!(changed(|logs| logs[1].index = logs[0].index), wrong(Lie::Order));
    assert_eq!(changed(|logs| logs[0].transaction = 2), wrong(Lie::Order));
    assert_eq!(changed(|logs| logs[4].block.hash = word(9)), wrong(Lie::Torn));
    assert_eq!(changed(|logs| logs[3].block.hash = logs[2].block.hash), wrong(Lie::Torn));
    assert_eq!(changed(|logs| logs.iter_mut().for_each(|log| log.block.number -= 1)), wrong(Lie::Range));
    assert_eq!(changed(|logs| logs.iter_mut().for_each(|log| log.block.number += 1)), wrong(Lie::Range));
}

#[test]
fn a_transaction_has_one_hash_and_a_hash_one_transaction() {
    let logs = some_logs(3, &mut rng());
    let (first, second) = (word(100_000), word(100_001));
    let result = list(&logs);
    for changed in [
        result.replacen(&first.to_string(), &second.to_string(), 1),
        result.replace(&second.to_string(), &first.to_string()),
    ] {
        assert_eq!(verdict(query(100, 100), &changed), Verdict::Wrong(Lie::Torn));
    }
}

#[test]
fn logs_of_another_block_than_the_one_asked_for_are_found_out() {
    let logs = some_logs(3, &mut rng());
    let hash = logs[0].block.hash;
    sound(&asked(query(0, u64::MAX).of_block(hash)), &list(&logs));
    let other = query(0, u64::MAX).of_block(word(1));
    assert_eq!(verdict(other, &list(&logs)), Verdict::Wrong(Lie::OtherBlock));
}

#[test]
fn a_changed_digit_of_a_log_is_found_out() {
    let mut logs = some_logs(2, &mut rng());
    logs.iter_mut().for_each(|log| (log.address, log.topics) = (address(0), vec![word(0), word(1)]));
    let BlockId { number, hash } = logs[0].block;
    let topics = vec![vec![word(0)], vec![word(1), word(2)]];
    let query = LogQuery::new(number, number, vec![address(0)], topics, 10).of_block(hash);
    let covered = ["address", "topics", "blockHash", "blockNumber", "transactionHash"];
    let covers = |place: &str, _: &_| covered.iter().any(|name| place.contains(name));
    assert_eq!(all_found_out(&asked(query), &list(&logs), covers), 2 * 6 * 3);
}

#[test]
fn what_is_no_log_is_found_out() {
    let log = some_logs(1, &mut rng()).remove(0);
    let good = log.write();
    let without = |name: &str| {
        let members: Vec<_> = log.members().into_iter().filter(|(other, _)| *other != name).collect();
        object(&members)
    };
    let with = |name: &str, value: &str| {
        let set = |(other, old): (&'static str, String)| {
            (other, if other == name { value.to_owned() } else { old })
        };
        object(&log.members().into_iter().map(set).collect::<Vec<_>>())
    };
    let five = format!("[{}]", vec![format!("\"{}\"", word(1)); 5].join(","));
    let odd_hash = format!("\"0x{}g\"", "0".repeat(63));
    let bad = [
        without("address"),
        without("topics"),
        without("data"),
        without("blockNumber"),
        without("blockHash"),
        without("transactionHash"),
        without("transactionIndex"),
        without("logIndex"),
        with("blockNumber", "null"),
        with("blockNumber", "100"),
        with("blockHash", "null"),
        with("blockHash", &odd_hash),
        with("transactionHash", &odd_hash),
        with("address", "\"0x01\""),
        with("data", "\"0x0\""),
        with("data", "\"0xgg\""),
        with("topics", "null"),
        with("topics", &five),
        with("topics", &format!("[{odd_hash}]")),
        with("removed", "null"),
        good.replacen('{', "{\"blockNumber\":\"0x1\",", 1),
        good.replacen('{', "{\"addr\\u0065ss\":\"0x1\",", 1),
        "{}".to_owned(),
        "1".to_owned(),
    ];
    for bad in bad {
        assert_eq!(verdict(query(0, 1_000), &format!("[{bad}]")), Verdict::Wrong(Lie::Shape), "{bad}");
    }
    assert_eq!(verdict(query(0, 1_000), "{}"), Verdict::Wrong(Lie::Shape));
    let removed = format!("[{}]", with("removed", "true"));
    assert_eq!(verdict(query(0, 1_000), &removed), Verdict::Wrong(Lie::Removed));
}

#[test]
fn one_log_too_many_ends_the_count() {
    let result = list(&some_logs(10, &mut rng()));
    let limited = |most| LogQuery::new(100, 200, vec![], vec![], most);
    assert!(matches!(verdict(limited(10), &result), Verdict::Sound(_)));
    // The tenth log is in block 103, the seventh in 102, the third in 100 itself.
    assert!(matches!(verdict(limited(9), &result), Verdict::TooMany { to, .. } if to == Some(102)));
    assert!(matches!(verdict(limited(6), &result), Verdict::TooMany { to, .. } if to == Some(101)));
    assert!(matches!(verdict(limited(2), &result), Verdict::TooMany { to, .. } if to.is_none()));
}

#[test]
fn spans_are_the_bytes_of_each_log() {
    let logs = some_logs(20, &mut rng());
    let result = list(&logs);
    let spans: Vec<_> = log_blocks(result.as_bytes()).collect();
    assert_eq!(spans.len(), 20);
    for (span, log) in spans.iter().zip(&logs) {
        assert_eq!((span.block, span.index), (log.block.number, log.index));
        assert_eq!(&result[span.bytes.clone()], log.write());
    }
    let joined: Vec<_> = spans.iter().map(|span| &result[span.bytes.clone()]).collect();
    assert_eq!(format!("[{}]", joined.join(",")), result);
    for none in ["[]", "", "null", "[", "[1,2]", "{}"] {
        assert_eq!(log_blocks(none.as_bytes()).count(), 0, "{none}");
    }
}

#[test]
#[ignore = "prints a figure; meant to be run with opt-level 3"]
fn how_fast_logs_are_read() {
    let mut logs = some_logs(10_000, &mut rng());
    logs.iter_mut().for_each(|log| log.topics = vec![word(0), word(1), word(log.index)]);
    let result = list(&logs);
    let asked = asked(LogQuery::new(0, 10_000, vec![], vec![vec![word(0)]], 10_000));
    let round = |_| {
        let start = Instant::now();
        assert_eq!(sound(&asked, &result).count, 10_000);
        start.elapsed()
    };
    // The best of many, because the machine has other things to do.
    let best = (0..200).map(round).min().unwrap();
    eprintln!("{} bytes, {:.2} GB/s", result.len(), result.len() as f64 / best.as_secs_f64() / 1e9);
}
