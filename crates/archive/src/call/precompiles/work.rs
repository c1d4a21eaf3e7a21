//! How much a precompile may be given so that it is sure to end in time.
//!
//! The figures are upper bounds, taken at about twice what a slow machine needed; [`times`] measures them again.

#[cfg(test)]
mod times;

use alloy_primitives::U256;
use revm::{
    precompile::{
        PrecompileId,
        modexp::{berlin_gas_calc, byzantium_gas_calc, osaka_gas_calc},
    },
    primitives::hardfork::SpecId,
};
use std::time::Duration;

/// The least gas that precompiles use per millisecond, but for those below.
const GAS_PER_MS: u64 = 4_000;

/// Time per bit of the exponent for the smallest numbers, in nanoseconds.
const MODEXP_BIT_NS: u64 = 200;

/// Time per bit of the exponent and per product of two words of 8 bytes, in nanoseconds.
const MODEXP_PRODUCT_NS: u64 = 20;

/// Time per round of the hash function, in nanoseconds.
const BLAKE2F_ROUND_NS: u64 = 100;

/// Where the numbers of an exponentiation start, after their three lengths.
const MODEXP_NUMBERS_AT: u64 = 96;

/// The most gas with which a precompile ends in time.
///
/// Where the price is known, what cannot be paid may have all the gas there is: it fails before it starts to work.
pub(super) fn gas_in_time(id: &PrecompileId, spec: SpecId, input: &[u8], gas: u64, time: Duration) -> u64 {
    let (price, takes) = match id {
        PrecompileId::ModExp => modexp(spec, input),
        PrecompileId::Blake2F => blake2f(input),
        _ => {
            let time_us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
            return time_us.saturating_mul(GAS_PER_MS) / 1_000;
        }
    };
    if price <= gas && takes > time { 0 } else { u64::MAX }
}

/// The price of hashing, and the time it takes at most.
fn blake2f(input: &[u8]) -> (u64, Duration) {
    let rounds = input.first_chunk().map_or(0, |rounds| u64::from(u32::from_be_bytes(*rounds)));
    (rounds, Duration::from_nanos(rounds * BLAKE2F_ROUND_NS))
}

/// The price of an exponentiation, and the time it takes at most.
///
/// The price of small numbers with a long exponent is far too low.
fn modexp(spec: SpecId, input: &[u8]) -> (u64, Duration) {
    let [base, exponent, modulus] =
        [0, 32, 64].map(|at| padded(input, at, 32)).map(|length| length.saturating_to::<u64>());
    let head = padded(input, MODEXP_NUMBERS_AT.saturating_add(base), exponent.min(32));
    let price = if spec.is_enabled_in(SpecId::OSAKA) {
        osaka_gas_calc(base, exponent, modulus, &head)
    } else if spec.is_enabled_in(SpecId::BERLIN) {
        berlin_gas_calc(base, exponent, modulus, &head)
    } else {
        byzantium_gas_calc(base, exponent, modulus, &head)
    };
    let words = base.max(modulus).div_ceil(8);
    if words == 0 {
        return (price, Duration::ZERO);
    }
    let bit_ns = MODEXP_BIT_NS.saturating_add(words.saturating_mul(words).saturating_mul(MODEXP_PRODUCT_NS));
    let takes_ns = exponent.max(1).saturating_mul(8).saturating_mul(bit_ns);
    (price, Duration::from_nanos(takes_ns))
}

/// The number of up to 32 bytes at a place of the input, which goes on with zeros for ever.
fn padded(input: &[u8], at: u64, length: u64) -> U256 {
    let mut bytes = [0; 32];
    let length = length.min(32) as usize;
    let there = usize::try_from(at).ok().and_then(|at| input.get(at..)).unwrap_or_default();
    let there = &there[..there.len().min(length)];
    bytes[32 - length..][..there.len()].copy_from_slice(there);
    U256::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(base: u64, exponent: u64, modulus: u64) -> Vec<u8> {
        [base, exponent, modulus].map(|length| U256::from(length).to_be_bytes::<32>()).concat()
    }

    #[test]
    fn numbers_are_padded_at_their_end() {
        let input = [1, 2, 3];
        assert_eq!(padded(&input, 0, 3), U256::from(0x01_02_03));
        assert_eq!(padded(&input, 1, 3), U256::from(0x02_03_00));
        assert_eq!(padded(&input, 9, 32), U256::ZERO);
        assert_eq!(padded(&input, u64::MAX, 32), U256::ZERO);
        assert_eq!(padded(&input, 0, 0), U256::ZERO);
    }

    #[test]
    fn what_takes_too_long_gets_no_gas_and_what_cannot_be_paid_gets_all() {
        let gas = |input: &[u8], gas| {
            gas_in_time(&PrecompileId::ModExp, SpecId::BERLIN, input, gas, Duration::from_secs(1))
        };
        // A long exponent of a small number, and a number of 32 bytes to a power of as many.
        assert_eq!(gas(&lengths(1, 1_000_000, 1), 300_000_000), 0);
        assert_eq!(gas(&lengths(1, 1_000_000, 1), 100_000), u64::MAX);
        assert_eq!(gas(&lengths(32, 32, 32), 300_000_000), u64::MAX);
        assert_eq!(gas(&lengths(u64::MAX, u64::MAX, u64::MAX), 300_000_000), u64::MAX);
        assert_eq!(gas(&[0xff; 96], 300_000_000), u64::MAX);
        assert_eq!(gas(&lengths(0, u64::MAX, 0), 300_000_000), u64::MAX);
        assert_eq!(gas(&[], 300_000_000), u64::MAX);
    }

    #[test]
    fn hashing_is_bounded_by_its_rounds() {
        let gas = |rounds: u32, gas| {
            let input = [&rounds.to_be_bytes()[..], &[0; 209]].concat();
            gas_in_time(&PrecompileId::Blake2F, SpecId::PRAGUE, &input, gas, Duration::from_secs(1))
        };
        assert_eq!(gas(u32::MAX, u64::MAX), 0);
        assert_eq!(gas(u32::MAX, 300_000_000), u64::MAX);
        assert_eq!(gas(1_000_000, 300_000_000), u64::MAX);
    }
}
