//! Nobody looks at large results before they are read, so reading must prove that they are JSON; and what it skips because the log
//! before said the same must be the same.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use super::logs::{list, some_logs};
use super::sample::sample;
use crate::raw::cursor::Cursor;
use crate::raw::log::{LogReader, RawLog};
use crate::raw::read_logs;
use crate::raw::receipt::RawReceipt;

/// Changes that break JSON, digits or the order of things.
const BYTES: &[u8] = b"\"\\{}[],:0x1aFg \n\x0c\x00\x1f\x7f\x80\xc3\xffntf-.e";

/// The same with a few bytes changed, left out or repeated.
fn mutated(text: &[u8], rng: &mut StdRng) -> Vec<u8> {
    let mut bytes = text.to_vec();
    for _ in 0..rng.random_range(1..=2) {
        let Some(last) = bytes.len().checked_sub(1) else { break };
        let at = rng.random_range(0..=last);
        let end = (at + rng.random_range(1..100)).min(bytes.len());
        match rng.random_range(0..5) {
            0 | 1 => bytes[at] = *BYTES.choose(rng).unwrap(),
            2 => bytes.insert(at, *BYTES.choose(rng).unwrap()),
            3 => drop(bytes.drain(at..end)),
            _ => {
                let part = bytes[at..end].to_vec();
                let to = rng.random_range(0..=bytes.len());
                bytes.splice(to..to, part);
            }
        }
    }
    bytes
}

#[test]
fn whatever_is_read_as_logs_is_json() {
    let mut rng = StdRng::seed_from_u64(8);
    let logs = list(&some_logs(6, &mut rng));
    let zksync_logs =
        logs.replace(",\"removed\"", ",\"logType\":null,\"\u{e9}\":[{\"\u{e9}\":1.5}],\"removed\"");
    let mut accepted = 0;
    for answer in [logs, zksync_logs] {
        for _ in 0..6_000 {
            let changed = mutated(answer.as_bytes(), &mut rng);
            if read_logs(&changed).is_some() {
                accepted += 1;
                let json = serde_json::from_slice::<serde_json::Value>(&changed);
                assert!(json.is_ok(), "{json:?} {}", String::from_utf8_lossy(&changed));
            }
        }
    }
    assert!(accepted > 100, "{accepted}");
}

/// Receipts are proven and never passed on, so that nobody cares what their other members are.
#[test]
fn nothing_that_a_node_sends_as_receipts_makes_reading_panic() {
    let (sample, mut rng) = (sample(), StdRng::seed_from_u64(8));
    assert_eq!(RawReceipt::list(sample.receipts.as_bytes(), 6).map(|all| all.len()), Some(6));
    assert!(RawReceipt::list(sample.receipts.as_bytes(), 5).is_none(), "a sixth is not read");
    for _ in 0..3_000 {
        let _read = RawReceipt::list(&mutated(sample.receipts.as_bytes(), &mut rng), 6);
        let _read = RawReceipt::of(&mutated(sample.receipt[3].as_bytes(), &mut rng));
    }
}

/// All logs up to the first thing that is none, read by the one reader that knows the usual forms, or by the other.
fn read(text: &[u8], usual: bool) -> Vec<RawLog<'_>> {
    let (mut cursor, mut reader, mut logs) = (Cursor::new(text), LogReader::new(), Vec::new());
    cursor.take(b'[');
    loop {
        let mut log = RawLog::BLANK;
        let read =
            if usual { reader.read(&mut cursor, &mut log) } else { reader.read_any(&mut cursor, &mut log) };
        logs.extend(read.map(|()| log));
        if read.is_none() || !cursor.take(b',') {
            break;
        }
    }
    logs
}

/// The same with the members of each log in the order of reth.
fn as_reth(logs: &str) -> String {
    let mut logs: Vec<serde_json::Map<String, serde_json::Value>> = serde_json::from_str(logs).unwrap();
    let order =
        ["address", "topics", "data", "blockHash", "blockNumber", "blockTimestamp", "transactionHash"];
    let order = order.into_iter().chain(["transactionIndex", "logIndex", "removed"]);
    let write = |log: &mut serde_json::Map<String, serde_json::Value>| {
        let member = |name| format!("\"{name}\":{}", log[name]);
        format!("{{{}}}", order.clone().map(member).collect::<Vec<_>>().join(","))
    };
    format!("[{}]", logs.iter_mut().map(write).collect::<Vec<_>>().join(","))
}

fn transaction<'a>(log: &RawLog<'a>) -> (u64, &'a [u8; 64], u64, &'a [u8; 64]) {
    (log.block_number, log.block_hash, log.transaction_index, log.transaction_hash)
}

#[test]
fn both_readers_read_the_same() {
    let mut rng = StdRng::seed_from_u64(9);
    let mut taken = 0;
    for round in 0..6_000 {
        let mut whole = list(&some_logs(9, &mut rng));
        match round % 3 {
            0 => {}
            1 => whole = whole.replace(",\"blockTimestamp\":\"0x6553f100\"", ""),
            _ => whole = as_reth(&whole),
        }
        let text = if round == 0 { whole.into_bytes() } else { mutated(whole.as_bytes(), &mut rng) };
        let (quick, slow) = (read(&text, true), read(&text, false));
        assert_eq!(quick.len(), slow.len(), "{}", String::from_utf8_lossy(&text));
        for (place, log) in quick.iter().enumerate() {
            let mut alone = *log;
            alone.is_next = false;
            assert_eq!(format!("{alone:?}"), format!("{:?}", slow[place]));
            if log.is_next {
                assert_eq!(transaction(log), transaction(&slow[place - 1]));
                taken += 1;
            }
        }
    }
    assert!(taken > 1_000, "{taken}");
}
