//! The changes of a block: who is gone, whose storage is void, and what is told when changes are taken in steps.

use super::*;
use alloy_primitives::{Bytes, keccak256};
use revm::state::{EvmStorageSlot, TransactionId};
use std::convert::Infallible;

/// Has an account with a balance and two slots.
const ALICE: Address = Address::repeat_byte(0xa1);
/// Has no account.
const BOB: Address = Address::repeat_byte(0xb0);

const ONE: U256 = U256::ONE;
const TWO: U256 = U256::from_limbs([2, 0, 0, 0]);

#[test]
fn an_account_that_was_only_looked_at_has_not_changed() {
    let mut state = state();
    let seen = evm_account(&mut state, ALICE);
    commit(&mut state, ALICE, seen);
    assert!(state.take_changes().accounts.is_empty());
}

#[test]
fn an_account_that_was_touched_and_is_the_same_has_not_changed() {
    let mut state = state();
    let touched = evm_account(&mut state, ALICE).with_touched_mark();
    commit(&mut state, ALICE, touched);
    assert!(state.take_changes().accounts.is_empty());
}

/// EIP-161: nonce, balance and code are nothing, so the account is nothing; its storage goes with it.
#[test]
fn an_account_that_was_touched_and_is_empty_is_gone() {
    let mut state = state();
    let emptied = evm_account(&mut state, ALICE).with_touched_mark().with_info(AccountInfo::default());
    commit(&mut state, ALICE, emptied);
    assert_eq!(state.basic(ALICE), Ok(None));
    assert_eq!(state.storage(ALICE, ONE), Ok(U256::ZERO));
    assert_eq!(change_of(&mut state, ALICE), AccountChange { wiped: true, ..AccountChange::default() });
}

#[test]
fn one_wei_one_nonce_or_any_code_is_enough_to_exist() {
    let some = [
        AccountInfo::from_balance(ONE),
        AccountInfo::default().with_nonce(1),
        AccountInfo::from_bytecode(code(&[0])),
    ];
    for info in some {
        let mut state = state();
        let touched = evm_account(&mut state, BOB).with_touched_mark().with_info(info.clone());
        commit(&mut state, BOB, touched);
        assert_eq!(state.basic(BOB).unwrap().unwrap().without_code(), info.without_code());
    }
}

/// Before EIP-161 a touch alone makes an account; the EVM marks it as created.
#[test]
fn an_empty_account_that_was_created_exists() {
    let mut state = state();
    let made = evm_account(&mut state, BOB).with_touched_mark().with_created_mark();
    commit(&mut state, BOB, made);
    let exists = AccountChange { account: Some(AccountState::default()), ..AccountChange::default() };
    assert_eq!(change_of(&mut state, BOB), exists);
}

#[test]
fn touching_nobody_changes_nothing() {
    let mut state = state();
    let touched = evm_account(&mut state, BOB).with_touched_mark();
    commit(&mut state, BOB, touched);
    assert!(state.take_changes().accounts.is_empty());
}

#[test]
fn writes_are_told_and_read_again_and_the_rest_comes_from_the_source() {
    let mut state = state();
    let written = writing(&mut state, ALICE, &[(ONE, U256::from(7))]);
    commit(&mut state, ALICE, written);
    assert_eq!(state.storage(ALICE, ONE), Ok(U256::from(7)));
    assert_eq!(state.storage(ALICE, TWO), Ok(TWO));
    let change = change_of(&mut state, ALICE);
    assert_eq!((change.wiped, change.storage), (false, BTreeMap::from([(ONE, U256::from(7))])));
}

#[test]
fn a_contract_that_destroys_itself_takes_what_it_wrote_with_it() {
    let mut state = state();
    let destroyed = writing(&mut state, ALICE, &[(ONE, U256::from(7))]).with_selfdestruct_mark();
    commit(&mut state, ALICE, destroyed);
    assert_eq!((state.storage(ALICE, ONE), state.storage(ALICE, TWO)), (Ok(U256::ZERO), Ok(U256::ZERO)));
    assert_eq!(change_of(&mut state, ALICE), AccountChange { wiped: true, ..AccountChange::default() });
}

#[test]
fn a_contract_made_again_where_one_was_destroyed_has_only_its_own_storage() {
    let mut state = state();
    let destroyed = evm_account(&mut state, ALICE).with_touched_mark().with_selfdestruct_mark();
    commit(&mut state, ALICE, destroyed);
    let made = writing(&mut state, ALICE, &[(TWO, U256::from(9))]).with_created_mark();
    let made = made.with_info(AccountInfo::default().with_nonce(1));
    commit(&mut state, ALICE, made);
    assert_eq!((state.storage(ALICE, ONE), state.storage(ALICE, TWO)), (Ok(U256::ZERO), Ok(U256::from(9))));
    let change = change_of(&mut state, ALICE);
    assert!(change.wiped && change.account.is_some());
    assert_eq!(change.storage, BTreeMap::from([(TWO, U256::from(9))]));
}

/// Nobody has storage of an account that was never told of, so there is nothing to wipe.
#[test]
fn a_new_contract_has_nothing_to_wipe() {
    let mut state = state();
    let made = writing(&mut state, BOB, &[(ONE, ONE)]).with_created_mark();
    commit(&mut state, BOB, made);
    assert!(!change_of(&mut state, BOB).wiped);
}

