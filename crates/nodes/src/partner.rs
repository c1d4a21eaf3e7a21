//! Foreign providers, within their budgets.
//!
//! A partner is asked only when the own pool is out for a call. It costs money, so what may be asked of it per second
//! and per day is held here, before anything is sent. It is probed at intervals, or a wrong key would only be noticed in
//! an outage.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use alloy_primitives::{B256, U64};
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::time::{Instant, timeout_at};

use crate::call::{Ask, BlockId, Call, Class, Fault, Needs, Reply};
use crate::health::Grade;
use crate::node::Node;
use crate::outage_log::{OutageLog, advice};
use crate::watch::read_block;

/// How much may be asked of a partner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    pub calls_per_second: u64,
    pub calls_per_day: u64,
}

/// One foreign provider.
#[derive(Debug)]
pub struct Partner<A> {
    node: Arc<Node<A>>,
    /// What it may be asked; anything, if nothing is named.
    methods: Option<Vec<&'static str>>,
    allowance: Allowance,
    /// A block that its chain must have.
    checkpoint: Option<BlockId>,
    spent: Mutex<Spent>,
    probed: Mutex<Probed>,
    /// Held by the probe that is under way.
    probing: tokio::sync::Mutex<()>,
}

/// What probes have shown.
#[derive(Debug, Default)]
struct Probed {
    /// Which chain it is of, as it said last.
    chain_id: Option<u64>,
    /// The block that it has in the place of the checkpoint, if that is another one.
    other_checkpoint: Option<B256>,
    /// Whether the last probe was answered.
    has_answered: bool,
    /// How many probes have ended.
    probes: u64,
    /// Whether the log has told that it is of another chain.
    is_told: bool,
    outage: OutageLog,
}

/// How often a partner is probed, if its budget allows that.
const PROBE_EVERY: Duration = Duration::from_secs(600);
/// Probes use at most one of this many calls of a partner's daily budget.
const CALLS_PER_PROBE: u64 = 100;

/// What has been asked, in this second and on the last days.
#[derive(Debug)]
struct Spent {
    second_began: Instant,
    in_second: u64,
    /// The current day first. Others are remembered because the clock is corrected now and then, also backwards over
    /// midnight, and no day may have a second budget.
    days: [CallsOnDay; DAYS_REMEMBERED],
}

/// The calls of one day. Days are counted from 1970-01-01.
#[derive(Clone, Copy, Debug, Default)]
struct CallsOnDay {
    day: u64,
    calls: u64,
}

/// A correction concerns two days, a wrong date that is corrected three.
const DAYS_REMEMBERED: usize = 4;

impl Spent {
    /// The calls of a day, which becomes the current one. A new day takes the place of the one that was current longest ago.
    fn calls_on(&mut self, day: u64) -> &mut u64 {
        if self.days[0].day != day {
            match self.days.iter().position(|known| known.day == day) {
                Some(found) => self.days[..=found].rotate_right(1),
                None => {
                    self.days.rotate_right(1);
                    self.days[0] = CallsOnDay { day, calls: 0 };
                }
            }
        }
        &mut self.days[0].calls
    }
}

const SECOND: Duration = Duration::from_secs(1);
const DAY_SECONDS: u64 = 86_400;

impl<A: Ask> Partner<A> {
    pub fn new(node: Node<A>, methods: Option<Vec<&'static str>>, allowance: Allowance) -> Self {
        // Nobody watches a partner: it is of this chain because the operator says so.
        node.known().welcome();
        let spent = Spent { second_began: Instant::now(), in_second: 0, days: Default::default() };
        Self {
            node: Arc::new(node),
            methods,
            allowance,
            checkpoint: None,
            spent: Mutex::new(spent),
            probed: Mutex::default(),
            probing: tokio::sync::Mutex::default(),
        }
    }

    /// The same, asked only if it has this block or does not say what it has in its place.
    pub(crate) fn with_checkpoint(self, checkpoint: Option<BlockId>) -> Self {
        Self { checkpoint, ..self }
    }

    pub fn node(&self) -> &Arc<Node<A>> {
        &self.node
    }

    /// Whether it may be asked this at all.
    pub fn has(&self, method: &str) -> bool {
        self.methods.as_ref().is_none_or(|methods| methods.contains(&method))
    }

    /// Whether it is of this chain, as far as the chain is known. It is asked for that out of its budget, unless a probe has done
    /// so.
    pub async fn is_of(&self, chain_id: Option<u64>, deadline: Instant) -> bool {
        let must_be_known = chain_id.is_some() || self.checkpoint.is_some();
        if must_be_known && self.chain_id().is_none() {
            self.await_probe(deadline).await;
        }
        self.compare(chain_id);
        let probed = self.probed.lock();
        let is_same_id = chain_id.is_none_or(|ours| probed.chain_id == Some(ours));
        is_same_id && probed.other_checkpoint.is_none() && (probed.chain_id.is_some() || !must_be_known)
    }

