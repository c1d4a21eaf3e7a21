//! A source for unit tests, whose nodes never answer.

use std::sync::Arc;

use resources::{MemoryBudget, ThreadPool};
use sources::{AnswerLimits, Cache};

use super::pool_source::PoolSource;
use super::test_blocks::SilentNodes;

/// A source with silent nodes, and one job at a time for each account.
pub(super) struct TestSource {
    pub(super) source: PoolSource,
    _nodes: SilentNodes,
}

impl TestSource {
    pub(super) fn new(nodes: usize) -> Self {
        let (started, nodes) = SilentNodes::start(nodes, None);
        let threads = Arc::new(ThreadPool::start(1, 64).unwrap());
        let (cache, memory) = (Arc::new(Cache::new(1 << 20)), MemoryBudget::new(64 << 20));
        let source = PoolSource::new(started, threads, cache, memory, AnswerLimits::default());
        Self { source, _nodes: nodes }
    }
}
