use super::*;
use alloy_consensus::{Transaction as _, transaction::SignerRecoverable as _};
use alloy_eips::eip2718::Decodable2718 as _;
use alloy_primitives::{Bytes, Signature, keccak256};
use archive::Transaction;
use facts::RAW_BLOCKS;
use serde_json::{Value, json};

fn records(demo: &Demo, number: u64) -> Vec<Value> {
    serde_json::from_slice(&demo.snapshot.raw_records(number).unwrap().unwrap()).unwrap()
}

fn bytes(ints: &Value) -> Vec<u8> {
    ints.as_array().unwrap().iter().map(|int| u8::try_from(int.as_u64().unwrap()).unwrap()).collect()
}

#[test]
fn raw_records_tell_of_the_blocks_own_transactions() {
    let demo = Demo::new();
    let mut kinds = [0, 0, 0];
    for number in RAW_BLOCKS {
        let mut transactions = demo.snapshot.transactions(number).unwrap().into_iter();
        for record in records(&demo, number) {
            let common = &record["common_data"];
            assert!(record["received_timestamp_ms"].is_u64());
            if common["ProtocolUpgrade"].is_object() {
                kinds[0] += 1;
                assert_eq!(record["raw_bytes"], Value::Null);
                continue;
            }
            let mined = transactions.next().expect("a record per transaction");
            let to = mined.transaction.to().map(|to| format!("{to:?}"));
            assert_eq!(record["execute"]["contractAddress"], json!(to));
            assert_eq!(record["execute"]["calldata"], json!(mined.transaction.input()));
            if common["L1"].is_object() {
                kinds[1] += 1;
                assert_eq!(common["L1"]["canonicalTxHash"], json!(mined.hash));
                assert_eq!(common["L1"]["sender"], json!(format!("{:?}", mined.sender)));
                assert_eq!(record["raw_bytes"], Value::Null);
            } else {
                kinds[2] += 1;
                check_layer_two(&record, mined.hash);
            }
        }
        assert!(transactions.next().is_none(), "block {number} has a transaction without a record");
    }
    assert_eq!((kinds[0], kinds[1]), (1, 2));
    assert!(kinds[2] > 10);
}

/// Whoever decodes the bytes finds the very transaction, signed by whom the record says.
fn check_layer_two(record: &Value, hash: B256) {
    let data = &record["common_data"]["L2"];
    let raw: Bytes = serde_json::from_value(record["raw_bytes"].clone()).unwrap();
    assert_eq!(keccak256(&raw), hash);
    assert_eq!(data["input"]["hash"], json!(hash));
    assert_eq!(bytes(&data["input"]["data"]), raw);

    let transaction = Transaction::decode_2718_exact(&raw).unwrap();
    let signer = transaction.recover_signer().unwrap();
    assert_eq!(data["initiatorAddress"], json!(format!("{signer:?}")));
    assert_eq!(data["nonce"], json!(transaction.nonce()));
    let signature = Signature::try_from(&bytes(&data["signature"])[..]).unwrap();
    assert_eq!(signature, *transaction.signature());
    for fee in ["gas_limit", "max_fee_per_gas", "max_priority_fee_per_gas", "gas_per_pubdata_limit"] {
        assert!(data["fee"][fee].as_str().unwrap().starts_with("0x"), "{fee}");
    }
    assert!(data["transactionType"].as_str().unwrap().ends_with("Transaction"));
    assert_eq!(data["paymasterParams"]["paymasterInput"], json!([]));
}

#[test]
fn raw_records_show_every_shape() {
    let demo = Demo::new();
    assert_eq!(records(&demo, demo.block("raw-none")), Vec::<Value>::new());
    assert!(records(&demo, demo.block("raw-upgrade"))[0]["common_data"]["ProtocolUpgrade"].is_object());
    assert_eq!(demo.snapshot.raw_records(RAW_BLOCKS.start() - 1).unwrap(), None);

    let creation = &records(&demo, demo.block("raw-creation"))[0];
    assert_eq!(creation["execute"]["contractAddress"], Value::Null);
    let code = demo.snapshot.state_at(HEAD_NUMBER).code_of(contracts::DOOMED_RAW.address()).unwrap();
    assert_eq!(bytes(&creation["execute"]["factoryDeps"][0]), code);

    let kinds: Vec<Value> = RAW_BLOCKS
        .flat_map(|number| records(&demo, number))
        .map(|record| record["common_data"]["L2"]["transactionType"].clone())
        .collect();
    for kind in ["LegacyTransaction", "EIP2930Transaction", "EIP1559Transaction"] {
        assert!(kinds.contains(&json!(kind)), "{kind}");
    }
}
