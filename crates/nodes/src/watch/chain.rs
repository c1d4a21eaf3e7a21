//! Which chain this is, and which nodes are of it.
//!
//! The configuration decides. What it leaves open, a quorum of all configured nodes decides, never the nodes that are up first. When
//! a majority of them reports another chain later, that is the chain from then on.

use std::collections::BTreeMap;
use std::fmt::Write;

use alloy_primitives::B256;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::ExclusionReason;
use crate::node_id::NodeId;

/// The chain of a node, as it reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) chain_id: u64,
    /// The hash of block 0. Nodes that have dropped old blocks may not have it.
    pub(super) genesis: Option<B256>,
}

/// The configured chain.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ConfiguredIdentity {
    pub(super) chain_id: Option<u64>,
    pub(super) genesis: Option<B256>,
}

#[derive(Debug)]
pub(super) struct ChainAgreement {
    configured: ConfiguredIdentity,
    reports: Mutex<Reports>,
    settled: watch::Sender<Option<Identity>>,
}

/// The reports of all nodes.
#[derive(Debug, Default)]
struct Reports {
    quorum: usize,
    /// The name of each node, and its last report.
    of_nodes: BTreeMap<NodeId, (String, Option<Identity>)>,
}

impl Reports {
    fn identities(&self) -> impl Iterator<Item = Identity> {
        self.of_nodes.values().filter_map(|(_, report)| *report)
    }
}

impl ChainAgreement {
    /// An agreement of no nodes yet.
    pub(super) fn new(configured: ConfiguredIdentity) -> Self {
        Self { configured, reports: Mutex::default(), settled: watch::Sender::new(None) }
    }

    /// Sets which nodes there are, and how many of them must agree. Those that stay keep their reports.
    pub(super) fn set_nodes(&self, names: impl IntoIterator<Item = (NodeId, String)>, quorum: usize) {
        let mut reports = self.reports.lock();
        let mut before = std::mem::take(&mut reports.of_nodes);
        let kept = |(node, name)| (node, before.remove(&node).unwrap_or((name, None)));
        reports.of_nodes = names.into_iter().map(kept).collect();
        reports.quorum = quorum;
        self.settle(&reports);
    }

    /// Records the report of a node.
    pub(super) fn record(&self, node: NodeId, identity: Identity) {
        let mut reports = self.reports.lock();
        if let Some((_, report)) = reports.of_nodes.get_mut(&node) {
            *report = Some(identity);
        }
        self.settle(&reports);
    }

    fn settle(&self, reports: &Reports) {
        let settled = *self.settled.borrow();
        let next = match settled {
            None => self.decide(reports),
            Some(settled) => self.revise(reports, settled),
        };
        if let Some(next) = next {
            let genesis = next.genesis.map(|hash| hash.to_string());
            tracing::info!(chain_id = next.chain_id, genesis, "the nodes agree on a chain");
            self.settled.send_replace(Some(next));
        }
    }

    /// Waits until the nodes agree on a chain.
    pub(super) async fn settled(&self) -> Identity {
        let mut settled = self.settled.subscribe();
        loop {
            if let Some(identity) = *settled.borrow_and_update() {
                return identity;
            }
            // It cannot be closed: the sender is ours.
            let _open = settled.changed().await;
        }
    }

    pub(super) fn is_settled(&self) -> bool {
        self.settled.borrow().is_some()
    }

    /// Whether a node is of another chain than ours, as far as that is settled.
    pub(super) fn differs(&self, theirs: Identity) -> Option<ExclusionReason> {
        let ours = (*self.settled.borrow()).unwrap_or(theirs);
        if theirs.chain_id != ours.chain_id {
            return Some(ExclusionReason::OtherChain { theirs: theirs.chain_id, ours: ours.chain_id });
        }
        match (theirs.genesis, ours.genesis) {
            (Some(theirs), Some(ours)) if theirs != ours => {
                Some(ExclusionReason::OtherGenesis { theirs, ours })
            }
            _ => None,
        }
    }

    /// Whether a node is of another chain than the configured one.
    pub(super) fn contradicts_configuration(&self, theirs: Identity) -> Option<ExclusionReason> {
        if let Some(ours) = self.configured.chain_id.filter(|ours| *ours != theirs.chain_id) {
            return Some(ExclusionReason::OtherChain { theirs: theirs.chain_id, ours });
        }
        let ours = self.configured.genesis?;
        theirs
            .genesis
            .filter(|theirs| *theirs != ours)
            .map(|theirs| ExclusionReason::OtherGenesis { theirs, ours })
    }

