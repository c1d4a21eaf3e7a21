//! One node: its client, its health, and what it is known to have.

use std::borrow::Cow;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use alloy_primitives::B256;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::call::{Ask, BlockId, Class, Fault, Needs, RpcCall, RpcError, RpcReply};
use crate::dialect::{self, Execution, Meaning};
use crate::health::{Availability, Health, Observation};
use crate::latency::Latency;
use crate::node_fault::NodeFault;
use crate::node_id::NodeId;
use crate::partner::{NodeRole, PartnerTerms};
use crate::pick::Candidate;
use crate::trace_context::TraceContext;
use crate::trust::TrustEpoch;

mod capabilities;
mod counts;
mod history;
mod presence;
mod refusals;
mod reply_times;

#[cfg(test)]
mod tests;

pub use capabilities::Capabilities;
use capabilities::CapabilityState;
pub(crate) use capabilities::{Membership, MissingCapability, STATE_PROOF_METHOD};
pub use counts::NodeCounts;
pub(crate) use history::HistoryReaches;
pub use history::{HistoryKind, HistoryReach};
use presence::Presence;
use refusals::NodeRefusal;
use reply_times::ReplyTimes;

/// Shortest time after which a second node is asked too. A shorter pause is not worth a call.
pub(crate) const HEDGE_DELAY_MIN: Duration = Duration::from_millis(5);
/// Longest time after which a second node is asked too, however slow the first one usually is.
pub(crate) const HEDGE_DELAY_MAX: Duration = Duration::from_secs(1);

/// Time without any reply after which a node has fallen silent although its calls are not look-ups. Such calls may take long
/// without anything being wrong, but the node is polled meanwhile.
const SILENCE_MIN: Duration = Duration::from_secs(2);

/// Multiple of its 95th percentile after which a node that says nothing is asked after the others.
const UNRESPONSIVE_FACTOR: u32 = 4;
/// Shortest time after which a node that says nothing is asked after the others.
const UNRESPONSIVE_MIN: Duration = Duration::from_millis(100);

/// How long a node is alive after its last reply to anyone. While its watcher has lost it, its prober always has a question under way,
/// and waits for the answer for ten seconds.
const ALIVE_FOR: Duration = Duration::from_secs(12);

/// How long a node is asked after the others for the block of a transaction, once it has named one that is not canonical, or that
/// it does not have. It may be on another branch, or invent blocks, and each of them costs a look-up at all nodes.
const LOCATIONS_DOUBTED_FOR: Duration = Duration::from_secs(60);

/// A method in which some nodes reply with null to the hash of a block that they have.
const BLOCK_RECEIPTS_METHOD: &str = "eth_getBlockReceipts";

/// Methods that say which block a transaction is in.
const LOCATION_METHODS: [&str; 2] = ["eth_getTransactionByHash", "eth_getTransactionReceipt"];

pub struct Node<A> {
    id: NodeId,
    /// Host and port, without credentials.
    name: String,
    client: A,
    /// The facts that change with each call. Whoever considers the node takes this lock once.
    state: Mutex<NodeState>,
    counts: NodeCounts,
    presence: Presence,
    role: NodeRole,
    /// Raised when what the node has said is believed no longer.
    trust: TrustEpoch,
}

/// The facts about a node.
#[derive(Debug, Default)]
struct NodeState {
    health: Health,
    latency: Latency,
    capabilities: CapabilityState,
    reply_times: ReplyTimes,
    last_fault: Option<NodeFault>,
    last_wrong_answer: Option<NodeFault>,
    /// Until when the node is asked after the others for the blocks of transactions.
    locations_doubted_until: Option<Instant>,
}

/// How long a node usually takes, for the times of an attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UsualDelays {
    pub(crate) hedge_delay: Duration,
    /// How long the node may reply to no call before it counts as stopped.
    pub(crate) silence_max: Duration,
}

