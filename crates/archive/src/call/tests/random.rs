//! Whatever is thrown at it, a call comes back in time and in one piece.

use super::support::*;
use crate::call::{CallError, CallLimits, Deadline, Overrides, StopReason};
use alloy_primitives::{Address, TxKind, U256};
use alloy_rpc_types_eth::{
    TransactionRequest,
    state::{AccountOverride, StateOverride},
};
use proptest::prelude::*;
use revm::primitives::hardfork::SpecId;
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_millis(50);

/// How late an end is accepted. A call that ignored its deadline would take minutes; a busy machine adds seconds.
const LATE_MAX: Duration = Duration::from_secs(20);

fn fork() -> impl Strategy<Value = SpecId> {
    prop::sample::select(vec![
        SpecId::FRONTIER,
        SpecId::TANGERINE,
        SpecId::BYZANTIUM,
        SpecId::ISTANBUL,
        SpecId::LONDON,
        SpecId::SHANGHAI,
        SpecId::PRAGUE,
        SpecId::OSAKA,
    ])
}

/// Bytes, with the pieces in between that make programs do something.
fn program() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => any::<u8>().prop_map(|byte| vec![byte]),
        3 => any::<u8>().prop_map(|byte| vec![0x60, byte]),
        1 => (1..=20_u8).prop_map(|precompile| {
            asm(&format!("0x40 0x00 0x100 0x00 0x{precompile:x} GAS STATICCALL"))
        }),
        1 => Just(asm("0x00 0x00 0x00 0x00 0x00 ADDRESS GAS CALL")),
        1 => Just(asm("CODESIZE 0x00 0x00 CODECOPY CODESIZE 0x00 0x00 CREATE")),
        1 => Just(asm("MSIZE 0x00 REVERT")),
        1 => Just(vec![0x5b, 0x5f, 0x56]),
    ];
    prop::collection::vec(piece, 0..200).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_program_comes_back(
        spec in fork(),
        code in program(),
        input in prop::collection::vec(any::<u8>(), 0..300),
        create in any::<bool>(),
        precompile in prop::option::of(1..=18_u8),
        gas in prop::option::of(0..u64::MAX),
        value in 0..3_u64,
        slot in any::<u64>(),
    ) {
        let to = match precompile {
            Some(last) => Address::with_last_byte(last),
            None => CONTRACT,
        };
        let request = TransactionRequest {
            to: (!create).then_some(TxKind::Call(to)),
            input: if create { code.clone().into() } else { input.into() },
            value: Some(U256::from(value)),
            gas,
            ..TransactionRequest::default()
        };
        let storage = [(U256::from(slot).into(), U256::from(value).into())];
        let overridden = AccountOverride::default().with_code(code).with_state_diff(storage);
        let state = StateOverride::from_iter([(CONTRACT, overridden)]);
        let overrides = Overrides { state: Some(state), block: None };
        let limits = CallLimits { deadline: Some(Deadline::after(TIMEOUT)), ..limits() };
        let world = World::default().with_balance(Address::ZERO, 2);

        let start = Instant::now();
        let result = call_with(spec, &world, request, overrides, &limits);
        prop_assert!(start.elapsed() < TIMEOUT + LATE_MAX, "took {:?}", start.elapsed());
        match result {
            Err(error @ (CallError::Panicked { .. } | CallError::Internal(_) | CallError::State(_))) => {
                prop_assert!(false, "{error}");
            }
            Err(CallError::Stopped(StopReason::Cancelled)) => prop_assert!(false, "nobody cancelled"),
            _ => {}
        }
    }
}
