//! Refusals of a node, which are kept for some minutes: its operator may have changed its settings.

use std::time::Duration;

use tokio::time::Instant;

/// For how long a refusal counts, if the program of the node stays the same.
const REFUSALS_KEPT: Duration = Duration::from_secs(600);

/// The most methods that are remembered as missing. There are not many more in the method table.
const MISSING_METHODS_MAX: usize = 64;

/// The most gas of a transaction since Osaka. Every node grants that much to a call.
const TRANSACTION_GAS_MAX: u64 = 1 << 24;

/// A kind of refusal, which is logged once for each node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeRefusal {
    Method(&'static str),
    BlockHash(&'static str),
    Gas,
    Proof,
    State,
    LogRange,
}

impl NodeRefusal {
    /// The line in the log: the cause, what follows, and what its operator can do.
    pub(crate) fn explanation(self) -> &'static str {
        match self {
            Self::Method(_) => {
                "node does not have this method; asking others: enable it if this node is to answer it"
            }
            Self::BlockHash(_) => {
                "node takes no block hash in this method; asking it by number, and whether it has the block"
            }
            Self::Gas => {
                "node grants calls less gas; calls with more go to others: raise its gas cap if it is to run them"
            }
            Self::Proof => {
                "node cannot prove a state as old as this; asking others: let it keep more if it is to prove old states"
            }
            Self::State => {
                "node has dropped a state as old as this; asking others: let it keep more if it is to have old states"
            }
            Self::LogRange => "node searches fewer blocks for logs at once; splitting ranges",
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Refusals {
    since: Option<Instant>,
    pub(super) missing_methods: Vec<&'static str>,
    /// The methods in which it takes the number of a block, but not its hash.
    pub(super) methods_by_number: Vec<&'static str>,
    /// The most gas that it grants to a call.
    pub(super) gas_cap: Option<u64>,
    /// The lowest block whose state it may be able to prove.
    pub(super) lowest_proof: u64,
    /// The widest range of blocks that it searches for logs.
    pub(super) log_range_max: Option<u64>,
}

impl Refusals {
    /// The refusals, to which one is added.
    fn changed(&mut self) -> &mut Self {
        self.since.get_or_insert_with(Instant::now);
        self
    }

    /// Forgets what was refused so long ago that the node may have changed.
    pub(super) fn forget_old(&mut self, now: Instant) {
        if self.since.is_some_and(|since| now.saturating_duration_since(since) >= REFUSALS_KEPT) {
            *self = Self::default();
        }
    }

    pub(super) fn add_missing_method(&mut self, method: &'static str) {
        add(&mut self.changed().missing_methods, method);
    }

    pub(super) fn add_method_by_number(&mut self, method: &'static str) {
        add(&mut self.changed().methods_by_number, method);
    }

    /// Records that a call with so much gas was refused. `most` is what the node grants, if it has said so; otherwise the most that
    /// a transaction may have since Osaka is tried next, then half of what was refused.
    pub(super) fn add_gas(&mut self, gas: u64, most: Option<u64>) -> u64 {
        let guess = if gas > TRANSACTION_GAS_MAX { TRANSACTION_GAS_MAX } else { gas / 2 };
        let cap = most.filter(|most| *most < gas).unwrap_or(guess);
        let known = &mut self.changed().gas_cap;
        *known.insert(known.map_or(cap, |known| known.min(cap)))
    }

    pub(super) fn add_proof_below(&mut self, lowest: u64) {
        self.changed().lowest_proof = self.lowest_proof.max(lowest);
    }

    /// Lowers the widest range, to one block at the least.
    pub(super) fn add_log_range(&mut self, blocks: u64) {
        let narrowest = self.log_range_max.map_or(blocks, |known| known.min(blocks));
        self.changed().log_range_max = Some(narrowest.max(1));
    }
}

fn add(methods: &mut Vec<&'static str>, method: &'static str) {
    if !methods.contains(&method) && methods.len() < MISSING_METHODS_MAX {
        methods.push(method);
    }
}
