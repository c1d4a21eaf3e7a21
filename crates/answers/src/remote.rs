//! The pool as a source: what is kept, then the nodes, then (by plan) a partner.

pub mod settings; // the configuration
mod block_lookup; // which blocks are meant, and who can say so
mod absent; // receipts that are not there yet
mod blocks; // proven blocks, fetched and kept
mod executed; // an archive that the blocks of the nodes continue
mod asking; // what questions have in common
mod block_answers; // answers from proven blocks
mod headers; // proven headers below the window
mod located; // which block a transaction is in
mod mined; // proven blocks as JSON
mod sized_work; // work on large answers runs in the pool of threads
mod encode; // queries → calls
mod fees; // fees from proven blocks
mod flight_key; // which calls share an answer while it is fetched
pub(crate) mod follow; // blocks that are kept as the chain grows
mod integrity; // what answers about blocks are made from
mod kept; // answers from kept blocks
mod logs; // log queries, in chunks that are kept
mod partner; // who is asked when nobody of our own can answer
mod partner_view; // the chain as a partner tells it
mod pending; // calls about the pending block
mod side_blocks; // blocks that were reorganised away
mod node_failures; // errors of nodes → failures of ours
pub(crate) mod state; // how far nodes are believed about what no block proves

use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::B256;
use bytes::Bytes;
use methods::{BlockParam, BlockRef, Cacheable, Checkpoint, Deadline, Family, Method, Network, Query, Work};
use nodes::view::SeenBlock;
use nodes::{BlockId, Canon, Endpoint, Pool, Supplier};
use resources::{AccountId, MemoryBudget, Readers, Threads};
use tokio::time::Instant;

use super::cache::{Cache, CacheLookup, CachedAnswer, GivenBy};
use super::flights::Flights;
use super::results::Suggested;
use crate::archive_source::ArchiveSource;
use crate::failure::Failure;
use crate::limits::AnswerLimits;
use crate::provenance::{Answer, Origin, Provenance, Verification};
use crate::query_plan::{GatewayQuery, LogsQuery, NodeQuery, QueryPlan, Subject};
use crate::shared::SharedAnswer;
use crate::unanswered::{Reorganised, Repetition, Unanswered};
use crate::view::ChainView;

use absent::AbsentReceipts;
use asking::Asking;
pub(crate) use block_lookup::NamedBy;
use blocks::ProvenBlocks;
pub use executed::{ExecutedChain, ExecutionState};
pub(super) use executed::{ExecutedView, ExecutionThread};
use fees::SuggestedFees;
use flight_key::FlightKey;
pub(super) use follow::Follower;
pub use follow::settings::FollowMode;
pub use follow::{FollowState, KeptChain};
use integrity::IntegrityPolicy;
use partner::Failovers;
pub(crate) use partner_view::PartnerView;
use settings::PoolConfig;
use sized_work::COPIED_AT_ONCE_BYTES_MAX;
use state::{ChainRules, Confirmations, PassedOn, ProvenState, StateMode, Touched};

/// How often a call is tried whose block stays where it is although no node could answer: nodes that change to another branch are without
/// some blocks for a moment.
const TRIES_MAX: u32 = 2;

/// Whether the genesis file that a configuration names can be used.
pub fn check_genesis(network: &Network) -> Result<(), String> {
    ChainRules::open(network).map(|_| ())
}

/// A call that needs nodes: who asks, and in which view.
#[derive(Clone, Copy)]
pub(super) struct NodeCall<'a> {
    pub(super) account: AccountId,
    pub(super) canon: &'a Arc<Canon>,
    pub(super) method: &'static Method,
    /// Whether a partner may be asked when nobody else can answer.
    pub(super) may_fail_over: bool,
    pub(super) repetition: Repetition,
}