/// Before Byzantium changes are taken after every transaction. Whoever took the first step holds the storage of
/// a contract that the source has never seen; when it is destroyed in a later step, they must be told.
#[test]
fn a_contract_made_in_one_step_and_destroyed_in_the_next_is_wiped() {
    let mut state = state();
    let made = writing(&mut state, BOB, &[(ONE, ONE)]).with_created_mark();
    commit(&mut state, BOB, made.with_info(AccountInfo::default().with_nonce(1)));
    let mut all = state.take_changes();
    let destroyed = evm_account(&mut state, BOB).with_touched_mark().with_selfdestruct_mark();
    commit(&mut state, BOB, destroyed);
    let step = state.take_changes();
    assert_eq!(step.accounts[&BOB], AccountChange { wiped: true, ..AccountChange::default() });
    all.extend(step);
    assert_eq!(all.accounts[&BOB], AccountChange { wiped: true, ..AccountChange::default() });
}

#[test]
fn steps_put_together_are_the_same_as_one() {
    let steps = |state: &mut WorkingState<Source>, each: &mut dyn FnMut(&mut WorkingState<Source>)| {
        let written = writing(state, ALICE, &[(ONE, U256::from(7))]);
        commit(state, ALICE, written);
        each(state);
        let destroyed = evm_account(state, ALICE).with_touched_mark().with_selfdestruct_mark();
        commit(state, ALICE, destroyed);
        each(state);
        let made = writing(state, ALICE, &[(TWO, TWO)]).with_created_mark();
        commit(state, ALICE, made.with_info(AccountInfo::default().with_nonce(1)));
        each(state);
        let written = writing(state, ALICE, &[(TWO, U256::ZERO), (ONE, ONE)]);
        commit(state, ALICE, written);
    };
    let mut at_once = state();
    steps(&mut at_once, &mut |_| {});
    let (mut in_steps, mut sum) = (state(), StateChanges::default());
    steps(&mut in_steps, &mut |state| sum.extend(state.take_changes()));
    sum.extend(in_steps.take_changes());
    assert_eq!(sum.accounts, at_once.take_changes().accounts);
    assert_eq!(sum.accounts[&ALICE].storage, BTreeMap::from([(ONE, ONE), (TWO, U256::ZERO)]));
}

#[test]
fn changes_that_were_taken_are_not_told_again_but_still_there() {
    let mut state = state();
    let written = writing(&mut state, ALICE, &[(ONE, U256::from(7))]);
    commit(&mut state, ALICE, written);
    state.take_changes();
    assert!(state.take_changes().accounts.is_empty());
    assert_eq!(state.storage(ALICE, ONE), Ok(U256::from(7)));
}

#[test]
fn new_code_is_told_once_and_found_by_its_hash() {
    let mut state = state();
    let code = code(&[0x60, 0x00]);
    let hash = code.hash_slow();
    for address in [BOB, Address::repeat_byte(0xcc)] {
        let made = evm_account(&mut state, address).with_touched_mark().with_created_mark();
        commit(&mut state, address, made.with_info(AccountInfo::from_bytecode(code.clone())));
        let told = state.take_changes().code.contains_key(&hash);
        assert_eq!(told, address == BOB);
    }
    assert_eq!(state.code_by_hash(hash), Ok(code));
}

/// One account with a balance and two slots that hold their own numbers.
#[derive(Debug)]
struct Source;

impl StateSource for Source {
    type Error = Infallible;

    fn account(&self, address: Address) -> Result<Option<AccountState>, Infallible> {
        Ok((address == ALICE).then(|| AccountState { balance: TWO, ..AccountState::default() }))
    }

    fn storage(&self, address: Address, slot: U256) -> Result<U256, Infallible> {
        Ok(if address == ALICE && slot <= TWO { slot } else { U256::ZERO })
    }

    fn code(&self, _hash: B256) -> Result<Bytecode, Infallible> {
        Ok(Bytecode::default())
    }

    fn block_hash(&self, number: u64) -> Result<B256, Infallible> {
        Ok(keccak256(number.to_be_bytes()))
    }
}

fn state() -> WorkingState<Source> {
    WorkingState::new(Source)
}

/// The account as the EVM has it after it was loaded.
fn evm_account(state: &mut WorkingState<Source>, address: Address) -> EvmAccount {
    match state.basic(address).unwrap() {
        Some(info) => EvmAccount::from(info),
        None => EvmAccount::new_not_existing(TransactionId::ZERO),
    }
}

/// The account after the EVM wrote some of its slots.
fn writing(state: &mut WorkingState<Source>, address: Address, slots: &[(U256, U256)]) -> EvmAccount {
    let storage = slots.iter().map(|(slot, value)| {
        let before = state.storage(address, *slot).unwrap();
        (*slot, EvmStorageSlot::new_changed(before, *value, TransactionId::ZERO))
    });
    let storage: Vec<_> = storage.collect();
    evm_account(state, address).with_touched_mark().with_storage(storage.into_iter())
}

fn commit(state: &mut WorkingState<Source>, address: Address, account: EvmAccount) {
    state.commit(AddressMap::from_iter([(address, account)]));
}

fn change_of(state: &mut WorkingState<Source>, address: Address) -> AccountChange {
    state.take_changes().accounts.remove(&address).unwrap()
}

fn code(bytes: &'static [u8]) -> Bytecode {
    Bytecode::new_legacy(Bytes::from_static(bytes))
}
