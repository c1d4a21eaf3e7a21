//! Which chain this is, and who is of it.
//!
//! The configuration decides. What it leaves open is what a quorum of all configured nodes says, never whoever is up first. When
//! a majority of them says something else later, that is the chain from then on.

use std::fmt::Write;

use alloy_primitives::B256;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::LeftOut;

/// What a node says that it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) chain_id: u64,
    /// Nodes that have dropped old blocks may not have it.
    pub(super) genesis: Option<B256>,
}

/// What the operator says.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ConfiguredIdentity {
    pub(super) chain_id: Option<u64>,
    pub(super) genesis: Option<B256>,
}

#[derive(Debug)]
pub(super) struct Chain {
    configured: ConfiguredIdentity,
    quorum: usize,
    /// The names of the nodes, and what they said last.
    said: Mutex<Vec<(String, Option<Identity>)>>,
    settled: watch::Sender<Option<Identity>>,
}

impl Chain {
    pub(super) fn new(configured: ConfiguredIdentity, names: Vec<String>, quorum: usize) -> Self {
        let said = Mutex::new(names.into_iter().map(|name| (name, None)).collect());
        Self { configured, quorum, said, settled: watch::Sender::new(None) }
    }

    pub(super) fn says(&self, node: usize, identity: Identity) {
        let mut said = self.said.lock();
        if let Some((_, word)) = said.get_mut(node) {
            *word = Some(identity);
        }
        let settled = *self.settled.borrow();
        let next = match settled {
            None => self.decide(&said),
            Some(settled) => self.revise(&said, settled),
        };
        if let Some(next) = next {
            let genesis = next.genesis.map(|hash| hash.to_string());
            tracing::info!(chain_id = next.chain_id, genesis, "the nodes agree on the chain");
            self.settled.send_replace(Some(next));
        }
    }

    /// The chain, as soon as it is settled.
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

    /// Whether a node is of another chain than ours, as far as that is settled.
    pub(super) fn differs(&self, theirs: Identity) -> Option<LeftOut> {
        let ours = (*self.settled.borrow()).unwrap_or(theirs);
        if theirs.chain_id != ours.chain_id {
            return Some(LeftOut::OtherChain { theirs: theirs.chain_id, ours: ours.chain_id });
        }
        match (theirs.genesis, ours.genesis) {
            (Some(theirs), Some(ours)) if theirs != ours => Some(LeftOut::OtherGenesis { theirs, ours }),
            _ => None,
        }
    }

    /// Whether a node is of another chain than the configured one.
    pub(super) fn contradicts_configuration(&self, theirs: Identity) -> Option<LeftOut> {
        if let Some(ours) = self.configured.chain_id.filter(|ours| *ours != theirs.chain_id) {
            return Some(LeftOut::OtherChain { theirs: theirs.chain_id, ours });
        }
        let ours = self.configured.genesis?;
        theirs.genesis.filter(|theirs| *theirs != ours).map(|theirs| LeftOut::OtherGenesis { theirs, ours })
    }

    /// Why no chain is settled.
    pub(super) fn why_unsettled(&self) -> LeftOut {
        let said = self.said.lock();
        let words = || said.iter().filter_map(|(name, word)| Some((name, (*word)?)));
        let (answered, quorum) = (words().count(), self.quorum);
        if answered < quorum {
            return LeftOut::TooFew { answered, quorum };
        }
        let mut nodes = String::new();
        for (name, Identity { chain_id, genesis }) in words() {
            let separator = if nodes.is_empty() { "" } else { "; " };
            let _written = write!(nodes, "{separator}{name}: chain id {chain_id}");
            let _written = genesis.map(|genesis| write!(nodes, ", block 0 {genesis}"));
        }
        LeftOut::Undecided { nodes }
    }