/// Answers calls from nodes.
pub struct Remote {
    pool: Arc<Pool>,
    cache: Arc<Cache>,
    blocks: ProvenBlocks,
    kept: Option<Arc<KeptChain>>,
    proven_state: ProvenState,
    touched: Touched,
    rules: ChainRules,
    executed: Option<Arc<ExecutedChain>>,
    absent: AbsentReceipts,
    suggested_fees: Suggested<SuggestedFees>,
    flights: Flights<FlightKey>,
    partner_flights: Flights<FlightKey>,
    /// Blocks below the window that nodes are asked for, in their epoch.
    lookups: Flights<(u64, BlockParam), ()>,
    /// Blocks that partners are asked for, by the method that the caller asks.
    partner_lookups: Flights<(&'static str, BlockParam), Option<Arc<SeenBlock>>>,
    failovers: Failovers,
    integrity: IntegrityPolicy,
    state: StateMode,
    confirmations: Confirmations,
    memory: MemoryBudget,
    /// Where large answers are read and proven, once this is within the limits of the answer step.
    threads: Option<Arc<Threads>>,
    limits: AnswerLimits,
    family: nodes::Family,
    call_timeout: Duration,
}

impl Remote {
    /// Begins to watch the nodes.
    pub fn start(config: &PoolConfig, network: &Network, data_dir: &Path) -> Result<Self, String> {
        let kept = match config.follow.mode {
            FollowMode::Off | FollowMode::Full => None,
            FollowMode::Blocks => Some(Arc::new(KeptChain::open(data_dir, config.follow, network)?)),
        };
        let family = match network.families.as_slice() {
            [Family::Zksync] => nodes::Family::Zksync,
            _ => nodes::Family::Ethereum,
        };
        let rules = ChainRules::open(network)?;
        let pool = Pool::start(pool_settings(config, network, family)?).map_err(|error| error.to_string())?;
        let state = config.state;
        tracing::info!(state = state.name(), nodes = config.nodes.len(), "how the state is verified");
        Ok(Self {
            integrity: IntegrityPolicy::new(config.integrity),
            state,
            confirmations: Confirmations::default(),
            pool,
            cache: Arc::new(Cache::new(0)),
            blocks: ProvenBlocks::new(0),
            kept,
            proven_state: ProvenState::new(0),
            touched: Touched::default(),
            rules,
            executed: None,
            absent: AbsentReceipts::default(),
            suggested_fees: Suggested::default(),
            flights: Flights::default(),
            partner_flights: Flights::default(),
            lookups: Flights::default(),
            partner_lookups: Flights::default(),
            failovers: Failovers::default(),
            memory: MemoryBudget::new(usize::MAX),
            threads: None,
            limits: AnswerLimits::default(),
            family,
            call_timeout: config.call_timeout,
        })
    }

    /// The same with an archive that the blocks of the nodes continue.
    pub fn continuing(self, archive: Arc<ArchiveSource>) -> Self {
        Self { executed: Some(Arc::new(ExecutedChain::new(archive))), ..self }
    }

    /// The archive that the blocks of the nodes continue, if there is one.
    pub fn executed_chain(&self) -> Option<&Arc<ExecutedChain>> {
        self.executed.as_ref()
    }

    /// The same within the limits of the answer step.
    pub(super) fn within(
        self,
        threads: Arc<Threads>,
        cache: Arc<Cache>,
        memory: MemoryBudget,
        limits: AnswerLimits,
    ) -> Self {
        let blocks = ProvenBlocks::new(limits.proven_bytes_max);
        let proven_state = ProvenState::new(limits.state_bytes_max);
        Self { threads: Some(threads), cache, blocks, proven_state, memory, limits, ..self }
    }

    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    pub fn integrity(&self) -> &IntegrityPolicy {
        &self.integrity
    }

    pub fn state(&self) -> StateMode {
        self.state
    }

    pub fn confirmations(&self) -> &Confirmations {
        &self.confirmations
    }

    pub fn failovers(&self) -> &Failovers {
        &self.failovers
    }

    /// How many calls waited for the answer to an equal one.
    pub(super) fn shared_calls(&self) -> u64 {
        self.flights.joined() + self.partner_flights.joined()
    }