impl<A: Ask> Node<A> {
    /// `name` is host and port, never a URL: those have credentials in them.
    pub(crate) fn new(id: NodeId, name: impl Into<String>, client: A) -> Self {
        Self {
            id,
            name: name.into(),
            client,
            state: Mutex::default(),
            counts: NodeCounts::default(),
            presence: Presence::default(),
            role: NodeRole::Own,
            trust: TrustEpoch::default(),
        }
    }

    /// Gives the node its role. An own node raises the trust epoch of its pool; that of a partner counts for nobody.
    pub(crate) fn with_role(self, role: NodeRole, trust: &TrustEpoch) -> Self {
        let trust = match role {
            NodeRole::Own => trust.clone(),
            NodeRole::Partner(_) => TrustEpoch::default(),
        };
        Self { role, trust, ..self }
    }

    /// Lets everything be asked again that only nodes have said, because this one was believed wrongly.
    pub(crate) fn end_trust_epoch(&self) {
        self.trust.raise();
    }

    /// Asks the node, and records its latency and its faults. Whether a reply was good is recorded by the caller, with
    /// [`Self::record_success`] or [`Self::record_fault`]. A node that does not take the hash of a block in this method is asked
    /// by number.
    pub(crate) async fn ask(&self, call: &RpcCall, deadline: Instant) -> Result<RpcReply, Fault> {
        if let Some((by_number, block)) =
            call.by_number().filter(|_| self.capabilities().needs_number(call.method))
        {
            let reply = Box::pin(self.ask_by_number(&by_number, block, deadline)).await?;
            return Ok(reply.unwrap_or_else(other_block));
        }
        let reply = self.ask_as_it_is(call, deadline).await?;
        if let RpcReply::Error(error) = &reply {
            self.learn_gas_cap(call, error);
        }
        match call.by_number().filter(|_| takes_no_hash(call, &reply)) {
            Some((by_number, block)) => {
                let by_number = match Box::pin(self.ask_by_number(&by_number, block, deadline)).await {
                    Ok(None) => other_block(),
                    Ok(Some(RpcReply::Result(result))) => RpcReply::Result(result),
                    // It does not have the method at all.
                    Ok(Some(RpcReply::Error(_))) | Err(_) => return Ok(reply),
                };
                self.capabilities().set_needs_number(call.method);
                self.log_refusal(call, NodeRefusal::BlockHash(call.method));
                Ok(by_number)
            }
            None => Ok(reply),
        }
    }

