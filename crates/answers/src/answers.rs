//! Step 7: an admitted call about pinned blocks → `Answer`. Nodes are asked over the network, and their answers come as bytes
//! that are kept and shared; a chain of our own is asked through a `Source`.

use std::sync::Arc;

use methods::{BlockParam, BlockRef, Method, Query};
use resources::{MemoryBudget, MemoryCharge, Threads};

use crate::archive_source::ArchiveSource;
use crate::cache::Cache;
use crate::call_account::CallAccount;
use crate::embedded::{Embedded, EmbeddedCall};
use crate::failure::{Failure, another_source};
use crate::limits::Limits;
use crate::provenance::{Answer, Provenance};
use crate::remote::{Follower, NodeCall, Outlook, Remote, Sight};
use crate::remote_answers::RemoteAnswers;
use crate::timings::Timings;
use crate::unanswered::{Repetition, Unanswered};
use crate::view::{FixedSource, SnapshotSource, Source};

/// Whom this deployment asks.
pub enum Sources {
    /// A chain of our own.
    Embedded(Arc<dyn SnapshotSource>),
    /// Nodes.
    Remote(Box<Remote>),
}

impl Sources {
    /// The archive that blocks can be imported into, if there is one.
    pub fn archive(&self) -> Option<Arc<archive::Archive>> {
        match self {
            Self::Embedded(source) => source.own_archive().cloned(),
            Self::Remote(remote) => remote.executed_chain().map(|chain| Arc::clone(chain.archive())),
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

/// The sources, and what they have in common.
pub struct Answers {
    /// First, because it ends first.
    _follower: Option<Follower>,
    asked: Asked,
    threads: Arc<Threads>,
    cache: Arc<Cache>,
    timings: Arc<Timings>,
}

enum Asked {
    Embedded(Embedded),
    Remote(RemoteAnswers),
}

/// The chain as it is for the whole of one request.
pub enum Pinned {
    Embedded(Arc<dyn Source>),
    Remote(Outlook),
}

impl std::fmt::Debug for Sources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Embedded(_) => "Embedded",
            Self::Remote(_) => "Remote",
        })
    }
}

impl std::fmt::Debug for Pinned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Embedded(source) => f.debug_tuple("Embedded").field(&source.head()).finish(),
            Self::Remote(outlook) => f.debug_tuple("Remote").field(outlook).finish(),
        }
    }
}

impl std::fmt::Debug for Answers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answers").finish_non_exhaustive()
    }
}

impl Answers {
    pub fn new(sources: Sources, limits: Limits, memory: MemoryBudget) -> std::io::Result<Self> {
        let threads = Arc::new(Threads::start(limits.pool_threads, limits.pool_queue_max)?);
        let timings = Arc::<Timings>::default();
        let cache = Arc::new(Cache::new(limits.cache_bytes_max));
        let asked = match sources {
            Sources::Embedded(source) => {
                let (threads, timings) = (Arc::clone(&threads), Arc::clone(&timings));
                Asked::Embedded(Embedded::new(source, threads, Arc::clone(&cache), memory, timings, limits))
            }
            Sources::Remote(remote) => {
                let (threads, cache) = (Arc::clone(&threads), Arc::clone(&cache));
                Asked::Remote(RemoteAnswers::start(*remote, threads, cache, memory, &timings, limits)?)
            }
        };
        let follower = match &asked {
            Asked::Remote(answers) => Follower::start(&answers.remote)?,
            Asked::Embedded(_) => None,
        };
        Ok(Self { _follower: follower, asked, threads, cache, timings })
    }

    /// The chain as it is now. A request looks at it once, so that all its calls see the same.
    pub fn pin(&self) -> Pinned {
        match &self.asked {
            Asked::Embedded(embedded) => Pinned::Embedded(embedded.snapshot()),
            Asked::Remote(answers) => Pinned::Remote(answers.remote.outlook()),
        }
    }

    /// The newest block that is served; `None` before any node has told of it.
    pub fn head(&self) -> Option<u64> {
        match &self.asked {
            Asked::Embedded(embedded) => Some(embedded.snapshot().head().number),
            Asked::Remote(answers) => answers.remote.outlook().head(),
        }
    }

