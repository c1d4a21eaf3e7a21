//! Random chains through every fork, beside a naive model that keeps everything: whatever is asked of the
//! archive, at whatever block, must be what the model says.

use alloy_consensus::{Transaction as _, TxReceipt};
use alloy_primitives::{Address, B256, U256};
use archive::{
    Archive, BlockFile, LogFilter, LogLimits, LogRef, Recipient, Snapshot, StateSource, TransactionOutcome,
};
use rand::{Rng, SeedableRng, rngs::SmallRng, seq::IteratorRandom};
use std::ops::ControlFlow;
use testkit::{
    chain::{Size, random_chain},
    model::{MinedLog, Model, ModelTransaction},
};

/// More seeds for whoever has the time: `CHAINGATE_RANDOM_CHAINS=1000`.
fn seeds() -> u64 {
    std::env::var("CHAINGATE_RANDOM_CHAINS").ok().and_then(|number| number.parse().ok()).unwrap_or(6)
}

#[test]
fn every_read_of_a_random_chain_equals_the_model() {
    for seed in 0..seeds() {
        let model = random_chain(seed, Size::default());
        let directory = tempfile::tempdir().unwrap();
        let archive = imported_in_two_goes(&model, directory.path(), seed);
        let snapshot = archive.snapshot();
        assert_eq!(snapshot.head(), model.head(), "seed {seed}");
        blocks_agree(&snapshot, &model);
        transactions_agree(&snapshot, &model);
        states_agree(&snapshot, &model);
        logs_agree(&snapshot, &model, seed);
    }
}

/// Imports a part, closes the archive, and goes on from the same file.
fn imported_in_two_goes(model: &Model, directory: &std::path::Path, seed: u64) -> Archive {
    let part = (seed as usize * 7) % model.blocks().len();
    let archive = Archive::open_or_create(directory, &model.genesis_json()).unwrap();
    let blocks: Vec<_> = model.blocks()[..part].iter().map(|built| built.block.clone()).collect();
    archive.import_blocks(blocks, &mut archive::NoProgress).unwrap();
    drop(archive);

    let file = directory.join("chain.rlp");
    std::fs::write(&file, model.rlp()).unwrap();
    let archive = Archive::open(directory).unwrap();
    let progress = archive.import(BlockFile::open(&file).unwrap(), &mut archive::NoProgress).unwrap();
    assert_eq!(progress.skipped, part as u64);
    archive
}

fn blocks_agree(snapshot: &Snapshot, model: &Model) {
    for number in 0..=model.head() {
        let header = model.header(number).unwrap();
        let data = snapshot.block(number).unwrap().unwrap();
        assert_eq!((data.summary.hash, &data.header), (header.hash(), header.inner()), "block {number}");
        assert_eq!(snapshot.number_of(header.hash()).unwrap(), Some(number));
        let Some(built) = model.block(number) else { continue };
        assert_eq!(data.uncles, built.block.body.ommers);
        assert_eq!(data.withdrawals, built.block.body.withdrawals);
        assert_eq!(data.summary.size as usize, built.rlp().len());
        for index in 0..3 {
            let uncle = built.block.body.ommers.get(index).cloned();
            assert_eq!(snapshot.uncle(number, index).unwrap(), uncle);
        }
    }
    let beyond = model.head() + 1;
    assert!(snapshot.block(beyond).unwrap().is_none());
    assert!(snapshot.receipts(beyond).unwrap().is_none());
}

fn transactions_agree(snapshot: &Snapshot, model: &Model) {
    for mined in model.transactions() {
        let (hash, number) = (*mined.transaction.tx_hash(), mined.block.block.header.number);
        let found = snapshot.transaction(hash).unwrap().unwrap();
        assert_eq!((&found.transaction, found.sender), (mined.transaction, mined.sender));
        assert_eq!((found.block.number, found.block.hash), (number, mined.block.hash));
        assert_eq!(found.index as usize, mined.index);
        let by_index = snapshot.transaction_at(number, mined.index as u64).unwrap().unwrap();
        assert_eq!(by_index.hash, hash);
        receipt_agrees(snapshot, &mined, hash);
    }
    assert!(snapshot.transaction(B256::repeat_byte(1)).unwrap().is_none());
    assert!(snapshot.transaction_at(0, 0).unwrap().is_none());
}

