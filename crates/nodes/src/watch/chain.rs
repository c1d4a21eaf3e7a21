//! Which chain this is, and who is of it.
//!
//! It is the configured one, or the one that a majority of the nodes is of. Once settled it stays: nodes that turn into nodes
//! of another chain cannot take the gateway with them, however many they are.

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

#[derive(Debug)]
pub(super) struct Chain {
    configured: Option<u64>,
    said: Mutex<Vec<Said>>,
    settled: watch::Sender<Option<Identity>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    NothingYet,
    /// It was asked and could not be reached, so nobody waits for its word.
    NoAnswer,
    This(Identity),
}

impl Chain {
    pub(super) fn new(configured: Option<u64>, nodes: usize) -> Self {
        let said = Mutex::new(vec![Said::NothingYet; nodes]);
        Self { configured, said, settled: watch::Sender::new(None) }
    }

    pub(super) fn says(&self, node: usize, identity: Identity) {
        self.note(node, Said::This(identity));
    }

    pub(super) fn no_answer(&self, node: usize) {
        self.note(node, Said::NoAnswer);
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

    /// Whether a node is of another chain than ours, which is settled.
    pub(super) fn differs(&self, theirs: Identity, ours: Identity) -> Option<LeftOut> {
        let chain_id = self.configured.unwrap_or(ours.chain_id);
        if theirs.chain_id != chain_id {
            return Some(LeftOut::OtherChain { theirs: theirs.chain_id, ours: chain_id });
        }
        match (theirs.genesis, ours.genesis) {
            (Some(theirs), Some(ours)) if theirs != ours => Some(LeftOut::OtherGenesis { theirs, ours }),
            _ => None,
        }
    }

    /// Whether a node is of another chain than the configured one.
    pub(super) fn contradicts_configuration(&self, theirs: Identity) -> Option<LeftOut> {
        let ours = self.configured.filter(|ours| *ours != theirs.chain_id)?;
        Some(LeftOut::OtherChain { theirs: theirs.chain_id, ours })
    }

    fn note(&self, node: usize, word: Said) {
        let mut said = self.said.lock();
        if let Some(slot) = said.get_mut(node) {
            *slot = word;
        }
        if self.settled.borrow().is_none()
            && let Some(identity) = self.majority(&said)
        {
            tracing::info!(chain_id = identity.chain_id, genesis = ?identity.genesis, "the chain is settled");
            self.settled.send_replace(Some(identity));
        }
    }

    /// What more than half of those say whose word is worth waiting for.
    fn majority(&self, said: &[Said]) -> Option<Identity> {
        let awaited: Vec<Said> = said.iter().copied().filter(|word| self.is_awaited(*word)).collect();
        let votes = |word: &Said| awaited.iter().filter(|other| *other == word).count();
        awaited.iter().find_map(|word| match word {
            Said::This(identity) if votes(word) * 2 > awaited.len() => Some(*identity),
            _ => None,
        })
    }

    fn is_awaited(&self, word: Said) -> bool {
        match word {
            Said::NothingYet => true,
            Said::NoAnswer => false,
            Said::This(identity) => self.configured.is_none_or(|id| id == identity.chain_id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(chain_id: u64) -> Identity {
        Identity { chain_id, genesis: Some(B256::repeat_byte(7)) }
    }

    fn settled(chain: &Chain) -> Option<u64> {
        chain.settled.borrow().map(|identity| identity.chain_id)
    }

    #[test]
    fn the_first_to_answer_does_not_decide_alone() {
        let chain = Chain::new(None, 3);
        chain.says(0, identity(5));
        assert_eq!(settled(&chain), None);
        chain.says(1, identity(1));
        assert_eq!(settled(&chain), None);
        chain.says(2, identity(1));
        assert_eq!(settled(&chain), Some(1));
    }

    #[test]
    fn nobody_waits_for_the_dead() {
        let chain = Chain::new(None, 3);
        chain.no_answer(0);
        chain.no_answer(1);
        chain.says(2, identity(1));
        assert_eq!(settled(&chain), Some(1));
    }

    #[test]
    fn a_configured_chain_is_not_voted_on() {
        let chain = Chain::new(Some(1), 3);
        chain.says(0, identity(5));
        chain.says(1, identity(5));
        assert_eq!(settled(&chain), None);
        chain.says(2, identity(1));
        assert_eq!(settled(&chain), Some(1));
    }

    #[test]
    fn what_is_settled_stays() {
        let chain = Chain::new(None, 1);
        chain.says(0, identity(1));
        chain.says(0, identity(5));
        assert_eq!(settled(&chain), Some(1));
        let other = LeftOut::OtherChain { theirs: 5, ours: 1 };
        assert_eq!(chain.differs(identity(5), identity(1)), Some(other));
    }

    #[test]
    fn a_node_without_block_0_is_known_by_its_chain_id() {
        let chain = Chain::new(None, 1);
        let bare = Identity { chain_id: 1, genesis: None };
        let foreign = Identity { chain_id: 1, genesis: Some(B256::ZERO) };
        assert_eq!(chain.differs(bare, identity(1)), None);
        assert!(matches!(chain.differs(foreign, identity(1)), Some(LeftOut::OtherGenesis { .. })));
    }
}
