//! A small chain across the merge. Longer ones, through every fork, are the testkit's.

use crate::{BlockPlan, BuildError, BuiltBlock, ChainBuilder, Signer, system_contracts, write_blocks};
use alloy_consensus::{TxEip1559, TxLegacy, transaction::SignerRecoverable};
use alloy_eips::eip4895::Withdrawal;
use alloy_genesis::{ChainConfig, Genesis, GenesisAccount};
use alloy_primitives::{Address, B256, Bytes, U256};
use alloy_rlp::Decodable;
use archive::Block;

/// The minimum, and the difficulty of every block here.
const DIFFICULTY: u64 = 131_072;

/// Proof of work for three blocks after the genesis, then everything up to Osaka at once.
fn genesis() -> Genesis {
    let (start, merged) = (Some(0), Some(1100));
    let config = ChainConfig {
        chain_id: 9,
        homestead_block: start,
        eip150_block: start,
        eip155_block: start,
        eip158_block: start,
        byzantium_block: start,
        constantinople_block: start,
        petersburg_block: start,
        istanbul_block: start,
        berlin_block: start,
        london_block: Some(2),
        terminal_total_difficulty: Some(U256::from(DIFFICULTY * 4)),
        shanghai_time: merged,
        cancun_time: merged,
        prague_time: merged,
        osaka_time: merged,
        ..ChainConfig::default()
    };
    let rich = GenesisAccount { balance: U256::from(10).pow(U256::from(20)), ..GenesisAccount::default() };
    let difficulty = U256::from(DIFFICULTY);
    Genesis { config, difficulty, timestamp: 1000, gas_limit: 10_000_000, ..Genesis::default() }
        .extend_accounts(system_contracts().into_iter().chain([(signer().address(), rich)]))
}

fn signer() -> Signer {
    Signer::from_seed(B256::repeat_byte(1))
}

fn builder() -> ChainBuilder {
    ChainBuilder::new(genesis()).expect("a good genesis")
}

fn transfer(nonce: u64) -> TxLegacy {
    TxLegacy {
        nonce,
        gas_price: 2_000_000_000,
        gas_limit: 21_000,
        to: Address::repeat_byte(7).into(),
        value: U256::from(5),
        ..TxLegacy::default()
    }
}

/// Three blocks with proof of work, one with two uncles, and two without.
fn small_chain() -> (ChainBuilder, Vec<BuiltBlock>) {
    let mut chain = builder();
    let mut blocks = Vec::new();
    for number in 1..=5 {
        let mut plan = BlockPlan { timestamp: Some(1000 + 25 * number), ..BlockPlan::default() };
        if number == 3 {
            plan.uncles = [0, 1].map(|parent| chain.uncle_of(parent, 0).expect("its parent is there")).into();
        }
        if number >= 4 {
            plan.withdrawals = vec![Withdrawal { amount: 3, ..Withdrawal::default() }];
        }
        plan.transactions = vec![signer().sign(transfer(number - 1))];
        blocks.push(chain.build(plan).expect("a valid block"));
    }
    (chain, blocks)
}

#[test]
fn a_chain_goes_through_the_merge() {
    let (chain, blocks) = small_chain();
    let difficulties = blocks.iter().map(|block| block.block.header.difficulty);
    let expected = [DIFFICULTY, DIFFICULTY, DIFFICULTY, 0, 0].map(U256::from);
    assert_eq!(difficulties.collect::<Vec<_>>(), expected);
    assert_eq!(blocks[1].block.header.gas_limit, 20_000_000, "London doubles the limit");
    assert_eq!(blocks[1].block.header.base_fee_per_gas, Some(1_000_000_000));
    assert_eq!(blocks[2].block.body.ommers.len(), 2);
    assert!(blocks[4].block.header.requests_hash.is_some());
    assert_eq!(chain.state().account(Address::repeat_byte(7)).expect("it was paid").balance, U256::from(25));
    assert_eq!(chain.head().hash(), blocks[4].hash);
}

#[test]
fn the_same_plans_give_the_same_chain() {
    assert_eq!(small_chain().0.head().hash(), small_chain().0.head().hash());
}

#[test]
fn a_file_of_blocks_is_read_back() {
    let (_, blocks) = small_chain();
    let mut file = Vec::new();
    write_blocks(&blocks, &mut file).expect("memory takes any bytes");
    let mut rest = file.as_slice();
    for built in &blocks {
        assert_eq!(Block::decode(&mut rest).expect("a block"), built.block);
    }
    assert!(rest.is_empty());
}

#[test]
fn a_plan_that_fails_leaves_the_chain_as_it_was() {
    let mut chain = builder();
    let (head, root) = (chain.head().hash(), chain.state().root());
    let too_late = BlockPlan { transactions: vec![signer().sign(transfer(1))], ..BlockPlan::default() };
    assert!(matches!(chain.build(too_late), Err(BuildError::Execution(_))));
    let wordy = BlockPlan { extra_data: Bytes::from_static(&[0; 33]), ..BlockPlan::default() };
    assert!(matches!(chain.build(wordy), Err(BuildError::Rules(_))));
    let early = BlockPlan { withdrawals: vec![Withdrawal::default()], ..BlockPlan::default() };
    assert!(matches!(chain.build(early), Err(BuildError::Rules(_))));
    assert_eq!((chain.head().hash(), chain.state().root()), (head, root));
    chain.build(BlockPlan::default()).expect("the chain goes on");
}

#[test]
fn an_uncle_is_included_once_and_never_after_the_merge() {
    let mut chain = builder();
    chain.build(BlockPlan { timestamp: Some(1020), ..BlockPlan::default() }).expect("a valid block");
    let uncle = chain.uncle_of(0, 0).expect("its parent is there");
    assert_ne!(uncle, chain.uncle_of(0, 1).expect("its parent is there"));
    assert_eq!(chain.uncle_of(9, 0), None);
    let plan = BlockPlan { uncles: vec![uncle], ..BlockPlan::default() };
    chain.build(plan.clone()).expect("a valid block");
    assert!(matches!(chain.build(plan), Err(BuildError::Rules(_))));

    let (mut merged, _) = small_chain();
    let uncle = merged.uncle_of(4, 0).expect("its parent is there");
    let plan = BlockPlan { uncles: vec![uncle], ..BlockPlan::default() };
    assert!(matches!(merged.build(plan), Err(BuildError::Rules(_))));
}

#[test]
fn a_signature_names_its_signer() {
    let signer = Signer::from_seed(B256::ZERO);
    let protected = TxLegacy { chain_id: Some(9), ..transfer(0) };
    for signed in [signer.sign(transfer(0)), signer.sign(protected), signer.sign(TxEip1559::default())] {
        assert_eq!(signed.signer(), signer.address());
        assert_eq!(signed.recover_signer().expect("a signature"), signer.address());
    }
    assert!(!format!("{signer:?}").contains("key"));
}
