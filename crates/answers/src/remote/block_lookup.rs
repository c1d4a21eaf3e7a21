//! Which blocks a call means, and who can say so.

use std::sync::Arc;
use std::time::Duration;

use methods::{BlockParam, BlockRef, Method, Query};
use nodes::{Absence, BlockId, CanonicalChain, Standing};
use resources::AccountId;
use tokio::sync::OnceCell;
use tokio::time::{Instant, timeout, timeout_at};

use super::block_ids::block_ref;
use super::partner_view::PartnerView;
use super::pool_source::PoolSource;
use super::side_blocks::side_block;
use crate::failure::Failure;
use crate::provenance::Verification;
use crate::query_plan::QueryPlan;

/// The chain in which the blocks of a call are looked up.
#[derive(Clone, Copy)]
pub(crate) enum NamedBy<'a> {
    Nodes {
        chain: &'a Arc<CanonicalChain>,
        /// How far it is verified that a block of the call that the chain does not have does not exist.
        absence_verified: Verification,
    },
    /// A partner, because nobody of our own can. What it says holds for this request only.
    Partner {
        view: &'a PartnerView,
        /// Until when it may be asked for the answer.
        deadline: Instant,
    },
}

/// A node that is back answers a look-up sooner than this, and a caller hardly notices it.
const OUTAGE_TIMEOUT: Duration = Duration::from_millis(250);

/// How long a call that failed waits for its nodes to be looked at: the shortest time between two polls of a node, and its
/// answers. A node that takes longer is of no help to the call.
const LOOK_TIME_MAX: Duration = Duration::from_secs(2);

