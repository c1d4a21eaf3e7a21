//! Runs on parts of a world, begun again until all that they read is known, come to the same as on the whole of it.

use super::*;
use crate::{
    call::{CallError, CallLimits, Deadline, Overrides, StopReason, call, tests::support::*},
    estimate::estimate,
};
use alloy_primitives::keccak256;
use revm::primitives::hardfork::SpecId;
use std::time::Duration;

const SPEC: SpecId = SpecId::PRAGUE;

/// The parts of a world that were asked for.
struct Known<'w> {
    world: &'w World,
    parts: StateParts,
}

impl KnownState for &Known<'_> {
    fn account(&self, address: Address) -> Option<Option<AccountState>> {
        let is_known = self.parts.accounts.contains(&address);
        is_known.then(|| self.world.accounts.get(&address).copied())
    }

    fn storage(&self, address: Address, slot: U256) -> Option<U256> {
        let is_known = self.parts.slots.contains(&(address, slot));
        is_known.then(|| self.world.storage.get(&(address, slot)).copied().unwrap_or_default())
    }

    fn code(&self, hash: B256) -> Option<ContractCode> {
        let is_known = self.parts.code.iter().any(|(_, known)| *known == hash);
        is_known.then(|| ContractCode::new(self.world.code[&hash].original_bytes()))
    }

    fn block_hash(&self, number: u64) -> Option<B256> {
        self.parts.block_hashes.contains(&number).then(|| keccak256(number.to_be_bytes()))
    }
}

