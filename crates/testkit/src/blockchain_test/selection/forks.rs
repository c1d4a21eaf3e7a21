//! The DAO fork, uncles, and headers that state something untrue.

use super::{
    TestWriter,
    writer::{call, contract, funded_sender},
};
use crate::asm::{Asm, op};
use alloy_consensus::proofs::calculate_ommers_root;
use alloy_genesis::GenesisAccount;
use alloy_primitives::{Address, B256, Bytes, U256, address};
use chain_builder::BlockPlan;
use serde_json::Value;

/// Two of the 116 accounts that the DAO fork drains, and the contract that gets what they had.
const DAO: Address = address!("bb9bc244d798123fde783fcc1c72d3bb8c189413");
const DAO_CHILD: Address = address!("d4fe7bc31cedb7bfb8a345f31e668033056b2728");
const REFUND: Address = address!("bf4ed7b27f1d666546e30d74d50d173d20bca754");

const READER: Address = address!("0000000000000000000000000000000000002001");

const DAO_FORK_BLOCK: u64 = 5;
const DAO_EXTRA_DATA: Bytes = Bytes::from_static(b"dao-hard-fork");

/// Stores the balances of a drained account and of the refund contract, under the number of the block.
fn balance_reader() -> Bytes {
    const BALANCE: u8 = 0x31;
    Asm::new()
        .push_address(DAO)
        .ops(&[BALANCE, op::NUMBER, op::SSTORE])
        .push_address(REFUND)
        .ops(&[BALANCE, op::NUMBER])
        .push(1_000)
        .ops(&[op::ADD, op::SSTORE, op::STOP])
        .finish()
}

fn dao_chain() -> TestWriter {
    let with_ether = |wei: u64| GenesisAccount { balance: U256::from(wei), ..GenesisAccount::default() };
    // One of the drained accounts keeps its code, one is left empty, and the other 114 do not exist.
    let accounts = [
        funded_sender(),
        contract(READER, balance_reader()),
        (DAO, GenesisAccount { code: Some(Bytes::from_static(&[op::STOP])), ..with_ether(1_000_000) }),
        (DAO_CHILD, with_ether(234)),
    ];
    TestWriter::new("HomesteadToDaoAt5", accounts)
}

fn dao_plan(number: u64) -> BlockPlan {
    let since_fork = number.checked_sub(DAO_FORK_BLOCK).filter(|blocks| *blocks < 10);
    BlockPlan { extra_data: since_fork.map(|_| DAO_EXTRA_DATA).unwrap_or_default(), ..BlockPlan::default() }
}

/// The transaction of the fork block sees drained accounts.
pub(super) fn dao_fork() -> (String, Value) {
    let mut test = dao_chain();
    for number in 1..=15 {
        let mut plan = dao_plan(number);
        if (4..=6).contains(&number) {
            plan.transactions = vec![call(number - 4, READER, Bytes::new())];
        }
        let built = test.builder.build(plan).expect("a block that is valid");
        if number == DAO_FORK_BLOCK || number == DAO_FORK_BLOCK + 9 {
            let mut without_support = built.block.clone();
            without_support.header.extra_data = Bytes::new();
            test.refuse(&without_support, "BlockException.EXTRA_DATA_INVALID_DAO");
        }
        test.add_accepted(&built);
    }
    test.finish(
        "dao_fork_drains_before_transactions",
        "The DAO is drained before the transactions of the fork block, accounts that are empty afterwards stay, and ten \
         blocks carry the extra data of the fork.",
    )
}

/// Uncles of the ten blocks carry the extra data, too.
pub(super) fn dao_fork_uncle() -> (String, Value) {
    let mut test = dao_chain();
    for number in 1..=6 {
        test.accept(dao_plan(number));
    }
    let mut uncle = test.builder.uncle_of(5, 1).expect("block 5 is there");
    let built = test.builder.build(dao_plan(7)).expect("a block that is valid");
    let mut block = built.block.clone();
    block.body.ommers = vec![uncle.clone()];
    block.header.ommers_hash = calculate_ommers_root(&block.body.ommers);
    test.refuse(&block, "BlockException.EXTRA_DATA_INVALID_DAO");
    test.add_accepted(&built);
    uncle.extra_data = DAO_EXTRA_DATA;
    test.accept(BlockPlan { uncles: vec![uncle], ..dao_plan(8) });
    test.finish(
        "dao_fork_uncle_extra_data",
        "An uncle from the ten blocks of the DAO fork needs the extra data of the fork.",
    )
}

/// Uncles beside the chain are paid; ancestors, repeated and too old ones are refused.
pub(super) fn uncles() -> (String, Value) {
    let mut test = TestWriter::new("Berlin", [funded_sender()]);
    for _ in 1..=8 {
        test.accept(BlockPlan::default());
    }
    let uncle = |test: &TestWriter, parent, salt| test.builder.uncle_of(parent, salt).expect("an ancestor");
    let paid = vec![uncle(&test, 7, 1), uncle(&test, 2, 2)];
    let built = test.builder.clone().build(BlockPlan { uncles: paid.clone(), ..BlockPlan::default() });
    let block = built.expect("a block that is valid").block;
    let ancestor = test.builder.header(7).expect("an ancestor").clone_inner();
    let refused = [
        (vec![uncle(&test, 1, 3)], "BlockException.UNCLE_TOO_OLD"),
        (vec![ancestor], "BlockException.UNCLE_IS_ANCESTOR"),
        (vec![uncle(&test, 7, 1), uncle(&test, 7, 1)], "BlockException.UNCLE_DUPLICATE"),
        ((0..3).map(|salt| uncle(&test, 7, salt)).collect(), "BlockException.TOO_MANY_UNCLES"),
    ];
    for (uncles, exception) in refused {
        let mut block = block.clone();
        block.header.ommers_hash = calculate_ommers_root(&uncles);
        block.body.ommers = uncles;
        test.refuse(&block, exception);
    }
    test.accept(BlockPlan { uncles: paid, ..BlockPlan::default() });
    test.finish("uncles", "Which uncles a block may have, and what they are paid.")
}

/// A block with everything right but one statement of its header.
pub(super) fn wrong_headers() -> (String, Value) {
    let mut test = TestWriter::new("Shanghai", [funded_sender()]);
    test.accept(BlockPlan::default());
    let transactions = vec![call(0, Address::repeat_byte(9), Bytes::new())];
    let built = test.builder.build(BlockPlan { transactions, ..BlockPlan::default() });
    let built = built.expect("a block that is valid");
    type Spoil = fn(&mut alloy_consensus::Header);
    let wrong: [(Spoil, &str); 5] = [
        (|header| header.state_root = B256::ZERO, "BlockException.INVALID_STATE_ROOT"),
        (|header| header.receipts_root = B256::ZERO, "BlockException.INVALID_RECEIPTS_ROOT"),
        (|header| header.gas_used += 1, "BlockException.INVALID_GAS_USED"),
        (|header| header.base_fee_per_gas = Some(1), "BlockException.INVALID_BASEFEE_PER_GAS"),
        (|header| header.logs_bloom.0[0] = 1, "BlockException.INVALID_LOG_BLOOM"),
    ];
    for (spoil, exception) in wrong {
        let mut block = built.block.clone();
        spoil(&mut block.header);
        test.refuse(&block, exception);
    }
    test.add_accepted(&built);
    test.finish("wrong_headers", "Every statement of a header is compared with what execution gives.")
}
