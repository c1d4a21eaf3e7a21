//! Any program, with any data, state and block, at any fork: it comes back in time and in one piece.

use alloy_primitives::{Address, B256, TxKind, U256};
use alloy_rpc_types_eth::{
    BlockOverrides, TransactionRequest,
    state::{AccountOverride, StateOverride},
};
use archive::{Archive, CallError, CallLimits, Deadline, Overrides, StopReason};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Where the program is put.
const CONTRACT: Address = Address::repeat_byte(0xc0);

const TIMEOUT: Duration = Duration::from_millis(50);

/// More than a busy machine needs to notice that the time is over.
const LATE_MAX: Duration = Duration::from_secs(20);

/// The demo chain, whose blocks have passed through every fork.
pub struct Machine {
    archive: Archive,
    _directory: TempDir,
}

impl Machine {
    /// Makes the demo chain.
    pub fn start() -> Self {
        let directory = tempfile::tempdir().expect("there is a place for temporary files");
        let archive = demo::open(directory.path(), |_, _| {}).expect("the demo chain can be made");
        Self { archive, _directory: directory }
    }

    /// Runs what the bytes stand for.
    pub fn run(&self, data: &[u8]) {
        let mut bytes = Bytes(data);
        let number = u64::from(bytes.byte()) % (demo::HEAD_NUMBER + 1);
        let estimates = bytes.byte() & 1 == 1;
        let (request, overrides) = message(&mut bytes);
        let snapshot = self.archive.snapshot();
        let header = snapshot.header(number).expect("it can be read").expect("it is there");
        let rules = snapshot.chain().rules_at(&header);
        let limits = CallLimits {
            gas_cap: 300_000_000,
            memory_bytes_max: 64 << 20,
            deadline: Some(Deadline::after(TIMEOUT)),
            cancel: None,
        };
        let started = Instant::now();
        let state = snapshot.state_at(number);
        let outcome = if estimates {
            archive::estimate(state, rules, &header, request, overrides, &limits).map(drop)
        } else {
            archive::call(state, rules, &header, request, overrides, &limits).map(drop)
        };
        assert!(started.elapsed() < TIMEOUT + LATE_MAX, "it took {:?}", started.elapsed());
        match outcome {
            Err(error @ (CallError::Panicked { .. } | CallError::Internal(_) | CallError::State(_))) => {
                panic!("a fault of ours at block {number}: {error}")
            }
            Err(CallError::Stopped(StopReason::Cancelled)) => panic!("nobody cancelled it"),
            _ => {}
        }
    }
}

/// What to run, and over what.
fn message(bytes: &mut Bytes<'_>) -> (TransactionRequest, Overrides) {
    let kind = bytes.byte();
    let to = match kind % 4 {
        0 => None,
        1 => Some(Address::with_last_byte(bytes.byte())),
        _ => Some(CONTRACT),
    };
    let account = AccountOverride::default();
    let account = if kind & 4 == 0 { account } else { account.with_balance(bytes.word()) };
    let account = if kind & 8 == 0 { account } else { account.with_nonce(bytes.number()) };
    let slots = (0..bytes.byte() % 4).map(|_| (B256::from(bytes.word()), B256::from(bytes.word())));
    let slots: Vec<_> = slots.collect();
    let account = if kind & 16 == 0 { account.with_state_diff(slots) } else { account.with_state(slots) };
    let block = (kind & 32 != 0).then(|| block(bytes));
    let mut request = TransactionRequest { to: to.map(TxKind::Call), ..TransactionRequest::default() };
    fees(&mut request, bytes);
    let code_len = usize::from(bytes.byte()) << 2;
    let code = bytes.take(code_len).to_vec();
    request.input = if to.is_none() { code.clone() } else { bytes.0.to_vec() }.into();
    let state = StateOverride::from_iter([(CONTRACT, account.with_code(code))]);
    (request, Overrides { state: Some(state), block })
}

fn fees(request: &mut TransactionRequest, bytes: &mut Bytes<'_>) {
    // Most messages say nothing of fees, or they would be refused for them before anything runs.
    let given = if bytes.byte() < 192 { 0 } else { bytes.byte() };
    let has = |bit: u8| given & bit != 0;
    request.gas = has(1).then(|| bytes.number());
    request.gas_price = (has(2) && !has(4 | 8)).then(|| bytes.number().into());
    request.max_fee_per_gas = has(4).then(|| bytes.number().into());
    request.max_priority_fee_per_gas = has(8).then(|| bytes.number().into());
    request.value = has(16).then(|| bytes.word());
    request.from = has(32).then_some(CONTRACT);
    request.nonce = has(64).then(|| bytes.number());
    request.max_fee_per_blob_gas = has(128).then(|| bytes.number().into());
    request.blob_versioned_hashes = has(128).then(|| vec![B256::from(bytes.word())]);
}

fn block(bytes: &mut Bytes<'_>) -> BlockOverrides {
    let given = bytes.byte();
    let has = |bit: u8| given & bit != 0;
    BlockOverrides {
        number: has(1).then(|| bytes.word()),
        time: has(2).then(|| bytes.number()),
        gas_limit: has(4).then(|| bytes.number()),
        base_fee: has(8).then(|| bytes.word()),
        random: has(16).then(|| bytes.word().into()),
        difficulty: has(32).then(|| bytes.word()),
        coinbase: has(64).then_some(CONTRACT),
        ..BlockOverrides::default()
    }
}

/// Input that never ends: behind its last byte come zeros.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }

    fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or_default()
    }

    /// Of any size, small ones as often as large ones.
    fn word(&mut self) -> U256 {
        let len = usize::from(self.byte()) % 33;
        U256::from_be_slice(self.take(len))
    }

    fn number(&mut self) -> u64 {
        self.word().saturating_to()
    }
}
