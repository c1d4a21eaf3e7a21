//! How many nodes lie, of how many.

use std::time::Duration;

/// Long enough that a node without it is asked first.
const SLOW: Duration = Duration::from_millis(40);

/// Some nodes, of which the first ones lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeMix {
    pub name: &'static str,
    pub liars: usize,
    pub nodes: usize,
    /// The delay of honest nodes before each reply.
    pub honest_delay: Option<Duration>,
}

const fn mix(name: &'static str, liars: usize, nodes: usize) -> NodeMix {
    NodeMix { name, liars, nodes, honest_delay: None }
}

impl NodeMix {
    pub const ONE_OF_ONE: Self = mix("1 of 1", 1, 1);
    pub const ONE_OF_THREE: Self = mix("1 of 3", 1, 3);
    pub const TWO_OF_THREE: Self = mix("2 of 3", 2, 3);
    pub const TWO_OF_FIVE: Self = mix("2 of 5", 2, 5);
    pub const ONE_OF_THREE_SLOW: Self = Self { honest_delay: Some(SLOW), ..mix("1 of 3, slow", 1, 3) };

    pub const ALL: [Self; 8] = [
        Self::ONE_OF_ONE,
        mix("1 of 2", 1, 2),
        Self::ONE_OF_THREE,
        Self::TWO_OF_THREE,
        Self::TWO_OF_FIVE,
        mix("3 of 5", 3, 5),
        Self::ONE_OF_THREE_SLOW,
        Self { honest_delay: Some(SLOW), ..mix("2 of 5, slow", 2, 5) },
    ];

    /// Nodes without a liar among them.
    pub const HONEST: [Self; 3] = [mix("0 of 1", 0, 1), mix("0 of 3", 0, 3), mix("0 of 5", 0, 5)];

    /// Whether the liars are a majority of the nodes.
    pub fn liars_decide(&self) -> bool {
        self.liars * 2 > self.nodes
    }

    /// Whether the honest nodes are a majority of the nodes.
    pub fn honest_decide(&self) -> bool {
        (self.nodes - self.liars) * 2 > self.nodes
    }
}
