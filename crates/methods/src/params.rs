//! Typed queries: what a call asks for, and the readers of its parameters.

mod block; // block parameters
mod call; // call objects and overrides
mod filter; // filter objects
mod query; // typed queries by kind
mod read; // one reader per shape of parameters
mod value; // quantities, data, addresses, hashes

use std::borrow::Cow;
use std::hash::{Hash, Hasher};

use alloy_rpc_types_eth::{BlockOverrides, TransactionRequest, state::StateOverride};

pub use block::{BlockParam, Tag};
pub(crate) use block::{block_or_decimal, by_hash, number_or_tag};
pub use filter::{LogBlocks, LogFilterParams};
pub use query::{
    BlockPart, BlockQuery, FeeQuery, GatewayQuery, LogsQuery, NextBlockFee, Query, SimulationKind,
    SimulationQuery, StateQuery, StateValue, TransactionPart, TransactionQuery,
};
pub(crate) use read::*;
pub(crate) use value::ParamReader;

/// The message that `eth_call` or `eth_estimateGas` executes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CallMessage {
    pub request: TransactionRequest,
    pub overrides: CallOverrides,
}

impl CallMessage {
    pub(crate) fn heap_bytes(&self) -> usize {
        // Overrides are held as text and parsed; parsed, an account without changes takes ten times as much as its text.
        let texts: usize = self.overrides.texts.iter().map(|text| text.len()).sum();
        let input = self.request.input.input().map_or(0, |input| input.len());
        let blobs = &self.request.blob_versioned_hashes;
        let lists = serde_json::to_vec(&(&self.request.access_list, &self.request.authorization_list, blobs));
        size_of::<Self>() + input + 12 * texts + lists.map_or(0, |text| text.len())
    }
}

/// Changes to state and block for one simulation. They are compared and hashed by the caller's text, because maps have no
/// order to hash in.
#[derive(Clone, Debug, Default)]
pub struct CallOverrides {
    pub state: Option<StateOverride>,
    pub block: Option<Box<BlockOverrides>>,
    /// The JSON of `state` and `block` as the caller wrote it.
    texts: [Box<str>; 2],
}

impl PartialEq for CallOverrides {
    fn eq(&self, other: &Self) -> bool {
        self.texts == other.texts
    }
}

impl Eq for CallOverrides {}

impl Hash for CallOverrides {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.texts.hash(state);
    }
}

/// A percentile of `eth_feeHistory`, from 0 to 100.
#[derive(Clone, Copy, Debug)]
pub struct Percentile(f64);

impl Percentile {
    /// `None` outside 0 to 100.
    pub fn new(percentile: f64) -> Option<Self> {
        (0.0..=100.0).contains(&percentile).then_some(Self(percentile))
    }

    pub fn get(self) -> f64 {
        self.0
    }
}

impl PartialEq for Percentile {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Eq for Percentile {}

impl Hash for Percentile {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

/// Why the parameters of a call are refused. Positions count from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParamFault {
    NotArray,
    TooMany {
        max: usize,
    },
    Missing {
        position: usize,
    },
    Invalid {
        position: usize,
        reason: Cow<'static, str>,
    },
    /// The whole error message. It has no position, because clients compare it with the text of other nodes.
    Text(Cow<'static, str>),
    /// `eth_getLogs` with more addresses and topics than one query may have.
    TooManyLogParams {
        count: usize,
        max: usize,
    },
}
