//! Raw block transaction records: what `zks_getRawBlockTransactions` answers with. They come from a file of
//! their own, one block a line: `{"block": 7, "records": [ … ]}`.

use crate::{
    archive::Archive,
    store::{Savepoints, StoreError},
    tables::{META, RAW_RECORDS},
};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::io::{self, BufRead};

/// The members of every record.
const MEMBERS: [&str; 4] = ["common_data", "execute", "received_timestamp_ms", "raw_bytes"];

/// The kinds of records, and the members that each has.
const KINDS: [(&str, &[&str]); 3] = [
    (
        "L1",
        &[
            "canonicalTxHash",
            "deadlineBlock",
            "ethBlock",
            "ethHash",
            "fullFee",
            "gasLimit",
            "gasPerPubdataLimit",
            "layer2TipFee",
            "maxFeePerGas",
            "opProcessingType",
            "priorityQueueType",
            "refundRecipient",
            "sender",
            "serialId",
            "toMint",
        ],
    ),
    ("L2", &["nonce", "fee", "initiatorAddress", "signature", "transactionType", "input", "paymasterParams"]),
    ("ProtocolUpgrade", &[]),
];

/// A line of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRecordsLine {
    block: u64,
    records: Vec<Map<String, Value>>,
}

impl Archive {
    /// Takes raw transaction records of blocks that are there. All of them, or none where one is wrong.
    ///
    /// Gives the number of blocks that got records. Those that a block had before are replaced.
    pub fn import_raw_records(&self, lines: impl BufRead) -> Result<u64, RawRecordsError> {
        let _only_one = self.begin_import();
        let head = self.snapshot().head();
        let transaction = self.begin_write()?;
        let mut blocks = 0;
        {
            let mut table = transaction.open_table(RAW_RECORDS).map_err(StoreError::from)?;
            for (index, line) in lines.lines().enumerate() {
                let line = line?;
                if line.trim().is_empty() {
                    continue;
                }
                let wrong = |what| RawRecordsError::Line { number: index + 1, what };
                let (block, records) = parse(&line, head).map_err(wrong)?;
                table.insert(block, records.as_slice()).map_err(StoreError::from)?;
                blocks += 1;
            }
            // Going back to a savepoint would lose the records.
            let mut meta = transaction.open_table(META).map_err(StoreError::from)?;
            Savepoints::read(&meta)?.delete(&transaction, &mut meta)?;
        }
        self.commit(transaction)?;
        Ok(blocks)
    }
}

/// The block of a line, and its records as compact JSON.
fn parse(line: &str, head: u64) -> Result<(u64, Vec<u8>), String> {
    let line: RawRecordsLine = serde_json::from_str(line).map_err(|cause| cause.to_string())?;
    if line.block > head {
        return Err(format!("block {} is beyond the head of the archive, which is {head}", line.block));
    }
    for (index, record) in line.records.iter().enumerate() {
        check(record).map_err(|what| format!("record {index}: {what}"))?;
    }
    let records = serde_json::to_vec(&line.records).map_err(|cause| cause.to_string())?;
    Ok((line.block, records))
}

fn check(record: &Map<String, Value>) -> Result<(), String> {
    if let Some(missing) = MEMBERS.iter().find(|member| !record.contains_key(**member)) {
        return Err(format!("{missing} is missing"));
    }
    if !record["received_timestamp_ms"].is_u64() {
        return Err("received_timestamp_ms is not an integer".to_owned());
    }
    if !record["execute"].is_object() {
        return Err("execute is not an object".to_owned());
    }
    let common = record["common_data"].as_object().filter(|common| common.len() == 1);
    let common = common.ok_or("common_data is not an object of one member")?;
    for (kind, members) in KINDS {
        let Some(data) = common.get(kind) else { continue };
        let data = data.as_object().ok_or_else(|| format!("{kind} is not an object"))?;
        return match members.iter().find(|member| !data.contains_key(**member)) {
            Some(missing) => Err(format!("{kind}.{missing} is missing")),
            None => Ok(()),
        };
    }
    Err("common_data is neither L1 nor L2 nor ProtocolUpgrade".to_owned())
}

/// Why raw records were not taken.
#[derive(Debug, thiserror::Error)]
pub enum RawRecordsError {
    #[error("line {number} of the raw records: {what}")]
    Line {
        /// Counted from 1.
        number: usize,
        what: String,
    },
    #[error("the raw records cannot be read: {0}")]
    Io(#[from] io::Error),
    #[error("the archive: {0}")]
    Store(#[from] StoreError),
}

#[cfg(test)]
mod tests {
    use super::*;

    const UPGRADE: &str =
        r#"{"common_data":{"ProtocolUpgrade":{}},"execute":{},"received_timestamp_ms":1,"raw_bytes":null}"#;

    #[test]
    fn a_line_is_a_block_and_its_records() {
        let line = format!(r#"{{"block": 3, "records": [ {UPGRADE} ]}}"#);
        let (block, records) = parse(&line, 3).unwrap();
        assert_eq!(block, 3);
        let records: Value = serde_json::from_slice(&records).unwrap();
        assert_eq!(records, serde_json::from_str::<Value>(&format!("[{UPGRADE}]")).unwrap());
    }

    #[test]
    fn wrong_lines_say_what_is_wrong() {
        let with =
            |from: &str, to: &str| format!(r#"{{"block":0,"records":[{}]}}"#, UPGRADE.replace(from, to));
        let cases = [
            (
                r#"{"block":9,"records":[]}"#.to_owned(),
                "block 9 is beyond the head of the archive, which is 3",
            ),
            (with("execute", "exec"), "record 0: execute is missing"),
            (with(":1", ":-1"), "record 0: received_timestamp_ms is not an integer"),
            (with("ProtocolUpgrade", "L3"), "record 0: common_data is neither L1 nor L2 nor ProtocolUpgrade"),
            (with("ProtocolUpgrade", "L2"), "record 0: L2.nonce is missing"),
            (with(r#""execute":{}"#, r#""execute":[]"#), "record 0: execute is not an object"),
        ];
        for (line, what) in cases {
            assert_eq!(parse(&line, 3).unwrap_err(), what);
        }
    }
}
