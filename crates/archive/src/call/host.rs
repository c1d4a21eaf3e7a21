//! The environment of the interpreter.

use revm::context::{BlockEnv, CfgEnv, Context, TxEnv};

use super::reader::StateReader;

/// The world as instructions see it.
pub(super) type Host<'a, 'l, S> = Context<BlockEnv, TxEnv, CfgEnv, &'a mut StateReader<'l, S>>;