    fn chain_id(&self) -> Option<u64> {
        self.probed.lock().chain_id
    }

    /// Whether it has answered the last probe, and is of this chain as far as that is known.
    pub fn is_usable(&self, ours: Option<u64>) -> bool {
        let probed = self.probed.lock();
        let is_same_id = ours.is_none_or(|ours| probed.chain_id == Some(ours));
        probed.has_answered && is_same_id && probed.other_checkpoint.is_none()
    }

    /// Time between two probes.
    pub(crate) fn probe_interval(&self) -> Duration {
        let seconds = DAY_SECONDS.saturating_mul(CALLS_PER_PROBE) / self.allowance.calls_per_day.max(1);
        PROBE_EVERY.max(Duration::from_secs(seconds))
    }

    /// Waits until a probe has ended. It is the one that is under way, if there is one: a probe for each waiting call would
    /// use up the budget.
    async fn await_probe(&self, deadline: Instant) {
        let probes_before = self.probed.lock().probes;
        let Ok(_guard) = timeout_at(deadline, self.probing.lock()).await else { return };
        if self.probed.lock().probes == probes_before {
            self.probe_alone(deadline).await;
        }
    }

    /// Asks it which chain it is of, if its budget allows that, and tells what is wrong with it.
    pub(crate) async fn probe(&self, deadline: Instant) {
        let Ok(_guard) = timeout_at(deadline, self.probing.lock()).await else { return };
        self.probe_alone(deadline).await;
    }

    /// The caller holds `probing`.
    async fn probe_alone(&self, deadline: Instant) {
        if !self.take(1 + u64::from(self.checkpoint.is_some())) {
            return;
        }
        let chain_id = self.ask_chain_id(deadline).await;
        if chain_id.is_ok() {
            self.probe_checkpoint(deadline).await;
        }
        let mut probed = self.probed.lock();
        probed.probes += 1;
        probed.has_answered = chain_id.is_ok();
        let (partner, now) = (self.node.name(), Instant::now());
        match chain_id {
            Ok(theirs) => {
                probed.is_told &= probed.chain_id == Some(theirs);
                probed.chain_id = Some(theirs);
                if probed.outage.recovered(now) {
                    tracing::info!(partner, "this partner is back");
                }
            }
            Err(fault) if fault.is_our_shortage() => {}
            Err(fault) => {
                if let Some(failures) = probed.outage.failed(now) {
                    let advice = advice(fault);
                    tracing::warn!(partner, %fault, advice, failures, "this partner cannot be used");
                }
            }
        }
    }

    /// Asks it for the block in the place of the checkpoint. One that does not have it may have dropped it.
    async fn probe_checkpoint(&self, deadline: Instant) {
        let Some(ours) = self.checkpoint else { return };
        let call = question("eth_getBlockByNumber", format!(r#"["{:#x}",false]"#, ours.number));
        let Ok(Reply::Result(result)) = self.node.ask(&call, deadline).await else { return };
        // Only its hash is compared, which needs no proof.
        let Ok(Some(theirs)) = read_block(&result, false) else { return };
        let other = Some(theirs.id.hash).filter(|theirs| *theirs != ours.hash);
        let before = std::mem::replace(&mut self.probed.lock().other_checkpoint, other);
        if let Some(theirs) = other.filter(|_| before != other) {
            let (partner, number, ours) = (self.node.name(), ours.number, ours.hash);
            tracing::error!(
                partner,
                number,
                %theirs,
                %ours,
                "this partner has another block in the place of the checkpoint and is not asked"
            );
        }
    }

    /// Tells, once, that it is of another chain than ours.
    pub(crate) fn compare(&self, ours: Option<u64>) {
        let mut probed = self.probed.lock();
        let (Some(theirs), Some(ours)) = (probed.chain_id, ours) else { return };
        if theirs != ours && !std::mem::replace(&mut probed.is_told, true) {
            let (partner, advice) = (self.node.name(), "correct its url, or chain_id in [network]");
            tracing::error!(
                partner,
                theirs,
                ours,
                advice,
                "this partner is of another chain and is not asked"
            );
        }
    }

    async fn ask_chain_id(&self, deadline: Instant) -> Result<u64, Fault> {
        let call = question("eth_chainId", "[]".to_owned());
        let Reply::Result(result) = self.node.ask(&call, deadline).await? else { return Err(Fault::Refused) };
        serde_json::from_slice::<U64>(&result).map(|id| id.to()).map_err(|_| Fault::Garbled)
    }

    /// Whether it is well, or has been left alone for long enough to try. Nobody polls it, so a call has to.
    pub fn is_worth_asking(&self, now: Instant) -> bool {
        self.node.grade(now) != Grade::Down || self.node.health().probe_due(now)
    }

    /// How much may be asked of it.
    pub fn allowance(&self) -> Allowance {
        self.allowance
    }

    /// Takes so many calls out of the budget, if all of them are left.
    pub fn take(&self, calls: u64) -> bool {
        self.take_on(Instant::now(), today(), calls)
    }

    fn take_on(&self, now: Instant, today: u64, calls: u64) -> bool {
        let mut spent = self.spent.lock();
        if now.saturating_duration_since(spent.second_began) >= SECOND {
            (spent.second_began, spent.in_second) = (now, 0);
        }
        let has_budget = spent.in_second.saturating_add(calls) <= self.allowance.calls_per_second
            && spent.calls_on(today).saturating_add(calls) <= self.allowance.calls_per_day;
        if has_budget {
            spent.in_second += calls;
            *spent.calls_on(today) += calls;
        }
        has_budget
    }
}

fn question(method: &'static str, params: String) -> Call {
    let params = Bytes::from(params);
    Call { method, params, class: Class::Quick, needs: Needs::default(), may_hedge: false }
}

/// The number of this day, which begins at 00:00 UTC.
fn today() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() / DAY_SECONDS)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    struct Nobody;