    /// What is configured, and for the rest what a quorum says.
    fn decide(&self, said: &[(String, Option<Identity>)]) -> Option<Identity> {
        let ids = || said.iter().filter_map(|(_, word)| word.map(|word| word.chain_id));
        let chain_id = self.configured.chain_id.or_else(|| most_frequent(ids(), self.quorum))?;
        let members = || said.iter().filter_map(|(_, word)| word.filter(|word| word.chain_id == chain_id));
        if self.configured.genesis.is_some() {
            return Some(Identity { chain_id, genesis: self.configured.genesis });
        }
        let named = || members().filter_map(|word| word.genesis);
        let genesis = most_frequent(named(), self.quorum);
        // Where too few name the same block 0 it stays unknown, as long as a quorum does not contradict itself about it: one that
        // names another block 0 than the others cannot hold them up, and neither can one that does not have it.
        let undivided = members().count() - named().count()
            + most_frequent(named(), 1).map_or(0, |most| named().filter(|one| *one == most).count());
        (undivided >= self.quorum).then_some(Identity { chain_id, genesis })
    }

    /// The chain in place of the settled one: with a block 0 that was unknown, or another one that a majority of all nodes
    /// is of.
    fn revise(&self, said: &[(String, Option<Identity>)], settled: Identity) -> Option<Identity> {
        let next = self.decide(said)?;
        if next.chain_id == settled.chain_id && settled.genesis.is_none() {
            return next.genesis.map(|_| next);
        }
        let differs =
            next.chain_id != settled.chain_id || next.genesis.is_some_and(|one| Some(one) != settled.genesis);
        let supporters = said.iter().filter(|(_, word)| *word == Some(next)).count();
        (differs && supporters > said.len() / 2).then_some(next)
    }
}

