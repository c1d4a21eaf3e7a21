//! The gas with which a precompile ends in time.
//!
//! The estimates are figures of a [`PrecompileSpeed`]; `tests/times.rs` measures them again.

use alloy_primitives::U256;
use revm::{
    precompile::{
        PrecompileId,
        modexp::{berlin_gas_calc, byzantium_gas_calc, osaka_gas_calc},
    },
    primitives::hardfork::SpecId,
};
use std::time::Duration;

/// How fast a machine computes precompiles.
#[derive(Debug, Clone, Copy)]
pub(super) struct PrecompileSpeed {
    /// The lowest gas per millisecond of all precompiles, except for those below, whose price says little about their time.
    gas_per_ms: u64,
    /// Time per bit of the exponent of the smallest exponentiation.
    modexp_bit_ns: u64,
    /// Time per bit of the exponent and per product of two words of 8 bytes.
    modexp_product_ns: u64,
    /// Time per round of BLAKE2.
    blake2f_round_ns: u64,
}

impl PrecompileSpeed {
    /// The measured speed, rounded down. A call is refused only if it cannot end in time at this
    /// speed; a slower machine may overrun a deadline by as much as it is slower.
    pub(super) const MEASURED: Self =
        Self { gas_per_ms: 20_000, modexp_bit_ns: 100, modexp_product_ns: 10, blake2f_round_ns: 20 };

    /// A speed that every machine reaches, for work that must not outlast its deadline on a slow and busy machine.
    pub(super) const CAUTIOUS: Self =
        Self { gas_per_ms: 4_000, modexp_bit_ns: 200, modexp_product_ns: 20, blake2f_round_ns: 100 };

    /// The most gas with which a precompile ends in time.
    ///
    /// A precompile whose known price exceeds the gas gets all of it, because it fails before it starts to work.
    pub(super) fn gas_in_time(
        &self,
        id: &PrecompileId,
        spec: SpecId,
        input: &[u8],
        gas: u64,
        time: Duration,
    ) -> u64 {
        let (price, takes) = match id {
            PrecompileId::ModExp => self.modexp(spec, input),
            PrecompileId::Blake2F => self.blake2f(input),
            _ => {
                let time_us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
                return time_us.saturating_mul(self.gas_per_ms) / 1_000;
            }
        };
        if price <= gas && takes > time { 0 } else { u64::MAX }
    }

    /// The price of hashing, and the time it takes.
    fn blake2f(&self, input: &[u8]) -> (u64, Duration) {
        let rounds = input.first_chunk().map_or(0, |rounds| u64::from(u32::from_be_bytes(*rounds)));
        (rounds, Duration::from_nanos(rounds * self.blake2f_round_ns))
    }

    /// The price of an exponentiation, and the time it takes.
    ///
    /// The price of small numbers with a long exponent is far too low.
    fn modexp(&self, spec: SpecId, input: &[u8]) -> (u64, Duration) {
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
        let products_ns = words.saturating_mul(words).saturating_mul(self.modexp_product_ns);
        let bit_ns = self.modexp_bit_ns.saturating_add(products_ns);
        let takes_ns = exponent.max(1).saturating_mul(8).saturating_mul(bit_ns);
        (price, Duration::from_nanos(takes_ns))
    }
}

/// Where the numbers of an exponentiation start, after their three lengths.
const MODEXP_NUMBERS_AT: u64 = 96;

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
    mod times;

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

    /// A machine with round figures.
    const SPEED: PrecompileSpeed = PrecompileSpeed {
        gas_per_ms: 1_000,
        modexp_bit_ns: 200,
        modexp_product_ns: 20,
        blake2f_round_ns: 100,
    };

    #[test]
    fn what_takes_too_long_gets_no_gas_and_what_cannot_be_paid_gets_all() {
        let gas = |input: &[u8], gas| {
            SPEED.gas_in_time(&PrecompileId::ModExp, SpecId::BERLIN, input, gas, Duration::from_secs(1))
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

    fn blake2f_input(rounds: u32) -> Vec<u8> {
        [&rounds.to_be_bytes()[..], &[0; 209]].concat()
    }

    #[test]
    fn hashing_is_bounded_by_its_rounds() {
        let gas = |rounds: u32, gas| {
            let input = blake2f_input(rounds);
            SPEED.gas_in_time(&PrecompileId::Blake2F, SpecId::PRAGUE, &input, gas, Duration::from_secs(1))
        };
        assert_eq!(gas(u32::MAX, u64::MAX), 0);
        assert_eq!(gas(u32::MAX, 300_000_000), u64::MAX);
        assert_eq!(gas(10_000_000, 300_000_000), u64::MAX);
        assert_eq!(gas(10_000_001, 300_000_000), 0);
    }

    #[test]
    fn everything_else_is_bounded_by_its_price() {
        let gas = |time| SPEED.gas_in_time(&PrecompileId::Bn254Pairing, SpecId::PRAGUE, &[], 0, time);
        assert_eq!(gas(Duration::from_millis(45)), 45_000);
        assert_eq!(gas(Duration::ZERO), 0);
        assert_eq!(gas(Duration::MAX), u64::MAX / 1_000);
    }

    /// Pairings of 400 points and 50 million rounds of BLAKE2 were refused at once as timeouts, although they take
    /// less than a second.
    #[test]
    fn legal_calls_are_not_estimated_out_of_their_deadline() {
        const BN254_PAIRING_OF_400: u64 = 45_000 + 400 * 34_000;
        const BLS_PAIRING_OF_400: u64 = 37_700 + 400 * 32_600;
        let speed = PrecompileSpeed::MEASURED;
        let time = Duration::from_secs(2);
        for (id, price) in [
            (PrecompileId::Bn254Pairing, BN254_PAIRING_OF_400),
            (PrecompileId::Bls12Pairing, BLS_PAIRING_OF_400),
        ] {
            assert!(speed.gas_in_time(&id, SpecId::PRAGUE, &[], 50_000_000, time) >= price, "{id:?}");
        }
        let rounds = blake2f_input(50_000_000);
        assert_eq!(
            speed.gas_in_time(&PrecompileId::Blake2F, SpecId::PRAGUE, &rounds, 50_000_000, time),
            u64::MAX
        );
    }
}
