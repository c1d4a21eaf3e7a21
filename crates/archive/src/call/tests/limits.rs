//! Nothing runs longer or grows larger than it may.

use super::support::*;
use crate::call::{CallError, CallLimits, Deadline, StopReason};
use alloy_primitives::{Address, TxKind};
use alloy_rpc_types_eth::TransactionRequest;
use revm::primitives::hardfork::SpecId;
use std::{
    sync::{Arc, atomic::AtomicBool},
    time::{Duration, Instant},
};

const TIMEOUT: Duration = Duration::from_millis(100);

/// How late the tests accept an end: machines that run tests are busy.
const LATE_MAX: Duration = Duration::from_secs(20);

fn in_time() -> CallLimits {
    CallLimits { deadline: Some(Deadline::after(TIMEOUT)), ..limits() }
}

/// Runs the contract and checks that it stops in time.
fn stop_of(spec: SpecId, world: &World, limits: &CallLimits) -> StopReason {
    let start = Instant::now();
    let result = call_at(spec, world, to_contract(), limits);
    assert!(start.elapsed() < TIMEOUT + LATE_MAX, "took {:?}", start.elapsed());
    match result {
        Err(CallError::Stopped(stop)) => stop,
        other => panic!("not stopped: {other:?}"),
    }
}

fn timed_out() -> StopReason {
    StopReason::Timeout { timeout: TIMEOUT }
}

/// Loops that use up the time in different places.
#[test]
fn endless_loops_stop_at_the_deadline() {
    let keccak = "0x600000 0x00 KECCAK256 POP";
    let copy = "0x600000 0x00 0x20 MCOPY";
    let call_empty = "0x00 0x00 0x00 0x00 0xee GAS STATICCALL POP";
    let create = "0x100000 0x00 0x00 CREATE POP";
    let ecrecover = "0x80 0x00 0x80 0x00 0x01 GAS STATICCALL POP";
    let identity = "0x00 0x00 0x400000 0x00 0x04 GAS STATICCALL POP";
    let cases = [
        (SpecId::PRAGUE, ""),
        (SpecId::PRAGUE, "GAS POP"),
        (SpecId::PRAGUE, "0x01 0x02 0x03 MULMOD POP"),
        (SpecId::PRAGUE, keccak),
        (SpecId::PRAGUE, copy),
        (SpecId::PRAGUE, call_empty),
        (SpecId::PRAGUE, ecrecover),
        (SpecId::PRAGUE, identity),
        (SpecId::FRONTIER, ""),
        (SpecId::FRONTIER, create),
    ];
    for (spec, body) in cases {
        let code = asm(&format!(":again {body} @again JUMP"));
        let world = World::default().with_code(CONTRACT, code);
        // Gas for longer than the deadline, whatever the loop does.
        let limits = CallLimits { gas_cap: u64::MAX / 4, ..in_time() };
        assert_eq!(stop_of(spec, &world, &limits), timed_out(), "{spec} {body}");
    }
}

/// Each of a thousand nested frames is short, and so is each of the calls that it makes.
#[test]
fn endless_recursion_stops_at_the_deadline() {
    let code = asm(":again 0x00 0x00 0x00 0x00 0x00 ADDRESS 0x64 GAS SUB CALL POP @again JUMP");
    let world = World::default().with_code(CONTRACT, code);
    let limits = CallLimits { gas_cap: u64::MAX / 4, ..in_time() };
    assert_eq!(stop_of(SpecId::FRONTIER, &world, &limits), timed_out());
}

/// Under the old gas tables a read from a cold disk cost next to nothing.
#[test]
fn cheap_reads_of_a_slow_disk_stop_at_the_deadline() {
    let cases = ["DUP1 EXTCODESIZE POP", "DUP1 SLOAD POP", "DUP1 BALANCE POP"];
    for body in cases {
        let code = asm(&format!("0x00 :again 0x01 ADD {body} @again JUMP"));
        let read_takes = Some(Duration::from_micros(100));
        let world = World { read_takes, ..World::default().with_code(CONTRACT, code) };
        assert_eq!(stop_of(SpecId::FRONTIER, &world, &in_time()), timed_out(), "{body}");
    }
}

