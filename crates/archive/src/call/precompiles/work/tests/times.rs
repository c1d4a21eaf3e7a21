//! Measures precompiles at their slowest, against what they are estimated to take.
//!
//! Run on request: `cargo test --release -p chaingate-archive precompile_times -- --ignored --nocapture`.

use super::*;
use alloy_primitives::{Address, hex};
use revm::precompile::{PrecompileSpecId, Precompiles};
use std::time::Instant;

/// Lengths of base, exponent and modulus that are slow for what they cost.
const MODEXP_LENGTHS: [[usize; 3]; 16] = [
    [1, 1_000_000, 1],
    [8, 32, 8],
    [8, 100_000, 8],
    [16, 50_000, 16],
    [24, 20_000, 24],
    [32, 32, 32],
    [32, 20_000, 32],
    [64, 8_000, 64],
    [128, 1_024, 128],
    [256, 1_024, 256],
    [512, 512, 512],
    [1_024, 256, 1_024],
    [1_024, 3, 1_024],
    [10_000, 1, 10_000],
    [40_000, 1, 1],
    [1, 1, 40_000],
];

const BN254_G2: [u8; 128] = hex!(
    "198e9393920d483a7260bfb731fb5d25f1aa493335a9e71297e485b7aef312c2"
    "1800deef121f1e76426a00665e5c4479674322d4f75edadd46debd5cd992f6ed"
    "090689d0585ff075ec9e99ad690c3395bc4b313370b38ef355acdadcd122975b"
    "12c85ea5db8c6deb4aab71808dcb408fe3d1e7690c43d37b4ce6cc0166fa7daa"
);

const BLS_G1: [[u8; 48]; 2] = [
    hex!("17f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905a14e3a3f171bac586c55e83ff97a1aeffb3af00adb22c6bb"),
    hex!("08b3f481e3aaa0f1a09e30ed741d8ae4fcf5e095d5d00af600db18cb2c04b3edd03cc744a2888ae40caa232946c5e7e1"),
];

const BLS_G2: [[u8; 48]; 4] = [
    hex!("024aa2b2f08f0a91260805272dc51051c6e47ad4fa403b02b4510b647ae3d1770bac0326a805bbefd48056c8c121bdb8"),
    hex!("13e02b6052719f607dacd3a088274f65596bd0d09920b61ab5da61bbdc7f5049334cf11213945d57e5ac7d055d042b7e"),
    hex!("0ce5d527727d6e118cc9cdc6da2e351aadfd9baa8cbdd3a76d429a695160d12c923ac9cc3baca289e193548608b82801"),
    hex!("0606c4a02ea734cc32acd2b02bc28b99cb3e287e85a763af267492ab572e99ab3f370d275cec1da1aaa9075ff05f79be"),
];

const ECRECOVER: [u8; 128] = hex!(
    "18c547e4f7b0f325ad1e56f57e26c745b09a3e503d86e00e5255ff7f715d3d1c"
    "000000000000000000000000000000000000000000000000000000000000001c"
    "73b1693892219d736caba55bdb67216e485557ea6b6af75f37096c9aa6a5a75f"
    "eeb940b1d03b21e36b0e47e79769f095fe2ab855bd91e3a38756b7d75a9c4549"
);

/// How often each is measured. The fastest time counts: others may have shared the core.
const TRIES: usize = 5;

#[test]
#[ignore = "measures"]
fn precompile_times() {
    let speed = PrecompileSpeed::MEASURED;
    let forks = [SpecId::BYZANTIUM, SpecId::BERLIN, SpecId::OSAKA];
    for spec in forks {
        let precompiles = Precompiles::new(PrecompileSpecId::from_spec_id(spec));
        for (address, input) in inputs() {
            let Some(precompile) = precompiles.get(&Address::with_last_byte(address)) else { continue };
            let mut took = Duration::MAX;
            let mut output = None;
            for _ in 0..TRIES {
                let start = Instant::now();
                output = Some(precompile.execute(&input, u64::MAX, 0).unwrap());
                took = took.min(start.elapsed());
            }
            let output = output.unwrap();
            let estimate = match precompile.id() {
                PrecompileId::ModExp => speed.modexp(spec, &input).1,
                PrecompileId::Blake2F => speed.blake2f(&input).1,
                _ => Duration::from_micros(output.gas_used * 1_000 / speed.gas_per_ms),
            };
            let share = took.as_secs_f64() / estimate.as_secs_f64();
            let gas_per_ms = output.gas_used as f64 / (took.as_secs_f64() * 1_000.0);
            let (name, length) = (precompile.id().name(), input.len());
            match output.halt_reason() {
                Some(reason) => eprintln!("{spec} {name}, {length} bytes: {reason}"),
                None => eprintln!(
                    "{share:.2} of the estimate: {spec} {name}, {length} bytes, {} gas, {took:?}, {gas_per_ms:.0} gas/ms",
                    output.gas_used
                ),
            }
        }
    }
}

/// Inputs with the last byte of the address of their precompile.
fn inputs() -> Vec<(u8, Vec<u8>)> {
    let mut inputs = Vec::new();
    for lengths in MODEXP_LENGTHS {
        for last in [0x80, 0x81] {
            let mut input = lengths.map(|length| U256::from(length).to_be_bytes::<32>()).concat();
            input.extend(vec![0xff; lengths.iter().sum()]);
            input.pop();
            input.push(last);
            inputs.push((0x05, input));
        }
    }
    inputs.push((0x09, [&1_000_000_u32.to_be_bytes()[..], &[1; 208], &[1]].concat()));
    inputs.extend([0x02, 0x03, 0x04].map(|address| (address, vec![7; 4 << 20])));
    inputs.push((0x01, ECRECOVER.to_vec()));
    inputs.extend(bn254_inputs());
    inputs.extend(bls_inputs());
    inputs
}

fn bn254_inputs() -> Vec<(u8, Vec<u8>)> {
    let g1 = [U256::from(1), U256::from(2)].map(|coordinate| coordinate.to_be_bytes::<32>()).concat();
    let pair = [&g1[..], &BN254_G2].concat();
    vec![
        (0x06, g1.repeat(2)),
        (0x07, [&g1[..], &[0xff; 32]].concat()),
        (0x08, pair.clone()),
        (0x08, pair.repeat(4)),
        (0x08, pair.repeat(100)),
        (0x08, pair.repeat(400)),
    ]
}

fn bls_inputs() -> Vec<(u8, Vec<u8>)> {
    let element = |number: [u8; 48]| [&[0; 16][..], &number].concat();
    let g1 = BLS_G1.map(element).concat();
    let g2 = BLS_G2.map(element).concat();
    let (g1_scaled, g2_scaled) = ([&g1[..], &[0xff; 32]].concat(), [&g2[..], &[0xff; 32]].concat());
    let pair = [&g1[..], &g2].concat();
    let number = element(hex!("07").repeat(48).try_into().unwrap());
    vec![
        (0x0b, g1.repeat(2)),
        (0x0c, g1_scaled.clone()),
        (0x0c, g1_scaled.repeat(128)),
        (0x0d, g2.repeat(2)),
        (0x0e, g2_scaled.clone()),
        (0x0e, g2_scaled.repeat(128)),
        (0x0f, pair.clone()),
        (0x0f, pair.repeat(50)),
        (0x0f, pair.repeat(400)),
        (0x10, number.clone()),
        (0x11, number.repeat(2)),
    ]
}