    impl Ask for Nobody {
        async fn ask(&self, _call: &Call, _deadline: Instant) -> Result<Reply, Fault> {
            Err(Fault::Connect)
        }
    }

    fn partner(calls_per_second: u64, calls_per_day: u64) -> Partner<Nobody> {
        let node = Node::new("partner", Nobody, Instant::now());
        Partner::new(node, Some(vec!["eth_getStorageAt"]), Allowance { calls_per_second, calls_per_day })
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_and_a_day_have_their_budgets() {
        let partner = partner(2, 5);
        let mut taken = Vec::new();
        for second in 0..4 {
            let now = Instant::now() + SECOND * second;
            taken.push((0..3).filter(|_| partner.take_on(now, 7, 1)).count());
        }
        assert_eq!(taken, [2, 2, 1, 0]);
        assert!(partner.take_on(Instant::now() + SECOND * 9, 8, 1), "another day");
    }

    /// A step back over midnight gave a second budget for the day before, and another one when midnight came again.
    #[tokio::test(start_paused = true)]
    async fn a_clock_that_steps_back_over_midnight_gives_no_second_budget() {
        let partner = partner(100, 5);
        let take_all = |second, today| {
            let now = Instant::now() + SECOND * second;
            (0..10).filter(|_| partner.take_on(now, today, 1)).count()
        };
        assert_eq!(take_all(0, 7), 5);
        assert_eq!(take_all(1, 8), 5, "midnight");
        assert_eq!((take_all(2, 7), take_all(3, 8)), (0, 0), "a step back, and midnight again");
        assert_eq!(take_all(4, 9), 5, "the next midnight");
        assert_eq!(
            (take_all(5, 9_999), take_all(6, 9), take_all(7, 10)),
            (5, 0, 5),
            "a wrong date for a while"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn calls_that_belong_together_are_taken_together_or_not_at_all() {
        let (partner, now) = (partner(3, 5), Instant::now());
        assert!(!partner.take_on(now, 7, 4));
        assert!(partner.take_on(now, 7, 2));
        assert!(!partner.take_on(now, 7, 2));
        assert!(partner.take_on(now, 7, 1));
        assert!(!partner.take_on(now + SECOND, 7, 3), "two are left of the day");
        assert!(partner.take_on(now + SECOND, 7, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn probes_leave_the_budget_to_callers() {
        assert_eq!(partner(1, 1_000_000).probe_interval(), PROBE_EVERY);
        assert_eq!(partner(1, 100).probe_interval(), Duration::from_secs(DAY_SECONDS));
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
        async fn ask(&self, _call: &Call, _deadline: Instant) -> Result<Reply, Fault> {
            self.asked.fetch_add(1, Relaxed);
            tokio::time::sleep(SECOND).await;
            self.answer.map(|answer| Reply::Result(Bytes::from(answer)))
        }
    }

    /// Each call that came before the first probe had ended made a probe of its own.
    #[tokio::test(start_paused = true)]
    async fn calls_share_the_probe_that_is_under_way() {
        for (answer, is_of) in [(Ok(r#""0x1""#), true), (Err(Fault::Connect), false)] {
            let asked = SlowPartner { asked: AtomicU64::new(0), answer };
            let allowance = Allowance { calls_per_second: 100, calls_per_day: 100 };
            let partner = Partner::new(Node::new("partner", asked, Instant::now()), None, allowance);
            let deadline = Instant::now() + 10 * SECOND;
            let calls = futures_util::future::join_all((0..5).map(|_| partner.is_of(Some(1), deadline)));
            let ((), calls) = tokio::join!(partner.probe(deadline), calls);
            assert_eq!(calls, [is_of; 5]);
            assert_eq!(partner.node().asked().asked.load(Relaxed), 1, "{answer:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn only_what_it_has_is_asked() {
        assert!(partner(1, 1).has("eth_getStorageAt"));
        assert!(!partner(1, 1).has("eth_call"));
    }
}
