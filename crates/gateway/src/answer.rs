//! Step 7: `&Permit` and a pinned query → `Answer`.
//!
//! This file is the seam to whoever holds the chain. A [`Source`] is synchronous: it writes the result as JSON text into a
//! buffer that it is given, and says at which block it is true. Where it runs is not its business. Nodes are asked over
//! the network, and their answers come as bytes that are kept and shared.

mod limits; // what an answer may take
mod cache; // answers that are kept, by what they depend on
mod flights; // equal calls share one answer
mod shared; // one answer for several callers
mod results; // results as JSON text
mod simulation; // what a simulation fails with

mod embedded; // a chain of our own: where its work is done
pub mod archive; // that chain, as a source
mod inline_try; // pooled work that turns out to be cheap
mod threads; // a pool for work that is not

pub mod remote; // the pool: nodes and partners
mod remote_answers; // the pool, and the executed chain that answers without it

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use alloy_primitives::{B256, Bytes as Data};
use bytes::Bytes;
use nodes::Canon;

use crate::admit::Permit;
use crate::callers::AccountId;
use crate::memory::{MemoryBudget, MemoryCharge, OverBudget};
use crate::meter::Histogram;
use crate::methods::{Deadline, Method};
use crate::params::{BlockParam, Query};
use crate::resolve::BlockRef;

pub(crate) use cache::Cache;
use embedded::{Embedded, EmbeddedCall};
pub use limits::Limits;
use remote::{Follower, NodeCall, Outlook, PartnerView, Remote};
use remote_answers::RemoteAnswers;
use shared::SharedAnswer;
pub use threads::{Threads, ThreadsBusy};

/// The canonical chain as it is known at one moment. Asked for almost every call: a look-up in memory.
pub trait View: Send + Sync {
    /// The newest canonical block.
    fn head(&self) -> BlockRef;

    fn finalized(&self) -> Option<BlockRef>;

    fn safe(&self) -> Option<BlockRef>;

    /// That nothing can be said is another matter than that there is no such block.
    fn block_by_number(&self, number: u64) -> Result<Option<BlockRef>, Failure>;

    /// `None` also for a block that is known but not canonical.
    fn block_by_hash(&self, hash: B256) -> Result<Option<BlockRef>, Failure>;
}

/// Who answers calls from its own data.
///
/// It must only be asked about blocks that its view has named; one that has gone since is `Failure::Unavailable`.
pub trait Source: View + 'static {
    /// Appends the result to `out` as JSON text (`"0x1"`, `{…}`, `null`) and says where it came from.
    ///
    /// On failure, what was appended is thrown away. Pooled work asks `budget.stopped()` now and then and ends with a
    /// timeout when it says so. Where `budget.is_brief()`, it ends so at once when it can tell that it will take longer
    /// than a moment, and begins nothing that cannot be stopped.
    fn answer(
        &self,
        query: &Query<BlockRef>,
        budget: &Budget,
        out: &mut Vec<u8>,
    ) -> Result<Provenance, Failure>;
}

/// A chain of our own that grows. Every request takes one snapshot of it, so that all its calls see the same chain.
pub trait SnapshotSource: Send + Sync + 'static {
    /// The chain as it is now. It does not change any more.
    fn snapshot(&self) -> Arc<dyn Source>;

    /// The archive that holds it, if one does.
    fn own_archive(&self) -> Option<&Arc<::archive::Archive>> {
        None
    }
}

/// A source that never changes is its own snapshot.
struct FixedSource(Arc<dyn Source>);

impl SnapshotSource for FixedSource {
    fn snapshot(&self) -> Arc<dyn Source> {
        Arc::clone(&self.0)
    }
}

/// Where an answer came from and at which block it was computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Provenance {
    pub origin: Origin,
    pub block: Option<BlockRef>,
    pub verified: Verification,
}

impl Provenance {
    /// Every block of the archive is proven before it is stored.
    pub fn archive(block: Option<BlockRef>) -> Self {
        Self { origin: Origin::Archive, block, verified: Verification::Proven }
    }
}

/// How far an answer was verified, as `Chaingate-Verified` names it; the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verification {
    /// One node said so.
    None,
    /// A quorum of the nodes said so.
    Confirmed,
    /// The hash of a block commits to it.
    Proven,
}

