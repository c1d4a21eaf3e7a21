//! The table of docs/nodes.md about `Chaingate-Verified`, cell by cell.

use std::sync::Arc;

use archive::Archive;
use serde_json::json;
use testkit::anvil::Anvil;
use testkit::heavy::HeavyChain;
use testkit::proofs::ProvableStates;
use testkit::proxy::Proxy;

use super::front::Front;
use super::long;
use crate::demo::Demo;

/// A node for development whose state is proven.
const DEVELOPMENT: &str = "[network]\nname = \"dev\"\n[integrity]\nstate = \"prove\"\n";

/// A block of the window, and the parameters that name it.
const RECENT: u64 = 290;

/// The first column of the table, and calls whose replies must have the labels of its row.
fn calls(result: &str, chain: &HeavyChain) -> Vec<(&'static str, String)> {
    let (deep, recent) = (format!("{:#x}", long::DEEP), format!("{RECENT:#x}"));
    let block = |number: u64| &chain.blocks[number as usize - 1];
    let hash = |number: u64| block(number).hash;
    let transaction = |number: u64| format!(r#"["{}"]"#, block(number).block.body.transactions[1].tx_hash());
    let state = |at: &str| {
        let storage: serde_json::Value = serde_json::from_str(&long::storage_at(&format!("{at:?}"))).unwrap();
        let token = storage[0].clone();
        vec![
            ("eth_getStorageAt", storage.to_string()),
            ("eth_getBalance", json!([token, at]).to_string()),
            ("eth_getCode", json!([token, at]).to_string()),
            ("eth_getTransactionCount", json!([token, at]).to_string()),
        ]
    };
    let unknown = "ab".repeat(32);
    match result {
        "the head and the chain: `eth_blockNumber`, `eth_chainId`, `net_version`" => {
            ["eth_blockNumber", "eth_chainId", "net_version"].map(|method| (method, "[]".to_owned())).into()
        }
        "a block by its hash" => vec![
            ("eth_getBlockByHash", json!([hash(long::DEEP), false]).to_string()),
            ("eth_getBlockByHash", json!([hash(RECENT), true]).to_string()),
            ("eth_getBlockReceipts", json!([hash(long::DEEP)]).to_string()),
            ("eth_getLogs", json!([{"blockHash": hash(long::DEEP)}]).to_string()),
        ],
        "one of the last 256 blocks by its number or tag" => vec![
            ("eth_getBlockByNumber", json!([recent, false]).to_string()),
            ("eth_getBlockByNumber", json!(["latest", false]).to_string()),
            ("eth_getBlockByNumber", json!(["pending", false]).to_string()),
            ("eth_getBlockReceipts", json!([recent]).to_string()),
            ("eth_getTransactionByBlockNumberAndIndex", json!([recent, "0x0"]).to_string()),
        ],
        "an older block by its number or tag" => vec![
            ("eth_getBlockByNumber", json!([deep, false]).to_string()),
            ("eth_getBlockByNumber", json!(["earliest", false]).to_string()),
            ("eth_getBlockReceipts", json!([deep]).to_string()),
            ("eth_getBlockTransactionCountByNumber", json!([deep]).to_string()),
        ],
        "a transaction or receipt in the last 256 blocks" => vec![
            ("eth_getTransactionByHash", transaction(RECENT)),
            ("eth_getTransactionReceipt", transaction(RECENT)),
        ],
        "a transaction or receipt in an older block" => vec![
            ("eth_getTransactionByHash", transaction(long::DEEP)),
            ("eth_getTransactionReceipt", transaction(long::DEEP)),
        ],
        "`null` for a block, transaction or receipt" => vec![
            ("eth_getBlockByNumber", json!(["0xffff", false]).to_string()),
            ("eth_getBlockByHash", format!(r#"["0x{unknown}",false]"#)),
            ("eth_getTransactionByHash", format!(r#"["0x{unknown}"]"#)),
            ("eth_getTransactionReceipt", format!(r#"["0x{unknown}"]"#)),
        ],
        "logs up to one of the last 256 blocks" => vec![
            ("eth_getLogs", json!([{"fromBlock": deep, "toBlock": recent}]).to_string()),
            ("eth_getLogs", json!([{"fromBlock": recent, "toBlock": "latest"}]).to_string()),
        ],
        "logs up to an older block" => {
            vec![("eth_getLogs", json!([{"fromBlock": "0x2", "toBlock": deep}]).to_string())]
        }
        "gas price, priority fee, and fee history up to one of the last 256 blocks" => vec![
            ("eth_gasPrice", "[]".to_owned()),
            ("eth_maxPriorityFeePerGas", "[]".to_owned()),
            ("eth_feeHistory", json!(["0x5", "latest", []]).to_string()),
        ],
        "fee history up to an older block" => {
            vec![("eth_feeHistory", json!(["0x5", deep, []]).to_string())]
        }
        "balance, nonce, code and storage at one of the last 256 blocks" => state("latest"),
        "balance, nonce, code and storage at an older block" => state(&deep),
        "calls and estimates at one of the last 256 blocks" => {
            let message = json!({"data": "0x6001600052600160206000f3"});
            vec![
                ("eth_call", json!([message, "latest"]).to_string()),
                ("eth_estimateGas", json!([message, "latest"]).to_string()),
            ]
        }
        "state, calls and estimates at `pending`" => {
            let storage: serde_json::Value = serde_json::from_str(&long::storage_at("0")).unwrap();
            let account = json!([storage[0], "pending"]).to_string();
            let message = json!([{"data": "0x6001600052600160206000f3"}, "pending"]).to_string();
            vec![
                ("eth_getBalance", account.clone()),
                ("eth_getTransactionCount", account),
                ("eth_call", message.clone()),
                ("eth_estimateGas", message),
            ]
        }
        other => panic!("the table of docs/nodes.md has an unknown row: {other}"),
    }
}

/// The rows of the table, each with its cells. The first row has the names of the columns.
fn table() -> Vec<Vec<String>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/nodes.md");
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().skip_while(|line| !line.starts_with("| result |"));
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
    let is_row = |line: &&str| !line.starts_with("|---");
    lines.take_while(|line| line.starts_with('|')).filter(is_row).map(cells).collect()
}

/// One node confirmed what it alone had said, blocks of old numbers were called proven although only a quorum vouches for the
/// numbers, and `null` for an unknown block had no label.
#[test]
fn each_cell_of_the_table_of_labels_is_true() {
    let chain = long::chain(2);
    let node = long::node(&chain);
    let folder = tempfile::tempdir().unwrap();
    let genesis = folder.path().join("genesis.json");
    std::fs::write(&genesis, chain.genesis_json()).unwrap();
    let proofs = Arc::new(ProvableStates::of_newest(&chain.genesis, &chain.blocks, 1));
    let table = table();
    let (columns, rows) = table.split_first().expect("docs/nodes.md has a table of labels");
    assert_eq!(rows.len(), 15);
    for (column, name) in columns.iter().enumerate().skip(1) {
        let (nodes, state) = match name.as_str() {
            "one node" => (1, ""),
            "three nodes" => (3, ""),
            "three nodes, `prove`" => (3, "[integrity]\nstate = \"prove\"\n"),
            "three nodes, `trust`" => (3, "[integrity]\nstate = \"trust\"\n"),
            other => panic!("the table of docs/nodes.md has an unknown column: {other}"),
        };
        let proxies: Vec<_> = (0..nodes).map(|_| Proxy::start(node.public, "/v3/demo")).collect();
        proxies.iter().for_each(|proxy| proxy.prove_with(&proofs, None));
        let urls: Vec<_> = proxies.iter().map(Proxy::url).collect();
        let front = Front::of(&urls, &format!("[network]\nname = \"long\"\ngenesis = {genesis:?}\n{state}"));
        front.wait_for_histories();
        for row in rows {
            for (method, params) in calls(&row[0], &chain) {
                for time in ["first", "again"] {
                    let reply = front.ask_as("custom", "", method, &params);
                    assert!(
                        reply.json().get("result").is_some(),
                        "{name}: {method} {params}: {}",
                        reply.text()
                    );
                    let label = reply.header("chaingate-verified");
                    assert_eq!(label, Some(row[column].as_str()), "{name}, {time}: {method} {params}");
                }
            }
        }
    }
}

/// The hash of an old block was enough for `proven` although the caller had asked for a canonical block, and only a quorum says that it
/// is one.
#[test]
fn a_quorum_confirms_that_an_old_block_is_canonical() {
    let chain = long::chain(2);
    let node = long::node(&chain);
    let proofs = Arc::new(ProvableStates::of_newest(&chain.genesis, &chain.blocks[..long::DEEP as usize], 1));
    let network = "[network]\nname = \"long\"\n[integrity]\nstate = \"prove\"\n";
    let (proxies, front) = Front::behind(node.public, "/v3/demo", 3, network);
    proxies.iter().for_each(|proxy| proxy.prove_with(&proofs, None));
    let storage: serde_json::Value = serde_json::from_str(&long::storage_at("0")).unwrap();
    let hash = chain.blocks[long::DEEP as usize - 1].hash;
    for (at, label) in [
        (json!({"blockHash": hash}), "proven"),
        (json!({"blockHash": hash, "requireCanonical": true}), "confirmed"),
        (json!(format!("{:#x}", long::DEEP)), "confirmed"),
    ] {
        for time in ["first", "again"] {
            let reply = front.ask_as("custom", "", "eth_getBalance", &json!([storage[0], at]).to_string());
            assert_eq!(reply.header("chaingate-verified"), Some(label), "{time}, {at}: {}", reply.text());
        }
    }
}

/// A node that gives no rules for calls confirmed them by itself.
#[test]
fn a_lone_node_for_development_confirms_no_calls() {
    let Some(anvil) = Anvil::start(&[]) else { return };
    anvil.mine(2);
    let (_proxies, front) = Front::behind(anvil.address, "/", 1, DEVELOPMENT);
    let call = json!([{"data": "0x6001600052600160206000f3"}, "latest"]);
    for method in ["eth_call", "eth_estimateGas"] {
        let reply = front.ask_as("custom", "", method, &call.to_string());
        assert_eq!(reply.header("chaingate-verified"), Some("none"), "{method}: {}", reply.text());
    }
}

/// Block 0 of a node for development does not commit to the accounts that it has: they were proven to be empty.
#[test]
fn the_accounts_of_a_block_0_with_an_empty_root_are_confirmed() {
    let Some(anvil) = Anvil::start(&[]) else { return };
    anvil.mine(2);
    let accounts = anvil.ask("eth_accounts", json!([]));
    for (nodes, label) in [(1, "none"), (3, "confirmed")] {
        let (_proxies, front) = Front::behind(anvil.address, "/", nodes, DEVELOPMENT);
        for (block, label) in [("0x0", label), ("0x1", "proven")] {
            let balance = json!([accounts[0], block]);
            let reply = front.ask_as("custom", "", "eth_getBalance", &balance.to_string());
            let told = anvil.ask("eth_getBalance", balance);
            assert_eq!(reply.json()["result"], told, "{nodes}, {block}: {}", reply.text());
            assert_eq!(reply.header("chaingate-verified"), Some(label), "{nodes}, {block}");
        }
    }
}

/// The genesis file shows that block 0 has no accounts.
#[test]
fn an_empty_root_of_block_0_proves_what_the_genesis_file_says() {
    let mut genesis = demo_builder::genesis();
    genesis.alloc.clear();
    let text = serde_json::to_string(&genesis).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("genesis.json");
    std::fs::write(&file, &text).unwrap();
    let data = tempfile::tempdir().unwrap();
    let archive = Archive::open_or_create(data.path(), &text).unwrap();
    let node = Demo::over(archive, data, "");
    let proofs = Arc::new(ProvableStates::of(&genesis, &[]));
    for (rules, label) in [(format!("genesis = {file:?}\n"), "proven"), (String::new(), "confirmed")] {
        let network = format!("[network]\nname = \"empty\"\n{rules}[integrity]\nstate = \"prove\"\n");
        let proxies: Vec<_> = (0..3).map(|_| Proxy::start(node.public, "/v3/demo")).collect();
        proxies.iter().for_each(|proxy| proxy.prove_with(&proofs, None));
        let urls: Vec<_> = proxies.iter().map(Proxy::url).collect();
        let front = Front::of(&urls, &network);
        let balance = json!([format!("0x{}", "ab".repeat(20)), "0x0"]).to_string();
        let reply = front.ask_as("custom", "", "eth_getBalance", &balance);
        assert_eq!(reply.json()["result"], "0x0", "{rules}: {}", reply.text());
        assert_eq!(reply.header("chaingate-verified"), Some(label), "{rules}");
    }
}

/// The base fee after block 0 followed from a rule that the node does not have, and was proven.
#[test]
fn the_base_fee_after_block_0_is_that_of_block_1() {
    let Some(anvil) = Anvil::start(&[]) else { return };
    anvil.mine(2);
    let base_fee =
        |block: &str| anvil.ask("eth_getBlockByNumber", json!([block, false]))["baseFeePerGas"].clone();
    for nodes in [1, 3] {
        let (_proxies, front) = Front::behind(anvil.address, "/", nodes, DEVELOPMENT);
        for time in ["first", "again"] {
            let reply = front.ask_as("custom", "", "eth_feeHistory", r#"["0x1","earliest",[]]"#);
            let fees = &reply.json()["result"]["baseFeePerGas"];
            assert_eq!(*fees, json!([base_fee("0x0"), base_fee("0x1")]), "{nodes}, {time}: {}", reply.text());
            assert_eq!(reply.header("chaingate-verified"), Some("proven"), "{nodes}, {time}");
        }
    }
}