    /// Asks by number, and then whether that number is the block that is meant. `None` if the node has another one.
    async fn ask_by_number(
        &self,
        call: &RpcCall,
        block: BlockId,
        deadline: Instant,
    ) -> Result<Option<RpcReply>, Fault> {
        let reply = self.ask_as_it_is(call, deadline).await?;
        let params = format!(r#"["{:#x}",false]"#, block.number).into();
        let needs = Needs { state: false, gas: 0, ..call.needs };
        let check =
            RpcCall { method: "eth_getBlockByNumber", params, class: Class::Quick, needs, ..call.clone() };
        let is_block = match self.ask_as_it_is(&check, deadline).await? {
            RpcReply::Result(found) => hash_of(&found) == Some(block.hash),
            RpcReply::Error(_) => false,
        };
        Ok(Some(reply).filter(|_| is_block))
    }

    /// Records how much gas the node grants, if that is why it refuses a call.
    fn learn_gas_cap(&self, call: &RpcCall, error: &RpcError) {
        let gas = call.needs.gas;
        if gas > 0
            && let Meaning::Execution(Execution::GasAboveLimit { most }) = dialect::read(error, call.method)
        {
            self.capabilities().record_gas_refused(gas, most);
            self.log_refusal(call, NodeRefusal::Gas);
        }
    }

    /// Records that it lacks what a call needs.
    pub(crate) fn record_missing(&self, call: &RpcCall, missing: MissingCapability) {
        if let Some(refusal) =
            self.capabilities().record_missing(missing, call.method, call.needs.state_block())
        {
            self.log_refusal(call, refusal);
        }
    }

    /// Records that it searches no more than so many blocks for logs at once.
    pub(crate) fn record_log_range(&self, call: &RpcCall, blocks: u64) {
        self.capabilities().narrow_log_range(blocks);
        self.log_refusal(call, NodeRefusal::LogRange);
    }

    /// Logs a refusal, once for each kind.
    fn log_refusal(&self, call: &RpcCall, refusal: NodeRefusal) {
        let capabilities = self.capabilities();
        if capabilities.is_unlogged(refusal) {
            let (method, block) = (call.method, call.needs.block);
            let (gas_cap, log_blocks_max) = (capabilities.gas_cap(), capabilities.log_blocks_max());
            tracing::info!(
                node = self.name,
                method,
                block,
                gas_cap,
                log_blocks_max,
                "{}",
                refusal.explanation()
            );
        }
    }

    async fn ask_as_it_is(&self, call: &RpcCall, deadline: Instant) -> Result<RpcReply, Fault> {
        let asked_at = Instant::now();
        let in_flight = InFlightCall::begin(&self.state, call.class, asked_at);
        self.counts.attempts.fetch_add(1, Relaxed);
        // Other providers are told nothing of callers.
        let trace = TraceContext::current().filter(|_| !self.is_partner());
        let traced = trace.map(|trace| RpcCall { trace: Some(trace), ..call.clone() });
        let reply = self.client.ask(traced.as_ref().unwrap_or(call), deadline).await;
        let now = Instant::now();
        if reply != Err(Fault::QueueFull) {
            // A call that was never sent shows nothing of the node.
            in_flight.end(now, |state| {
                if reply.is_ok() {
                    state.record_reply(call.class, asked_at, now);
                }
            });
        }
        if reply.is_ok() {
            self.counts.latency.record(now.saturating_duration_since(asked_at));
        }
        if let Err(fault) = reply {
            self.record_failure(fault, call.class, asked_at, now);
        }
        reply
    }

    /// Records a reply that could be used, or whose error was the caller's fault.
    pub(crate) fn record_success(&self, now: Instant) {
        self.state.lock().health.record(Observation::Good, now);
    }

    /// Records a fault that the node is to blame for.
    pub(crate) fn record_fault(&self, fault: Fault, now: Instant) {
        self.counts.count(fault);
        let mut state = self.state.lock();
        state.last_fault = Some(fault.into());
        state.health.record(Observation::Bad(fault), now);
    }

    /// Records an answer that was proven wrong, or that a quorum of the nodes contradicts. Returns whether that ends the trust
    /// epoch: it does not while the node is excluded for an earlier one, or a liar could let everything be asked all the time.
    pub(crate) fn record_wrong_answer(&self, call: &RpcCall, problem: impl Into<Cow<'static, str>>) -> bool {
        let block = call.needs.block.map(|number| format!("{number:#x}"));
        let fault = NodeFault::of_answer(Fault::Wrong, call.method, block, problem);
        tracing::warn!(node = self.name, %fault, "answer of a node is wrong; excluding it for minutes");
        self.counts.count(Fault::Wrong);
        let is_new = self.state.lock().record_wrong(fault, Observation::Bad, Instant::now());
        if is_new {
            self.end_trust_epoch();
        }
        is_new
    }

    /// Records how a poll of its watcher ended.
    pub(crate) fn record_poll(&self, outcome: Result<(), NodeFault>, now: Instant) {
        match outcome {
            Ok(()) => {
                let mut state = self.state.lock();
                state.reply_times.record_poll(now);
                state.health.record(Observation::PollGood, now);
            }
            Err(fault) => {
                let kind = fault.kind;
                self.counts.count(kind);
                if kind == Fault::Wrong {
                    if self.state.lock().record_wrong(fault, Observation::PollBad, now) {
                        self.end_trust_epoch();
                    }
                } else if !kind.is_our_shortage() {
                    let mut state = self.state.lock();
                    state.last_fault = Some(fault);
                    state.health.record(Observation::PollBad(kind), now);
                }
            }
        }
    }

    /// Records that a call was given up, because another node answered it or because time was up. It counts against the node only
    /// if the node said nothing to anyone meanwhile: otherwise the call was slow, not the node.
    pub(crate) fn record_abandoned(&self, class: Class, asked_at: Instant, now: Instant) {
        let waited = now.saturating_duration_since(asked_at);
        let mut state = self.state.lock();
        if waited >= state.hedge_delay(class) {
            state.latency.record(class, waited, now);
            let is_silent = state.reply_times.silent_since(asked_at) <= asked_at;
            if is_silent && (class == Class::Quick || waited >= SILENCE_MIN) {
                state.reply_times.record_silence(now);
                state.health.record(Observation::Silent, now);
            }
        }
    }

    fn record_failure(&self, fault: Fault, class: Class, asked_at: Instant, now: Instant) {
        self.counts.count(fault);
        self.state.lock().record_failure(fault, class, asked_at, now);
    }

    /// Begins an attempt: a call to a node that is not up is as good as a probe.
    pub(crate) fn begin_attempt(&self, class: Class, now: Instant) -> UsualDelays {
        let mut state = self.state.lock();
        state.health.begin_probe(now);
        UsualDelays { hedge_delay: state.hedge_delay(class), silence_max: state.silence_max(class) }
    }

    /// When it has replied to any call last, if that was after this time, or else this time.
    pub(crate) fn silent_since(&self, then: Instant) -> Instant {
        self.state.lock().reply_times.silent_since(then)
    }

    /// Whether a call was given up because of its silence, and neither a call nor a poll was answered since.
    pub(crate) fn has_fallen_silent(&self) -> bool {
        self.state.lock().reply_times.has_fallen_silent()
    }

    /// How long an answer of this class may take before another node is asked too.
    pub(crate) fn hedge_delay(&self, class: Class) -> Duration {
        self.state.lock().hedge_delay(class)
    }

    /// Asks this node after the others, for a while, which block a transaction is in.
    pub(crate) fn doubt_locations(&self, now: Instant) {
        let until = &mut self.state.lock().locations_doubted_until;
        *until = (*until).max(Some(now + LOCATIONS_DOUBTED_FOR));
    }

    /// This node as the choice sees it.
    pub(crate) fn candidate(&self, call: &RpcCall, now: Instant) -> Candidate {
        let candidate = self.state.lock().candidate(call, now);
        match self.role {
            NodeRole::Own => candidate,
            // Nobody watches which blocks a partner has.
            NodeRole::Partner(_) => Candidate { head: Some(u64::MAX), lowest_state: 0, ..candidate },
        }
    }

    pub fn in_flight(&self, class: Class) -> u32 {
        self.state.lock().reply_times.in_flight(class)
    }

    /// How long its last quick answers took; `None` before the first.
    pub fn recent_latency(&self) -> Option<Duration> {
        self.state.lock().latency.last_expected(Class::Quick)
    }

    pub fn availability(&self, now: Instant) -> Availability {
        self.state.lock().health.availability(now)
    }

    /// Whether it has replied to anyone lately, however slowly. A node that is down may be alive: its watcher and its callers do
    /// not wait for slow replies.
    pub(crate) fn is_alive(&self, now: Instant) -> bool {
        let heard_at = self.state.lock().reply_times.last_reply().max(self.presence.heard_at());
        heard_at.is_some_and(|at| now.saturating_duration_since(at) <= ALIVE_FOR)
    }

    /// The last fault that the node was to blame for.
    pub fn last_fault(&self) -> Option<NodeFault> {
        self.state.lock().last_fault.clone()
    }

    /// The last of its answers that was wrong.
    pub fn last_wrong_answer(&self) -> Option<NodeFault> {
        self.state.lock().last_wrong_answer.clone()
    }

    /// For how long the node is still excluded because it was proven wrong.
    pub fn excluded_for(&self, now: Instant) -> Option<Duration> {
        self.state.lock().health.excluded_for(now)
    }

    pub(crate) fn is_probe_due(&self, now: Instant) -> bool {
        self.state.lock().health.is_probe_due(now)
    }

    #[cfg(test)]
    pub(crate) fn expected_latency(&self, class: Class, now: Instant) -> Duration {
        self.state.lock().latency.expected(class, now)
    }
}

impl NodeState {
    fn record_reply(&mut self, class: Class, asked_at: Instant, now: Instant) {
        self.reply_times.record_reply(now);
        self.latency.record(class, now.saturating_duration_since(asked_at), now);
    }

