#![allow(clippy::unwrap_used)]

use super::*;
use alloy_primitives::B256;
use serde_json::{Value, json};

/// A genesis with all forks of blocks at 0, all forks of time up to Osaka at growing times, and changes to
/// its config.
fn genesis(change: Value) -> Value {
    let mut genesis = json!({
        "config": {
            "chainId": 5, "homesteadBlock": 0, "eip150Block": 0, "eip155Block": 0, "eip158Block": 0,
            "byzantiumBlock": 0, "constantinopleBlock": 0, "petersburgBlock": 0, "istanbulBlock": 0,
            "berlinBlock": 0, "londonBlock": 0, "terminalTotalDifficulty": 0, "shanghaiTime": 10,
            "cancunTime": 20, "pragueTime": 30, "osakaTime": 40
        },
        "difficulty": "0x0", "gasLimit": "0x1c9c380", "alloc": {}
    });
    for (key, value) in change.as_object().unwrap() {
        genesis["config"][key] = value.clone();
    }
    genesis
}

fn read(genesis: &Value) -> Result<ChainSpec, GenesisError> {
    ChainSpec::from_json(&genesis.to_string())
}

fn spec_at(chain: &ChainSpec, number: u64, timestamp: u64, difficulty: u64) -> SpecId {
    let header = Header { number, timestamp, difficulty: U256::from(difficulty), ..Header::default() };
    chain.rules_at(&header).spec_id(&header)
}

#[test]
fn forks_are_in_force_from_their_block_or_time_on() {
    let chain = read(&genesis(json!({
        "homesteadBlock": 1, "eip150Block": 2, "eip155Block": 3, "eip158Block": 3, "byzantiumBlock": 4,
        "constantinopleBlock": 5, "petersburgBlock": null, "istanbulBlock": 6, "berlinBlock": 7, "londonBlock": 8,
        "terminalTotalDifficulty": 1000
    })))
    .unwrap();
    let by_block = [
        SpecId::FRONTIER,
        SpecId::HOMESTEAD,
        SpecId::TANGERINE,
        SpecId::SPURIOUS_DRAGON,
        SpecId::BYZANTIUM,
        SpecId::PETERSBURG,
        SpecId::ISTANBUL,
        SpecId::BERLIN,
        SpecId::LONDON,
    ];
    for (number, spec) in by_block.into_iter().enumerate() {
        assert_eq!(spec_at(&chain, number as u64, 1, 7), spec);
    }
    let by_time = [
        (9, SpecId::MERGE),
        (10, SpecId::SHANGHAI),
        (20, SpecId::CANCUN),
        (39, SpecId::PRAGUE),
        (40, SpecId::OSAKA),
    ];
    for (time, spec) in by_time {
        assert_eq!(spec_at(&chain, 9, time, 0), spec);
    }
}

#[test]
fn sstore_is_priced_by_eip_1283_only_between_constantinople_and_petersburg() {
    let prices = |change: Value| {
        let chain = read(&genesis(change)).unwrap();
        [1, 2, 3, 4, 5].map(|number| chain.rules_at(&Header::default()).has_eip1283(number))
    };
    let forks = |constantinople: u64, petersburg: Value| {
        json!({
            "constantinopleBlock": constantinople, "petersburgBlock": petersburg, "istanbulBlock": 9, "berlinBlock": 9,
            "londonBlock": 9
        })
    };
    assert_eq!(prices(forks(2, 4.into())), [false, true, true, false, false]);
    assert_eq!(prices(forks(2, 2.into())), [false; 5]);
    assert_eq!(
        prices(forks(2, Value::Null)),
        [false; 5],
        "it comes with Constantinople where it is left out"
    );
}

