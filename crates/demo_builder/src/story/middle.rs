//! Byzantium to Paris: status and reasons, access lists, base fees, and the end of proof of work.

use super::{ether, everyday_until, everyday_until_era, tenths, token_transfer};
use crate::{
    accounts::{ALICE, BOB, CAROL, DAVE, ERIN},
    contracts::{DOOMED, LOAD, TOKEN, TOUR, abi, unborn},
    schedule::first_block,
    writer::{Envelope, TransactionAction, Writer},
};
use alloy_eips::eip2930::{AccessList, AccessListItem};
use alloy_primitives::{B256, U256};
use chain_builder::{BuildError, Era};

pub(super) fn write(w: &mut Writer) -> Result<(), BuildError> {
    byzantium(w)?;
    constantinople_to_muir_glacier(w)?;
    berlin(w)?;
    london_to_gray_glacier(w)?;
    paris(w)
}

fn byzantium(w: &mut Writer) -> Result<(), BuildError> {
    w.send(&ERIN, TransactionAction::create(TOUR.init_code()));
    w.mark("create-tour", "creates Tour; the first receipts with a status");
    w.send(&ERIN, TransactionAction::create(TOKEN.init_code()));
    w.mark("create-token", "creates Token; all of it is Alice's");
    w.send(&ERIN, TransactionAction::create(LOAD.init_code()));
    w.seal()?;

    for who in [&BOB, &CAROL, &DAVE] {
        w.send(&ALICE, token_transfer(who, ether(10_000)));
    }
    w.mark_block("token-transfers", "three transfers of 10,000 tokens, one log each");
    w.seal()?;

    w.send(
        &ALICE,
        TransactionAction::call(TOUR.address(), &abi::Tour::announceCall { value: U256::from(42) }),
    );
    w.mark(
        "all-topics",
        "seven logs: two without topics, and one each with an anonymous topic, 1, 2, 3 and 4",
    );
    w.seal()?;

    failures(w)?;

    w.send(&CAROL, TransactionAction::create(unborn()));
    w.mark("creation-failure", "a creation that reverts: status 0, no code at its contractAddress");
    w.seal()?;
    everyday_until_era(w, Era::Constantinople)
}

fn failures(w: &mut Writer) -> Result<(), BuildError> {
    w.send(&ALICE, TransactionAction::call(TOUR.address(), &abi::Tour::failWithReasonCall {}));
    w.mark("revert-reason", "reverts with a reason: status 0");
    w.send(&ALICE, TransactionAction::call(TOUR.address(), &abi::Tour::failWithAssertCall {}));
    w.mark("revert-panic", "reverts with a panic (assert)");
    w.send(
        &ALICE,
        TransactionAction::call(TOUR.address(), &abi::Tour::failWithErrorCall { wanted: U256::from(99) }),
    );
    w.mark("revert-custom", "reverts with a custom error");
    w.send(&ALICE, TransactionAction::call(TOUR.address(), &abi::Tour::failWithoutReasonCall {}));
    w.mark("revert-empty", "reverts without a reason");
    w.send(&ALICE, TransactionAction::call(TOUR.address(), &abi::Tour::spinCall {}).with_gas(100_000));
    w.mark("out-of-gas", "runs until its gas is gone");
    w.seal()
}

fn constantinople_to_muir_glacier(w: &mut Writer) -> Result<(), BuildError> {
    everyday_until(w, first_block(Era::Constantinople) + 3)?;
    w.uncle(3);
    w.mark_block("late-uncle", "an uncle after Byzantium");
    w.seal()?;
    everyday_until_era(w, Era::Berlin)
}

fn berlin(w: &mut Writer) -> Result<(), BuildError> {
    let storage_keys = [0, 1, 2].map(B256::with_last_byte).to_vec();
    let list = AccessList(vec![AccessListItem { address: TOUR.address(), storage_keys }]);
    let bump = TransactionAction::call(TOUR.address(), &abi::Tour::bumpCall {});
    w.send_in(Envelope::AccessList(list), &BOB, bump);
    w.mark("access-list", "the first transaction of type 1 (EIP-2930), with an access list");
    w.seal()?;
    everyday_until_era(w, Era::London)
}

fn london_to_gray_glacier(w: &mut Writer) -> Result<(), BuildError> {
    w.mark_block("london", "the first block with a base fee; its gas limit is twice its parent's");
    w.send_in(Envelope::DynamicFee, &ALICE, TransactionAction::pay(&BOB, tenths(5)));
    w.mark("dynamic-fee", "the first transaction of type 2 (EIP-1559)");
    w.seal()?;

    w.send(&ERIN, TransactionAction::create(DOOMED.init_code()).with_value(ether(2)));
    w.mark("create-doomed-2", "creates a contract with 2 ether, to be destroyed after the merge");
    w.seal()?;
    everyday_until_era(w, Era::Paris)
}

fn paris(w: &mut Writer) -> Result<(), BuildError> {
    w.mark_block("merge", "the first block without proof of work: difficulty 0, mixHash is random");
    w.send(&ALICE, TransactionAction::pay(&CAROL, tenths(1)));
    w.seal()?;

    w.send(&CAROL, TransactionAction::call(DOOMED.address(), &abi::Doomed::endCall { heir: CAROL.address }));
    w.mark("end-doomed-2", "self-destruction before Cancun: the contract is gone");
    w.seal()?;
    everyday_until_era(w, Era::Shanghai)
}
