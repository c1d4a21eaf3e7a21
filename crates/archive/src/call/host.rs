//! What the interpreter runs in.

use revm::context::{BlockEnv, CfgEnv, Context, TxEnv};

use super::reader::StateReader;

/// What instructions see of the world.
pub(super) type Host<'a, 'l, S> = Context<BlockEnv, TxEnv, CfgEnv, &'a mut StateReader<'l, S>>;