/// The longest exponentiation that the gas pays for takes many seconds; so do many hash rounds.
#[test]
fn precompile_bombs_do_not_go_off() {
    let modexp = "0x400 0x00 MSTORE 0x400 0x20 MSTORE 0x400 0x40 MSTORE 0x00 NOT 0x60 MSTORE \
        0x00 NOT 0x460 MSTORE 0x00 NOT 0x860 MSTORE 0x00 0x00 0xc60 0x00 0x05 GAS STATICCALL POP";
    let blake2f =
        "0xffffffff 0xe0 SHL 0x00 MSTORE 0x01 0xd4 MSTORE8 0x00 0x00 0xd5 0x00 0x09 GAS STATICCALL POP";
    let cases = [
        (SpecId::BYZANTIUM, modexp),
        (SpecId::BERLIN, modexp),
        (SpecId::OSAKA, modexp),
        (SpecId::PRAGUE, blake2f),
    ];
    for (spec, body) in cases {
        let code = asm(&format!(":again {body} @again JUMP"));
        let world = World::default().with_code(CONTRACT, code);
        let limits = CallLimits { gas_cap: u64::MAX / 4, ..in_time() };
        assert_eq!(stop_of(spec, &world, &limits), timed_out(), "{spec} {body}");
    }
}

#[test]
fn a_precompile_that_is_called_directly_keeps_to_the_deadline_too() {
    let rounds = [0xff; 4];
    let input: Vec<u8> = rounds.into_iter().chain([0; 208]).chain([1]).collect();
    let to = Some(TxKind::Call(Address::with_last_byte(9)));
    let request = TransactionRequest { to, input: input.into(), ..TransactionRequest::default() };
    let limits = CallLimits { gas_cap: u64::MAX / 4, ..in_time() };
    let result = call_at(SpecId::PRAGUE, &World::default(), request, &limits);
    assert!(matches!(result, Err(CallError::Stopped(StopReason::Timeout { .. }))), "{result:?}");
}

/// A pairing of 400 points and 50 million rounds of BLAKE2 were refused within milliseconds, as timeouts.
#[test]
fn legal_precompile_calls_are_answered() {
    const PAIRING_BYTES: usize = 192;
    let blake2f: Vec<u8> = 50_000_000_u32.to_be_bytes().into_iter().chain([0; 208]).chain([1]).collect();
    // The point at infinity is a point.
    let pairing = vec![0; 400 * PAIRING_BYTES];
    for (address, input, bytes) in [(8, pairing, 32), (9, blake2f, 64)] {
        let to = Some(TxKind::Call(Address::with_last_byte(address)));
        let request = TransactionRequest { to, input: input.into(), ..TransactionRequest::default() };
        let deadline = Some(Deadline::after(Duration::from_secs(300)));
        let limits = CallLimits { gas_cap: 100_000_000, deadline, ..limits() };
        let output = call_at(SpecId::PRAGUE, &World::default(), request, &limits).unwrap();
        assert_eq!(output.len(), bytes, "precompile {address}");
    }
}

/// A strict deadline is a fraction of a millisecond away, and whoever set it has other things to do.
#[test]
fn under_a_strict_deadline_nothing_is_begun_that_cannot_be_stopped() {
    let strict = |left| {
        let deadline = Some(Deadline::strict(Instant::now() + left, TIMEOUT));
        CallLimits { deadline, gas_cap: u64::MAX / 4, ..limits() }
    };
    let ecrecover = "0x80 0x00 0x80 0x00 0x01 GAS STATICCALL POP";
    let sha256 = "0x20 0x00 0x20 0x00 0x02 GAS STATICCALL POP";
    let pairing = "0x20 0x00 0x00 0x00 0x08 GAS STATICCALL POP";
    let run = |body: &str| {
        let world = World::default().with_code(CONTRACT, asm(&format!("{body} STOP")));
        call_at(SpecId::PRAGUE, &world, to_contract(), &strict(Duration::from_micros(500)))
    };
    for body in [ecrecover, pairing] {
        let result = run(body);
        assert!(matches!(result, Err(CallError::Stopped(StopReason::Timeout { .. }))), "{body}: {result:?}");
    }
    // A machine that is busy may need more than one try.
    assert!((0..1_000).any(|_| run(sha256).is_ok()), "what takes a microsecond is done");
}

#[test]
fn what_is_cancelled_stops() {
    let world = World::default().with_code(CONTRACT, asm(":again @again JUMP"));
    let cancel = Arc::new(AtomicBool::new(false));
    let limits = CallLimits { cancel: Some(cancel.clone()), gas_cap: u64::MAX / 4, ..limits() };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(TIMEOUT);
            cancel.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        assert_eq!(stop_of(SpecId::PRAGUE, &world, &limits), StopReason::Cancelled);
    });
}

