//! Foreign providers, within their budgets.
//!
//! A partner is asked only when the own pool is out for a call. It costs money, so what may be asked of it per second
//! and per day is held here, before anything is sent.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::call::{Ask, Call, Class, Needs, Reply};
use crate::health::Grade;
use crate::node::{Node, Standing};

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
    spent: Mutex<Spent>,
    /// Which chain it is of, once it has said so.
    chain_id: OnceLock<u64>,
}

/// What has been asked, in this second and on this day.
#[derive(Debug)]
struct Spent {
    second_began: Instant,
    in_second: u64,
    day: u64,
    in_day: u64,
}

const SECOND: Duration = Duration::from_secs(1);
const DAY_SECONDS: u64 = 86_400;

impl<A: Ask> Partner<A> {
    pub fn new(node: Node<A>, methods: Option<Vec<&'static str>>, allowance: Allowance) -> Self {
        // Nobody watches a partner: it is of this chain because the operator says so.
        node.known().set_standing(Standing::Member);
        let spent = Spent { second_began: Instant::now(), in_second: 0, day: today(), in_day: 0 };
        Self { node: Arc::new(node), methods, allowance, spent: Mutex::new(spent), chain_id: OnceLock::new() }
    }

    pub fn node(&self) -> &Arc<Node<A>> {
        &self.node
    }

    /// Whether it may be asked this at all.
    pub fn has(&self, method: &str) -> bool {
        self.methods.as_ref().is_none_or(|methods| methods.contains(&method))
    }

    /// Whether it is of this chain. It is asked once, out of its budget.
    pub async fn is_of(&self, chain_id: u64, deadline: Instant) -> bool {
        let theirs = match self.chain_id.get() {
            Some(theirs) => *theirs,
            None => match self.ask_chain_id(deadline).await {
                Some(theirs) => *self.chain_id.get_or_init(|| self.heard(theirs, chain_id)),
                None => return false,
            },
        };
        theirs == chain_id
    }

    async fn ask_chain_id(&self, deadline: Instant) -> Option<u64> {
        let call = Call {
            method: "eth_chainId",
            params: Bytes::from_static(b"[]"),
            class: Class::Quick,
            needs: Needs::default(),
            may_hedge: false,
        };
        let reply = if self.take() { self.node.ask(&call, deadline).await.ok()? } else { return None };
        let Reply::Result(result) = reply else { return None };
        let digits = std::str::from_utf8(&result).ok()?.trim().strip_prefix("\"0x")?.strip_suffix('"')?;
        u64::from_str_radix(digits, 16).ok()
    }

    fn heard(&self, theirs: u64, ours: u64) -> u64 {
        if theirs != ours {
            let partner = self.node.name();
            tracing::error!(partner, theirs, ours, "a partner is of another chain and will not be asked");
        }
        theirs
    }

    /// Whether it is well, or has been left alone for long enough to try. Nobody polls it, so a call has to.
    pub fn is_worth_asking(&self, now: Instant) -> bool {
        self.node.grade(now) != Grade::Down || self.node.health().probe_due(now)
    }

    /// Takes one call out of the budget, if there is one left.
    pub fn take(&self) -> bool {
        self.take_on(Instant::now(), today())
    }

    fn take_on(&self, now: Instant, today: u64) -> bool {
        let mut spent = self.spent.lock();
        if now.saturating_duration_since(spent.second_began) >= SECOND {
            (spent.second_began, spent.in_second) = (now, 0);
        }
        if today != spent.day {
            (spent.day, spent.in_day) = (today, 0);
        }
        let left =
            spent.in_second < self.allowance.calls_per_second && spent.in_day < self.allowance.calls_per_day;
        if left {
            spent.in_second += 1;
            spent.in_day += 1;
        }
        left
    }
}

/// The number of this day, which begins at 00:00 UTC.
fn today() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() / DAY_SECONDS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Fault;

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
            taken.push((0..3).filter(|_| partner.take_on(now, 7)).count());
        }
        assert_eq!(taken, [2, 2, 1, 0]);
        assert!(partner.take_on(Instant::now() + SECOND * 9, 8), "another day");
    }

    #[tokio::test(start_paused = true)]
    async fn only_what_it_has_is_asked() {
        assert!(partner(1, 1).has("eth_getStorageAt"));
        assert!(!partner(1, 1).has("eth_call"));
    }
}
