//! Partners: asked when nobody of our own can answer, and then checked like a node.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;
use nodes::check::{self, Expect, Family, Verdict};
use nodes::{BlockId, Call, Canon, Judgement, Said};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::expect::block_ref;
use super::flight_key::FlightKey;
use super::hearsay::Hearsay;
use super::judge::Question;
use super::{Remote, answer, encode};
use crate::answer::{Answer, Failure, Origin, Provenance, SharedAnswer, Verification, View};
use crate::callers::AccountId;
use crate::methods::Method;
use crate::params::{BlockParam, Query};
use crate::resolve::BlockRef;

/// Why a partner is asked: what our own nodes cannot give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Without {
    /// Any chain: none has shown it yet.
    Head,
    /// The block that is meant.
    Block,
    Answer,
}

impl Without {
    const ALL: [Self; 3] = [Self::Head, Self::Block, Self::Answer];

    fn name(self) -> &'static str {
        match self {
            Self::Head => "no_head",
            Self::Block => "no_block",
            Self::Answer => "no_answer",
        }
    }
}

/// Answers of partners, by the reason why they were asked.
#[derive(Debug, Default)]
pub(crate) struct Failovers([AtomicU64; Without::ALL.len()]);

impl Failovers {
    /// What a partner has answered is in the metrics and in the log.
    fn note(&self, without: Without, method: &Method) {
        self.0[without as usize].fetch_add(1, Relaxed);
        let reason = without.name();
        tracing::info!(method = method.name, reason, "a partner answered, because no node of our own could");
    }

    pub(crate) fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Without::ALL.into_iter().map(|without| (without.name(), self.0[without as usize].load(Relaxed)))
    }
}

impl Hearsay {
    fn without(&self) -> Without {
        if self.canon().is_some() { Without::Block } else { Without::Head }
    }
}

impl Remote {
    /// Asks a partner about blocks that the nodes have named.
    pub(super) async fn fail_over(
        &self,
        account: AccountId,
        canon: &Canon,
        method: &Method,
        query: &Query<BlockRef>,
    ) -> Result<Answer, Failure> {
        let key = FlightKey::of(account, super::head(canon), query);
        let (pays, deadline) = (key.paying_account(), Instant::now() + self.time(method));
        let ask = || self.ask_partner(pays, Some(canon), Without::Answer, method, query, deadline);
        self.partner_flights.share(key, ask).await?.lend(self.memory.of(account))
    }

    /// Asks a partner about blocks that it has named itself.
    pub(in crate::answer) async fn answer_told(
        &self,
        account: AccountId,
        hearsay: &Hearsay,
        method: &Method,
        query: &Query<BlockRef>,
        deadline: Instant,
    ) -> Result<Answer, Failure> {
        if let Some(result) = self.known(hearsay.head(), query) {
            self.failovers.note(hearsay.without(), method);
            return Ok(answer(Origin::Partner, Some(hearsay.head()), Verification::None, result));
        }
        let key = FlightKey::of(account, hearsay.head(), query);
        let (pays, canon, without) = (key.paying_account(), hearsay.canon(), hearsay.without());
        let ask = || self.ask_partner(pays, canon, without, method, query, deadline);
        self.partner_flights.share(key, ask).await?.lend(self.memory.of(account))
    }

    /// That a block is not there is an answer too, where a partner says so.
    pub(in crate::answer) fn told_nothing(&self, hearsay: &Hearsay, method: &Method) -> Provenance {
        self.failovers.note(hearsay.without(), method);
        Provenance { origin: Origin::Partner, block: None, verified: Verification::None }
    }

    async fn ask_partner(
        &self,
        account: AccountId,
        canon: Option<&Canon>,
        without: Without,
        method: &Method,
        query: &Query<BlockRef>,
        deadline: Instant,
    ) -> Result<SharedAnswer, Failure> {
        let call = match query {
            // In one piece: what a partner does not search at once it does not search at all.
            Query::Logs { filter, blocks } => encode::logs(filter, *blocks),
            other => {
                encode::call(other, canon.map(|canon| self.gas_cap(canon))).ok_or(Failure::Unavailable)?
            }
        };
        let question = Question::new(self, account, canon, query);
        let judge = |_: usize, result: &Bytes| question.judge(result);
        let answered = self.pool.ask_partner(method.name, &call, &judge, deadline).await;
        let fetched = self.settle(&question, answered)?;
        self.failovers.note(without, method);
        Ok(self.shared(Origin::Partner, fetched.block, fetched.verified, fetched.result))
    }

    /// The block that a partner names; `None` if it says that there is none. `method` is what the caller asks.
    pub(super) async fn told(
        &self,
        method: &'static Method,
        block: BlockParam,
        deadline: Instant,
    ) -> Result<Option<BlockRef>, Failure> {
        self.told_flights.share((method.name, block), || self.ask_for_block(method, block, deadline)).await
    }

    async fn ask_for_block(
        &self,
        method: &Method,
        block: BlockParam,
        deadline: Instant,
    ) -> Result<Option<BlockRef>, Failure> {
        let lookup = Lookup::of(block);
        let judge = |_: usize, result: &Bytes| lookup.judge(self, result).into();
        let answered = self.pool.ask_partner(method.name, &lookup.call, &judge, deadline).await;
        match answered.map_err(|_| Failure::Unavailable)?.said {
            Said::Result(_) => Ok(lookup.found.into_inner().map(block_ref)),
            Said::Error(_) | Said::Limit(_) => Err(Failure::Unavailable),
        }
    }
}

/// The question which block is meant.
struct Lookup {
    call: Call,
    expect: Expect,
    found: Mutex<Option<BlockId>>,
}

impl Lookup {
    fn of(block: BlockParam) -> Self {
        let (hash, number) = match block {
            BlockParam::Hash { hash, .. } => (Some(hash), None),
            BlockParam::Number(number) => (None, Some(number)),
            BlockParam::Tag(_) => (None, None),
        };
        let expect = Expect::Block { hash, number, full: false };
        Self { call: encode::lookup(block), expect, found: Mutex::default() }
    }

    fn judge(&self, remote: &Remote, result: &Bytes) -> Judgement {
        match self.check(remote, result) {
            Verdict::Sound(facts) => {
                *self.found.lock() = facts.block;
                Judgement::Believed
            }
            // Numbers are asked for only below the head: the partner has dropped it.
            Verdict::Null if matches!(self.expect, Expect::Block { number: Some(_), .. }) => Judgement::Late,
            Verdict::Null => Judgement::Doubtful,
            Verdict::Wrong(lie) => Judgement::Wrong(lie.name()),
            Verdict::Contradicted => Judgement::Late,
            Verdict::Empty | Verdict::TooMany { .. } => Judgement::Wrong("no block"),
        }
    }

    /// Where a header need not have its hash, it must still be the one that was asked for.
    fn check(&self, remote: &Remote, result: &Bytes) -> Verdict {
        let verdict = check::check(&self.expect, result, remote.family);
        match verdict {
            Verdict::Wrong(lie) if !remote.judge.refuses(lie) => {
                check::check(&self.expect, result, Family::Zksync)
            }
            other => other,
        }
    }
}