/// The kinds of sources, as `Chaingate-Source` names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Cache,
    Archive,
    Node,
    Partner,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The EVM met REVERT; the reason is in the data.
    Reverted { data: Data },
    /// The EVM stopped for another reason, in the words that clients know.
    Execution(String),
    /// The call contradicts the chain (another chain id, a fee below the base fee …).
    Refused(String),
    /// More logs than one query may return; `from` to `to` is the widest range from the same start that fits.
    TooManyResults { from: u64, to: u64, most: u64 },
    /// The deadline of a search passed.
    QueryTimeout,
    /// The deadline of a search passed before the headers of these blocks were fetched. What was fetched is kept.
    NotIndexed { from: u64, to: u64 },
    /// The deadline of a simulation passed.
    CallTimeout(Duration),
    /// Nobody can answer now; the same call may succeed later.
    Unavailable,
    /// The block has a transaction of a type that is unknown here, so nothing proves what nodes say about it.
    CannotBeProven { transaction_type: u64 },
    /// No node proves the state, and there are not enough nodes to confirm it.
    StateNotProven,
    /// The pool has no place for more work.
    OverCapacity,
    /// Our own fault. The text is for the log only.
    Broken(String),
}

/// How long work may take. Asking costs a clock reading, so ask once in a thousand steps rather than in each.
#[derive(Debug, Default)]
pub struct Budget {
    deadline: Option<Instant>,
    abandoned: Option<Arc<AtomicBool>>,
    brief: bool,
    reply: Option<ReplyCharge>,
}

impl Budget {
    /// Whether the deadline has passed, or nobody waits for the answer any more.
    pub fn stopped(&self) -> bool {
        let abandoned = self.abandoned.as_ref().is_some_and(|flag| flag.load(Relaxed));
        abandoned || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Charges the account for a reply buffer of this capacity. Pooled work calls it while its reply grows, and ends
    /// with the error it gives.
    pub fn charge_reply(&self, capacity: usize) -> Result<(), Failure> {
        self.reply.as_ref().map_or(Ok(()), |reply| Ok(reply.grow(capacity)?))
    }

    /// Ends work that has no time left, or no memory for a reply buffer of this capacity.
    fn proceed(&self, capacity: usize) -> Result<(), Failure> {
        self.charge_reply(capacity)?;
        if self.stopped() { Err(Failure::QueryTimeout) } else { Ok(()) }
    }

    /// Whether this is only a try: a timeout is no answer, and the work will start over with another budget.
    pub fn is_brief(&self) -> bool {
        self.brief
    }

    /// Becomes true when nobody waits for the answer any more.
    pub fn abandoned(&self) -> Option<&Arc<AtomicBool>> {
        self.abandoned.as_ref()
    }
}

/// What the account is charged for the reply that a job writes.
#[derive(Debug)]
struct ReplyCharge {
    memory: MemoryBudget,
    account: AccountId,
    charge: RefCell<MemoryCharge>,
}

impl ReplyCharge {
    fn new(memory: MemoryBudget, account: AccountId) -> Self {
        Self { memory, account, charge: RefCell::default() }
    }

    fn grow(&self, capacity: usize) -> Result<(), OverBudget> {
        self.memory.of(self.account).grow(&mut self.charge.borrow_mut(), capacity)
    }
}

impl From<OverBudget> for Failure {
    fn from(_: OverBudget) -> Self {
        Self::OverCapacity
    }
}

/// An answer. Small ones stand in the reply already, the others are shared bytes.
#[derive(Clone, Debug)]
pub struct Answer {
    pub provenance: Provenance,
    pub shared: Option<Bytes>,
}

/// Whom this deployment asks.
pub enum Sources {
    /// A chain of our own.
    Embedded(Arc<dyn SnapshotSource>),
    /// Nodes.
    Remote(Box<Remote>),
}

impl Sources {
    /// The archive that blocks can be imported into, if there is one.
    pub(crate) fn archive(&self) -> Option<Arc<::archive::Archive>> {
        match self {
            Self::Embedded(source) => source.own_archive().cloned(),
            Self::Remote(remote) => remote.executed_chain().map(|chain| Arc::clone(chain.archive())),
        }
    }
}

impl From<Arc<archive::ArchiveSource>> for Sources {
    fn from(source: Arc<archive::ArchiveSource>) -> Self {
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

/// Who says which blocks one call means.
#[derive(Clone, Copy)]
pub enum Sight<'a> {
    Embedded(&'a Arc<dyn Source>),
    Remote(&'a Arc<Canon>),
    /// The executed chain, and the picture of the nodes' chain that belongs to it.
    Executed {
        source: &'a Arc<dyn Source>,
        canon: Option<&'a Arc<Canon>>,
    },
    /// A partner, because nobody of our own can. What it says holds for this request only.
    Partner {
        view: &'a PartnerView,
        /// Until when it may be asked for the answer.
        deadline: tokio::time::Instant,
    },
}

impl Sight<'_> {
    pub fn view(&self) -> &dyn View {
        match self {
            Self::Embedded(source) | Self::Executed { source, .. } => &***source,
            Self::Remote(canon) => &***canon,
            Self::Partner { view, .. } => *view,
        }
    }
}

/// How long heavy work took.
#[derive(Debug, Default)]
pub(crate) struct Timings {
    /// Waiting for a thread of the pool.
    pub(crate) waits: Histogram,
    pub(crate) logs: Histogram,
    pub(crate) calls: Histogram,
    pub(crate) fees: Histogram,
    pub(crate) blocks: Histogram,
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

impl std::fmt::Debug for Sight<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Sight").field(&self.view().head()).finish()
    }
}

impl std::fmt::Debug for Answers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answers").finish_non_exhaustive()
    }
}