/// Runs until nothing is missing; says what it came to, and in how many runs.
fn completed<T>(world: &World, run: impl Fn(&PartialState<&Known<'_>>) -> T) -> (T, usize) {
    let mut known = Known { world, parts: StateParts::default() };
    for runs in 1..100 {
        let state = PartialState::new(&known);
        let outcome = run(&state);
        let missing = state.into_reads().missing;
        if missing.is_empty() {
            return (outcome, runs);
        }
        known.parts.accounts.extend(missing.accounts);
        known.parts.slots.extend(missing.slots);
        known.parts.code.extend(missing.code);
        known.parts.block_hashes.extend(missing.block_hashes);
    }
    panic!("something is missing for ever");
}

/// Whether a call and an estimate come to the same as on the whole world; gives the runs that the call took.
fn runs_as_on_the_whole(world: &World) -> usize {
    let (chain, header, limits) = (chain(SPEC), header(SPEC), limits());
    let rules = chain.rules_at(&header);
    let (called, runs) =
        completed(world, |state| call(state, rules, &header, to_contract(), Overrides::default(), &limits));
    let whole = call_at(SPEC, world, to_contract(), &limits);
    assert_eq!(format!("{called:?}"), format!("{whole:?}"));
    let (estimated, _) = completed(world, |state| {
        estimate(state, rules, &header, to_contract(), Overrides::default(), &limits)
    });
    let whole = estimate_at(SPEC, world, to_contract(), &limits);
    assert_eq!(format!("{estimated:?}"), format!("{whole:?}"));
    runs
}

#[test]
fn slots_that_do_not_depend_on_each_other_are_found_in_one_run() {
    let sum = (0..20).map(|slot| format!("{slot:#04x} SLOAD ADD ")).collect::<String>();
    let code = asm(&format!("0x00 {sum} {RETURN_TOP}"));
    let world = (0..20).fold(World::default().with_code(CONTRACT, code), |world, slot| {
        world.with_slot(CONTRACT, slot, slot * slot)
    });
    // The sender, the contract, its code, all slots, who gets the fees, and the run that has all of it.
    let runs = runs_as_on_the_whole(&world);
    assert!(runs < 10, "{runs}");
}

#[test]
fn slots_that_others_lead_to_are_found_one_after_another() {
    let code = asm(&format!("0x00 SLOAD SLOAD SLOAD {RETURN_TOP}"));
    let world = World::default().with_code(CONTRACT, code);
    let world = world.with_slot(CONTRACT, 0, 7).with_slot(CONTRACT, 7, 9).with_slot(CONTRACT, 9, 1);
    runs_as_on_the_whole(&world);
}

#[test]
fn a_revert_that_a_guess_leads_to_is_no_answer() {
    // Reverts while the slot is zero, which it is not.
    let code = asm("0x00 SLOAD @good JUMPI 0x00 0x00 REVERT :good 0x01 0x00 MSTORE 0x20 0x00 RETURN");
    runs_as_on_the_whole(&World::default().with_code(CONTRACT, code.clone()).with_slot(CONTRACT, 0, 5));
    runs_as_on_the_whole(&World::default().with_code(CONTRACT, code));
}

/// A contract that only ends if a slot is not zero.
#[test]
fn a_loop_that_a_guess_leads_to_ends_soon() {
    let code = asm("0x00 SLOAD :again DUP1 @end JUMPI @again JUMP :end 0x00 0x00 RETURN");
    let world = World::default().with_code(CONTRACT, code).with_slot(CONTRACT, 0, 5);
    runs_as_on_the_whole(&world);
    let (chain, header) = (chain(SPEC), header(SPEC));
    let mut parts = StateParts::default();
    parts.accounts.extend([Address::ZERO, CONTRACT, header.beneficiary]);
    parts.code.insert((CONTRACT, world.accounts[&CONTRACT].code_hash));
    let known = Known { world: &world, parts };
    let state = PartialState::new(&known);
    // With this much gas, nothing but the end of guessing stops it before the deadline.
    let deadline = Some(Deadline::after(Duration::from_secs(120)));
    let limits = CallLimits { gas_cap: u64::MAX / 4, deadline, ..limits() };
    let rules = chain.rules_at(&header);
    let stopped = call(&state, rules, &header, to_contract(), Overrides::default(), &limits).unwrap_err();
    assert!(matches!(stopped, CallError::Stopped(StopReason::Cancelled)), "{stopped:?}");
    assert_eq!(state.into_reads().missing.slots.len(), 1);
}

#[test]
fn other_accounts_their_code_and_block_hashes_are_found() {
    let other = format!("0x{}", alloy_primitives::hex::encode(OTHER));
    let code = asm(&format!(
        "0x20 0x00 0x00 0x00 0x00 {other} 0x186a0 CALL POP 0x00 MLOAD {other} BALANCE ADD 0x63 BLOCKHASH ADD {RETURN_TOP}"
    ));
    let callee = asm("0x03 SLOAD 0x00 MSTORE 0x20 0x00 RETURN");
    let world = World::default().with_code(CONTRACT, code).with_code(OTHER, callee);
    runs_as_on_the_whole(&world.with_slot(OTHER, 3, 77).with_balance(OTHER, 5));
}

#[test]
fn what_was_read_is_told() {
    let world = World::default().with_code(CONTRACT, asm(&format!("0x04 SLOAD {RETURN_TOP}")));
    let (chain, header, limits) = (chain(SPEC), header(SPEC), limits());
    let mut parts = StateParts::default();
    parts.accounts.extend([Address::ZERO, CONTRACT, header.beneficiary]);
    parts.slots.insert((CONTRACT, U256::from(4)));
    parts.code.insert((CONTRACT, world.accounts[&CONTRACT].code_hash));
    let known = Known { world: &world, parts };
    let state = PartialState::new(&known);
    call(&state, chain.rules_at(&header), &header, to_contract(), Overrides::default(), &limits).unwrap();
    let StateReads { found, missing } = state.into_reads();
    assert!(missing.is_empty());
    assert_eq!((found.slots, found.code), (known.parts.slots.clone(), known.parts.code.clone()));
    assert!(found.accounts.contains(&CONTRACT) && found.accounts.is_subset(&known.parts.accounts));
}
