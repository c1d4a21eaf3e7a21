//! The identity of a node.

/// The identity of a node of a pool. It is never given to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(u32);

impl NodeId {
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    #[cfg(test)]
    pub(crate) fn first(count: usize) -> Vec<Self> {
        (0..).take(count).map(Self).collect()
    }
}
