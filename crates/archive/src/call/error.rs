//! Errors of calls, with the messages of geth, which clients of Ethereum nodes match on.

use super::{
    CallResult,
    limits::{FrameFault, StopReason},
    overrides::OverrideError,
};
use alloy_primitives::{Address, Bytes, U256};
use revm::{
    bytecode::opcode::OpCode,
    context::{
        Cfg, CfgEnv, TxEnv,
        result::{HaltReason, InvalidTransaction, OutOfGasError},
    },
    interpreter::{InstructionResult, STACK_LIMIT},
};

/// Why a call has no result.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The contract reverted. Whoever answers the call decodes the reason.
    #[error("execution reverted")]
    Reverted {
        /// The revert data.
        data: Bytes,
    },
    #[error(transparent)]
    Halted(Halt),
    #[error("gas required exceeds allowance ({allowance})")]
    GasExceedsAllowance { allowance: u64 },
    /// The message cannot run at all.
    #[error(transparent)]
    Refused(#[from] CallRejection),
    #[error(transparent)]
    Overrides(#[from] OverrideError),
    /// The run was stopped from outside.
    #[error(transparent)]
    Stopped(#[from] StopReason),
    #[error("state: {0}")]
    State(Box<dyn std::error::Error + Send + Sync>),
    #[error("evm: {0}")]
    Internal(String),
    #[error("evm panicked: {message}")]
    Panicked { message: String },
}

/// Why the EVM halted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Halt {
    #[error("out of gas")]
    OutOfGas,
    /// An operand is so large that its gas cost overflows.
    #[error("gas uint64 overflow")]
    GasOverflow,
    #[error("invalid opcode: {}", opcode_name(*opcode))]
    InvalidOpcode { opcode: u8 },
    #[error("stack underflow ({have} <=> {want})")]
    StackUnderflow { have: usize, want: usize },
    #[error("stack limit reached {have} ({limit})")]
    StackOverflow {
        have: usize,
        /// Items with which the instruction could still have run.
        limit: usize,
    },
    #[error("invalid jump destination")]
    InvalidJump,
    #[error("write protection")]
    WriteProtection,
    #[error("return data out of bounds")]
    ReturnDataOutOfBounds,
    #[error("max call depth exceeded")]
    CallTooDeep,
    #[error("insufficient balance for transfer")]
    InsufficientBalance,
    /// A contract is already where one is to be created.
    #[error("contract address collision")]
    AddressCollision,
    #[error("max code size exceeded")]
    CodeTooLarge,
    #[error("max initcode size exceeded")]
    InitcodeTooLarge,
    #[error("invalid code: must not begin with 0xef")]
    CodeStartsWithEf,
    #[error("nonce uint64 overflow")]
    NonceOverflow,
    #[error("{0}")]
    Precompile(String),
}

/// Why a message cannot run at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallRejection {
    #[error("both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified")]
    ConflictingFees,
    #[error("chainId does not match node's (have={have}, want={want})")]
    ChainId { have: u64, want: u64 },
    #[error("insufficient funds for gas * price + value: address {address} have {have} want {want}")]
    InsufficientFunds { address: Address, have: U256, want: U256 },
    #[error(
        "insufficient funds for gas * price + value: address {address} required balance exceeds 256 bits"
    )]
    CostOverflow { address: Address },
    #[error("insufficient funds for transfer")]
    InsufficientFundsForTransfer,
    #[error("intrinsic gas too low: have {have}, want {want}")]
    IntrinsicGasTooLow { have: u64, want: u64 },
    #[error("insufficient gas for floor data gas cost: have {have}, want {want}")]
    FloorGasTooLow { have: u64, want: u64 },
    #[error(
        "max fee per gas less than block base fee: address {address}, maxFeePerGas: {cap}, baseFee: {base_fee}"
    )]
    FeeBelowBase { address: Address, cap: u128, base_fee: u64 },
    #[error(
        "max priority fee per gas higher than max fee per gas: address {address}, maxPriorityFeePerGas: {tip}, maxFeePerGas: {cap}"
    )]
    TipAboveFee { address: Address, tip: u128, cap: u128 },
    #[error(
        "max fee per blob gas less than block blob gas fee: address {address} blobGasFeeCap: {cap}, blobBaseFee: {base_fee}"
    )]
    BlobFeeBelowBase { address: Address, cap: u128, base_fee: u128 },
    #[error("blob transaction of type create")]
    BlobsInCreation,
    #[error("blob transaction missing blob hashes")]
    NoBlobs,
    #[error("blob {index} has invalid hash version")]
    BlobVersion { index: usize },
    #[error("blob transaction has too many blobs: have {have}, max {max}")]
    TooManyBlobs { have: usize, max: usize },
    #[error("EIP-7702 transaction cannot be used to create contract (sender {sender})")]
    AuthorizationsInCreation { sender: Address },
    #[error("EIP-7702 transaction with empty auth list (sender {sender})")]
    NoAuthorizations { sender: Address },
    #[error("transaction type not supported")]
    TypeNotSupported,
    #[error("max initcode size exceeded: code size {size} limit {limit}")]
    InitcodeTooLarge { size: usize, limit: usize },
    #[error("{0}")]
    Other(String),
}

