//! The nodes and partners, the chain that they agree on, and its blocks on disk.

use std::time::Duration;

use alloy_primitives::B256;
use nodes::{Pool, PoolNode};
use remote::{AwaitedBlock, ExecutedChain, ExecutionState, FollowState, FollowedChain, PoolSource};
use resources::counted;
use serde::Serialize;
use serde_json::{Value, json};

use super::node::{BlockSnapshot, NodeSnapshot};

/// Nodes, and what is stored of their chain.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RemoteSnapshot {
    pub integrity: Value,
    pub nodes: NodesSnapshot,
    /// The stored blocks.
    pub follow: Option<FollowSnapshot>,
    /// The archive that follows the nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executed: Option<ExecutedSnapshot>,
    pub partners: Vec<PartnerSnapshot>,
    pub last_partner_answer: Option<PartnerAnswer>,
}

/// The nodes, and the chain that they agree on.
#[derive(Clone, Debug, Default, Serialize)]
pub struct NodesSnapshot {
    pub chain_id: Option<u64>,
    pub genesis: Option<B256>,
    pub head: Option<BlockSnapshot>,
    /// Time since the head last changed.
    pub head_age_seconds: Option<u64>,
    pub safe: Option<BlockSnapshot>,
    pub finalized: Option<BlockSnapshot>,
    pub checkpoint: Option<BlockSnapshot>,
    /// The head of a chain without the checkpoint.
    pub refused_head: Option<BlockSnapshot>,
    pub quorum: usize,
    /// Why the head does not move, if it stands still for too long or there is none.
    pub head_waits_because: Option<String>,
    pub each: Vec<NodeSnapshot>,
    /// Reorganisations since the start.
    pub reorganisations: u64,
    /// Time since the last one.
    pub reorganised_seconds_ago: Option<u64>,
}

/// The stored blocks of the nodes' chain.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FollowSnapshot {
    pub state: String,
    /// Whether somebody has to look after it.
    #[serde(skip)]
    pub is_problem: bool,
    pub blocks: u64,
    pub ranges: Vec<BlockRange>,
    pub headers: u64,
    /// The lowest new blocks that could not be fetched.
    pub blocks_not_fetched: Vec<AwaitedBlockSnapshot>,
    pub filled_blocks: u64,
    pub file_bytes: u64,
    pub memory_blocks: usize,
    pub memory_bytes: usize,
}

/// A new block that could not be fetched, and why.
#[derive(Clone, Debug, Serialize)]
pub struct AwaitedBlockSnapshot {
    pub number: u64,
    pub hash: B256,
    pub because: String,
    pub tried_again_in_seconds: u64,
}

impl From<AwaitedBlock> for AwaitedBlockSnapshot {
    fn from(AwaitedBlock { block, unproven_because, tried_again_in }: AwaitedBlock) -> Self {
        Self {
            number: block.number,
            hash: block.hash,
            because: unproven_because.unwrap_or_else(|| "no node has delivered it".to_owned()),
            tried_again_in_seconds: tried_again_in.as_secs(),
        }
    }
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct BlockRange {
    pub lowest: u64,
    pub newest: u64,
}

/// The archive that follows the nodes.
#[derive(Clone, Debug, Serialize)]
pub struct ExecutedSnapshot {
    pub head: u64,
    pub behind_blocks: Option<u64>,
    pub state: &'static str,
    pub stopped_because: Option<String>,
}

/// A partner, and its calls of today.
#[derive(Clone, Debug, Serialize)]
pub struct PartnerSnapshot {
    pub name: String,
    /// Whether it has answered its last probe and is of this chain.
    pub usable: bool,
    pub calls_today: u64,
    pub calls_per_day: u64,
}

/// The last answer of a partner.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PartnerAnswer {
    /// Why a partner was asked, in plain words.
    pub because: &'static str,
    pub seconds_ago: u64,
}

