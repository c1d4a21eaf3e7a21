//! The EVM with limits on time and memory.
//!
//! It is revm's in all but two things: the loop over instructions checks the [`LimitTracker`](super::limits::LimitTracker)
//! at intervals, and finished frames free their buffers.

use super::{
    host::Host,
    limits::{FrameFault, StopReason},
    precompiles::LimitedPrecompiles,
    reader::{ReadError, StateReader},
};
use crate::{eip1283, state::StateSource};
use alloy_evm::EvmEnv;
use alloy_primitives::{Bytes, Log};
use revm::{
    Context,
    context::{
        CfgEnv, ContextError, ContextTr, Evm, FrameStack, Journal, JournalEntry, JournalTr, LocalContext,
        TxEnv,
        result::{EVMError, ExecutionResult},
    },
    handler::{
        EthFrame, EvmTr, FrameInitOrResult, FrameResult, Handler, ItemOrResult, MainnetHandler,
        evm::{ContextDbError, FrameInitResult},
        instructions::EthInstructions,
    },
    interpreter::{
        FrameInput, InstructionResult, Interpreter, InterpreterAction,
        interpreter::{EthInterpreter, ExtBytecode},
        interpreter_action::FrameInit,
        interpreter_types::{Jumps, LegacyBytecode, LoopControl, MemoryTr, ReturnData},
    },
    state::{Account, EvmStorageSlot},
};
use std::mem::size_of;

/// Bytes that a loaded account takes: tables are at most half empty.
const ACCOUNT_BYTES: u64 = 2 * size_of::<Account>() as u64;

/// Bytes that a loaded storage slot takes, with its key.
const SLOT_BYTES: u64 = 2 * (size_of::<EvmStorageSlot>() as u64 + 32);

/// Bytes that an entry of the journal takes, and the transient slot that it may be about.
const JOURNAL_ENTRY_BYTES: u64 = 2 * size_of::<JournalEntry>() as u64 + 128;

/// Bytes that a log takes with four topics, without its data.
const LOG_BYTES: u64 = 2 * size_of::<Log>() as u64 + 128;

/// Bytes of a word of EVM memory.
const WORD_BYTES: usize = 32;

type Instructions<'a, 'l, S> = EthInstructions<EthInterpreter, Host<'a, 'l, S>>;

type Fatal<S> = ReadError<<S as StateSource>::Error>;

/// An EVM that runs one message.
pub(super) struct Machine<'a, 'l, S: StateSource> {
    evm: Evm<Host<'a, 'l, S>, (), Instructions<'a, 'l, S>, LimitedPrecompiles, EthFrame>,
}

impl<'a, 'l, S: StateSource> Machine<'a, 'l, S> {
    pub(super) fn new(
        reader: &'a mut StateReader<'l, S>,
        env: &EvmEnv,
        tx: TxEnv,
        has_eip1283: bool,
    ) -> Self {
        let cfg = &env.cfg_env;
        let mut journaled_state = Journal::new(reader);
        journaled_state.set_spec_id(cfg.spec);
        journaled_state
            .set_eip7708_config(cfg.amsterdam_eip7708_disabled, cfg.amsterdam_eip8246_delayed_clear_disabled);
        let host = Context {
            block: env.block_env.clone(),
            tx,
            cfg: cfg.clone(),
            journaled_state,
            chain: (),
            local: LocalContext::default(),
            error: Ok(()),
        };
        let mut instruction = EthInstructions::new_mainnet_with_spec(cfg.spec);
        if has_eip1283 {
            eip1283::install(&mut instruction);
        }
        let evm = Evm {
            ctx: host,
            inspector: (),
            instruction,
            precompiles: LimitedPrecompiles::new(cfg.spec),
            frame_stack: FrameStack::new(),
        };
        Self { evm }
    }

    pub(super) fn run(mut self) -> Result<ExecutionResult, EVMError<Fatal<S>>> {
        MainnetHandler::<Self, EVMError<Fatal<S>>, EthFrame>::default().run(&mut self)
    }
}

impl<'a, 'l, S: StateSource> EvmTr for Machine<'a, 'l, S> {
    type Context = Host<'a, 'l, S>;
    type Instructions = Instructions<'a, 'l, S>;
    type Precompiles = LimitedPrecompiles;
    type Frame = EthFrame;

    fn all(&self) -> (&Self::Context, &Self::Instructions, &Self::Precompiles, &FrameStack<EthFrame>) {
        self.evm.all()
    }

    fn all_mut(
        &mut self,
    ) -> (&mut Self::Context, &mut Self::Instructions, &mut Self::Precompiles, &mut FrameStack<EthFrame>)
    {
        self.evm.all_mut()
    }

