use super::*;
use alloy_consensus::Transaction as _;
use archive::{Recipient, TransactionOutcome};
use chain_builder::Era;
use schedule::first_block;

#[test]
fn there_is_a_transaction_of_every_type() {
    let demo = Demo::new();
    let cases = [
        ("first-payment", 0, false),
        ("still-unprotected", 0, false),
        ("first-protected", 0, true),
        ("access-list", 1, true),
        ("dynamic-fee", 2, true),
        ("blob", 3, true),
        ("delegation", 4, true),
        ("head-unprotected", 0, false),
        ("head-protected", 0, true),
        ("head-access-list", 1, true),
        ("head-dynamic-fee", 2, true),
        ("head-blobs", 3, true),
        ("head-delegation", 4, true),
    ];
    for (name, kind, protected) in cases {
        let found = demo.snapshot.transaction(demo.transaction(name)).unwrap().unwrap();
        assert_eq!(found.transaction_type(), kind, "{name}");
        assert_eq!(found.transaction.chain_id(), protected.then_some(CHAIN_ID), "{name}");
        assert_eq!(u64::from(found.index), demo.point(name).transaction.unwrap().index);
    }
    let access_list = demo.snapshot.transaction(demo.transaction("access-list")).unwrap().unwrap();
    assert_eq!(access_list.transaction.access_list().unwrap()[0].storage_keys.len(), 3);
    let blobs = demo.snapshot.transaction(demo.transaction("three-blobs")).unwrap().unwrap();
    assert_eq!(blobs.transaction.blob_versioned_hashes().unwrap().len(), 3);
}

#[test]
fn receipts_have_a_root_before_byzantium_and_a_status_from_there_on() {
    let demo = Demo::new();
    for number in 1..=HEAD_NUMBER {
        for receipt in demo.snapshot.receipts(number).unwrap().unwrap() {
            let has_root = matches!(receipt.row.outcome, TransactionOutcome::Root(_));
            assert_eq!(has_root, number < first_block(Era::Byzantium), "block {number}");
        }
    }
    let two = demo.snapshot.receipts(demo.block("second-of-two")).unwrap().unwrap();
    assert_ne!(two[0].row.outcome, two[1].row.outcome);
}

#[test]
fn failures_are_there_in_every_kind() {
    let demo = Demo::new();
    let receipt = |name: &str| demo.snapshot.receipt(demo.transaction(name)).unwrap().unwrap().row;
    let failures = [
        "revert-reason",
        "revert-panic",
        "revert-custom",
        "revert-empty",
        "out-of-gas",
        "raw-failure",
        "head-failure",
    ];
    for name in failures {
        assert_eq!(receipt(name).outcome, TransactionOutcome::Status(false), "{name}");
        assert_eq!(receipt(name).logs, 0, "{name}");
    }
    assert_eq!(receipt("out-of-gas").gas_used, 100_000);
    assert!(receipt("revert-reason").gas_used < 100_000, "a revert gives back what gas is left");

    let early = demo.snapshot.transaction(demo.transaction("early-failure")).unwrap().unwrap();
    assert_eq!(
        receipt("early-failure").gas_used,
        early.transaction.gas_limit(),
        "no REVERT: all gas is gone"
    );
}

#[test]
fn contracts_were_created_where_the_facts_say_and_two_creations_failed() {
    let demo = Demo::new();
    let created = |name: &str| match demo.snapshot.receipt(demo.transaction(name)).unwrap().unwrap().row.to {
        Recipient::Created(address) => address,
        Recipient::Called(_) => panic!("{name} creates nothing"),
    };
    let names = [
        ("create-early", contracts::EARLY),
        ("create-doomed-1", contracts::DOOMED_EARLY),
        ("create-tour", contracts::TOUR),
        ("create-token", contracts::TOKEN),
        ("create-doomed-2", contracts::DOOMED),
        ("create-doomed-3", contracts::DOOMED_LATE),
        ("create-clock", contracts::CLOCK),
        ("create-wallet", contracts::WALLET),
        ("create-chatter", contracts::CHATTER),
        ("raw-creation", contracts::DOOMED_RAW),
    ];
    for (name, contract) in names {
        assert_eq!(created(name), contract.address(), "{name}");
        let state = demo.snapshot.state_at(demo.block(name));
        assert!(!state.code_of(contract.address()).unwrap().is_empty(), "{name}");
    }
    for name in ["early-creation-failure", "creation-failure"] {
        let state = demo.snapshot.state_at(HEAD_NUMBER);
        assert!(state.code_of(created(name)).unwrap().is_empty(), "{name}");
    }
}
