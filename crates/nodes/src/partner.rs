//! Foreign providers, within their quotas.
//!
//! A partner is asked only when the pool cannot answer a call. It costs money, so calls are counted against its quota before anything
//! is sent. It is probed at intervals, because otherwise a wrong key would only be noticed in an outage.

use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::{B256, U64};
use bytes::Bytes;
use parking_lot::Mutex;
use resources::{AccountId, Clock, DAY_S, DayQuota, MonoTime, TokenBucket};
use tokio::time::{Instant, timeout_at};

use crate::call::{Ask, BlockId, Class, Fault, Needs, RpcCall, RpcReply};
use crate::health::Availability;
use crate::node::Node;
use crate::node_fault::NodeFault;
use crate::outage_log::OutageLog;
use crate::watch::read_block;

/// How many calls may be sent to a partner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartnerQuota {
    pub calls_per_second: u64,
    pub calls_per_day: u64,
}

/// The calls of a day to a partner, which all gateways share.
pub trait DayCalls: std::fmt::Debug + Send + Sync {
    /// Takes all of these calls, or none.
    fn take(&self, calls: u64, unix_seconds: u64) -> bool;

    /// The calls that all gateways have used on the day of this time, as far as this one knows.
    fn used(&self, unix_seconds: u64) -> u64;
}

/// One foreign provider.
#[derive(Debug)]
pub struct Partner<A> {
    node: Arc<Node<A>>,
    /// The methods that it may be asked. `None` means all.
    methods: Option<Vec<&'static str>>,
    quota: PartnerQuota,
    /// A block that its chain must have.
    checkpoint: Option<BlockId>,
    /// Says which day it is.
    clock: Clock,
    created_at: Instant,
    quota_state: Mutex<QuotaState>,
    probe_results: Mutex<ProbeResults>,
    /// Held by the probe that is under way.
    probing: tokio::sync::Mutex<()>,
}

/// The results of probes.
#[derive(Debug, Default)]
struct ProbeResults {
    /// The chain id that it returned last.
    chain_id: Option<u64>,
    /// Its block of the checkpoint's number, if that is another one.
    other_checkpoint: Option<B256>,
    /// Whether the last probe was answered.
    has_answered: bool,
    /// The number of probes that have ended.
    count: u64,
    /// Whether it was logged that it is of another chain.
    is_mismatch_logged: bool,
    outage: OutageLog,
}

/// How often a partner is probed, if its quota allows that.
const PROBE_EVERY: Duration = Duration::from_secs(600);
/// Probes use at most one of this many calls of a partner's daily quota.
const CALLS_PER_PROBE: u64 = 100;

/// What is left of the quota.
#[derive(Debug)]
struct QuotaState {
    second: TokenBucket,
    /// The calls that this gateway has used.
    day: DayQuota,
    /// `None` before it is known what others use.
    shared_day: Option<Arc<dyn DayCalls>>,
}

impl<A: Ask> Partner<A> {
    pub fn new(node: Node<A>, methods: Option<Vec<&'static str>>, quota: PartnerQuota) -> Self {
        // Nobody watches a partner. It counts as a member until a probe shows that it is of another chain.
        node.capabilities().admit();
        let second = TokenBucket::per_second(quota.calls_per_second);
        let quota_state = QuotaState { second, day: DayQuota::new(quota.calls_per_day), shared_day: None };
        Self {
            node: Arc::new(node),
            methods,
            quota,
            checkpoint: None,
            clock: Clock::default(),
            created_at: Instant::now(),
            quota_state: Mutex::new(quota_state),
            probe_results: Mutex::default(),
            probing: tokio::sync::Mutex::default(),
        }
    }

    /// The same partner, used only if it does not have another block of this number.
    pub(crate) fn with_checkpoint(self, checkpoint: Option<BlockId>) -> Self {
        Self { checkpoint, ..self }
    }

    pub fn node(&self) -> &Arc<Node<A>> {
        &self.node
    }

    /// Whether it may be asked this method.
    pub fn has(&self, method: &str) -> bool {
        self.methods.as_ref().is_none_or(|methods| methods.contains(&method))
    }

