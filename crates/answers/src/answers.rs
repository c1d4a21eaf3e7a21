//! Step 6: an admitted call about pinned blocks → `Answer`. Nodes are asked over the network, and their answers come as bytes
//! that are cached and shared; a chain of our own is asked through a `Source`.

use std::path::PathBuf;
use std::sync::Arc;

use nodes::NodeId;
use remote::{FollowThread, PoolSource, StartedPool};
use resources::{DiskHealth, MemoryBudget, ThreadPool};
use sources::{AnswerLimits, Cache, CurrentLimits, SnapshotSource, Source};

use crate::archive_source::ArchiveSource;
use crate::chain::Chain;
use crate::changes::ChainChanges;
use crate::embedded::Embedded;
use crate::timings::Timings;

/// Whom this deployment asks.
pub enum Sources {
    /// A chain of our own.
    Embedded(Arc<dyn SnapshotSource>),
    /// Nodes.
    Remote(Box<StartedPool>),
}

impl Sources {
    /// The archive that blocks can be imported into, if there is one.
    pub fn archive(&self) -> Option<Arc<archive::Archive>> {
        match self {
            Self::Embedded(source) => source.own_archive().cloned(),
            Self::Remote(nodes) => nodes.executed_chain().map(|chain| Arc::clone(chain.archive())),
        }
    }

    /// The file of stored blocks of nodes, if there is one.
    pub fn blocks_file(&self) -> Option<Arc<archive::BlocksFile>> {
        match self {
            Self::Embedded(_) => None,
            Self::Remote(nodes) => nodes.blocks_file().cloned(),
        }
    }

    /// The health of the disk that blocks of nodes are written to, if there are nodes.
    pub fn disk(&self) -> Option<&DiskHealth> {
        match self {
            Self::Embedded(_) => None,
            Self::Remote(nodes) => Some(nodes.disk()),
        }
    }
}

impl From<Arc<ArchiveSource>> for Sources {
    fn from(source: Arc<ArchiveSource>) -> Self {
        Self::Embedded(source)
    }
}

/// A source that never changes is its own snapshot.
struct FixedSource(Arc<dyn Source>);

impl SnapshotSource for FixedSource {
    fn snapshot(&self) -> Arc<dyn Source> {
        Arc::clone(&self.0)
    }
}

impl<S: Source> From<Arc<S>> for Sources {
    fn from(source: Arc<S>) -> Self {
        Self::Embedded(Arc::new(FixedSource(source)))
    }
}

/// Who answers, and what answers have in common.
pub struct Answers {
    /// The first field, because fields are dropped in order, and the thread uses the others.
    _follower: Option<FollowThread>,
    /// The embedded chain, or an archive that follows the nodes.
    embedded: Option<Embedded>,
    remote: Option<Box<PoolSource>>,
    threads: Arc<ThreadPool>,
    cache: Arc<Cache>,
    timings: Arc<Timings>,
    limits: CurrentLimits,
    /// The file of the archive, if there is one.
    archive_file: Option<PathBuf>,
}

impl std::fmt::Debug for Sources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Embedded(_) => "Embedded",
            Self::Remote(_) => "Remote",
        })
    }
}

impl std::fmt::Debug for Answers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answers").finish_non_exhaustive()
    }
}

impl Answers {
    pub fn new(sources: Sources, limits: AnswerLimits, memory: MemoryBudget) -> std::io::Result<Self> {
        let threads = Arc::new(ThreadPool::start(limits.pool_threads, limits.pool_queue_max)?);
        let timings = Arc::<Timings>::default();
        let cache = Arc::new(Cache::new(limits.cache_bytes_max));
        let archive_file = sources.archive().map(|archive| archive.path().to_owned());
        let current = CurrentLimits::from(limits);
        let limits = current.clone();
        let (source, started) = match sources {
            Sources::Embedded(source) => (Some(source), None),
            Sources::Remote(started) => {
                (started.executed_chain().map(|chain| Arc::clone(chain.source())), Some(started))
            }
        };
        let embedded = source.map(|source| {
            let (threads, cache, timings) = (Arc::clone(&threads), Arc::clone(&cache), Arc::clone(&timings));
            Embedded::new(source, threads, cache, memory.clone(), timings, limits.clone())
        });
        let (mut remote, mut follower) = (None, None);
        if let Some(started) = started {
            let supervisor = started.supervisor().clone();
            let source = PoolSource::new(*started, Arc::clone(&threads), Arc::clone(&cache), memory, limits);
            follower = source.start_following(&supervisor)?;
            remote = Some(Box::new(source));
        }
        Ok(Self {
            _follower: follower,
            embedded,
            remote,
            threads,
            cache,
            timings,
            limits: current,
            archive_file,
        })
    }

    /// The limits as they are now.
    pub fn limits(&self) -> &CurrentLimits {
        &self.limits
    }

    /// Calls that begin from now on have these limits.
    pub fn change_limits(&self, limits: &AnswerLimits) {
        self.limits.replace(limits);
        if let Some(embedded) = &self.embedded {
            embedded.source().change_limits(limits);
        }
    }

    /// The chain as it is now. A request takes it once, so that all its calls see the same chain.
    pub fn chain(&self) -> Chain<'_> {
        Chain::now(self.embedded.as_ref(), self.remote())
    }

    /// The changes of the chain from now on.
    pub fn changes(&self) -> ChainChanges {
        let source = self.embedded.as_ref().map(|embedded| Arc::clone(embedded.source()));
        ChainChanges::of(source, self.remote().map(|remote| remote.pool().view().changes()))
    }

    /// The newest block that is served; `None` before any node has shown its chain.
    pub fn head(&self) -> Option<u64> {
        self.chain().head()
    }

    pub fn threads(&self) -> &Arc<ThreadPool> {
        &self.threads
    }

    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    pub fn timings(&self) -> &Timings {
        &self.timings
    }

    /// Size of the file of the archive; `None` without one.
    pub fn archive_bytes(&self) -> Option<u64> {
        let file = std::fs::metadata(self.archive_file.as_deref()?);
        file.ok().map(|file| file.len())
    }

    /// How many calls waited for the answer to an equal one.
    pub fn shared_calls(&self) -> u64 {
        self.embedded.as_ref().map_or(0, Embedded::shared_calls)
            + self.remote().map_or(0, PoolSource::shared_calls)
    }

    /// The name of a node or partner that is not removed.
    pub fn node_name(&self, node: NodeId) -> Option<String> {
        Some(self.remote()?.pool().node(node)?.name().to_owned())
    }

    /// The nodes, where there are any.
    pub fn remote(&self) -> Option<&PoolSource> {
        self.remote.as_deref()
    }
}