    /// The answer to a query whose blocks are pinned to `canon`, if nobody has to be asked for it.
    pub(super) fn cached_answer(
        &self,
        account: AccountId,
        canon: &Canon,
        method: &Method,
        query: &Query<BlockRef>,
    ) -> Option<Result<Answer, Failure>> {
        let subject = QueryPlan::of(query).subject;
        if let Some(result) = self.known(head(canon), subject) {
            return Some(Ok(answer(Origin::Cache, Some(head(canon)), Verification::Confirmed, result)));
        }
        let asked = CacheLookup { query, head: at_head(canon, method) };
        let Some(kept) = self.cache.get(&asked).filter(|kept| self.is_good(canon, kept)) else {
            let absent = || Ok(answer(Origin::Cache, None, Verification::Confirmed, NULL));
            return self.is_absent(canon, subject).then(absent);
        };
        let result = self.memory.of(account).lend(&kept.result, &kept.readers);
        let lent = result.map(|result| answer(Origin::Cache, kept.block, kept.verified, result));
        Some(lent.map_err(Failure::from))
    }

    /// Whether a kept answer still counts: what it hangs on is canonical, and who gave it was not proven wrong since.
    fn is_good(&self, canon: &Canon, kept: &CachedAnswer) -> bool {
        holds(canon, kept) && kept.given_by.is_none_or(|given_by| given_by.is_trusted(&self.pool))
    }

    /// Whether all nodes have said at this head that there is no such receipt.
    fn is_absent(&self, canon: &Canon, subject: Subject<'_>) -> bool {
        subject.receipt().is_some_and(|hash| self.absent.has(head(canon), &hash))
    }

    /// Asks nodes for an answer that is not kept.
    pub(super) async fn answer(
        &self,
        call: NodeCall<'_>,
        query: Query<BlockRef>,
    ) -> Result<Answer, Unanswered> {
        let NodeCall { account, canon, method, may_fail_over, repetition } = call;
        let deadline = match repetition {
            Repetition::Yes { deadline: Some(deadline) } => deadline,
            _ => Instant::now() + self.time(method),
        };
        let key = FlightKey::of(account, head(canon), &query);
        let pays = key.paying_account();
        let mut tries = 0;
        let outcome = loop {
            let fetch = || self.fetch(pays, canon, method, &query, deadline);
            let fetched =
                pin!(self.with_outage_timeout(may_fail_over, self.flights.share(key.clone(), fetch)));
            let outcome = match repetition {
                Repetition::No => break Some(fetched.await),
                Repetition::Yes { .. } => self.unless_reorganised(canon, &query, deadline, fetched).await,
            };
            tries += 1;
            let is_failed = matches!(outcome, Some(Err(Failure::Unavailable))) && !self.pool.is_out();
            if !is_failed || tries >= TRIES_MAX || Instant::now() >= deadline {
                break outcome;
            }
        };
        let outcome = match outcome {
            Some(Err(Failure::Unavailable))
                if self.correct_numbers(canon, &query, deadline).await && repetition != Repetition::No =>
            {
                None
            }
            outcome => outcome,
        };
        match outcome {
            None => Err(Unanswered::Reorganised(Reorganised { query: Box::new(query), deadline })),
            Some(Err(Failure::Unavailable)) if may_fail_over => {
                Ok(self.fail_over(account, canon, method, &query).await?)
            }
            Some(outcome) => Ok(outcome?.lend(self.memory.of(account))?),
        }
    }

    /// What is known without asking anyone. The chain id is not, before any node has told it.
    fn known(&self, head: BlockRef, subject: Subject<'_>) -> Option<Bytes> {
        let query = match subject {
            Subject::Gateway(query) => query,
            Subject::Logs(_) | Subject::Node(_) => return None,
        };
        Some(match query {
            GatewayQuery::ChainId => format!("\"{:#x}\"", self.chain_id()?).into(),
            GatewayQuery::NetVersion => format!("\"{}\"", self.chain_id()?).into(),
            GatewayQuery::BlockNumber => format!("\"{:#x}\"", head.number).into(),
            GatewayQuery::Syncing => Bytes::from_static(b"false"),
            GatewayQuery::ClientVersion => Bytes::from_static(crate::archive_source::CLIENT_VERSION),
            GatewayQuery::Discover => Bytes::from_static(methods::OPENRPC.as_bytes()),
        })
    }

