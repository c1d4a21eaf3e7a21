//! The events of the demo chain, era by era.

mod early; // Frontier to Spurious Dragon: no status, no REVERT
mod late; // Shanghai to the newest fork
mod middle; // Byzantium to Paris
mod newest; // the many logs, the raw records and the head

use super::{
    accounts::{ALICE, BOB, CAROL, DemoAccount},
    contracts::{EARLY, TOKEN, TOUR, abi},
    schedule::first_block,
    writer::{TransactionAction, Writer},
};
use alloy_primitives::U256;
use chain_builder::{BuildError, Era};

#[cfg(test)]
pub(super) use newest::LOGS_PER_CHATTER_BLOCK;
pub(super) use newest::{CHATTER_BLOCKS, RAW_BLOCKS};

/// Writes the whole chain.
pub(super) fn write(w: &mut Writer) -> Result<(), BuildError> {
    early::write(w)?;
    middle::write(w)?;
    late::write(w)?;
    newest::write(w)
}

fn ether(amount: u64) -> U256 {
    U256::from(amount) * U256::from(10).pow(U256::from(18))
}

/// A tenth of what [`ether`] gives.
fn tenths(amount: u64) -> U256 {
    ether(amount) / U256::from(10)
}

/// Writes everyday blocks up to, and without, the one with this number.
fn everyday_until(w: &mut Writer, number: u64) -> Result<(), BuildError> {
    while w.number() < number {
        everyday(w);
        w.seal()?;
    }
    Ok(())
}

/// Writes everyday blocks up to the end of the era.
fn everyday_until_era(w: &mut Writer, next: Era) -> Result<(), BuildError> {
    everyday_until(w, first_block(next))
}

/// Adds some everyday transactions, different from block to block; every sixth block stays empty.
fn everyday(w: &mut Writer) {
    let number = w.number();
    let has_tour = w.era() >= Era::Byzantium;
    let bump = TransactionAction::call(TOUR.address(), &abi::Tour::bumpCall {});
    match number % 6 {
        0 => w,
        1 => w.send(&ALICE, TransactionAction::pay(&BOB, tenths(number))),
        2 => w.send(&BOB, TransactionAction::call(EARLY.address(), &abi::Early::addCall {})),
        _ if !has_tour => w.send(&BOB, TransactionAction::pay(&ALICE, tenths(number))),
        3 => w.send(&CAROL, bump),
        4 => w.send(&ALICE, token_transfer(&BOB, tenths(number))),
        _ => w.send(&BOB, token_transfer(&CAROL, tenths(1))).send(&ALICE, bump),
    };
}

fn token_transfer(to: &DemoAccount, value: U256) -> TransactionAction {
    TransactionAction::call(TOKEN.address(), &abi::Token::transferCall { to: to.address, value })
}