#[test]
fn each_mistake_of_a_genesis_has_its_sentence() {
    let rows = [
        (
            json!({"berlinBlock": null}),
            "the genesis sets londonBlock but not berlinBlock, which comes before it; add berlinBlock to its config",
        ),
        (
            json!({"pragueTime": null}),
            "the genesis sets osakaTime but not pragueTime, which comes before it; add pragueTime to its config",
        ),
        (
            json!({"istanbulBlock": 9}),
            "the genesis sets berlinBlock to 0, before istanbulBlock at 9; forks must keep their order",
        ),
        (
            json!({"cancunTime": 35}),
            "the genesis sets pragueTime to 30, before cancunTime at 35; forks must keep their order",
        ),
        (
            json!({"londonBlock": null}),
            "the genesis sets shanghaiTime but not londonBlock, which comes before it; add londonBlock to its config",
        ),
        (
            json!({"londonBlock": 3, "shanghaiTime": 0}),
            "the genesis sets shanghaiTime to 0, before londonBlock at 3; forks must keep their order",
        ),
        (
            json!({"terminalTotalDifficulty": null}),
            "the genesis sets shanghaiTime but no terminalTotalDifficulty; use 0 for a chain without proof of work",
        ),
        // Its blocks were stored although not one official test of the fork had passed.
        (
            json!({"amsterdamTime": 99}),
            "the genesis sets amsterdamTime, whose rules this version does not know",
        ),
        (json!({"bogotaTime": 99}), "the genesis sets bogotaTime, whose rules this version does not know"),
        (
            json!({"clique": {"period": 5, "epoch": 8}, "terminalTotalDifficulty": 1}),
            "the genesis uses clique, but only chains of proof of work and proof of stake can be imported",
        ),
        (
            json!({"bpo3Time": 99}),
            "the genesis sets the fork bpo3 but blobSchedule has no entry bpo3; add its target and max",
        ),
        (
            json!({"blobSchedule": {"cancun": {"target": 3, "max": 6, "baseFeeUpdateFraction": 0}}}),
            "blobSchedule.cancun of the genesis: baseFeeUpdateFraction is 0, expected a number above 0",
        ),
        (
            json!({"blobSchedule": {"prague": {"target": 7, "max": 6, "baseFeeUpdateFraction": 5}}}),
            "blobSchedule.prague of the genesis: target is 7 and max 6, expected at most max",
        ),
        (
            json!({"blobSchedule": {"osaka": {"target": 0, "max": 0, "baseFeeUpdateFraction": 5}}}),
            "blobSchedule.osaka of the genesis: max is 0, expected between 1 and 1048576",
        ),
        (json!({"terminalTotalDifficulty": "many"}), "line 1: config.terminalTotalDifficulty: "),
    ];
    for (change, text) in rows {
        let found = read(&genesis(change)).unwrap_err().to_string();
        assert!(found.starts_with(text), "{found}\n{text}");
    }
}

#[test]
fn header_fields_that_no_header_holds_are_refused() {
    let rows = [
        ("number", "0x1", "number of the genesis: expected 0, found 1"),
        (
            "baseFeePerGas",
            "0x10000000000000000",
            "baseFeePerGas of the genesis: expected a number of 64 bits, found 18446744073709551616",
        ),
        (
            "excessBlobGas",
            "0xffffffffffffffff",
            "excessBlobGas of the genesis: expected at most 2^40, found 18446744073709551615",
        ),
    ];
    for (key, value, text) in rows {
        let mut genesis = genesis(json!({}));
        genesis[key] = value.into();
        assert_eq!(read(&genesis).unwrap_err().to_string(), text);
    }
    for text in ["", "[]", "\u{1f8b}"] {
        let error = ChainSpec::from_json(text).unwrap_err().to_string();
        assert!(error.starts_with("not a geth-format genesis: "), "{error}");
    }
}

#[test]
fn a_terminal_difficulty_of_any_size_keeps_its_digits() {
    let digits = [
        "0",
        "17",
        "18446744073709551616",
        "58750000000000000000001",
        "115792089237316195423570985008687907853269984665640564039457584007913129639935",
    ];
    for digits in digits {
        let text = genesis(json!({})).to_string();
        let text =
            text.replace("\"terminalTotalDifficulty\":0", &format!("\"terminalTotalDifficulty\":{digits}"));
        let chain = ChainSpec::from_json(&text).unwrap();
        assert_eq!(chain.terminal_total_difficulty().unwrap().to_string(), digits);
    }
}

#[test]
fn only_mainnet_has_mainnets_deposit_contract() {
    let address = |change: Value| {
        let chain = read(&genesis(change)).unwrap();
        chain.rules_at(&Header::default()).deposit_contract_address()
    };
    assert_eq!(address(json!({"chainId": 1})), None, "the EVM library fills it in");
    assert_eq!(address(json!({})), Some(Address::ZERO));
    let stated = Address::with_last_byte(9);
    assert_eq!(address(json!({"depositContractAddress": stated})), Some(stated));
}

#[test]
fn blob_parameters_follow_the_schedule() {
    let params = |target: u64| json!({"target": target, "max": 2 * target, "baseFeeUpdateFraction": 9});
    let chain = read(&genesis(json!({
        "bpo1Time": 50, "bpo3Time": 60,
        "blobSchedule": {"cancun": params(1), "osaka": params(4), "bpo3": params(7)}
    })))
    .unwrap();
    let targets: Vec<_> = [19, 20, 30, 40, 50, 60]
        .map(|time| chain.blob_params_at(time).map(|params| params.target_blob_count))
        .into();
    assert_eq!(targets, [None, Some(1), Some(6), Some(4), Some(10), Some(7)]);
    let per_transaction = |time| chain.blob_params_at(time).unwrap().max_blobs_per_tx;
    assert_eq!((per_transaction(20), per_transaction(40), per_transaction(60)), (2, 6, 6));
    let reserve = |time| chain.blob_params_at(time).unwrap().blob_base_cost;
    assert_eq!((reserve(20), reserve(40), reserve(60)), (0, 8192, 8192));
}