impl PoolSource {
    /// Finds who can say which blocks a query means: the nodes, whose chain is `chain`, or (by plan) a partner where no node
    /// can. `partner_view` is that of the request, and is begun for the first call that needs it.
    pub(crate) async fn find_blocks<'a>(
        &self,
        account: AccountId,
        chain: Option<&'a Arc<CanonicalChain>>,
        partner_view: &'a OnceCell<PartnerView>,
        method: &'static Method,
        query: &Query<BlockParam>,
        may_fail_over: bool,
    ) -> Result<NamedBy<'a>, Failure> {
        if let Some(chain) = chain {
            if query.blocks().all(|block| self.knows(chain, block)) {
                return Ok(NamedBy::Nodes { chain, absence_verified: self.by_quorum() });
            }
            // Boxed like what follows, because the future is large and few calls need it.
            let learned = self.with_outage_timeout(may_fail_over, self.learn_all(account, chain, query));
            match Box::pin(learned).await {
                Err(Failure::Unavailable) => {}
                learned => {
                    return learned.map(|absence_verified| NamedBy::Nodes { chain, absence_verified });
                }
            }
        }
        if !may_fail_over {
            return Err(Failure::Unavailable);
        }
        // All that a partner is asked for this call has as much time together as a call to our own nodes.
        let deadline = Instant::now() + self.time(method);
        let view = Box::pin(self.view_of_partner(chain, partner_view, method, query, deadline)).await?;
        Ok(NamedBy::Partner { view, deadline })
    }

    async fn view_of_partner<'a>(
        &self,
        chain: Option<&Arc<CanonicalChain>>,
        partner_view: &'a OnceCell<PartnerView>,
        method: &'static Method,
        query: &Query<BlockParam>,
        deadline: Instant,
    ) -> Result<&'a PartnerView, Failure> {
        let begin = || PartnerView::begin(self, chain, method, deadline);
        let partner_view = partner_view.get_or_try_init(begin).await?;
        for block in query.blocks() {
            partner_view.learn(self, method, block, deadline).await?;
        }
        Ok(partner_view)
    }

    /// Runs work of our own nodes. While all of them seem to be down, a call that may fail over to a partner waits for them no
    /// longer than a node that is back takes to answer.
    pub(super) async fn with_outage_timeout<T>(
        &self,
        may_fail_over: bool,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        if may_fail_over && !self.pool.partners().is_empty() && self.pool.is_out() {
            return timeout(OUTAGE_TIMEOUT, work).await.unwrap_or(Err(Failure::Unavailable));
        }
        work.await
    }

    /// Runs `work` on a query. `None` if the block that it is about is reorganised away before it ends, or if that was the
    /// reason for its failure.
    pub(super) async fn unless_reorganised<T>(
        &self,
        account: AccountId,
        chain: &CanonicalChain,
        query: &Query<BlockRef>,
        deadline: Instant,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Option<Result<T, Failure>> {
        let newest = query.blocks().max_by_key(|block| block.number);
        let block = newest.map_or(chain.head(), |block| BlockId { number: block.number, hash: block.hash });
        if let Some(side_block) = chain.side_block(&block.hash).map(block_ref) {
            return self.unless_dropped(account, chain, side_block, query, deadline, work).await;
        }
        let view = self.pool.view();
        let outcome = tokio::select! {
            biased;
            outcome = work => outcome,
            () = view.wait_until_removed(block) => return None,
        };
        if !matches!(outcome, Err(Failure::Unavailable)) || self.pool.is_out() {
            return Some(outcome);
        }
        // Between two polls nobody knows of a reorganisation, so the nodes are looked at now.
        let is_left = async {
            tokio::select! {
                biased;
                () = view.wait_until_removed(block) => true,
                () = view.wait_until_settled(block) => false,
            }
        };
        let is_left = timeout_at(deadline.min(Instant::now() + LOOK_TIME_MAX), is_left).await;
        if is_left == Ok(true) { None } else { Some(outcome) }
    }

    /// Asks again which blocks have the numbers below the window that a query is about, because nobody has those blocks: a
    /// quorum of the nodes may have reported wrong ones. A transaction that was found before is about its block. Returns whether
    /// a number turned out to mean another block.
    pub(super) async fn correct_numbers(
        &self,
        account: AccountId,
        chain: &CanonicalChain,
        query: &Query<BlockRef>,
        deadline: Instant,
    ) -> bool {
        let mut is_corrected = false;
        let may_be_another =
            |block: &BlockRef| block.number < chain.lowest() && chain.side_block(&block.hash).is_none();
        let place = QueryPlan::of(query).subject.transaction().and_then(|hash| self.known_place(chain, hash));
        for block in query.blocks().chain(place).filter(may_be_another) {
            let look_up = || async {
                let learned = self.pool.learn_number(account, chain, block.number, deadline).await;
                learned.map(|()| self.by_quorum()).map_err(|_| Failure::Unavailable)
            };
            let key = (account, chain.epoch(), BlockParam::Number(block.number));
            let looked = self.lookups.share(key, deadline, look_up).await;
            is_corrected |= looked.is_ok() && chain.by_number(block.number).map(block_ref) != Some(block);
        }
        is_corrected
    }

    async fn learn_all(
        &self,
        account: AccountId,
        chain: &CanonicalChain,
        query: &Query<BlockParam>,
    ) -> Result<Verification, Failure> {
        let deadline = Instant::now() + self.call_timeout;
        let mut absence_verified = self.by_quorum();
        for block in query.blocks() {
            let verified = match side_block(chain, block) {
                Some(side_block) => self.find_side_block(account, chain, side_block, query, deadline).await?,
                None => self.learn(account, chain, block, deadline).await?,
            };
            absence_verified = absence_verified.min(verified);
        }
        Ok(absence_verified)
    }

    /// How far it is verified that there is no such block.
    pub(super) fn absence_verified(&self, absence: Absence) -> Verification {
        match absence {
            Absence::Confirmed => self.by_quorum(),
            Absence::Unconfirmed | Absence::Open => Verification::None,
        }
    }

    /// Makes sure that the view can say what block is meant, if there is such a block. Equal questions of an account share one
    /// look-up, from which all views of an epoch learn. What nodes have said before is asked again when it has expired, and
    /// holds on where they cannot be asked. Returns how far it is verified that there is no such block, if the view does not have it
    /// then.
    pub(super) async fn learn(
        &self,
        account: AccountId,
        chain: &CanonicalChain,
        block: BlockParam,
        deadline: Instant,
    ) -> Result<Verification, Failure> {
        if self.knows(chain, block) || self.learn_stored(chain, block, Standing::Good) {
            return Ok(self.by_quorum());
        }
        let look_up = || async {
            let learned = match block {
                BlockParam::Number(number) => {
                    self.pool.learn_number(account, chain, number, deadline).await.map(|()| None)
                }
                BlockParam::Hash { hash, .. } => self.pool.learn_hash(account, chain, hash, deadline).await,
                BlockParam::Tag(_) => Ok(None),
            };
            let verified = |absence: Option<Absence>| {
                absence.map_or(self.by_quorum(), |absence| self.absence_verified(absence))
            };
            learned.map(verified).map_err(|_| Failure::Unavailable)
        };
        let looked_up = self.lookups.share((account, chain.epoch(), block), deadline, look_up).await;
        match looked_up {
            Err(Failure::Unavailable) if self.keeps(chain, block) => Ok(self.by_quorum()),
            looked_up => looked_up,
        }
    }

    /// Whether the view can say what canonical block is meant, without asking anyone.
    fn knows(&self, chain: &CanonicalChain, block: BlockParam) -> bool {
        match block {
            BlockParam::Number(number) => chain.knows_number(number) && self.is_good_number(chain, number),
            BlockParam::Hash { hash, .. } => {
                chain.by_hash(&hash).is_some_and(|block| self.is_good_number(chain, block.number))
            }
            BlockParam::Tag(_) => true,
        }
    }

    /// Keeps an expired block for some seconds more, because too few nodes can say whether it is right. Returns whether there
    /// is one. A block whose reporters were wrong since is forgotten.
    fn keeps(&self, chain: &CanonicalChain, block: BlockParam) -> bool {
        let known = match block {
            BlockParam::Number(number) => chain.by_number(number),
            BlockParam::Hash { hash, .. } => chain.by_hash(&hash),
            BlockParam::Tag(_) => None,
        };
        let Some((known, given_by)) = known.and_then(|known| Some((known, chain.given_by(known.number)?)))
        else {
            return self.learn_stored(chain, block, Standing::Expired);
        };
        if self.pool.standing(given_by) == Standing::Void {
            chain.forget_reported_block(known.number);
            return false;
        }
        chain.add_reported_block(known, self.pool.prolonged(given_by));
        true
    }
}