fn receipt_agrees(snapshot: &Snapshot, mined: &ModelTransaction<'_>, hash: B256) {
    let found = snapshot.receipt(hash).unwrap().unwrap();
    let outcome = match found.row.outcome {
        TransactionOutcome::Status(status) => alloy_consensus::Eip658Value::Eip658(status),
        TransactionOutcome::Root(root) => alloy_consensus::Eip658Value::PostState(root),
    };
    assert_eq!(outcome, mined.receipt.status_or_post_state());
    assert_eq!(found.row.cumulative_gas_used, mined.receipt.cumulative_gas_used());
    let before = mined.index.checked_sub(1).map_or(0, |i| mined.block.receipts[i].cumulative_gas_used());
    assert_eq!(found.row.gas_used, mined.receipt.cumulative_gas_used() - before);
    let to = match mined.transaction.to() {
        Some(address) => Recipient::Called(address),
        None => Recipient::Created(mined.sender.create(mined.transaction.nonce())),
    };
    assert_eq!((found.row.from, found.row.to), (mined.sender, to));
    assert_eq!(&found.row.bloom, mined.receipt.logs_bloom());
    let mut logs = Vec::new();
    let _ = snapshot.logs_by_ordinal(found.log_ordinals()).read(|log| {
        logs.push((Address::from(log.address()), log.data().to_vec()));
        ControlFlow::<()>::Continue(())
    });
    let expected: Vec<_> =
        mined.receipt.logs().iter().map(|log| (log.address, log.data.data.to_vec())).collect();
    assert_eq!(logs, expected);
}

fn states_agree(snapshot: &Snapshot, model: &Model) {
    let (addresses, slots) = (model.addresses(), model.slots());
    for number in 0..=model.head() {
        let state = snapshot.state_at(number);
        for address in &addresses {
            assert_eq!(
                state.account(*address).unwrap(),
                model.account_at(*address, number),
                "{address} at {number}"
            );
            assert_eq!(state.code_of(*address).unwrap(), model.code_at(*address, number));
        }
        for (address, slot) in &slots {
            let expected = model.storage_at(*address, *slot, number);
            assert_eq!(state.storage(*address, *slot).unwrap(), expected, "{address} {slot} at {number}");
        }
    }
    let nobody = Address::repeat_byte(0xdd);
    assert_eq!(snapshot.state_at(0).account(nobody).unwrap(), None);
    assert_eq!(snapshot.state_at(0).storage(nobody, U256::MAX).unwrap(), U256::ZERO);
}

fn logs_agree(snapshot: &Snapshot, model: &Model, seed: u64) {
    let mut random = SmallRng::seed_from_u64(seed);
    let (addresses, topics) = (model.addresses(), model.topics());
    for _ in 0..200 {
        let filter = LogFilter {
            addresses: addresses
                .iter()
                .copied()
                .choose_multiple(&mut random, 2)
                .split_off(random.random_range(0..=2)),
            topics: (0..random.random_range(0..=4))
                .map(|_| {
                    topics
                        .iter()
                        .copied()
                        .choose_multiple(&mut random, 3)
                        .split_off(random.random_range(0..=3))
                })
                .collect(),
        };
        let from = random.random_range(0..=model.head());
        let to = random.random_range(from..=model.head());
        assert_eq!(found(snapshot, &filter, from, to), model.logs(&filter, from..=to), "{filter:?}");
    }
}

fn found(snapshot: &Snapshot, filter: &LogFilter, from: u64, to: u64) -> Vec<MinedLog> {
    let found = snapshot.logs(from..=to, filter, LogLimits::NONE).unwrap();
    let mut logs = Vec::new();
    let _ = found.read(|log| {
        logs.push(mined(&log));
        ControlFlow::<()>::Continue(())
    });
    assert_eq!(found.len(), logs.len() as u64);
    logs
}

fn mined(log: &LogRef<'_>) -> MinedLog {
    let topics = log.topics().iter().map(|topic| B256::from(*topic)).collect();
    MinedLog {
        block_number: log.block_number(),
        block_hash: B256::from(*log.block_hash()),
        transaction_hash: B256::from(*log.transaction_hash()),
        transaction_index: u64::from(log.transaction_index()),
        log_index: u64::from(log.log_index()),
        log: alloy_primitives::Log::new_unchecked(log.address().into(), topics, log.data().to_vec().into()),
    }
}
