//! Our working state against revm's own: the same random chains on both must leave the same accounts and slots after
//! every block. What an account's life can do to its storage is where such states go wrong.

use alloy_consensus::{Receipt as PlainReceipt, TxType, transaction::Recovered};
use alloy_evm::{
    Evm, EvmFactory,
    block::BlockExecutor,
    eth::{
        EthBlockExecutionCtx, EthBlockExecutor, EthEvmFactory,
        receipt_builder::{ReceiptBuilder, ReceiptBuilderCtx},
    },
};
use alloy_primitives::{Address, U256, map::U256Map};
use archive::{AccountState, ChainSpec, Receipt, Transaction};
use chain_builder::{BuiltBlock, StoredAccount};
use revm::{
    context_interface::result::ExecutionResult,
    database::{EmptyDB, State, states::block_hash_cache::BlockHashCache},
    state::{AccountInfo, Bytecode},
};
use std::collections::BTreeMap;
use testkit::{
    chain::{Size, random_chain},
    model::Model,
};

#[test]
fn every_state_of_a_random_chain_is_the_one_that_revm_keeps() {
    for seed in 0..10 {
        let model = random_chain(seed, Size::default());
        let mut state = genesis_state(&model);
        for block in model.blocks() {
            let number = block.block.header.number;
            execute(model.builder().spec(), &mut state, block);
            state.block_hashes.extend([(number, block.hash)]);
            assert_eq!(&accounts(&state), model.state(number).unwrap(), "seed {seed}, block {number}");
        }
    }
}

fn genesis_state(model: &Model) -> State<EmptyDB> {
    let mut hashes = BlockHashCache::new();
    hashes.extend([(0, model.header(0).unwrap().hash())]);
    let mut state = State::builder().with_block_hashes(hashes).build();
    for (address, stored) in model.state(0).unwrap() {
        let info = AccountInfo {
            nonce: stored.account.nonce,
            balance: stored.account.balance,
            code_hash: stored.account.code_hash,
            code: Some(Bytecode::new_raw(model.code_at(*address, 0))),
            account_id: None,
        };
        let storage: U256Map<U256> = stored.storage.iter().map(|(slot, value)| (*slot, *value)).collect();
        state.insert_account_with_storage(*address, info, storage);
    }
    state
}

fn execute(spec: &ChainSpec, state: &mut State<EmptyDB>, built: &BuiltBlock) {
    let block = &built.block;
    let rules = spec.rules_at(&block.header);
    let context = EthBlockExecutionCtx {
        parent_hash: block.header.parent_hash,
        parent_beacon_block_root: block.header.parent_beacon_block_root,
        ommers: &block.body.ommers,
        withdrawals: block.body.withdrawals.as_ref().map(|list| list.as_slice().into()),
        extra_data: block.header.extra_data.clone(),
        tx_count_hint: None,
        slot_number: None,
    };
    let evm = EthEvmFactory::default().create_evm(state, rules.evm_env(&block.header));
    let mut executor = EthBlockExecutor::new(evm, context, rules, Receipts);
    executor.apply_pre_execution_changes().unwrap();
    for (transaction, sender) in block.body.transactions.iter().zip(&built.senders) {
        executor.execute_transaction(Recovered::new_unchecked(transaction, *sender)).unwrap();
    }
    let (_, result) = executor.finish().unwrap();
    assert_eq!(result.gas_used, block.header.gas_used);
}

/// Everything that is there, without the slots that are zero.
fn accounts(state: &State<EmptyDB>) -> BTreeMap<Address, StoredAccount> {
    let accounts = state.cache.trie_account().into_iter().map(|(address, plain)| {
        let AccountInfo { nonce, balance, code_hash, .. } = plain.info;
        let written = plain.storage.iter().filter(|(_, value)| !value.is_zero());
        let storage = written.map(|(slot, value)| (*slot, *value)).collect();
        (address, StoredAccount { account: AccountState { nonce, balance, code_hash }, storage })
    });
    accounts.collect()
}

struct Receipts;

impl ReceiptBuilder for Receipts {
    type Transaction = Transaction;
    type Receipt = Receipt;

    fn build_receipt<E: Evm>(&self, ctx: ReceiptBuilderCtx<'_, TxType, E>) -> Receipt {
        let (status, logs) = (ctx.result.is_success().into(), ExecutionResult::into_logs(ctx.result));
        let plain = PlainReceipt { status, cumulative_gas_used: ctx.cumulative_gas_used, logs };
        Receipt::from_typed(ctx.tx_type, plain)
    }
}