    /// Records a wrong answer or poll. Returns whether the node was not excluded for one already.
    fn record_wrong(
        &mut self,
        fault: NodeFault,
        observation: fn(Fault) -> Observation,
        now: Instant,
    ) -> bool {
        let is_new = self.health.excluded_for(now).is_none();
        self.last_fault = Some(fault.clone());
        self.last_wrong_answer = Some(fault);
        self.health.record(observation(Fault::Wrong), now);
        is_new
    }

    fn record_failure(&mut self, fault: Fault, class: Class, asked_at: Instant, now: Instant) {
        let waited = now.saturating_duration_since(asked_at);
        // A call that had less time than an answer usually takes says nothing about the node.
        let is_short = waited < self.hedge_delay(class);
        if fault == Fault::Timeout && !is_short {
            self.latency.record(class, waited, now);
        }
        let is_excused = match fault {
            Fault::Timeout if is_short => true,
            // The query may be slow or its answer large. That is no fault of a node that answers other calls.
            Fault::Timeout => class != Class::Quick && self.reply_times.silent_since(asked_at) > asked_at,
            Fault::TooLarge => class != Class::Quick,
            fault => fault.is_our_shortage(),
        };
        if !is_excused {
            self.last_fault = Some(fault.into());
            self.health.record(Observation::Bad(fault), now);
        }
    }