    /// Why no chain is settled.
    pub(super) fn why_unsettled(&self) -> ExclusionReason {
        let all = self.reports.lock();
        let reports = || all.of_nodes.values().filter_map(|(name, report)| Some((name, (*report)?)));
        let (answered, quorum) = (reports().count(), all.quorum);
        if answered < quorum {
            return ExclusionReason::TooFew { answered, quorum };
        }
        let mut nodes = String::new();
        for (name, Identity { chain_id, genesis }) in reports() {
            let separator = if nodes.is_empty() { "" } else { "; " };
            let _written = write!(nodes, "{separator}{name}: chain id {chain_id}");
            let _written = genesis.map(|genesis| write!(nodes, ", block 0 {genesis}"));
        }
        ExclusionReason::Undecided { nodes }
    }

    /// The configured chain, completed by what a quorum reports.
    fn decide(&self, reports: &Reports) -> Option<Identity> {
        let ids = || reports.identities().map(|report| report.chain_id);
        let chain_id = self.configured.chain_id.or_else(|| most_frequent(ids(), reports.quorum))?;
        let members = || reports.identities().filter(|report| report.chain_id == chain_id);
        if self.configured.genesis.is_some() {
            return Some(Identity { chain_id, genesis: self.configured.genesis });
        }
        let named = || members().filter_map(|report| report.genesis);
        let genesis = most_frequent(named(), reports.quorum);
        // If too few nodes report the same block 0, it stays unknown, provided that a quorum of nodes does not contradict itself about
        // it. A node that reports another block 0, or none, then cannot block the others.
        let undivided = members().count() - named().count()
            + most_frequent(named(), 1).map_or(0, |most| named().filter(|one| *one == most).count());
        (undivided >= reports.quorum).then_some(Identity { chain_id, genesis })
    }

    /// The chain that replaces the settled one: the same with a block 0 that was unknown, or another one of a majority of all nodes.
    fn revise(&self, reports: &Reports, settled: Identity) -> Option<Identity> {
        let next = self.decide(reports)?;
        if next.chain_id == settled.chain_id && settled.genesis.is_none() {
            return next.genesis.map(|_| next);
        }
        let differs =
            next.chain_id != settled.chain_id || next.genesis.is_some_and(|one| Some(one) != settled.genesis);
        let supporters = reports.identities().filter(|report| *report == next).count();
        (differs && supporters > reports.of_nodes.len() / 2).then_some(next)
    }
}

