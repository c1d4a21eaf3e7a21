//! A small world in memory, chains of any fork, and an assembler.

use crate::{
    call::{CallError, CallLimits, Overrides, call},
    chain::ChainSpec,
    estimate::estimate,
    state::{AccountState, StateSource},
};
use alloy_consensus::Header;
use alloy_genesis::{ChainConfig, Genesis};
use alloy_primitives::{Address, B256, Bytes, TxKind, U256, hex, keccak256};
use alloy_rpc_types_eth::{TransactionInput, TransactionRequest};
use revm::{bytecode::opcode::OpCode, primitives::hardfork::SpecId, state::Bytecode};
use std::{cell::Cell, collections::BTreeMap, time::Duration};

pub(crate) const CHAIN_ID: u64 = 1337;
pub(crate) const BLOCK_GAS_LIMIT: u64 = 30_000_000;
pub(crate) const BASE_FEE: u64 = 7;
pub(crate) const ALICE: Address = Address::repeat_byte(0xa1);
pub(crate) const CONTRACT: Address = Address::repeat_byte(0xc0);
pub(crate) const OTHER: Address = Address::repeat_byte(0xc1);

/// The error of a source that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the disk is gone")]
pub(crate) struct DiskGone;

impl revm::context::DBErrorMarker for DiskGone {}

/// A state in memory, with faults at will.
#[derive(Debug, Default)]
pub(crate) struct World {
    pub(crate) accounts: BTreeMap<Address, AccountState>,
    pub(crate) storage: BTreeMap<(Address, U256), U256>,
    pub(crate) code: BTreeMap<B256, Bytecode>,
    pub(crate) reads: Cell<usize>,
    pub(crate) read_takes: Option<Duration>,
    pub(crate) disk_gone: bool,
    pub(crate) panics: bool,
}

impl World {
    pub(crate) fn with_code(mut self, address: Address, code: impl Into<Bytes>) -> Self {
        let code = code.into();
        let hash = keccak256(&code);
        self.code.insert(hash, Bytecode::new_raw(code));
        self.accounts.entry(address).or_default().code_hash = hash;
        self
    }

    pub(crate) fn with_balance(mut self, address: Address, wei: u64) -> Self {
        self.accounts.entry(address).or_default().balance = U256::from(wei);
        self
    }

    pub(crate) fn with_nonce(mut self, address: Address, nonce: u64) -> Self {
        self.accounts.entry(address).or_default().nonce = nonce;
        self
    }

    pub(crate) fn with_slot(mut self, address: Address, slot: u64, value: u64) -> Self {
        self.storage.insert((address, U256::from(slot)), U256::from(value));
        self
    }

    fn read(&self) -> Result<(), DiskGone> {
        self.reads.set(self.reads.get() + 1);
        assert!(!self.panics, "the world ends");
        if let Some(time) = self.read_takes {
            std::thread::sleep(time);
        }
        if self.disk_gone { Err(DiskGone) } else { Ok(()) }
    }
}

impl StateSource for World {
    type Error = DiskGone;

    fn account(&self, address: Address) -> Result<Option<AccountState>, DiskGone> {
        self.read()?;
        Ok(self.accounts.get(&address).copied())
    }

    fn storage(&self, address: Address, slot: U256) -> Result<U256, DiskGone> {
        self.read()?;
        Ok(self.storage.get(&(address, slot)).copied().unwrap_or_default())
    }

    fn code(&self, hash: B256) -> Result<Bytecode, DiskGone> {
        self.read()?;
        Ok(self.code[&hash].clone())
    }

    fn block_hash(&self, number: u64) -> Result<B256, DiskGone> {
        self.read()?;
        Ok(keccak256(number.to_be_bytes()))
    }
}

/// A chain that has been at this fork since its first block.
pub(crate) fn chain(spec: SpecId) -> ChainSpec {
    let block = |since: SpecId| spec.is_enabled_in(since).then_some(0);
    let config = ChainConfig {
        chain_id: CHAIN_ID,
        homestead_block: block(SpecId::HOMESTEAD),
        eip150_block: block(SpecId::TANGERINE),
        eip155_block: block(SpecId::SPURIOUS_DRAGON),
        eip158_block: block(SpecId::SPURIOUS_DRAGON),
        byzantium_block: block(SpecId::BYZANTIUM),
        constantinople_block: block(SpecId::PETERSBURG),
        petersburg_block: block(SpecId::PETERSBURG),
        istanbul_block: block(SpecId::ISTANBUL),
        berlin_block: block(SpecId::BERLIN),
        london_block: block(SpecId::LONDON),
        terminal_total_difficulty: block(SpecId::MERGE).map(|_| U256::ZERO),
        shanghai_time: block(SpecId::SHANGHAI),
        cancun_time: block(SpecId::CANCUN),
        prague_time: block(SpecId::PRAGUE),
        osaka_time: block(SpecId::OSAKA),
        ..ChainConfig::default()
    };
    ChainSpec::from_genesis(Genesis { config, ..Genesis::default() }).unwrap()
}