    fn silence_max(&self, class: Class) -> Duration {
        (self.p95(class) * UNRESPONSIVE_FACTOR).max(UNRESPONSIVE_MIN)
    }

    fn hedge_delay(&self, class: Class) -> Duration {
        self.p95(class).clamp(HEDGE_DELAY_MIN, HEDGE_DELAY_MAX)
    }

    fn p95(&self, class: Class) -> Duration {
        self.latency.p95(class).unwrap_or(unknown_p95(class))
    }

    /// The expected latency of the next answer. It shrinks while the node is idle, so that a slow node is tried again, but for one
    /// call at a time: the node may have stopped, and would draw all the others in.
    fn expected(&self, class: Class, in_flight: u32, now: Instant) -> Duration {
        if in_flight == 0 {
            self.latency.expected(class, now)
        } else {
            self.latency.last_expected(class).unwrap_or(unknown_p95(class))
        }
    }

    /// Whether the node has not answered for longer than is usual, and has said nothing to anyone meanwhile. It may have stopped,
    /// so other nodes are asked first, long before enough calls have failed to lower its health.
    fn is_unresponsive(&self, now: Instant) -> bool {
        self.reply_times.is_unresponsive(|class| self.silence_max(class), now)
    }

    fn are_locations_doubted(&self, method: &str, now: Instant) -> bool {
        LOCATION_METHODS.contains(&method) && self.locations_doubted_until.is_some_and(|until| now < until)
    }