/// The value that occurs most often, and at least so often.
fn most_frequent<T: PartialEq + Copy>(values: impl Iterator<Item = T>, at_least: usize) -> Option<T> {
    let values: Vec<T> = values.collect();
    let frequency = |value: &T| values.iter().filter(|other| *other == value).count();
    // The first one of two that are as frequent.
    let most = values.iter().rev().max_by_key(|value| frequency(value))?;
    (frequency(most) >= at_least).then_some(*most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(chain_id: u64) -> Identity {
        Identity { chain_id, genesis: Some(B256::repeat_byte(7)) }
    }

    fn of(nodes: usize, quorum: usize) -> Chain {
        configured(ConfiguredIdentity::default(), nodes, quorum)
    }

    fn configured(configured: ConfiguredIdentity, nodes: usize, quorum: usize) -> Chain {
        Chain::new(configured, (0..nodes).map(|node| format!("node-{node}")).collect(), quorum)
    }

    fn settled(chain: &Chain) -> Option<u64> {
        chain.settled.borrow().map(|identity| identity.chain_id)
    }

    #[test]
    fn the_first_to_answer_does_not_decide_alone() {
        let chain = of(3, 2);
        chain.says(0, identity(5));
        assert_eq!(
            (settled(&chain), chain.why_unsettled()),
            (None, LeftOut::TooFew { answered: 1, quorum: 2 })
        );
        chain.says(1, identity(1));
        assert_eq!(settled(&chain), None);
        chain.says(2, identity(1));
        assert_eq!(settled(&chain), Some(1));
    }

    /// Who could not be reached was not waited for. One liar that was up first settled the chain for good.
    #[test]
    fn the_dead_are_waited_for() {
        for (nodes, quorum, liars) in [(3, 2, 1), (5, 3, 2)] {
            let chain = of(nodes, quorum);
            (0..liars).for_each(|liar| chain.says(liar, identity(5)));
            assert_eq!(settled(&chain), None);
            (liars..nodes).for_each(|honest| chain.says(honest, identity(1)));
            assert_eq!(settled(&chain), Some(1));
        }
    }

    #[test]
    fn two_that_contradict_each_other_are_both_named() {
        let chain = of(2, 2);
        chain.says(0, identity(5));
        chain.says(1, Identity { chain_id: 1, genesis: None });
        let LeftOut::Undecided { nodes } = chain.why_unsettled() else { panic!("they do not agree") };
        assert_eq!(
            nodes,
            format!("node-0: chain id 5, block 0 {}; node-1: chain id 1", B256::repeat_byte(7))
        );
        chain.says(1, identity(5));
        assert_eq!(settled(&chain), Some(5), "as soon as they agree");
    }

    #[test]
    fn a_configured_chain_is_not_voted_on() {
        let chain = configured(ConfiguredIdentity { chain_id: Some(1), genesis: None }, 3, 1);
        chain.says(0, identity(5));
        chain.says(1, identity(5));
        assert_eq!(settled(&chain), None);
        chain.says(2, identity(1));
        assert_eq!(settled(&chain), Some(1));
        let genesis = Some(B256::repeat_byte(9));
        let chain = configured(ConfiguredIdentity { chain_id: Some(1), genesis }, 3, 2);
        (0..3).for_each(|node| chain.says(node, identity(1)));
        let other = LeftOut::OtherGenesis { theirs: B256::repeat_byte(7), ours: B256::repeat_byte(9) };
        assert_eq!(chain.contradicts_configuration(identity(1)), Some(other.clone()));
        assert_eq!(chain.differs(identity(1)), Some(other));
    }

    #[test]
    fn what_is_settled_is_revised_by_a_majority_and_by_nobody_else() {
        let chain = of(3, 1);
        chain.says(0, identity(5));
        chain.says(1, identity(1));
        assert_eq!(settled(&chain), Some(5), "with a quorum of one the first decides");
        assert_eq!(chain.differs(identity(1)), Some(LeftOut::OtherChain { theirs: 1, ours: 5 }));
        chain.says(2, identity(1));
        assert_eq!(settled(&chain), Some(1));
        assert_eq!(chain.differs(identity(5)), Some(LeftOut::OtherChain { theirs: 5, ours: 1 }));
    }

    #[test]
    fn a_node_without_block_0_is_known_by_its_chain_id() {
        let chain = of(3, 2);
        let bare = Identity { chain_id: 1, genesis: None };
        chain.says(0, bare);
        chain.says(1, identity(1));
        assert_eq!(*chain.settled.borrow(), Some(bare), "one node's word for block 0 is not enough");
        chain.says(2, identity(1));
        assert_eq!(*chain.settled.borrow(), Some(identity(1)));
        chain.says(1, bare);
        chain.says(2, bare);
        assert_eq!(*chain.settled.borrow(), Some(identity(1)), "nodes may drop it later");
        let foreign = Identity { chain_id: 1, genesis: Some(B256::ZERO) };
        assert_eq!(chain.differs(bare), None);
        assert!(matches!(chain.differs(foreign), Some(LeftOut::OtherGenesis { .. })));
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
            words.into_iter().enumerate().for_each(|(node, word)| chain.says(node, word));
            assert_eq!(*chain.settled.borrow(), Some(bare), "nobody knows which of the two is false");
            let without = words.iter().position(|word| *word == bare).unwrap();
            chain.says(without, identity(1));
            assert_eq!(*chain.settled.borrow(), Some(identity(1)), "as soon as a quorum names it");
            assert!(matches!(chain.differs(foreign), Some(LeftOut::OtherGenesis { .. })));
        }
        let chain = of(5, 3);
        [foreign, foreign, identity(1), identity(1)].into_iter().enumerate().for_each(|(node, word)| {
            chain.says(node, word);
        });
        assert_eq!(settled(&chain), None, "no quorum agrees with itself");
    }

    #[test]
    fn different_blocks_0_without_a_quorum_settle_nothing() {
        let chain = of(2, 2);
        chain.says(0, identity(1));
        chain.says(1, Identity { chain_id: 1, genesis: Some(B256::ZERO) });
        assert_eq!(settled(&chain), None);
        assert!(matches!(chain.why_unsettled(), LeftOut::Undecided { .. }));
    }
}
