//! The EVM with a watch on it.
//!
//! It is revm's in all but two things: the loop over instructions looks at the [`Watch`](super::watch::Watch)
//! from time to time, and frames let go of what nobody can read any more.

use super::{
    precompiles::WatchedPrecompiles,
    reader::{ReadError, Reader},
    watch::{Fault, Stop},
};
use crate::{eip1283, state::StateSource};
use alloy_evm::EvmEnv;
use alloy_primitives::{Bytes, Log};
use revm::{
    Context,
    context::{
        BlockEnv, CfgEnv, ContextError, ContextTr, Evm, FrameStack, Journal, JournalEntry, JournalTr,
        LocalContext, TxEnv,
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

/// Bytes that a log takes with four topics. Its data is not counted: at 8 gas a byte it stays small.
const LOG_BYTES: u64 = 2 * size_of::<Log>() as u64 + 128;

/// Bytes of a word of EVM memory.
const WORD_BYTES: usize = 32;

/// What instructions see of the world.
pub(super) type Host<'a, 'l, S> = Context<BlockEnv, TxEnv, CfgEnv, &'a mut Reader<'l, S>>;

type Instructions<'a, 'l, S> = EthInstructions<EthInterpreter, Host<'a, 'l, S>>;

type Fatal<S> = ReadError<<S as StateSource>::Error>;

/// An EVM that runs one message.
pub(super) struct Machine<'a, 'l, S: StateSource> {
    evm: Evm<Host<'a, 'l, S>, (), Instructions<'a, 'l, S>, WatchedPrecompiles, EthFrame>,
}

impl<'a, 'l, S: StateSource> Machine<'a, 'l, S> {
    pub(super) fn new(reader: &'a mut Reader<'l, S>, env: &EvmEnv, tx: TxEnv, has_eip1283: bool) -> Self {
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
            precompiles: WatchedPrecompiles::new(cfg.spec),
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
    type Precompiles = WatchedPrecompiles;
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
            // The result of the new frame replaces what the last one returned.
            self.evm.frame_stack.get().interpreter.return_data.set_buffer(Bytes::new());
        }
        self.evm.frame_init(input)
    }

    fn frame_run(&mut self) -> Result<FrameInitOrResult<EthFrame>, ContextDbError<Self::Context>> {
        let Evm { ctx: host, instruction, frame_stack, .. } = &mut self.evm;
        let frame = frame_stack.get();
        let action = run_watched(&mut frame.interpreter, instruction, host)
            .map_err(|stop| ContextError::Db(ReadError::Stopped(stop)))?;
        let next = frame.process_next_action::<_, ContextDbError<Self::Context>>(host, action)?;
        if let ItemOrResult::Result(_) = next {
            frame.set_finished(true);
            let_go(frame);
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
fn run_watched<'a, 'l, S: StateSource>(
    interpreter: &mut Interpreter,
    instructions: &Instructions<'a, 'l, S>,
    host: &mut Host<'a, 'l, S>,
) -> Result<InterpreterAction, Stop> {
    let mut gas_at_look = interpreter.gas.remaining();
    let mut gas_to_look = host.db().watch.gas_to_look();
    let mut look_below = gas_at_look.saturating_sub(gas_to_look);
    let end = loop {
        if let Err(end) = interpreter.step(instructions.instruction_table(), instructions.gas_table(), host) {
            break end;
        }
        if interpreter.gas.remaining() < look_below {
            look(host)?;
            gas_at_look = interpreter.gas.remaining();
            gas_to_look = host.db().watch.look_every_gas();
            look_below = gas_at_look.saturating_sub(gas_to_look);
        }
    };
    note_end(interpreter, host, end)?;
    if interpreter.bytecode.action().is_none() {
        interpreter.halt(end);
    }
    let spent = gas_at_look.saturating_sub(interpreter.gas.remaining());
    host.db_mut().watch.set_gas_to_look(gas_to_look.saturating_sub(spent));
    Ok(interpreter.take_next_action())
}

/// Looks at the clock and at what the run holds by now.
#[cold]
fn look<S: StateSource>(host: &mut Host<'_, '_, S>) -> Result<(), Stop> {
    let Journal { database: reader, inner: journal } = &mut host.journaled_state;
    reader.watch.look()?;
    let mut bytes = journal.state.len() as u64 * ACCOUNT_BYTES
        + journal.journal.len() as u64 * JOURNAL_ENTRY_BYTES
        + journal.logs.len() as u64 * LOG_BYTES;
    if reader.watch.counts_slots() {
        let slots: usize = journal.state.values().map(|account| account.storage.len()).sum();
        bytes += slots as u64 * SLOT_BYTES;
    }
    reader.watch.holds(bytes)
}

/// Notes what the error texts need to know, and stops for good where the memory limit was the reason.
///
/// To the contract the limit would look like running out of gas, and what it makes of that would be wrong.
fn note_end<S: StateSource>(
    interpreter: &Interpreter,
    host: &mut Host<'_, '_, S>,
    end: InstructionResult,
) -> Result<(), Stop> {
    use InstructionResult as End;
    match end {
        End::OpcodeNotFound
        | End::NotActivated
        | End::InvalidFEOpcode
        | End::StackUnderflow
        | End::StackOverflow => {
            let at = interpreter.bytecode.pc().saturating_sub(1);
            let opcode = interpreter.bytecode.bytecode_slice().get(at).copied().unwrap_or_default();
            let fault = Fault { result: end, opcode, stack_len: interpreter.stack.len() };
            host.db_mut().watch.set_fault(fault);
            Ok(())
        }
        End::MemoryLimitOOG if could_pay_for_limit(interpreter, &host.cfg) => {
            Err(host.db_mut().watch.stop_for_memory())
        }
        _ => Ok(()),
    }
}

/// Whether a frame that hit the memory limit has the gas to come that far at all.
///
/// If not, then it is simply out of gas.
fn could_pay_for_limit(interpreter: &Interpreter, cfg: &CfgEnv) -> bool {
    let limit = usize::try_from(cfg.memory_limit).unwrap_or(usize::MAX);
    let words = limit.saturating_sub(interpreter.memory.local_memory_offset()) / WORD_BYTES;
    let price = cfg.gas_params.memory_cost(words);
    let paid = cfg.gas_params.memory_cost(interpreter.memory.size() / WORD_BYTES);
    interpreter.gas.remaining() >= price.saturating_sub(paid)
}

/// Empties a frame that is done: it stays in the pool of frames, and a thousand of them would hold much.
fn let_go(frame: &mut EthFrame) {
    frame.interpreter.return_data.set_buffer(Bytes::new());
    if matches!(frame.input, FrameInput::Create(_)) {
        frame.input = FrameInput::Empty;
        frame.interpreter.bytecode = ExtBytecode::default();
    }
}
