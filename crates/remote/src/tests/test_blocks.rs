//! Blocks and state for unit tests, in front of nodes that accept connections and never answer. Tests fill them with what nodes
//! would have delivered.

use std::net::TcpListener;
use std::sync::Arc;

use alloy_consensus::Header;
use alloy_primitives::{B256, Bytes, keccak256};
use archive::{BlockParts, ChainSpec, EncodedBlock};
use methods::{BlockRef, Network, NetworkFamily};
use nodes::view::SeenBlock;
use nodes::{BlockId, CanonicalChain};
use resources::{MemoryBudget, Supervisor, ThreadPool};
use sources::{AnswerLimits, Cache};
use tempfile::TempDir;

use super::blocks::Blocks;
use super::follower::Follower;
use super::settings::StateMode;
use super::settings::{NodeEndpoint, PoolConfig};
use super::started_pool::StartedPool;
use super::state::{ChainRules, State};
use super::workers::Workers;

/// Nodes that never answer.
pub(super) struct SilentNodes {
    _listeners: Vec<TcpListener>,
    _data_dir: TempDir,
}

impl SilentNodes {
    pub(super) fn start(nodes: usize, chain_id: Option<u64>) -> (StartedPool, Self) {
        let listeners: Vec<_> = (0..nodes).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let endpoint = |listener: &TcpListener| NodeEndpoint {
            name: None,
            url: format!("http://{}", listener.local_addr().unwrap()),
            ws_url: None,
            headers: Vec::new(),
            http2: false,
        };
        let config = PoolConfig {
            nodes: listeners.iter().map(endpoint).collect(),
            state: StateMode::Prove,
            ..PoolConfig::default()
        };
        let data_dir = tempfile::tempdir().unwrap();
        let network = network(chain_id);
        let supervisor = Supervisor::default();
        let started =
            StartedPool::start(&config, &network, data_dir.path(), &supervisor, |_| Ok(())).unwrap();
        (started, Self { _listeners: listeners, _data_dir: data_dir })
    }
}

fn network(chain_id: Option<u64>) -> Network {
    Network {
        name: "test".to_owned(),
        families: vec![NetworkFamily::Ethereum],
        chain_id,
        genesis_hash: None,
        checkpoint: None,
        genesis: None,
        unsupported_tags: Default::default(),
        failover: Vec::new(),
        eth_call_requires_from: false,
    }
}

/// Blocks of silent nodes, and one job at a time for each account.
pub(super) struct TestBlocks {
    pub(super) blocks: Arc<Blocks>,
    _nodes: SilentNodes,
}

impl TestBlocks {
    pub(super) fn new(nodes: usize) -> Self {
        Self::of_chain(nodes, None)
    }

    pub(super) fn of_chain(nodes: usize, chain_id: Option<u64>) -> Self {
        let (StartedPool { pool, follower, integrity, family, .. }, nodes) =
            SilentNodes::start(nodes, chain_id);
        let limits = AnswerLimits::default();
        let threads = Arc::new(ThreadPool::start(1, 64).unwrap());
        let workers = Workers::new(threads, MemoryBudget::new(64 << 20), integrity, limits.clone());
        let stored = follower.as_ref().and_then(Follower::stored_chain).cloned();
        let blocks = Blocks::new(pool, Arc::new(workers), family, stored, limits.proven_bytes_max);
        Self { blocks: Arc::new(blocks), _nodes: nodes }
    }
}

/// State of silent nodes.
pub(super) struct TestState {
    pub(super) state: Arc<State>,
    _nodes: SilentNodes,
}

impl TestState {
    pub(super) fn new(test: TestBlocks) -> Self {
        let (rules, cache) = (ChainRules::open(&network(None)).unwrap(), Arc::new(Cache::new(1 << 20)));
        let state = State::new(test.blocks, rules, StateMode::Prove, cache, AnswerLimits::default());
        Self { state: Arc::new(state), _nodes: test._nodes }
    }
}

pub(super) fn header(number: u64, parent: B256) -> Header {
    Header { number, parent_hash: parent, gas_limit: 30_000_000, ..Header::default() }
}

/// A chain whose window is one block, and whose block 0 is that of mainnet.
pub(super) fn chain_of_head(number: u64) -> CanonicalChain {
    let header = header(number, B256::ZERO);
    let genesis = ChainSpec::genesis_of_network(1).map(|hash| BlockId { number: 0, hash });
    CanonicalChain::of_head(SeenBlock::restored(header.hash_slow(), &header), genesis)
}

/// Stores two blocks that cannot be compressed to fewer bytes than this.
pub(super) fn stored(blocks: &Blocks, bytes: usize) -> (BlockRef, BlockRef) {
    let noise: Vec<u8> = (0..bytes as u64).step_by(32).flat_map(|at| keccak256(at.to_be_bytes()).0).collect();
    let extra_data = Bytes::from(noise);
    let lower = Header { extra_data: extra_data.clone(), ..header(1, B256::ZERO) };
    let upper = Header { extra_data, ..header(2, lower.hash_slow()) };
    let encoded = [&lower, &upper].map(|header| {
        EncodedBlock::new(&BlockParts {
            hash: header.hash_slow(),
            header,
            transactions: &[],
            uncles: &[],
            withdrawals: None,
            receipts: &[],
        })
    });
    let stored = blocks.stored_chain().unwrap();
    stored.put_blocks(None, &encoded).unwrap();
    let block = |header: &Header| BlockRef { number: header.number, hash: header.hash_slow() };
    (block(&lower), block(&upper))
}