    /// Whether it is of this chain, as far as the chain is known. Unless a probe has found out, it is asked at the cost of its quota.
    pub async fn is_of(&self, chain_id: Option<u64>, deadline: Instant) -> bool {
        let must_be_known = chain_id.is_some() || self.checkpoint.is_some();
        if must_be_known && self.chain_id().is_none() {
            self.await_probe(deadline).await;
        }
        self.log_mismatch(chain_id);
        let results = self.probe_results.lock();
        let is_same_id = chain_id.is_none_or(|ours| results.chain_id == Some(ours));
        is_same_id && results.other_checkpoint.is_none() && (results.chain_id.is_some() || !must_be_known)
    }

    fn chain_id(&self) -> Option<u64> {
        self.probe_results.lock().chain_id
    }

    /// Whether it has answered the last probe, and is of this chain as far as that is known.
    pub fn is_usable(&self, ours: Option<u64>) -> bool {
        let results = self.probe_results.lock();
        let is_same_id = ours.is_none_or(|ours| results.chain_id == Some(ours));
        results.has_answered && is_same_id && results.other_checkpoint.is_none()
    }

    /// Time between two probes.
    pub(crate) fn probe_interval(&self) -> Duration {
        let seconds = DAY_S.saturating_mul(CALLS_PER_PROBE) / self.quota.calls_per_day.max(1);
        PROBE_EVERY.max(Duration::from_secs(seconds))
    }

    /// Waits until a probe has ended, preferably one that is under way: a probe for each waiting call would use up the quota.
    async fn await_probe(&self, deadline: Instant) {
        let probes_before = self.probe_results.lock().count;
        let Ok(_guard) = timeout_at(deadline, self.probing.lock()).await else { return };
        if self.probe_results.lock().count == probes_before {
            self.probe_alone(deadline).await;
        }
    }

    /// Asks it for its chain id, if its quota allows that, and logs what is wrong with it.
    pub(crate) async fn probe(&self, deadline: Instant) {
        let Ok(_guard) = timeout_at(deadline, self.probing.lock()).await else { return };
        self.probe_alone(deadline).await;
    }

    /// Probes while the caller holds `probing`.
    async fn probe_alone(&self, deadline: Instant) {
        if !self.take(1 + u64::from(self.checkpoint.is_some())) {
            return;
        }
        let chain_id = self.ask_chain_id(deadline).await;
        if chain_id.is_ok() {
            self.probe_checkpoint(deadline).await;
        }
        let mut results = self.probe_results.lock();
        results.count += 1;
        results.has_answered = chain_id.is_ok();
        let (partner, now) = (self.node.name(), Instant::now());
        match chain_id {
            Ok(theirs) => {
                results.is_mismatch_logged &= results.chain_id == Some(theirs);
                results.chain_id = Some(theirs);
                // Its plan or its program may have changed. What it refuses now is learned again.
                self.node.capabilities().forget_refusals();
                if results.outage.record_recovery(now) {
                    tracing::info!(partner, "partner is back");
                }
            }
            Err(fault) if fault.is_our_shortage() => {}
            Err(fault) => {
                let advice = NodeFault::from(fault).advice();
                if let Some(failures) = results.outage.record_failure(advice, now) {
                    tracing::warn!(partner, %fault, advice, failures, "partner cannot be used");
                }
            }
        }
    }