    async fn fetch(
        &self,
        account: AccountId,
        canon: &Arc<Canon>,
        method: &Method,
        query: &Query<BlockRef>,
        deadline: Instant,
    ) -> Result<SharedAnswer, Failure> {
        let asking = Asking { account, canon, deadline, supplier: Supplier::Nodes };
        match QueryPlan::of(query).subject {
            Subject::Gateway(_) => Err(Failure::Unavailable),
            Subject::Logs(logs) => self.fetch_logs(asking, canon, query, logs).await,
            Subject::Node(node_query) => self.fetch_answer(asking, method, query, node_query).await,
        }
    }

    async fn fetch_logs(
        &self,
        asking: Asking<'_>,
        canon: &Arc<Canon>,
        query: &Query<BlockRef>,
        logs: LogsQuery<'_>,
    ) -> Result<SharedAnswer, Failure> {
        let found = self.logs(asking.account, canon, logs, asking.deadline).await?;
        // Whoever asks for all of it again is likely to do so once more, and then it is not put together anew. What is
        // proven is kept at once.
        if found.origin == Origin::Cache || found.verified > Verification::None {
            let kept = kept(canon, &found.result, Some(found.block), found.verified, found.given_by);
            self.keep(asking.account, CacheLookup { query, head: None }, kept).await;
        }
        Ok(self.shared(found.origin, Some(found.block), found.verified, found.result))
    }

    async fn fetch_answer(
        &self,
        asking: Asking<'_>,
        method: &Method,
        query: &Query<BlockRef>,
        node_query: NodeQuery<'_>,
    ) -> Result<SharedAnswer, Failure> {
        let canon = asking.canon;
        let mut answered = self.answer_from_blocks(asking, node_query).await;
        let from_blocks = answered.is_some();
        if answered.is_none() {
            answered = self.answer_proven_state(asking, node_query).await;
        }
        if answered.is_none() {
            answered = self.answer_confirmed(asking, node_query).await;
        }
        let fetched = match answered {
            Some(answered) => answered?,
            None => self.ask(asking, node_query).await?,
        };
        let origin = if from_blocks { self.origin_of(fetched.block) } else { Origin::Node };
        match fetched.keep {
            CacheDecision::On(block) if method.cacheable != Cacheable::Never => {
                let kept = kept(canon, &fetched.result, block, fetched.verified, fetched.given_by);
                // What is about a side block would never be found to be good.
                if holds(canon, &kept) {
                    self.keep(asking.account, CacheLookup { query, head: at_head(canon, method) }, kept)
                        .await;
                }
            }
            CacheDecision::Absent if self.cache.is_on() => {
                if let Some(hash) = Subject::Node(node_query).receipt() {
                    self.absent.add(head(canon), hash);
                }
            }
            CacheDecision::On(_) | CacheDecision::Absent | CacheDecision::No => {}
        }
        Ok(self.shared(origin, fetched.block, fetched.verified, fetched.result))
    }

    /// A result on its way to its callers, whose accounts are charged for it from now on.
    fn shared(
        &self,
        origin: Origin,
        block: Option<BlockRef>,
        verified: Verification,
        result: Bytes,
    ) -> SharedAnswer {
        let provenance = Provenance { origin, block, verified };
        SharedAnswer::new(provenance, self.pool.memory().hand_over(result))
    }

    /// Keeps a copy: a result is a slice of all that came with it, whose memory is wanted for the next reply.
    async fn keep(&self, account: AccountId, asked: CacheLookup<'_>, kept: CachedAnswer) {
        if self.cache.is_on() && self.may_keep(kept.verified) {
            let (key, bytes, cache) = (asked.key(), kept.result.len(), Arc::clone(&self.cache));
            let copy = move || {
                let result = Bytes::copy_from_slice(&kept.result);
                cache.keep(key, CachedAnswer { result, ..kept });
            };
            // An account that has used up its share of the pool is answered, and nothing is kept of it.
            let _refused = self.run_sized(account, bytes, COPIED_AT_ONCE_BYTES_MAX, copy).await;
        }
    }

