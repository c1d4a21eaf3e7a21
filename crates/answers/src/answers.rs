//! Step 6: an admitted call about pinned blocks → `Answer`. Nodes are asked over the network, and their answers come as bytes
//! that are cached and shared; a chain of our own is asked through a `Source`.

use std::path::PathBuf;
use std::sync::Arc;

use resources::{DiskHealth, MemoryBudget, ThreadPool};

use crate::archive_source::ArchiveSource;
use crate::cache::Cache;
use crate::changes::ChainChanges;
use crate::embedded::Embedded;
use crate::limits::AnswerLimits;
use crate::pool_backend::PoolBackend;
use crate::remote::{FollowThread, PoolSource, StartedPool, start_following};
use crate::request_view::RequestView;
use crate::timings::Timings;
use crate::view::{FixedSource, SnapshotSource, Source};

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

impl<S: Source> From<Arc<S>> for Sources {
    fn from(source: Arc<S>) -> Self {
        Self::Embedded(Arc::new(FixedSource(source)))
    }
}

/// Who answers, and what answers have in common.
pub struct Answers {
    /// The first field, because fields are dropped in order, and the thread uses the others.
    _follower: Option<FollowThread>,
    backend: Backend,
    threads: Arc<ThreadPool>,
    cache: Arc<Cache>,
    timings: Arc<Timings>,
    /// The file of the archive, if there is one.
    archive_file: Option<PathBuf>,
}

/// Who answers.
enum Backend {
    Embedded(Embedded),
    Pool(PoolBackend),
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
        let backend = match sources {
            Sources::Embedded(source) => {
                let (threads, timings) = (Arc::clone(&threads), Arc::clone(&timings));
                Backend::Embedded(Embedded::new(source, threads, Arc::clone(&cache), memory, timings, limits))
            }
            Sources::Remote(nodes) => {
                let (threads, cache) = (Arc::clone(&threads), Arc::clone(&cache));
                Backend::Pool(PoolBackend::start(*nodes, threads, cache, memory, &timings, limits)?)
            }
        };
        let follower = match &backend {
            Backend::Pool(pool) => start_following(&pool.remote)?,
            Backend::Embedded(_) => None,
        };
        Ok(Self { _follower: follower, backend, threads, cache, timings, archive_file })
    }

    /// The chain as it is now. A request takes one view, so that all its calls see the same chain.
    pub fn request_view(&self) -> RequestView<'_> {
        match &self.backend {
            Backend::Embedded(embedded) => RequestView::of_embedded(embedded),
            Backend::Pool(pool) => RequestView::of_pool(pool),
        }
    }

    /// What happens to the chain from now on.
    pub fn changes(&self) -> ChainChanges {
        match &self.backend {
            Backend::Embedded(embedded) => ChainChanges::of_embedded(Arc::clone(embedded.source())),
            Backend::Pool(pool) => ChainChanges::of_pool(Arc::clone(&pool.remote)),
        }
    }

    /// The newest block that is served; `None` before any node has shown its chain.
    pub fn head(&self) -> Option<u64> {
        self.request_view().head()
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
        match &self.backend {
            Backend::Embedded(embedded) => embedded.shared_calls(),
            Backend::Pool(pool) => pool.shared_calls(),
        }
    }

    /// The nodes, where there are any.
    pub fn remote(&self) -> Option<&PoolSource> {
        match &self.backend {
            Backend::Embedded(_) => None,
            Backend::Pool(pool) => Some(&pool.remote),
        }
    }
}