impl RemoteSnapshot {
    pub(super) fn of(remote: &PoolSource) -> Self {
        let pool = remote.pool();
        let partner_answer =
            |age: Duration| PartnerAnswer { because: "no node answered", seconds_ago: age.as_secs() };
        Self {
            integrity: json!({ "state": remote.state().name() }),
            nodes: NodesSnapshot::of(pool),
            follow: remote.followed_chain().map(|followed| FollowSnapshot::of(followed)),
            executed: remote.executed_chain().map(|chain| ExecutedSnapshot::of(pool, chain)),
            partners: pool.partners().iter().filter_map(|partner| PartnerSnapshot::of(partner)).collect(),
            last_partner_answer: remote.partners().last_answer_age().map(partner_answer),
        }
    }
}

impl NodesSnapshot {
    fn of(pool: &Pool) -> Self {
        let (view, chain) = (pool.view(), pool.canonical_chain());
        let (reorganisations, reorganised) = view.reorganisations();
        Self {
            chain_id: pool.chain_id(),
            genesis: chain.as_ref().and_then(|chain| chain.genesis()).map(|genesis| genesis.hash),
            head: chain.as_ref().map(|chain| chain.head().into()),
            head_age_seconds: view.head_age().as_ref().map(Duration::as_secs),
            safe: chain.as_ref().and_then(|chain| chain.safe()).map(BlockSnapshot::from),
            finalized: chain.as_ref().and_then(|chain| chain.finalized()).map(BlockSnapshot::from),
            checkpoint: view.checkpoint().map(BlockSnapshot::from),
            refused_head: view.refused_head().map(BlockSnapshot::from),
            quorum: view.quorum(),
            head_waits_because: head_waits_because(pool),
            each: pool.nodes().iter().map(|node| NodeSnapshot::of(node)).collect(),
            reorganisations,
            reorganised_seconds_ago: reorganised.as_ref().map(Duration::as_secs),
        }
    }
}

fn head_waits_because(pool: &Pool) -> Option<String> {
    let quorum = pool.view().quorum();
    let nodes = pool.voting().count();
    if nodes < quorum {
        let (verb, nodes) = (if nodes == 1 { "answers" } else { "answer" }, counted(nodes as u64, "node"));
        return Some(format!("only {nodes} of this chain {verb}; the quorum is {quorum}"));
    }
    let no_agreement =
        || format!("the quorum of {} does not have the same newer block", counted(quorum as u64, "node"));
    pool.view().is_stale().then(no_agreement)
}

impl FollowSnapshot {
    fn of(followed: &FollowedChain) -> Self {
        let (snapshot, state) = (followed.stored().snapshot(), followed.state());
        let (memory_blocks, memory_bytes) = followed.stored().in_memory();
        let ranges =
            snapshot.ranges().map(|range| BlockRange { lowest: *range.start(), newest: *range.end() });
        Self {
            is_problem: !matches!(state, FollowState::Starting | FollowState::Following),
            state: state.text(),
            blocks: snapshot.block_count(),
            ranges: ranges.collect(),
            headers: snapshot.header_count(),
            blocks_not_fetched: followed.awaited_blocks().into_iter().map(Into::into).collect(),
            filled_blocks: followed.filled_blocks(),
            file_bytes: followed.stored().file_bytes(),
            memory_blocks,
            memory_bytes,
        }
    }
}

impl ExecutedSnapshot {
    fn of(pool: &Pool, chain: &ExecutedChain) -> Self {
        let (head, newest) = (chain.head(), pool.view().head().map(|head| head.number));
        let (state, stopped_because) = match chain.state() {
            ExecutionState::Starting => ("starting", None),
            ExecutionState::Behind => ("behind", None),
            ExecutionState::AtHead => ("at head", None),
            ExecutionState::Stopped(reason) => ("stopped", Some(reason)),
        };
        let behind_blocks = newest.map(|newest| newest.saturating_sub(head));
        Self { head, behind_blocks, state, stopped_because }
    }
}

impl PartnerSnapshot {
    /// `None` for nodes that are no partners.
    fn of(partner: &PoolNode) -> Option<Self> {
        let terms = partner.partner_terms()?;
        Some(Self {
            name: partner.name().to_owned(),
            usable: partner.is_usable(),
            calls_today: terms.used_today(),
            calls_per_day: terms.quota().calls_per_day,
        })
    }
}