impl Answers {
    pub(crate) fn new(sources: Sources, limits: Limits, memory: MemoryBudget) -> std::io::Result<Self> {
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

    pub(crate) fn cache(&self) -> &Cache {
        &self.cache
    }

    pub(crate) fn timings(&self) -> &Timings {
        &self.timings
    }

    /// How many calls waited for the answer to an equal one.
    pub(crate) fn shared_calls(&self) -> u64 {
        match &self.asked {
            Asked::Embedded(embedded) => embedded.shared_calls(),
            Asked::Remote(answers) => answers.shared_calls(),
        }
    }

    /// The nodes, where there are any.
    pub(crate) fn remote(&self) -> Option<&Remote> {
        match &self.asked {
            Asked::Embedded(_) => None,
            Asked::Remote(answers) => Some(&answers.remote),
        }
    }

    /// Answers an admitted call, in the share of the account that pays for it.
    pub async fn answer(
        &self,
        permit: &Permit<'_>,
        call: Pending<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Answer, Unanswered> {
        let Pending { method, query, sight, may_fail_over, at_pending, repetition, body } = call;
        let account = permit.account().id;
        let answered = match (&self.asked, sight) {
            (Asked::Remote(answers), Sight::Executed { source, canon }) => {
                let call = EmbeddedCall { account: permit.account(), source, query, body };
                match at_pending {
                    true => answers.answer_at_pending(call, sight, method, may_fail_over, out).await,
                    false => {
                        answers.answer_from_executed_chain(call, canon, method, may_fail_over, out).await
                    }
                }
            }
            (Asked::Remote(RemoteAnswers { remote, .. }), _) if at_pending => {
                Box::pin(remote.answer_pending(account, sight, method, &query, may_fail_over)).await
            }
            (Asked::Remote(RemoteAnswers { remote, .. }), Sight::Remote(canon)) => {
                match remote.at_hand(account, canon, method, &query) {
                    Some(answer) => answer,
                    None => {
                        let call = NodeCall { account, canon, method, may_fail_over, repetition };
                        // Boxed: the future is large, and few calls need it.
                        return Box::pin(remote.answer(call, query)).await;
                    }
                }
            }
            (Asked::Remote(RemoteAnswers { remote, .. }), Sight::Partner { view, deadline }) => {
                Box::pin(remote.answer_told(account, view, method, &query, deadline)).await
            }
            (Asked::Embedded(embedded), Sight::Embedded(source)) => {
                let call = EmbeddedCall { account: permit.account(), source, query, body };
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

fn another_source() -> Failure {
    Failure::Broken("a view of another source".to_owned())
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
    pub(crate) body: Option<Arc<MemoryCharge>>,
}

/// What becomes of a call whose block is reorganised away while nodes are asked about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repetition {
    /// It fails: all calls of a batch see the same chain.
    No,
    /// It is handed back, to be repeated on the new branch until the deadline that it had the first time.
    Yes { deadline: Option<tokio::time::Instant> },
}

/// Why a call has no answer.
#[derive(Debug)]
pub enum Unanswered {
    Failed(Failure),
    Reorganised(Reorganised),
}

/// A call that is handed back, because its block is not on the chain any more.
#[derive(Debug)]
pub struct Reorganised {
    pub query: Box<Query<BlockRef>>,
    /// Until when it may be repeated.
    pub deadline: tokio::time::Instant,
}

impl From<Failure> for Unanswered {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl Timings {
    fn of(&self, deadline: Deadline) -> &Histogram {
        match deadline {
            Deadline::Logs => &self.logs,
            Deadline::Call => &self.calls,
            Deadline::Fees => &self.fees,
            Deadline::Block => &self.blocks,
        }
    }
}