#[test]
fn the_genesis_header_has_the_fields_of_its_forks() {
    let at = |time: u64| {
        let mut genesis = genesis(json!({}));
        genesis["timestamp"] = format!("{time:#x}").into();
        let header = read(&genesis).unwrap().genesis_header();
        [
            header.base_fee_per_gas.is_some(),
            header.withdrawals_root.is_some(),
            header.blob_gas_used.is_some() && header.excess_blob_gas == Some(0),
            header.parent_beacon_block_root == Some(B256::ZERO),
            header.requests_hash.is_some(),
        ]
    };
    assert_eq!(at(0), [true, false, false, false, false]);
    assert_eq!(at(10), [true, true, false, false, false]);
    assert_eq!(at(20), [true, true, true, true, false]);
    assert_eq!(at(40), [true, true, true, true, true]);
}

#[test]
fn a_genesis_without_gas_limit_gets_the_usual_one() {
    let mut genesis = genesis(json!({}));
    genesis["gasLimit"] = "0x0".into();
    assert_eq!(read(&genesis).unwrap().genesis_header().gas_limit, 4_712_388);
}

#[test]
fn the_genesis_state_has_code_and_storage_but_no_zeroes() {
    let root = |storage: Value| {
        let mut genesis = genesis(json!({}));
        genesis["alloc"] = json!({
            "0x0000000000000000000000000000000000000002": {"balance": "0x1", "code": "0x6001", "storage": storage}
        });
        read(&genesis).unwrap().genesis_header().state_root
    };
    assert_eq!(root(json!({"0x01": "0x02", "0x03": "0x00"})), root(json!({"0x01": "0x02"})));
    assert_ne!(root(json!({"0x01": "0x02"})), root(json!({})));
}

/// A genesis without `chainId` was taken for mainnet, `""` for zero, the last of two equal keys for the right one; and
/// the errors that there were named a line of a text that the user had never seen.
#[test]
fn a_wrong_member_is_named_with_its_line() {
    let rows = [
        ("{\n\"alloc\": {}}", "line 1: config is missing"),
        ("{\n\"config\": {\n\"londonBlock\": 0}}", "line 2: config.chainId is missing"),
        (
            "{\"config\":{\"chainId\":5,\n\"londonBlock\":\"\"}}",
            "line 2: config.londonBlock: expected a number, found an empty string",
        ),
        (
            "{\"config\":{\"chainId\":5},\n\n\"difficulty\":\"\"}",
            "line 3: difficulty: expected a number, found an empty string",
        ),
        (
            "{\"config\":{\"chainId\":5},\"alloc\":{\n\"0x00000000000000000000000000000000000000aa\":{\"balance\":\"\"}}}",
            "line 2: alloc.0x00000000000000000000000000000000000000aa.balance: expected a number, found an empty string",
        ),
        (
            "{\"config\":{\"chainId\":5,\n\"homesteadBlock\":1,\n\"homesteadBlock\":2}}",
            "line 3: config.homesteadBlock: duplicate key (first defined on line 2)",
        ),
        (
            "{\"config\":{\"chainId\":5},\n\"nonce\":\"0x1\",\n\"nonce\":\"0x2\"}",
            "line 3: nonce: duplicate key (first defined on line 2)",
        ),
        (
            "{\"config\":{\"chainId\":5},\"alloc\":{\n\"0x00000000000000000000000000000000000000aA\":{\"balance\":\"0x1\"},\n\
             \"00000000000000000000000000000000000000AA\":{\"balance\":\"0x2\"}}}",
            "line 3: alloc.00000000000000000000000000000000000000AA: duplicate key (first defined on line 2)",
        ),
        ("{\"config\":7}", "line 1: config.chainId is missing"),
        (
            "{\"config\":{\"chainId\":5,\n\"terminalTotalDifficulty\":0,\n\"cancunTime\":\"soon\"}}",
            "line 3: config.cancunTime: ",
        ),
        ("{\"config\":{\"chainId\":5},\n\"coinbase\":\"0x12\"}", "line 2: coinbase: "),
        (
            "{\"config\":{\"chainId\":5},\n\"alloc\":{\"0x00000000000000000000000000000000000000aa\":{\n\"balance\":\"0x1\",\n\
             \"code\":\"0xzz\"}}}",
            "line 4: alloc.0x00000000000000000000000000000000000000aa.code: ",
        ),
    ];
    for (text, says) in rows {
        let found = ChainSpec::from_json(text).unwrap_err().to_string();
        assert!(found.starts_with(says), "{found}\n{says}");
    }
}