    /// Whether answers that are verified as far as this may be kept. Where nodes must agree, one node's word is not.
    fn may_keep(&self, verified: Verification) -> bool {
        verified > Verification::None || self.state == StateMode::Trust || !self.integrity.proves()
    }

    /// How long a call may take over all nodes that are asked.
    fn time(&self, method: &Method) -> Duration {
        match method.work {
            Work::Pooled(Deadline::Logs) => self.limits.log_timeout,
            Work::Pooled(Deadline::Call) => self.limits.call_timeout,
            Work::Inline | Work::Pooled(Deadline::Fees | Deadline::Block) => self.call_timeout,
        }
    }

    /// Asks nodes until one gives an answer that can be passed on.
    async fn ask(&self, asking: Asking<'_>, query: NodeQuery<'_>) -> Result<Fetched, Failure> {
        let Asking { account, canon, deadline, .. } = asking;
        let call = encode::call(query, Some(self.gas_cap(canon)));
        let passed_on = PassedOn::new(self, account, Some(canon), query);
        let judge = |_: usize, result: &Bytes| passed_on.judge(result);
        // An answer that names a deep block of which nothing is known makes it known: who named another one is found out the
        // next time. Each node may have named another one.
        for _ in 0..=self.pool.nodes().len() {
            let everyone = self.given_by_anyone();
            let answered = self.pool.ask(&call, &judge, deadline).await;
            let node = answered.as_ref().ok().map(|answered| Arc::clone(&answered.node));
            let fetched = passed_on.settle(answered).await?;
            if self.is_canonical(canon, fetched.block, deadline).await? {
                let given_by = node.map(|node| self.given_by(&node, everyone));
                return Ok(Fetched { given_by, ..fetched });
            }
        }
        Err(Failure::Unavailable)
    }

    /// Whether the block that an answer hangs on is on the chain, or was and was named by its hash. Those below the window are
    /// asked for, once.
    async fn is_canonical(
        &self,
        canon: &Canon,
        block: Option<BlockRef>,
        deadline: Instant,
    ) -> Result<bool, Failure> {
        let may_be_another =
            |block: &BlockRef| block.number < canon.lowest() && canon.side_block(&block.hash).is_none();
        let Some(deep) = block.filter(may_be_another) else { return Ok(true) };
        self.learn(canon, BlockParam::Number(deep.number), deadline).await?;
        Ok(canon.by_number(deep.number).map(block_ref) == Some(deep))
    }

    fn gas_cap(&self, canon: &Canon) -> u64 {
        let gas_limit = canon.head_block().map_or(0, |block| block.gas_limit);
        gas_limit.saturating_mul(self.limits.call_gas_multiple)
    }
}

/// An answer, and how far it is verified.
struct Fetched {
    result: Bytes,
    /// The block at which it is true.
    block: Option<BlockRef>,
    verified: Verification,
    keep: CacheDecision,
    /// Who gave or confirmed it, if nothing proves it.
    given_by: Option<GivenBy>,
}

/// Whether an answer may be kept.
enum CacheDecision {
    No,
    /// As long as this block is canonical, if it hangs on one.
    On(Option<BlockRef>),
    /// It says that there is nothing, and will until the next head.
    Absent,
}

const NULL: Bytes = Bytes::from_static(b"null");

fn answer(origin: Origin, block: Option<BlockRef>, verified: Verification, result: Bytes) -> Answer {
    Answer { provenance: Provenance { origin, block, verified }, shared: Some(result) }
}

/// An answer as it is kept.
fn kept(
    canon: &Canon,
    result: &Bytes,
    block: Option<BlockRef>,
    verified: Verification,
    given_by: Option<GivenBy>,
) -> CachedAnswer {
    let (result, deep_in, readers) = (result.clone(), deep_in(canon, block), Readers::default());
    CachedAnswer { result, block, verified, given_by, deep_in, count: 0, readers }
}

/// The head, if that is what answers of a method hang on.
fn at_head(canon: &Canon, method: &Method) -> Option<B256> {
    (method.cacheable == Cacheable::Head).then(|| head(canon).hash)
}

/// Whether what an answer hangs on is still canonical.
fn holds(canon: &Canon, kept: &CachedAnswer) -> bool {
    let Some(block) = kept.block else { return true };
    match canon.by_number(block.number) {
        Some(canonical) => block_ref(canonical) == block,
        // Nobody remembers which block has this number.
        None => kept.deep_in == Some(canon.epoch()),
    }
}

/// The epoch in which the number of a block cannot change any more, if it is that deep.
fn deep_in(canon: &Canon, block: Option<BlockRef>) -> Option<u64> {
    block.filter(|block| block.number < canon.lowest()).map(|_| canon.epoch())
}

fn head(canon: &Canon) -> BlockRef {
    block_ref(canon.head())
}

fn block_ref(id: BlockId) -> BlockRef {
    BlockRef { number: id.number, hash: id.hash }
}

impl ChainView for Canon {
    fn head(&self) -> BlockRef {
        head(self)
    }

