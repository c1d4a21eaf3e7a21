//! Whether what nodes have said is still taken for true.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::time::Instant;

use super::{Pool, PoolNode};
use crate::given_by::{AgreementMark, BeforeAsking, GivenBy, Standing};

/// How long an answer that could not be asked for again is served before that is tried once more: a try may take seconds.
const ASKED_AGAIN_AFTER: Duration = Duration::from_secs(5);

impl Pool {
    /// Notes the state of the nodes before they are asked.
    pub fn before_asking(&self) -> BeforeAsking {
        let until = Instant::now() + self.confirmed_for;
        BeforeAsking { mistakes: self.mistakes().collect(), agreed: self.agreed(), until }
    }

    pub fn standing(&self, given_by: GivenBy) -> Standing {
        given_by.standing(self.mistakes(), self.agreed())
    }

    /// The same for a few seconds more, because it has expired and could not be asked for again.
    pub fn prolonged(&self, given_by: GivenBy) -> GivenBy {
        given_by.prolonged(self.agreed(), Instant::now() + ASKED_AGAIN_AFTER)
    }

    /// Records those of `nodes` that contradict what they have said before. Nothing shows when they were right, so all that
    /// they have said is void, except what they say now.
    pub fn record_retractions(
        &self,
        asked: &mut BeforeAsking,
        before: GivenBy,
        nodes: impl IntoIterator<Item = usize>,
    ) {
        for number in nodes.into_iter().filter(|number| before.is_of(*number)) {
            let (Some(node), Some(mistakes)) = (self.nodes.get(number), asked.mistakes.get_mut(number))
            else {
                continue;
            };
            tracing::info!(
                node = node.name(),
                "node contradicts what it has said before; all that rests on its word is asked again"
            );
            node.counts().count_retraction();
            *mistakes += 1;
        }
    }

    /// Records that a quorum says something else than a quorum has said before. So everything that was confirmed by then is asked
    /// again, except what nodes say now.
    pub fn record_correction(&self, asked: &mut BeforeAsking) {
        self.corrections.fetch_add(1, Relaxed);
        asked.agreed.corrections += 1;
    }

    /// The number of a node, as [`BeforeAsking::given_by`] takes it.
    pub fn position(&self, node: &PoolNode) -> usize {
        self.number_of(node)
    }

    fn mistakes(&self) -> impl Iterator<Item = u64> {
        self.nodes.iter().map(|node| node.counts().mistakes())
    }

    fn agreed(&self) -> AgreementMark {
        let chain = self.view.peek().as_ref().map(|chain| (chain.epoch(), chain.revisions()));
        AgreementMark { chain, corrections: self.corrections.load(Relaxed) }
    }
}