    /// Finds who can name the blocks of a query, as far as they exist.
    pub async fn look<'a>(
        &self,
        pinned: &'a Pinned,
        method: &'static Method,
        query: &Query<BlockParam>,
        may_fail_over: bool,
    ) -> Result<Sight<'a>, Failure> {
        match (&self.asked, pinned) {
            (Asked::Remote(answers), Pinned::Remote(outlook)) => {
                answers.remote.look(outlook, method, query, may_fail_over).await
            }
            (Asked::Embedded(_), Pinned::Embedded(source)) => Ok(Sight::Embedded(source)),
            _ => Err(another_source()),
        }
    }

    pub fn threads(&self) -> &Arc<Threads> {
        &self.threads
    }

    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    pub fn timings(&self) -> &Timings {
        &self.timings
    }

    /// How many calls waited for the answer to an equal one.
    pub fn shared_calls(&self) -> u64 {
        match &self.asked {
            Asked::Embedded(embedded) => embedded.shared_calls(),
            Asked::Remote(answers) => answers.shared_calls(),
        }
    }

    /// The nodes, where there are any.
    pub fn remote(&self) -> Option<&Remote> {
        match &self.asked {
            Asked::Embedded(_) => None,
            Asked::Remote(answers) => Some(&answers.remote),
        }
    }

    /// Answers an admitted call, in the share of the account that pays for it.
    pub async fn answer(
        &self,
        account: CallAccount<'_>,
        call: Pending<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Answer, Unanswered> {
        let Pending { method, query, sight, may_fail_over, at_pending, repetition, body } = call;
        let answered = match (&self.asked, sight) {
            (Asked::Remote(answers), Sight::Executed { source, canon }) => {
                let call = EmbeddedCall { account, source, query, body };
                match at_pending {
                    true => answers.answer_at_pending(call, sight, method, may_fail_over, out).await,
                    false => {
                        answers.answer_from_executed_chain(call, canon, method, may_fail_over, out).await
                    }
                }
            }
            (Asked::Remote(RemoteAnswers { remote, .. }), _) if at_pending => {
                Box::pin(remote.answer_pending(account.id, sight, method, &query, may_fail_over)).await
            }
            (Asked::Remote(RemoteAnswers { remote, .. }), Sight::Remote(canon)) => {
                match remote.at_hand(account.id, canon, method, &query) {
                    Some(answer) => answer,
                    None => {
                        let call = NodeCall { account: account.id, canon, method, may_fail_over, repetition };
                        // Boxed: the future is large, and few calls need it.
                        return Box::pin(remote.answer(call, query)).await;
                    }
                }
            }
            (Asked::Remote(RemoteAnswers { remote, .. }), Sight::Partner { view, deadline }) => {
                Box::pin(remote.answer_told(account.id, view, method, &query, deadline)).await
            }
            (Asked::Embedded(embedded), Sight::Embedded(source)) => {
                let call = EmbeddedCall { account, source, query, body };
                embedded.answer(call, method, out).await
            }
            _ => Err(another_source()),
        };
        Ok(answered?)
    }

    /// Where it came from that a block is not there, if that has to be told.
    pub fn nothing(&self, sight: Sight<'_>, method: &Method) -> Option<Provenance> {
        match (&self.asked, sight) {
            (Asked::Remote(RemoteAnswers { remote, .. }), Sight::Partner { view, .. }) => {
                Some(remote.told_nothing(view, method))
            }
            _ => None,
        }
    }
}

/// A call on its way to an answer.
#[derive(Debug)]
pub struct Pending<'a> {
    pub method: &'static Method,
    pub query: Query<BlockRef>,
    pub sight: Sight<'a>,
    /// Whether a partner may be asked when nobody else can answer.
    pub may_fail_over: bool,
    /// Whether it is about the pending block, which only nodes have. An embedded chain answers for its newest block.
    pub at_pending: bool,
    pub repetition: Repetition,
    /// The charge for the body that the call came in. Work that outlives its request keeps the query in memory, and with it
    /// the charge.
    pub body: Option<Arc<MemoryCharge>>,
}
