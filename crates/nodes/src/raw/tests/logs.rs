//! Logs.

use alloy_primitives::{Address, B256};
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

use super::sample::{address, word};
use crate::BlockId;
use crate::raw::read_logs;

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

fn rng() -> StdRng {
    StdRng::seed_from_u64(7)
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
    assert_eq!(read_logs(result.as_bytes()).unwrap().len(), 60);
    let upper =
        list(&logs).replace(&format!("{}", logs[1].block.hash), &format!("0x{:X}", logs[1].block.hash));
    assert_eq!(read_logs(upper.as_bytes()).unwrap().len(), 60);
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
        with("removed", "true"),
        good.replacen('{', "{\"blockNumber\":\"0x1\",", 1),
        good.replacen('{', "{\"addr\\u0065ss\":\"0x1\",", 1),
        "{}".to_owned(),
        "1".to_owned(),
    ];
    for bad in bad {
        assert_eq!(read_logs(format!("[{bad}]").as_bytes()), None, "{bad}");
    }
}

#[test]
fn spans_are_the_bytes_of_each_log() {
    let logs = some_logs(20, &mut rng());
    let result = list(&logs);
    let spans = read_logs(result.as_bytes()).unwrap();
    assert_eq!(spans.len(), 20);
    for (span, log) in spans.iter().zip(&logs) {
        assert_eq!((span.block, span.index), (log.block, log.index));
        assert_eq!(&result[span.bytes.clone()], log.write());
    }
    let joined: Vec<_> = spans.iter().map(|span| &result[span.bytes.clone()]).collect();
    assert_eq!(format!("[{}]", joined.join(",")), result);
    assert_eq!(read_logs(b" [ ] "), Some(Vec::new()));
    let one = logs[0].write();
    let quoted = one.replace(&format!("{:x}", logs[0].address), &"\\u".repeat(20));
    for none in
        ["", "null", "[", "[1,2]", "{}", &format!("[{one},]"), &format!("[{one}"), &format!("[{quoted}]")]
    {
        assert_eq!(read_logs(none.as_bytes()), None, "{none}");
    }
}
