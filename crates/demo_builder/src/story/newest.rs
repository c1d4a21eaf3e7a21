//! The newest rules: many logs, blocks that have raw records, and a head with a transaction of every kind.

use super::{everyday_until, tenths, token_transfer};
use crate::{
    accounts::{ALICE, BOB, CAROL, DAVE, ERIN},
    contracts::{CHATTER, CLOCK, DOOMED_RAW, TOUR, WALLET, abi},
    writer::{Envelope, TransactionAction, Writer},
};
use alloy_eips::eip2930::{AccessList, AccessListItem};
use alloy_primitives::{B256, U256};
use chain_builder::BuildError;
use std::ops::RangeInclusive;

/// The blocks with the many logs.
pub(crate) const CHATTER_BLOCKS: RangeInclusive<u64> = 180..=239;

/// How many logs of Chatter each of them has: 12,000 together.
pub(crate) const LOGS_PER_CHATTER_BLOCK: u64 = 200;

/// The blocks that have raw records, as a layer 2 would keep them.
pub(crate) const RAW_BLOCKS: RangeInclusive<u64> = 240..=247;

/// Number of the newest block.
pub(crate) const HEAD: u64 = 255;

/// More than two hundred logs need.
const CHATTER_GAS: u64 = 1_000_000;

pub(super) fn write(w: &mut Writer) -> Result<(), BuildError> {
    everyday_until(w, *CHATTER_BLOCKS.start())?;
    chatter(w)?;
    layer_two(w)?;
    everyday_until(w, HEAD)?;
    head(w)
}

fn chatter(w: &mut Writer) -> Result<(), BuildError> {
    w.mark_block("chatter-begins", "the first of 60 blocks with 200 logs of Chatter each");
    for _ in CHATTER_BLOCKS {
        let say = abi::Chatter::sayCall { times: U256::from(LOGS_PER_CHATTER_BLOCK) };
        w.send(&CAROL, TransactionAction::call(CHATTER.address(), &say).with_gas(CHATTER_GAS));
        w.seal()?;
    }
    Ok(())
}

/// The blocks with raw records. They have only transaction types that such records can express.
fn layer_two(w: &mut Writer) -> Result<(), BuildError> {
    let bump = || TransactionAction::call(TOUR.address(), &abi::Tour::bumpCall {});
    w.mark_block("raw-upgrade", "its raw records begin with a ProtocolUpgrade");
    w.send(&ALICE, bump());
    w.seal()?;

    w.mark_block("raw-l1", "its raw records have an L1 and an L2 of a legacy transaction");
    w.send(&ALICE, TransactionAction::pay(&ALICE, tenths(20)));
    w.mark("raw-deposit", "an L1 record: Alice's deposit of 2 ether");
    w.send_in(Envelope::Protected, &BOB, token_transfer(&ALICE, tenths(3)));
    w.seal()?;

    w.send_in(Envelope::AccessList(AccessList::default()), &BOB, bump());
    w.mark("raw-access-list", "an L2 record of type EIP2930Transaction");
    w.seal()?;

    w.send(&ERIN, TransactionAction::create(DOOMED_RAW.init_code()));
    w.mark(
        "raw-creation",
        "an L2 record whose contractAddress is null and whose code is a factory dependency",
    );
    w.seal()?;

    w.send(&BOB, TransactionAction::pay(&BOB, tenths(10)));
    w.mark("raw-second-deposit", "a second L1 record, with the next serialId");
    w.seal()?;

    w.mark_block("raw-none", "has no transactions, so its raw records are an empty list");
    w.seal()?;

    w.send(&ALICE, TransactionAction::call(TOUR.address(), &abi::Tour::failWithReasonCall {}));
    w.mark("raw-failure", "an L2 record of a transaction that reverted");
    w.seal()?;

    for who in [&ALICE, &BOB, &CAROL, &DAVE] {
        w.send(who, bump());
    }
    w.mark_block("raw-many", "an L2 record for each of its five transactions");
    w.seal()
}

fn head(w: &mut Writer) -> Result<(), BuildError> {
    let list = AccessList(vec![AccessListItem { address: TOUR.address(), storage_keys: vec![B256::ZERO] }]);
    let bump = || TransactionAction::call(TOUR.address(), &abi::Tour::bumpCall {});
    w.mark_block("head", "the newest block: a transaction of every kind");
    w.send_in(Envelope::Unprotected, &ALICE, TransactionAction::pay(&BOB, tenths(1)));
    w.mark("head-unprotected", "legacy, without a chain id");
    w.send_in(Envelope::Protected, &ALICE, token_transfer(&CAROL, tenths(1)));
    w.mark("head-protected", "legacy, with a chain id (EIP-155)");
    w.send_in(Envelope::AccessList(list), &ALICE, bump());
    w.mark("head-access-list", "type 1 (EIP-2930)");
    w.send_in(Envelope::DynamicFee, &ALICE, bump());
    w.mark("head-dynamic-fee", "type 2 (EIP-1559)");
    w.send_in(Envelope::Blobs(2), &BOB, TransactionAction::call(CLOCK.address(), &abi::Clock::lookCall {}));
    w.mark("head-blobs", "type 3 (EIP-4844), with two blobs");
    let permission = w.authorize(&DAVE, WALLET.address());
    let ping = TransactionAction::call(DAVE.address, &abi::Wallet::pingCall {});
    w.send_in(Envelope::Delegating(vec![permission]), &BOB, ping);
    w.mark("head-delegation", "type 4 (EIP-7702)");
    w.send(
        &CAROL,
        TransactionAction::call(TOUR.address(), &abi::Tour::announceCall { value: U256::from(255) }),
    );
    w.mark("head-topics", "logs with 0 to 4 topics");
    w.send(&CAROL, TransactionAction::call(TOUR.address(), &abi::Tour::failWithReasonCall {}));
    w.mark("head-failure", "reverts with a reason: status 0");
    w.seal()
}
