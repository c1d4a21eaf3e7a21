//! `docs/demo-chain.md` says what is true. Its tables are written by this test:
//! `CHAINGATE_WRITE_DOCS=1 cargo test -p chaingate-demo-builder` puts the chain's facts into them.

use super::*;
use accounts::{ACCOUNTS, DemoAccount};
use alloy_primitives::{Address, U256, hex};
use archive::{LogFilter, LogLimits, StateSource as _};
use chain_builder::Era;
use contracts::CONTRACTS;
use schedule::first_block;
use std::{collections::BTreeSet, fmt::Write as _, ops::ControlFlow};

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/demo-chain.md");

#[test]
fn the_document_has_the_facts_of_the_chain() {
    let demo = Demo::new();
    let before = fs::read_to_string(PATH).unwrap();
    let mut after = before.clone();
    for (name, table) in [
        ("chain", chain_table(&demo)),
        ("eras", era_table()),
        ("accounts", account_table()),
        ("contracts", contract_table()),
        ("slots", slot_table(&demo)),
        ("topics", topic_table()),
        ("blocks", block_table(&demo)),
        ("transactions", transaction_table(&demo)),
    ] {
        after = with_table(&after, name, &table);
    }
    if std::env::var_os("CHAINGATE_WRITE_DOCS").is_some() {
        fs::write(PATH, &after).unwrap();
        return;
    }
    assert!(before == after, "docs/demo-chain.md is out of date; write it with CHAINGATE_WRITE_DOCS=1");
}

#[test]
fn the_document_names_nothing_that_is_not_there() {
    let demo = Demo::new();
    let text = fs::read_to_string(PATH).unwrap();
    let (hashes, addresses) = (known_hashes(&demo), known_addresses());
    let mut found = 0;
    for word in text.split(|letter: char| !letter.is_ascii_alphanumeric()) {
        let Some(Ok(value)) = word.strip_prefix("0x").map(hex::decode) else { continue };
        match value.len() {
            20 => {
                assert!(
                    addresses.contains(&Address::from_slice(&value)),
                    "{word} is no address of the chain"
                );
            }
            32 => assert!(hashes.contains(&B256::from_slice(&value)), "{word} is no hash of the chain"),
            _ => continue,
        }
        found += 1;
    }
    assert!(found > 90, "only {found} addresses and hashes are named");
}

fn known_addresses() -> BTreeSet<Address> {
    let accounts = ACCOUNTS.iter().map(|account| account.address);
    accounts.chain(CONTRACTS.iter().map(contracts::Contract::address)).collect()
}

fn known_hashes(demo: &Demo) -> BTreeSet<B256> {
    let snapshot = &demo.snapshot;
    let mut known: BTreeSet<B256> = ACCOUNTS.iter().map(|account| account.key).collect();
    for slot in facts::slots() {
        known.insert(slot.position);
        let value = snapshot.state_at(HEAD_NUMBER).storage(slot.contract.address(), slot.position.into());
        known.insert(value.unwrap().into());
    }
    for number in 0..=HEAD_NUMBER {
        let summary = snapshot.summary(number).unwrap().unwrap();
        known.insert(summary.hash);
        known.extend(snapshot.transaction_hashes(&summary).unwrap());
    }
    let everything = snapshot.logs(0..=HEAD_NUMBER, &LogFilter::default(), LogLimits::NONE).unwrap();
    let ended = everything.read(|log| {
        known.extend(log.topics().iter().copied().map(B256::new));
        ControlFlow::<()>::Continue(())
    });
    assert!(ended.unwrap().is_continue());
    known
}

/// The text with another table between `<!-- name -->` and `<!-- /name -->`.
fn with_table(text: &str, name: &str, table: &str) -> String {
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->"));
    let from = text.find(&begin).unwrap_or_else(|| panic!("{begin} is missing")) + begin.len();
    let to = from + text[from..].find(&end).unwrap_or_else(|| panic!("{end} is missing"));
    format!("{}\n{table}\n{}", &text[..from], &text[to..])
}

fn table<const N: usize>(head: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let mut text = format!("| {} |\n|{}\n", head.join(" | "), "---|".repeat(N));
    for row in rows {
        writeln!(text, "| {} |", row.join(" | ")).unwrap();
    }
    text
}

fn chain_table(demo: &Demo) -> String {
    let rows = [
        ("chain id", format!("{CHAIN_ID} (`{CHAIN_ID:#x}`)")),
        ("genesis", format!("`{}`", demo.snapshot.genesis_hash().unwrap())),
        ("head", format!("{HEAD_NUMBER} (`{HEAD_NUMBER:#x}`), `{HEAD_HASH}`")),
    ];
    table(["what", "value"], rows.map(|(what, value)| [what.to_owned(), value]))
}

fn era_table() -> String {
    let eras = Era::ALL.iter().map(|era| {
        let first = first_block(*era);
        [format!("{era:?}"), format!("{first} (`{first:#x}`)")]
    });
    table(["rules", "from block"], eras)
}

fn account_table() -> String {
    let rows = ACCOUNTS.iter().map(|account| {
        let DemoAccount { name, role, key, address } = account;
        [(*name).to_owned(), format!("`{address}`"), format!("`{key}`"), (*role).to_owned()]
    });
    table(["name", "address", "private key", "what they do"], rows)
}

fn contract_table() -> String {
    let rows = CONTRACTS.iter().map(|contract| {
        [contract.name.to_owned(), format!("`{}`", contract.address()), contract.about.to_owned()]
    });
    table(["contract", "address", "what it is there for"], rows)
}

fn slot_table(demo: &Demo) -> String {
    let rows = facts::slots().map(|slot| {
        let state = demo.snapshot.state_at(HEAD_NUMBER);
        let value = state.storage(slot.contract.address(), slot.position.into()).unwrap();
        let position = U256::from_be_bytes(slot.position.0);
        [
            slot.contract.name.to_owned(),
            slot.about.to_owned(),
            slot.rule.to_owned(),
            format!("`{position:#x}`"),
            format!("{value}"),
        ]
    });
    table(["contract", "what", "rule", "position", "value at the head"], rows)
}

fn topic_table() -> String {
    let rows = facts::topics().map(|topic| {
        [format!("`{}`", topic.signature), topic.contract.name.to_owned(), format!("`{}`", topic.hash)]
    });
    table(["event", "contract", "first topic"], rows)
}

fn block_table(demo: &Demo) -> String {
    let points = demo.facts.points.iter().filter(|point| point.transaction.is_none());
    let rows = points.map(|point| {
        let Point { name, about, block, block_hash, .. } = point;
        [
            format!("{block} (`{block:#x}`)"),
            format!("`{block_hash}`"),
            (*about).to_owned(),
            format!("`{name}`"),
        ]
    });
    table(["block", "hash", "what there is to see", "name in `demo_builder::facts`"], rows)
}

fn transaction_table(demo: &Demo) -> String {
    let rows = demo.facts.points.iter().filter_map(|point| {
        let Point { name, about, block, transaction, .. } = point;
        let hash = format!("`{}`", transaction.as_ref()?.hash);
        let summary = format!("{block} (`{block:#x}`), {}", transaction.as_ref()?.index);
        Some([summary, hash, (*about).to_owned(), format!("`{name}`")])
    });
    table(["block, index", "hash", "what there is to see", "name in `demo_builder::facts`"], rows)
}