    fn candidate(&self, call: &RpcCall, now: Instant) -> Candidate {
        let in_flight = self.reply_times.in_flight(call.class);
        let expected_us = self.expected(call.class, in_flight, now).as_micros().max(1);
        let availability = self.health.availability(now);
        let is_doubted = self.is_unresponsive(now)
            || self.reply_times.has_fallen_silent()
            || self.are_locations_doubted(call.method, now);
        let capabilities = self.capabilities.for_call(call.method);
        Candidate {
            availability: if is_doubted { availability.max(Availability::InDoubt) } else { availability },
            fails_calls: self.health.has_failed_call(),
            cost: u64::try_from(expected_us * (u128::from(in_flight) + 1)).unwrap_or(u64::MAX),
            head: capabilities.head_number,
            lowest_state: capabilities.lowest_state,
            excluded: !capabilities.is_member
                || !capabilities.has_method
                || capabilities.log_range_max < call.needs.log_blocks
                || capabilities.gas_max < call.needs.gas
                || call.needs.logs_from().is_some_and(|from| self.capabilities.lacks_logs(from)),
        }
    }
}

/// A call in flight. Dropped, it ends without a reply.
struct InFlightCall<'a> {
    state: &'a Mutex<NodeState>,
    class: Class,
    is_ended: bool,
}

impl<'a> InFlightCall<'a> {
    fn begin(state: &'a Mutex<NodeState>, class: Class, now: Instant) -> Self {
        state.lock().reply_times.begin_call(class, now);
        Self { state, class, is_ended: false }
    }

    /// Ends the call, and records something else under the same lock.
    fn end(mut self, now: Instant, record: impl FnOnce(&mut NodeState)) {
        self.is_ended = true;
        let mut state = self.state.lock();
        state.reply_times.end_call(self.class, now);
        record(&mut state);
    }
}

impl Drop for InFlightCall<'_> {
    fn drop(&mut self) {
        if !self.is_ended {
            self.state.lock().reply_times.drop_call(self.class);
        }
    }
}

impl<A> Node<A> {
    pub fn id(&self) -> NodeId {
        self.id
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its methods and quota, if it is a partner.
    pub fn partner_terms(&self) -> Option<&PartnerTerms> {
        match &self.role {
            NodeRole::Own => None,
            NodeRole::Partner(terms) => Some(terms),
        }
    }

    pub fn is_partner(&self) -> bool {
        self.partner_terms().is_some()
    }

    pub fn capabilities(&self) -> Capabilities<'_> {
        Capabilities(&self.state)
    }

    /// The client that calls go through. What is asked of it directly is not recorded.
    pub fn client(&self) -> &A {
        &self.client
    }

    pub fn answers_watcher(&self) -> bool {
        self.presence.is_present(Instant::now())
    }

    /// Whether it is of this chain and answers its watcher.
    pub fn is_usable(&self) -> bool {
        self.capabilities().membership() == Membership::Member && self.answers_watcher()
    }

    pub(crate) fn presence(&self) -> &Presence {
        &self.presence
    }

    pub fn counts(&self) -> &NodeCounts {
        &self.counts
    }
}

/// Whether a node does not take the hash of a block in this method: it refuses the call, or has no receipts although it has the
/// block.
fn takes_no_hash(call: &RpcCall, reply: &RpcReply) -> bool {
    match reply {
        RpcReply::Error(error) => dialect::read(error, call.method) == Meaning::NoMethod,
        RpcReply::Result(result) => call.method == BLOCK_RECEIPTS_METHOD && result.trim_ascii() == b"null",
    }
}

/// The reply of a node that was asked by number and has another block of this number.
fn other_block() -> RpcReply {
    let message = "block not found: the node has another one of this number".to_owned();
    RpcReply::Error(RpcError { code: -32000, message, data: None })
}

/// The hash of a block in a reply.
fn hash_of(block: &[u8]) -> Option<B256> {
    #[derive(serde::Deserialize)]
    struct Hashed {
        hash: B256,
    }
    serde_json::from_slice::<Hashed>(block).ok().map(|block| block.hash)
}

/// Stands for the 95th percentile while there are too few answers.
fn unknown_p95(class: Class) -> Duration {
    match class {
        Class::Quick => Duration::from_millis(50),
        Class::Evm => Duration::from_millis(100),
        Class::Bulk => Duration::from_millis(300),
        Class::Logs => HEDGE_DELAY_MAX,
    }
}

/// The client is not shown, because it may hold credentials.
impl<A> std::fmt::Debug for Node<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Node").field("name", &self.name).finish_non_exhaustive()
    }
}