    fn frame_init(
        &mut self,
        input: FrameInit,
    ) -> Result<FrameInitResult<'_, EthFrame>, ContextDbError<Self::Context>> {
        if self.evm.frame_stack.index().is_some() {
            // The result of the new frame replaces the return data of the last one.
            self.evm.frame_stack.get().interpreter.return_data.set_buffer(Bytes::new());
        }
        self.evm.frame_init(input)
    }

    fn frame_run(&mut self) -> Result<FrameInitOrResult<EthFrame>, ContextDbError<Self::Context>> {
        let Evm { ctx: host, instruction, frame_stack, .. } = &mut self.evm;
        let frame = frame_stack.get();
        let action = run_within_limits(&mut frame.interpreter, instruction, host)
            .map_err(|stop| ContextError::Db(ReadError::Stopped(stop)))?;
        let next = frame.process_next_action::<_, ContextDbError<Self::Context>>(host, action)?;
        if let ItemOrResult::Result(_) = next {
            frame.set_finished(true);
            free_buffers(frame);
        }
        Ok(next)
    }

    fn frame_return_result(
        &mut self,
        result: FrameResult,
    ) -> Result<Option<FrameResult>, ContextDbError<Self::Context>> {
        self.evm.frame_return_result(result)
    }
}

/// Runs a frame until it ends or calls another.
fn run_within_limits<'a, 'l, S: StateSource>(
    interpreter: &mut Interpreter,
    instructions: &Instructions<'a, 'l, S>,
    host: &mut Host<'a, 'l, S>,
) -> Result<InterpreterAction, StopReason> {
    let mut gas_at_check = interpreter.gas.remaining();
    let mut gas_to_next_check = host.db().limits.gas_to_next_check();
    let mut check_below = gas_at_check.saturating_sub(gas_to_next_check);
    let end = loop {
        if let Err(end) = interpreter.step(instructions.instruction_table(), instructions.gas_table(), host) {
            break end;
        }
        if interpreter.gas.remaining() < check_below {
            check_limits(host)?;
            gas_at_check = interpreter.gas.remaining();
            gas_to_next_check = host.db().limits.check_every_gas();
            check_below = gas_at_check.saturating_sub(gas_to_next_check);
        }
    };
    record_end(interpreter, host, end)?;
    if interpreter.bytecode.action().is_none() {
        interpreter.halt(end);
    }
    let spent = gas_at_check.saturating_sub(interpreter.gas.remaining());
    host.db_mut().limits.set_gas_to_next_check(gas_to_next_check.saturating_sub(spent));
    Ok(interpreter.take_next_action())
}

/// Checks the deadline and the memory that the run holds.
#[cold]
fn check_limits<S: StateSource>(host: &mut Host<'_, '_, S>) -> Result<(), StopReason> {
    let Journal { database: reader, inner: journal } = &mut host.journaled_state;
    reader.limits.check_limits()?;
    // One instruction can log megabytes, so that this is counted at every check.
    let log_data: usize = journal.logs.iter().map(|log| log.data.data.len()).sum();
    let mut bytes = journal.state.len() as u64 * ACCOUNT_BYTES
        + journal.journal.len() as u64 * JOURNAL_ENTRY_BYTES
        + journal.logs.len() as u64 * LOG_BYTES
        + log_data as u64;
    if reader.limits.is_account_count_due() {
        bytes += journal.state.values().map(bytes_of_account).sum::<u64>();
    }
    reader.limits.check_memory(bytes)
}

/// Bytes of the storage slots of an account that the run has loaded, and of its code if the run has created it.
fn bytes_of_account(account: &Account) -> u64 {
    let code = account.info.code.as_ref().filter(|_| account.is_created()).map_or(0, |code| code.len());
    account.storage.len() as u64 * SLOT_BYTES + code as u64
}

/// Records what error messages need, and stops the whole run if the memory limit was the reason.
///
/// A calling contract would take the limit for running out of gas and go on with a wrong result.
fn record_end<S: StateSource>(
    interpreter: &Interpreter,
    host: &mut Host<'_, '_, S>,
    end: InstructionResult,
) -> Result<(), StopReason> {
    use InstructionResult as End;
    match end {
        End::OpcodeNotFound
        | End::NotActivated
        | End::InvalidFEOpcode
        | End::StackUnderflow
        | End::StackOverflow => {
            let at = interpreter.bytecode.pc().saturating_sub(1);
            let opcode = interpreter.bytecode.bytecode_slice().get(at).copied().unwrap_or_default();
            let fault = FrameFault { result: end, opcode, stack_len: interpreter.stack.len() };
            host.db_mut().limits.set_fault(fault);
            Ok(())
        }
        End::MemoryLimitOOG if could_pay_for_limit(interpreter, &host.cfg) => {
            Err(host.db_mut().limits.stop_for_memory())
        }
        _ => Ok(()),
    }
}

/// Whether a frame that hit the memory limit could pay for that much memory; if not, it is out of gas.
fn could_pay_for_limit(interpreter: &Interpreter, cfg: &CfgEnv) -> bool {
    let limit = usize::try_from(cfg.memory_limit).unwrap_or(usize::MAX);
    let words = limit.saturating_sub(interpreter.memory.local_memory_offset()) / WORD_BYTES;
    let price = cfg.gas_params.memory_cost(words);
    let paid = cfg.gas_params.memory_cost(interpreter.memory.size() / WORD_BYTES);
    interpreter.gas.remaining() >= price.saturating_sub(paid)
}

/// Frees the buffers of a finished frame: revm keeps frames for reuse, and a thousand of them would hold much memory.
fn free_buffers(frame: &mut EthFrame) {
    frame.interpreter.return_data.set_buffer(Bytes::new());
    if matches!(frame.input, FrameInput::Create(_)) {
        frame.input = FrameInput::Empty;
        frame.interpreter.bytecode = ExtBytecode::default();
    }
}