/// Block 100 of a chain at this fork.
pub(crate) fn header(spec: SpecId) -> Header {
    Header {
        number: 100,
        timestamp: 1_000,
        gas_limit: BLOCK_GAS_LIMIT,
        difficulty: if spec.is_enabled_in(SpecId::MERGE) { U256::ZERO } else { U256::from(131_072) },
        base_fee_per_gas: spec.is_enabled_in(SpecId::LONDON).then_some(BASE_FEE),
        excess_blob_gas: spec.is_enabled_in(SpecId::CANCUN).then_some(0),
        ..Header::default()
    }
}

/// Ten times the block gas limit, 64 MiB, all the time there is.
pub(crate) fn limits() -> CallLimits {
    CallLimits { gas_cap: 10 * BLOCK_GAS_LIMIT, memory_bytes_max: 64 << 20, deadline: None, cancel: None }
}

/// A request to the contract.
pub(crate) fn to_contract() -> TransactionRequest {
    TransactionRequest { to: Some(TxKind::Call(CONTRACT)), ..TransactionRequest::default() }
}

/// A request to create something.
pub(crate) fn creation(code: impl Into<Bytes>) -> TransactionRequest {
    TransactionRequest { input: TransactionInput::new(code.into()), ..TransactionRequest::default() }
}

/// Calls at a block of a chain at this fork, with nothing overridden.
pub(crate) fn call_at(
    spec: SpecId,
    world: &World,
    request: TransactionRequest,
    limits: &CallLimits,
) -> Result<Bytes, CallError> {
    call_with(spec, world, request, Overrides::default(), limits)
}

pub(crate) fn call_with(
    spec: SpecId,
    world: &World,
    request: TransactionRequest,
    overrides: Overrides,
    limits: &CallLimits,
) -> Result<Bytes, CallError> {
    let (chain, header) = (chain(spec), header(spec));
    call(world, chain.rules_at(&header), &header, request, overrides, limits)
}

pub(crate) fn estimate_at(
    spec: SpecId,
    world: &World,
    request: TransactionRequest,
    limits: &CallLimits,
) -> Result<u64, CallError> {
    let (chain, header) = (chain(spec), header(spec));
    estimate(world, chain.rules_at(&header), &header, request, Overrides::default(), limits)
}

/// Assembles a program: names of instructions, `0x…` to push, `:name` for a place to jump to, `@name` to push it,
/// `raw:…` for bytes.
pub(crate) fn asm(text: &str) -> Vec<u8> {
    let mut code = Vec::new();
    let mut labels = BTreeMap::new();
    let mut uses = Vec::new();
    for token in text.split_whitespace() {
        if let Some(label) = token.strip_prefix(':') {
            labels.insert(label, u16::try_from(code.len()).unwrap());
            code.push(OpCode::JUMPDEST.get());
        } else if let Some(label) = token.strip_prefix('@') {
            code.push(OpCode::PUSH2.get());
            uses.push((code.len(), label));
            code.extend([0, 0]);
        } else if let Some(digits) = token.strip_prefix("0x") {
            let digits = if digits.len() % 2 == 1 { format!("0{digits}") } else { digits.to_owned() };
            let bytes = hex::decode(digits).unwrap();
            code.push(OpCode::PUSH0.get() + u8::try_from(bytes.len()).unwrap());
            code.extend(bytes);
        } else if let Some(raw) = token.strip_prefix("raw:") {
            code.extend(hex::decode(raw).unwrap());
        } else {
            code.push(opcode(token));
        }
    }
    for (at, label) in uses {
        code[at..at + 2].copy_from_slice(&labels[label].to_be_bytes());
    }
    code
}

fn opcode(name: &str) -> u8 {
    let named = |byte: &u8| OpCode::new(*byte).is_some_and(|opcode| opcode.as_str() == name);
    (0..=u8::MAX).find(named).unwrap_or_else(|| panic!("no instruction {name}"))
}

/// Ends a program by returning the item on top of the stack.
pub(crate) const RETURN_TOP: &str = " 0x00 MSTORE 0x20 0x00 RETURN";