#[test]
fn a_deadline_that_has_passed_runs_nothing() {
    let world = World::default().with_code(CONTRACT, asm("STOP"));
    let start = Instant::now() - 2 * TIMEOUT;
    let limits = CallLimits { deadline: Some(Deadline::at(start + TIMEOUT, TIMEOUT)), ..limits() };
    assert_eq!(stop_of(SpecId::PRAGUE, &world, &limits), timed_out());
    assert_eq!(world.reads.get(), 0);
}

/// A frame pays for its own memory only, so a thousand frames can hold far more than one of them.
#[test]
fn memory_is_counted_over_all_frames() {
    let touch = "0x00 0x80000 MSTORE";
    let code = asm(&format!("{touch} 0x00 0x00 0x00 0x00 0x00 ADDRESS GAS CALL STOP"));
    let world = World::default().with_code(CONTRACT, code);
    let limits = CallLimits { gas_cap: 600_000_000, ..limits() };
    let bytes_max = limits.memory_bytes_max;
    assert_eq!(stop_of(SpecId::PRAGUE, &world, &limits), StopReason::Memory { bytes_max });
}

/// A call that cannot pay for the limit is out of gas, as it would be anywhere else.
#[test]
fn memory_that_nobody_could_pay_for_is_out_of_gas() {
    let world = World::default().with_code(CONTRACT, asm("0x00 0xffffffff MSTORE"));
    let error = call_at(SpecId::PRAGUE, &world, to_contract(), &limits()).unwrap_err();
    assert_eq!(error.to_string(), "out of gas");
}

/// State, journal and logs are memory as well, and some of it is cheap to fill.
#[test]
fn what_a_run_holds_is_counted() {
    let cases = [
        (SpecId::PRAGUE, "DUP1 DUP1 TSTORE"),
        (SpecId::PRAGUE, "DUP1 0x00 SSTORE"),
        (SpecId::PRAGUE, "0x00 0x00 LOG0"),
        // The data of logs was not counted, and a chain with a high gas limit allows gigabytes of it.
        (SpecId::PRAGUE, "0x040000 0x00 LOG0"),
        // Nor was the code of created contracts: 24,000 bytes of zeros each.
        (SpecId::PRAGUE, "0x615dc05ff3 0x00 MSTORE 0x05 0x1b 0x00 CREATE POP"),
        (SpecId::FRONTIER, "DUP1 SLOAD POP"),
        (SpecId::FRONTIER, "DUP1 BALANCE POP"),
    ];
    for (spec, body) in cases {
        let code = asm(&format!("0x00 :again 0x01 ADD {body} @again JUMP"));
        let world = World::default().with_code(CONTRACT, code);
        let limits = CallLimits { memory_bytes_max: 4 << 20, gas_cap: 1 << 40, ..limits() };
        assert_eq!(
            stop_of(spec, &world, &limits),
            StopReason::Memory { bytes_max: 4 << 20 },
            "{spec} {body}"
        );
    }
}

/// Thousands of contracts that share their code hold it once; different code adds up.
#[test]
fn code_is_counted_once() {
    let many = |code_of: fn(u64) -> Vec<u8>| {
        let program = asm("0x0100 :again 0x01 ADD DUP1 EXTCODESIZE POP DUP1 0x0300 GT @again JUMPI STOP");
        let world = World::default().with_code(CONTRACT, program);
        let one =
            |world: World, i: u64| world.with_code(Address::left_padding_from(&i.to_be_bytes()), code_of(i));
        let world = (0x100..=0x300).fold(world, one);
        let limits = CallLimits { memory_bytes_max: 4 << 20, ..limits() };
        call_at(SpecId::PRAGUE, &world, to_contract(), &limits)
    };
    assert!(many(|_| vec![1; 24_000]).is_ok());
    let different = many(|i| i.to_be_bytes().repeat(3_000));
    assert!(matches!(different, Err(CallError::Stopped(StopReason::Memory { .. }))), "{different:?}");
}

#[test]
fn a_panic_becomes_an_error() {
    let world = World { panics: true, ..World::default() };
    let error = call_at(SpecId::PRAGUE, &world, to_contract(), &limits()).unwrap_err();
    assert_eq!(error.to_string(), "evm panicked: the world ends");
}

#[test]
fn a_state_that_cannot_be_read_is_an_error() {
    let world = World { disk_gone: true, ..World::default() };
    let error = call_at(SpecId::PRAGUE, &world, to_contract(), &limits()).unwrap_err();
    assert!(matches!(error, CallError::State(_)));
    assert_eq!(error.to_string(), "state: the disk is gone");
}
