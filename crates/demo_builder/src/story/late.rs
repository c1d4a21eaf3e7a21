//! Shanghai to Osaka: withdrawals, blobs, delegations.

use super::{ether, everyday_until_era, tenths};
use crate::{
    accounts::{ALICE, BOB, CAROL, DAVE, ERIN, FRANK},
    contracts::{CHATTER, CLOCK, DOOMED_LATE, TOKEN, WALLET, abi},
    writer::{Envelope, TransactionAction, Writer},
};
use alloy_eips::eip7002::WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS;
use alloy_primitives::U256;
use alloy_sol_types::SolCall as _;
use chain_builder::{BuildError, Era};

/// As many as a block can have on mainnet.
const WITHDRAWALS_MANY: u64 = 16;

const GWEI_PER_ETHER: u64 = 1_000_000_000;

pub(super) fn write(w: &mut Writer) -> Result<(), BuildError> {
    shanghai(w)?;
    cancun(w)?;
    prague(w)?;
    osaka(w)?;
    bpo1(w)
}

fn shanghai(w: &mut Writer) -> Result<(), BuildError> {
    w.withdraw(&FRANK, GWEI_PER_ETHER);
    w.mark_block("first-withdrawal", "one withdrawal, and no transactions");
    w.seal()?;

    for amount in 1..=WITHDRAWALS_MANY {
        w.withdraw(if amount % 2 == 0 { &FRANK } else { &BOB }, amount * GWEI_PER_ETHER / 100);
    }
    w.send(&ERIN, TransactionAction::create(DOOMED_LATE.init_code()).with_value(ether(1)));
    w.mark("create-doomed-3", "creates a contract with 1 ether, to be destroyed after Cancun");
    w.mark_block("many-withdrawals", "sixteen withdrawals");
    w.seal()?;
    everyday_until_era(w, Era::Cancun)
}

fn cancun(w: &mut Writer) -> Result<(), BuildError> {
    w.send(&ERIN, TransactionAction::create(CLOCK.init_code()));
    w.mark("create-clock", "creates Clock");
    w.seal()?;

    let look = TransactionAction::call(CLOCK.address(), &abi::Clock::lookCall {});
    w.send_in(Envelope::Blobs(1), &ALICE, look.clone());
    w.mark("blob", "the first transaction of type 3 (EIP-4844), with one blob");
    w.seal()?;

    w.send_in(Envelope::Blobs(3), &BOB, look);
    w.mark("three-blobs", "carries three blobs");
    w.send_in(Envelope::Blobs(3), &CAROL, TransactionAction::pay(&BOB, tenths(1)));
    w.seal()?;

    w.send(
        &ALICE,
        TransactionAction::call(DOOMED_LATE.address(), &abi::Doomed::endCall { heir: ALICE.address }),
    );
    w.mark("end-doomed-3", "self-destruction from Cancun on: the ether goes, the code stays");
    w.seal()?;
    everyday_until_era(w, Era::Prague)
}

fn prague(w: &mut Writer) -> Result<(), BuildError> {
    w.send(&ERIN, TransactionAction::create(WALLET.init_code()));
    w.mark("create-wallet", "creates Wallet");
    w.seal()?;

    let permission = w.authorize(&DAVE, WALLET.address());
    let ping = TransactionAction::call(DAVE.address, &abi::Wallet::pingCall {});
    w.send_in(Envelope::Delegating(vec![permission]), &ALICE, ping);
    w.mark("delegation", "the first transaction of type 4 (EIP-7702): Dave's account gets Wallet's code");
    w.seal()?;

    w.send(&DAVE, TransactionAction::call(DAVE.address, &two_payments()));
    w.mark("batch", "Dave pays Bob tokens and Carol ether at once; the last log is his own account's");
    w.seal()?;

    let request = [&[0xab; 48][..], &GWEI_PER_ETHER.to_be_bytes()].concat();
    let request = TransactionAction::raw(WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS, request.into());
    w.send(&ALICE, request.with_value(U256::from(1)));
    w.mark("withdrawal-request", "asks the consensus layer for a withdrawal (EIP-7002); see requestsHash");
    w.seal()?;
    everyday_until_era(w, Era::Osaka)
}

fn two_payments() -> abi::Wallet::executeCall {
    let tokens = abi::Token::transferCall { to: BOB.address, value: ether(5) };
    let calls = vec![
        abi::Wallet::Call { to: TOKEN.address(), value: U256::ZERO, data: tokens.abi_encode().into() },
        abi::Wallet::Call { to: CAROL.address, value: tenths(3), data: Default::default() },
    ];
    abi::Wallet::executeCall { calls }
}

fn osaka(w: &mut Writer) -> Result<(), BuildError> {
    w.send(&ERIN, TransactionAction::create(CHATTER.init_code()));
    w.mark("create-chatter", "creates Chatter");
    w.seal()?;
    everyday_until_era(w, Era::Bpo1)
}

fn bpo1(w: &mut Writer) -> Result<(), BuildError> {
    // Two transactions, because Osaka lets none carry more than six.
    w.send_in(Envelope::Blobs(6), &ALICE, TransactionAction::pay(&BOB, tenths(1)));
    w.send_in(Envelope::Blobs(6), &BOB, TransactionAction::pay(&ALICE, tenths(1)));
    w.mark_block("twelve-blobs", "twelve blobs, which was too many before BPO1");
    w.seal()?;
    everyday_until_era(w, Era::Bpo2)
}