    /// Asks it for the block of the checkpoint's number. A partner without that block may have dropped it, and is used.
    async fn probe_checkpoint(&self, deadline: Instant) {
        let Some(ours) = self.checkpoint else { return };
        let call = question("eth_getBlockByNumber", format!(r#"["{:#x}",false]"#, ours.number));
        let Ok(RpcReply::Result(result)) = self.node.ask(&call, deadline).await else { return };
        // Only its hash is compared, which needs no proof.
        let Ok(Some(theirs)) = read_block(&result, false) else { return };
        let other = Some(theirs.id.hash).filter(|theirs| *theirs != ours.hash);
        let before = std::mem::replace(&mut self.probe_results.lock().other_checkpoint, other);
        if let Some(theirs) = other.filter(|_| before != other) {
            let (partner, number, ours) = (self.node.name(), ours.number, ours.hash);
            tracing::error!(
                partner,
                number,
                %theirs,
                %ours,
                "partner has another block than the checkpoint and is not used; check its url, and checkpoint in [network]"
            );
        }
    }

    /// Logs, once, that it is of another chain than ours.
    pub(crate) fn log_mismatch(&self, ours: Option<u64>) {
        let mut results = self.probe_results.lock();
        let (Some(theirs), Some(ours)) = (results.chain_id, ours) else { return };
        if theirs != ours && !std::mem::replace(&mut results.is_mismatch_logged, true) {
            let (partner, advice) = (self.node.name(), "correct its url, or chain_id in [network]");
            tracing::error!(partner, theirs, ours, advice, "partner is of another chain and is not used");
        }
    }

    async fn ask_chain_id(&self, deadline: Instant) -> Result<u64, Fault> {
        let call = question("eth_chainId", "[]".to_owned());
        let RpcReply::Result(result) = self.node.ask(&call, deadline).await? else {
            return Err(Fault::Refused);
        };
        serde_json::from_slice::<U64>(&result).map(|id| id.to()).map_err(|_| Fault::Garbled)
    }

    /// Whether it is not down, or due for a probe. Nobody polls it, so calls are its probes.
    pub(crate) fn is_worth_asking(&self, now: Instant) -> bool {
        self.node.availability(now) != Availability::Down || self.node.is_probe_due(now)
    }

    pub fn quota(&self) -> PartnerQuota {
        self.quota
    }

    /// From now on all gateways share the calls of a day. What was used before counts.
    pub fn share_day(&self, shared: Arc<dyn DayCalls>) {
        let now = self.clock.unix_seconds();
        let mut quota = self.quota_state.lock();
        let used = quota.day.used(now);
        // If it is refused, others have used up the rest.
        let _is_left = used == 0 || shared.take(used, now);
        quota.shared_day = Some(shared);
    }

    /// The calls that were sent today, UTC; those of all gateways if they are known.
    pub fn used_today(&self) -> u64 {
        let now = self.clock.unix_seconds();
        let quota = &mut *self.quota_state.lock();
        quota.shared_day.as_ref().map_or_else(|| quota.day.used(now), |shared| shared.used(now))
    }

    /// Takes calls out of the quota, if all of them are left.
    pub fn take(&self, calls: u64) -> bool {
        self.take_on(Instant::now(), self.clock.unix_seconds(), calls)
    }

    fn take_on(&self, now: Instant, unix_seconds: u64, calls: u64) -> bool {
        let now = MonoTime::default().after(now.saturating_duration_since(self.created_at));
        let QuotaState { second, day, shared_day } = &mut *self.quota_state.lock();
        if second.take(calls, now).is_err() {
            return false;
        }
        let is_within_day = match shared_day {
            Some(shared) => shared.take(calls, unix_seconds),
            None => day.take(calls, unix_seconds).is_ok(),
        };
        if !is_within_day {
            second.put(calls);
        }
        is_within_day
    }
}

fn question(method: &'static str, params: String) -> RpcCall {
    let params = Bytes::from(params);
    let (class, needs, account) = (Class::Quick, Needs::default(), AccountId::GATEWAY);
    RpcCall { method, params, class, needs, may_hedge: false, account, block_by_hash: None }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;
    use crate::node::MissingCapability;

    const SECOND: Duration = Duration::from_secs(1);
    const DAY_7: u64 = 7 * DAY_S;

    struct Nobody;

    impl Ask for Nobody {
        async fn ask(&self, _call: &RpcCall, _deadline: Instant) -> Result<RpcReply, Fault> {
            Err(Fault::Connect)
        }
    }

    fn partner(calls_per_second: u64, calls_per_day: u64) -> Partner<Nobody> {
        let node = Node::new("partner", Nobody);
        Partner::new(node, Some(vec!["eth_getStorageAt"]), PartnerQuota { calls_per_second, calls_per_day })
    }

    #[tokio::test(start_paused = true)]
    async fn calls_are_limited_per_second_and_per_day() {
        let partner = partner(2, 5);
        let mut taken = Vec::new();
        for second in 0..4 {
            let now = Instant::now() + SECOND * second;
            taken.push((0..3).filter(|_| partner.take_on(now, DAY_7, 1)).count());
        }
        assert_eq!(taken, [2, 2, 1, 0]);
        assert!(partner.take_on(Instant::now() + SECOND * 9, DAY_7 + DAY_S, 1), "another day");
    }

    /// The calls of a day that other gateways have left.
    #[derive(Debug)]
    struct LeftByOthers(AtomicU64);

    impl DayCalls for LeftByOthers {
        fn take(&self, calls: u64, _unix_seconds: u64) -> bool {
            self.0.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(calls)).is_ok()
        }

        fn used(&self, _unix_seconds: u64) -> u64 {
            5 - self.0.load(Relaxed)
        }
    }

    /// Each gateway granted the calls of the day for itself.
    #[tokio::test(start_paused = true)]
    async fn gateways_share_the_calls_of_a_day() {
        let (one, other) = (partner(100, 5), partner(100, 5));
        assert!(one.take(1), "before the quota is shared");
        let shared = Arc::new(LeftByOthers(AtomicU64::new(5)));
        for partner in [&one, &other] {
            partner.share_day(Arc::<LeftByOthers>::clone(&shared));
        }
        assert_eq!([&one, &other].map(|partner| partner.take(2)), [true, true]);
        assert_eq!([&one, &other].map(|partner| partner.take(1)), [false, false]);
        assert_eq!((one.used_today(), other.used_today()), (5, 5));
    }

    #[tokio::test(start_paused = true)]
    async fn calls_that_belong_together_are_taken_together_or_not_at_all() {
        let (partner, now) = (partner(3, 5), Instant::now());
        assert!(!partner.take_on(now, DAY_7, 4));
        assert!(partner.take_on(now, DAY_7, 2));
        assert!(!partner.take_on(now, DAY_7, 2));
        assert!(partner.take_on(now, DAY_7, 1));
        assert!(!partner.take_on(now + SECOND, DAY_7, 3), "two are left of the day");
        assert!(partner.take_on(now + SECOND, DAY_7, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn probes_leave_the_budget_to_callers() {
        assert_eq!(partner(1, 1_000_000).probe_interval(), PROBE_EVERY);
        assert_eq!(partner(1, 100).probe_interval(), Duration::from_secs(DAY_S));
        let partner = partner(1, 0);
        partner.probe(Instant::now() + SECOND).await;
        assert_eq!(partner.node().counts().attempts.load(Relaxed), 0);
    }

    /// Counts what it is asked, and takes a second for each answer.
    struct SlowPartner {
        asked: AtomicU64,
        answer: Result<&'static str, Fault>,
    }

    impl Ask for SlowPartner {
        async fn ask(&self, _call: &RpcCall, _deadline: Instant) -> Result<RpcReply, Fault> {
            self.asked.fetch_add(1, Relaxed);
            tokio::time::sleep(SECOND).await;
            self.answer.map(|answer| RpcReply::Result(Bytes::from(answer)))
        }
    }

    /// Each call that came before the first probe had ended made a probe of its own.
    #[tokio::test(start_paused = true)]
    async fn calls_share_the_probe_that_is_under_way() {
        for (answer, is_of) in [(Ok(r#""0x1""#), true), (Err(Fault::Connect), false)] {
            let asked = SlowPartner { asked: AtomicU64::new(0), answer };
            let quota = PartnerQuota { calls_per_second: 100, calls_per_day: 100 };
            let partner = Partner::new(Node::new("partner", asked), None, quota);
            let deadline = Instant::now() + 10 * SECOND;
            let calls = futures_util::future::join_all((0..5).map(|_| partner.is_of(Some(1), deadline)));
            let ((), calls) = tokio::join!(partner.probe(deadline), calls);
            assert_eq!(calls, [is_of; 5]);
            assert_eq!(partner.node().client().asked.load(Relaxed), 1, "{answer:?}");
        }
    }

    /// A method that a partner refused once was never asked of it again until the gateway restarted.
    #[tokio::test(start_paused = true)]
    async fn a_probe_that_is_answered_forgets_what_was_refused() {
        for (answer, is_forgotten) in [(Ok(r#""0x1""#), true), (Err(Fault::Connect), false)] {
            let client = SlowPartner { asked: AtomicU64::new(0), answer };
            let quota = PartnerQuota { calls_per_second: 100, calls_per_day: 100 };
            let partner = Partner::new(Node::new("partner", client), None, quota);
            let capabilities = || partner.node().capabilities();
            capabilities().record_missing(MissingCapability::Method, "eth_call", None);
            partner.probe(Instant::now() + 10 * SECOND).await;
            assert_eq!(capabilities().lacks("eth_call"), !is_forgotten, "{answer:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_partner_is_asked_only_its_methods() {
        assert!(partner(1, 1).has("eth_getStorageAt"));
        assert!(!partner(1, 1).has("eth_call"));
    }
}