    fn finalized(&self) -> Option<BlockRef> {
        Self::finalized(self).map(block_ref)
    }

    fn safe(&self) -> Option<BlockRef> {
        Self::safe(self).map(block_ref)
    }

    fn block_by_number(&self, number: u64) -> Result<Option<BlockRef>, Failure> {
        Ok(self.by_number(number).map(block_ref))
    }

    fn block_by_hash(&self, hash: B256) -> Result<Option<BlockRef>, Failure> {
        Ok(self.by_hash(&hash).map(block_ref))
    }

    fn side_block(&self, hash: B256) -> Option<BlockRef> {
        Self::side_block(self, &hash).map(block_ref)
    }
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote").field("pool", &self.pool).finish_non_exhaustive()
    }
}

fn pool_settings(
    config: &PoolConfig,
    network: &Network,
    family: nodes::Family,
) -> Result<nodes::Settings, String> {
    let partner = |partner: &settings::Partner| {
        Ok::<_, String>(nodes::PartnerSettings {
            remote: endpoint(&partner.remote)?,
            methods: partner.methods.clone(),
            allowance: nodes::Allowance {
                calls_per_second: partner.calls_per_second,
                calls_per_day: partner.calls_per_day,
            },
        })
    };
    Ok(nodes::Settings {
        nodes: config.nodes.iter().map(endpoint).collect::<Result<_, _>>()?,
        partners: config.partners.iter().map(partner).collect::<Result<_, _>>()?,
        family,
        view: nodes::view::Settings {
            quorum: config.quorum.and_then(|quorum| usize::try_from(quorum).ok()),
            checkpoint: network.checkpoint.map(checkpoint),
            stale_after: config.head_stall,
        },
        watch: nodes::watch::Settings {
            chain_id: network.chain_id,
            genesis: network.genesis_hash,
            checkpoint: network.checkpoint.map(checkpoint),
            check_headers: family == nodes::Family::Ethereum,
            poll_every: config.poll_interval,
            ..nodes::watch::Settings::default()
        },
        reply_memory_bytes: config.reply_memory_bytes,
    })
}

fn checkpoint(checkpoint: Checkpoint) -> BlockId {
    BlockId { number: checkpoint.number, hash: checkpoint.hash }
}

fn endpoint(remote: &settings::Remote) -> Result<nodes::Remote, String> {
    let named = |error: nodes::EndpointError| match &remote.name {
        Some(name) => format!("node {name}: {error}"),
        None => format!("a node: {error}"),
    };
    let mut endpoint = Endpoint::parse(&remote.url).map_err(named)?.with_http2(remote.http2);
    for (name, value) in &remote.headers {
        endpoint = endpoint.with_header(name, value).map_err(named)?;
    }
    let heads = remote.ws_url.as_deref().map(Endpoint::parse_websocket).transpose().map_err(named)?;
    Ok(nodes::Remote { name: remote.name.clone(), endpoint, heads, limits: nodes::Limits::default() })
}
