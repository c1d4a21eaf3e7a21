//! Which nodes said what nothing proves, and how long it is taken for true.
//!
//! A quorum of liars may become honest, and an honest quorum may have been wrong. So what only nodes vouch for is asked again
//! after a time, when a quorum has changed its mind about anything, and as soon as one of those nodes was proven wrong, says
//! otherwise, or turns out to be of another chain.

use std::time::Duration;

use tokio::time::Instant;

/// How long what a quorum has confirmed is taken for true, unless the configuration says otherwise.
pub const CONFIRMED_FOR: Duration = Duration::from_secs(60);

/// The nodes that a `GivenBy` tells apart.
const NODES_TOLD_APART: usize = u64::BITS as usize;

/// Who said something that nothing proves, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GivenBy {
    /// One bit for each of the first 64 nodes. Further ones always count.
    nodes: u64,
    /// How often these nodes together had been wrong by then.
    mistakes: u64,
    agreed: AgreementMark,
    until: Instant,
}

/// The state of what the nodes agree on. It changes whenever a quorum changes its mind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AgreementMark {
    /// The epoch of the chain and its revisions. `None` before there is a chain.
    pub(crate) chain: Option<(u64, u64)>,
    /// How often a quorum has contradicted what a quorum has said before.
    pub(crate) corrections: u64,
}

/// Whether something that nodes said is still taken for true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Good,
    /// It must be asked again. Where nobody can be asked, it is better than nothing.
    Expired,
    /// One of those who said it has been wrong since.
    Void,
}

impl GivenBy {
    /// The mark of a statement that must be asked for again before it is relied on.
    pub fn expired() -> Self {
        Self { nodes: 0, mistakes: 0, agreed: AgreementMark::default(), until: Instant::now() }
    }

    /// Whether its time is over. It may have to be asked again earlier.
    pub(crate) fn is_over(self) -> bool {
        Instant::now() >= self.until
    }

    /// `mistakes` are those of all nodes now.
    pub(crate) fn standing(self, mistakes: impl Iterator<Item = u64>, agreed: AgreementMark) -> Standing {
        if sum(mistakes, self.nodes) != self.mistakes {
            return Standing::Void;
        }
        if self.is_over() || self.agreed != agreed { Standing::Expired } else { Standing::Good }
    }

    /// The same from now on and until this time.
    pub(crate) fn prolonged(self, agreed: AgreementMark, until: Instant) -> Self {
        Self { agreed, until, ..self }
    }

    pub(crate) fn is_of(self, node: usize) -> bool {
        is_one_of(self.nodes, node)
    }
}

/// The state of the nodes before they are asked. What is found out about them meanwhile counts against what they say.
#[derive(Debug)]
pub struct BeforeAsking {
    pub(crate) mistakes: Vec<u64>,
    pub(crate) agreed: AgreementMark,
    pub(crate) until: Instant,
}

impl BeforeAsking {
    /// The mark of a statement that these nodes have made since.
    pub fn given_by(&self, nodes: impl IntoIterator<Item = usize>) -> GivenBy {
        self.of(nodes.into_iter().fold(0, |nodes, node| nodes | bit(node)))
    }

    /// The mark of a statement that any node may have made since.
    pub fn given_by_anyone(&self) -> GivenBy {
        self.of(u64::MAX)
    }

    fn of(&self, nodes: u64) -> GivenBy {
        let Self { agreed, until, .. } = *self;
        GivenBy { nodes, mistakes: sum(self.mistakes.iter().copied(), nodes), agreed, until }
    }
}

fn sum(mistakes: impl Iterator<Item = u64>, nodes: u64) -> u64 {
    mistakes.enumerate().filter(|(number, _)| is_one_of(nodes, *number)).map(|(_, mistakes)| mistakes).sum()
}

fn is_one_of(nodes: u64, number: usize) -> bool {
    number >= NODES_TOLD_APART || nodes & bit(number) != 0
}

fn bit(number: usize) -> u64 {
    u32::try_from(number).ok().and_then(|number| 1_u64.checked_shl(number)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGREED: AgreementMark = AgreementMark { chain: Some((0, 0)), corrections: 0 };

    #[tokio::test(start_paused = true)]
    async fn it_stands_until_its_time_is_over_or_one_of_its_nodes_was_wrong() {
        let until = Instant::now() + CONFIRMED_FOR;
        let asked = BeforeAsking { mistakes: vec![0, 4, 0], agreed: AGREED, until };
        let given_by = asked.given_by([0, 1]);
        assert_eq!(given_by.standing([0, 4, 9].into_iter(), AGREED), Standing::Good, "others do not matter");
        assert_eq!(given_by.standing([0, 5, 0].into_iter(), AGREED), Standing::Void);
        assert_eq!(asked.given_by_anyone().standing([0, 4, 1].into_iter(), AGREED), Standing::Void);
        tokio::time::advance(CONFIRMED_FOR).await;
        assert_eq!(given_by.standing([0, 4, 0].into_iter(), AGREED), Standing::Expired);
        assert_eq!(given_by.standing([1, 4, 0].into_iter(), AGREED), Standing::Void);
    }

    /// Only reorganisations counted. A quorum that named another block of an old number, or another storage value, left everything
    /// else that other nodes had confirmed before.
    #[tokio::test(start_paused = true)]
    async fn it_is_asked_again_when_a_quorum_has_changed_its_mind() {
        let until = Instant::now() + CONFIRMED_FOR;
        let given_by = BeforeAsking { mistakes: vec![0; 3], agreed: AGREED, until }.given_by([0, 1]);
        let standing = |agreed| given_by.standing([0; 3].into_iter(), agreed);
        assert_eq!(standing(AGREED), Standing::Good);
        assert_eq!(standing(AgreementMark { chain: Some((1, 0)), ..AGREED }), Standing::Expired);
        assert_eq!(standing(AgreementMark { chain: Some((0, 1)), ..AGREED }), Standing::Expired);
        assert_eq!(standing(AgreementMark { corrections: 1, ..AGREED }), Standing::Expired);
    }
}
