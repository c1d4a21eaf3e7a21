//! Frontier to Spurious Dragon: receipts carry state roots, failures take all gas, transactions name no chain.

use super::{ether, everyday_until_era};
use crate::{
    accounts::{ALICE, BOB, CAROL, ERIN},
    contracts::{DOOMED_EARLY, EARLY, abi, unborn},
    writer::{Envelope, TransactionAction, Writer},
};
use chain_builder::{BuildError, Era};

pub(super) fn write(w: &mut Writer) -> Result<(), BuildError> {
    frontier(w)?;
    homestead(w)?;
    tangerine_whistle(w)?;
    spurious_dragon(w)
}

fn frontier(w: &mut Writer) -> Result<(), BuildError> {
    w.mark_block("empty-block", "the first block after the genesis; it has no transactions");
    w.seal()?;

    w.send(&ALICE, TransactionAction::pay(&BOB, ether(1)));
    w.mark("first-payment", "the first transaction: 1 ether from Alice to Bob");
    w.seal()?;

    w.send(&ERIN, TransactionAction::create(EARLY.init_code()));
    w.mark("create-early", "creates Early; its receipt has a root and no status");
    w.seal()?;

    for who in [&ALICE, &BOB] {
        w.send(who, TransactionAction::call(EARLY.address(), &abi::Early::addCall {}));
    }
    w.mark("second-of-two", "the second transaction of its block; the roots of the two receipts differ");
    w.seal()?;

    w.uncle(2);
    w.mark_block("one-uncle", "has one uncle");
    w.seal()?;

    w.send(&CAROL, TransactionAction::call(EARLY.address(), &abi::Early::failCall {}));
    w.mark("early-failure", "fails before Byzantium: no status tells, but all gas is gone");
    w.seal()?;
    everyday_until_era(w, Era::Homestead)
}

fn homestead(w: &mut Writer) -> Result<(), BuildError> {
    w.send(&ALICE, TransactionAction::pay(&CAROL, ether(2)));
    w.seal()?;

    w.uncle(2).uncle(3);
    w.send(&BOB, TransactionAction::call(EARLY.address(), &abi::Early::addCall {}));
    w.mark_block("two-uncles", "has two uncles, of different generations, and a transaction");
    w.seal()?;

    w.send(&CAROL, TransactionAction::create(unborn()));
    w.mark("early-creation-failure", "a creation that fails before Byzantium");
    w.seal()?;
    everyday_until_era(w, Era::Tangerine)
}

fn tangerine_whistle(w: &mut Writer) -> Result<(), BuildError> {
    w.send(&ERIN, TransactionAction::create(DOOMED_EARLY.init_code()).with_value(ether(3)));
    w.mark("create-doomed-1", "creates a contract with 3 ether, to be destroyed");
    w.seal()?;

    w.send(
        &BOB,
        TransactionAction::call(DOOMED_EARLY.address(), &abi::Doomed::endCall { heir: BOB.address }),
    );
    w.mark("end-doomed-1", "self-destruction: Bob gets the 3 ether, the contract is gone");
    w.seal()?;
    everyday_until_era(w, Era::SpuriousDragon)
}

fn spurious_dragon(w: &mut Writer) -> Result<(), BuildError> {
    w.send_in(Envelope::Protected, &ALICE, TransactionAction::pay(&BOB, ether(1)));
    w.mark("first-protected", "the first transaction that is good for this chain only (EIP-155)");
    w.send_in(Envelope::Unprotected, &BOB, TransactionAction::pay(&ALICE, ether(1)));
    w.mark("still-unprotected", "the old kind, which stays valid: no chain id, v is 27 or 28");
    w.seal()?;
    everyday_until_era(w, Era::Byzantium)
}