/// The name of an instruction as geth writes it.
fn opcode_name(opcode: u8) -> String {
    match OpCode::new(opcode) {
        Some(known) => known.as_str().to_owned(),
        None => format!("opcode {opcode:#x} not defined"),
    }
}

/// Converts the reason of a halt, with the frame in which it happened, into a result.
pub(super) fn halted(reason: HaltReason, fault: Option<FrameFault>) -> CallResult {
    let halt = match reason {
        HaltReason::OutOfGas(OutOfGasError::InvalidOperand) => Halt::GasOverflow,
        HaltReason::OutOfGas(_) => Halt::OutOfGas,
        HaltReason::OpcodeNotFound
        | HaltReason::InvalidFEOpcode
        | HaltReason::NotActivated
        | HaltReason::StackUnderflow
        | HaltReason::StackOverflow => fault_halt(reason.into(), fault),
        HaltReason::InvalidJump => Halt::InvalidJump,
        HaltReason::StateChangeDuringStaticCall | HaltReason::CallNotAllowedInsideStatic => {
            Halt::WriteProtection
        }
        HaltReason::OutOfOffset => Halt::ReturnDataOutOfBounds,
        HaltReason::CallTooDeep => Halt::CallTooDeep,
        HaltReason::OutOfFunds | HaltReason::OverflowPayment => Halt::InsufficientBalance,
        HaltReason::CreateCollision => Halt::AddressCollision,
        HaltReason::CreateContractSizeLimit => Halt::CodeTooLarge,
        HaltReason::CreateInitCodeSizeLimit => Halt::InitcodeTooLarge,
        HaltReason::CreateContractStartingWithEF => Halt::CodeStartsWithEf,
        HaltReason::NonceOverflow => Halt::NonceOverflow,
        HaltReason::PrecompileErrorWithContext(text) => Halt::Precompile(text),
        HaltReason::PrecompileError => Halt::Precompile("precompile failed".to_owned()),
    };
    CallResult::Halted(halt)
}

/// Converts a halt whose message contains the opcode or the stack height.
///
/// revm calls it an overflow when DUP and SWAP reach below the stack, so the numbers decide.
fn fault_halt(result: InstructionResult, fault: Option<FrameFault>) -> Halt {
    let fault = fault.filter(|fault| fault.result == result);
    let (opcode, have) = fault.map_or((0, 0), |fault| (fault.opcode, fault.stack_len));
    let want = OpCode::new(opcode).map_or(0, |opcode| usize::from(opcode.inputs()));
    match result {
        InstructionResult::StackUnderflow => Halt::StackUnderflow { have, want },
        InstructionResult::StackOverflow if have < want => Halt::StackUnderflow { have, want },
        // Every instruction that can overflow the stack adds exactly one item.
        InstructionResult::StackOverflow => Halt::StackOverflow { have, limit: STACK_LIMIT - 1 },
        _ => Halt::InvalidOpcode { opcode },
    }
}

/// Converts the reason for which revm rejected a message.
pub(super) fn refusal(cause: InvalidTransaction, tx: &TxEnv, cfg: &CfgEnv) -> CallRejection {
    use InvalidTransaction as Cause;
    let address = tx.caller;
    match cause {
        Cause::LackOfFundForMaxFee { fee, balance } => {
            CallRejection::InsufficientFunds { address, have: *balance, want: *fee }
        }
        Cause::OverflowPaymentInTransaction => CallRejection::CostOverflow { address },
        Cause::CallGasCostMoreThanGasLimit { initial_gas, gas_limit } => {
            CallRejection::IntrinsicGasTooLow { have: gas_limit, want: initial_gas }
        }
        Cause::GasFloorMoreThanGasLimit { gas_floor, gas_limit } => {
            CallRejection::FloorGasTooLow { have: gas_limit, want: gas_floor }
        }
        Cause::CreateInitCodeSizeLimit => {
            CallRejection::InitcodeTooLarge { size: tx.data.len(), limit: cfg.max_initcode_size() }
        }
        Cause::TooManyBlobs { have, max } => CallRejection::TooManyBlobs { have, max },
        other => CallRejection::Other(other.to_string()),
    }
}