/// The most frequent value, if it occurs `at_least` times.
fn most_frequent<T: PartialEq + Copy>(values: impl Iterator<Item = T>, at_least: usize) -> Option<T> {
    let values: Vec<T> = values.collect();
    let frequency = |value: &T| values.iter().filter(|other| *other == value).count();
    // The first of several that are equally frequent.
    let most = values.iter().rev().max_by_key(|value| frequency(value))?;
    (frequency(most) >= at_least).then_some(*most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(chain_id: u64) -> Identity {
        Identity { chain_id, genesis: Some(B256::repeat_byte(7)) }
    }

    fn of(nodes: usize, quorum: usize) -> ChainAgreement {
        configured(ConfiguredIdentity::default(), nodes, quorum)
    }

    fn configured(configured: ConfiguredIdentity, nodes: usize, quorum: usize) -> ChainAgreement {
        let chain = ChainAgreement::new(configured);
        let names = NodeId::first(nodes).into_iter().zip((0..).map(|node| format!("node-{node}")));
        chain.set_nodes(names, quorum);
        chain
    }

    fn id(node: usize) -> NodeId {
        NodeId::new(u32::try_from(node).unwrap())
    }

    fn settled(chain: &ChainAgreement) -> Option<u64> {
        chain.settled.borrow().map(|identity| identity.chain_id)
    }

    #[test]
    fn the_first_to_answer_does_not_decide_alone() {
        let chain = of(3, 2);
        chain.record(id(0), identity(5));
        assert_eq!(
            (settled(&chain), chain.why_unsettled()),
            (None, ExclusionReason::TooFew { answered: 1, quorum: 2 })
        );
        chain.record(id(1), identity(1));
        assert_eq!(settled(&chain), None);
        chain.record(id(2), identity(1));
        assert_eq!(settled(&chain), Some(1));
    }

    /// Nodes that could not be reached were not waited for, so one liar that was up first settled the chain for good.
    #[test]
    fn the_dead_are_waited_for() {
        for (nodes, quorum, liars) in [(3, 2, 1), (5, 3, 2)] {
            let chain = of(nodes, quorum);
            (0..liars).for_each(|liar| chain.record(id(liar), identity(5)));
            assert_eq!(settled(&chain), None);
            (liars..nodes).for_each(|honest| chain.record(id(honest), identity(1)));
            assert_eq!(settled(&chain), Some(1));
        }
    }

    #[test]
    fn two_that_contradict_each_other_are_both_named() {
        let chain = of(2, 2);
        chain.record(id(0), identity(5));
        chain.record(id(1), Identity { chain_id: 1, genesis: None });
        let ExclusionReason::Undecided { nodes } = chain.why_unsettled() else { panic!("they do not agree") };
        assert_eq!(
            nodes,
            format!("node-0: chain id 5, block 0 {}; node-1: chain id 1", B256::repeat_byte(7))
        );
        chain.record(id(1), identity(5));
        assert_eq!(settled(&chain), Some(5), "as soon as they agree");
    }

    #[test]
    fn a_configured_chain_is_not_voted_on() {
        let chain = configured(ConfiguredIdentity { chain_id: Some(1), genesis: None }, 3, 1);
        chain.record(id(0), identity(5));
        chain.record(id(1), identity(5));
        assert_eq!(settled(&chain), None);
        chain.record(id(2), identity(1));
        assert_eq!(settled(&chain), Some(1));
        let genesis = Some(B256::repeat_byte(9));
        let chain = configured(ConfiguredIdentity { chain_id: Some(1), genesis }, 3, 2);
        (0..3).for_each(|node| chain.record(id(node), identity(1)));
        let other =
            ExclusionReason::OtherGenesis { theirs: B256::repeat_byte(7), ours: B256::repeat_byte(9) };
        assert_eq!(chain.contradicts_configuration(identity(1)), Some(other.clone()));
        assert_eq!(chain.differs(identity(1)), Some(other));
    }

    #[test]
    fn what_is_settled_is_revised_by_a_majority_and_by_nobody_else() {
        let chain = of(3, 1);
        chain.record(id(0), identity(5));
        chain.record(id(1), identity(1));
        assert_eq!(settled(&chain), Some(5), "with a quorum of one the first decides");
        assert_eq!(chain.differs(identity(1)), Some(ExclusionReason::OtherChain { theirs: 1, ours: 5 }));
        chain.record(id(2), identity(1));
        assert_eq!(settled(&chain), Some(1));
        assert_eq!(chain.differs(identity(5)), Some(ExclusionReason::OtherChain { theirs: 5, ours: 1 }));
    }

    #[test]
    fn a_node_without_block_0_is_known_by_its_chain_id() {
        let chain = of(3, 2);
        let bare = Identity { chain_id: 1, genesis: None };
        chain.record(id(0), bare);
        chain.record(id(1), identity(1));
        assert_eq!(*chain.settled.borrow(), Some(bare), "one node's word for block 0 is not enough");
        chain.record(id(2), identity(1));
        assert_eq!(*chain.settled.borrow(), Some(identity(1)));
        chain.record(id(1), bare);
        chain.record(id(2), bare);
        assert_eq!(*chain.settled.borrow(), Some(identity(1)), "nodes may drop it later");
        let foreign = Identity { chain_id: 1, genesis: Some(B256::ZERO) };
        assert_eq!(chain.differs(bare), None);
        assert!(matches!(chain.differs(foreign), Some(ExclusionReason::OtherGenesis { .. })));
    }

    /// One liar kept the chain undecided for as long as one honest node of three did not say what its block 0 is.
    #[test]
    fn a_false_block_0_beside_a_node_without_one_holds_nobody_up() {
        let bare = Identity { chain_id: 1, genesis: None };
        let foreign = Identity { chain_id: 1, genesis: Some(B256::ZERO) };
        for words in
            [[foreign, bare, identity(1)], [identity(1), foreign, bare], [bare, foreign, identity(1)]]
        {
            let chain = of(3, 2);
            words.into_iter().enumerate().for_each(|(node, word)| chain.record(id(node), word));
            assert_eq!(*chain.settled.borrow(), Some(bare), "nobody knows which of the two is false");
            let without = words.iter().position(|word| *word == bare).unwrap();
            chain.record(id(without), identity(1));
            assert_eq!(*chain.settled.borrow(), Some(identity(1)), "as soon as a quorum names it");
            assert!(matches!(chain.differs(foreign), Some(ExclusionReason::OtherGenesis { .. })));
        }
        let chain = of(5, 3);
        [foreign, foreign, identity(1), identity(1)].into_iter().enumerate().for_each(|(node, word)| {
            chain.record(id(node), word);
        });
        assert_eq!(settled(&chain), None, "no quorum agrees with itself");
    }

    #[test]
    fn different_blocks_0_without_a_quorum_settle_nothing() {
        let chain = of(2, 2);
        chain.record(id(0), identity(1));
        chain.record(id(1), Identity { chain_id: 1, genesis: Some(B256::ZERO) });
        assert_eq!(settled(&chain), None);
        assert!(matches!(chain.why_unsettled(), ExclusionReason::Undecided { .. }));
    }
}
