//! The data of old blocks that a node was shown to have.
//!
//! Nodes drop what is old, or never had it: geth indexes the transactions of the newest 2,350,000 blocks by default. Such a node
//! returns `null` or `[]` for what exists. So what it does not find may exist, unless the node was shown to have everything.

use std::time::Duration;

use tokio::time::Instant;

/// How long a node counts as having what it was shown to have. Its prober looks again long before.
const SHOWN_FOR: Duration = Duration::from_secs(1_800);

/// Kinds of data about old blocks that nodes may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryKind {
    /// Blocks by their hashes.
    Blocks,
    /// Transactions by their hashes.
    Transactions,
    /// Receipts by the hashes of their transactions.
    Receipts,
    Logs,
}

impl HistoryKind {
    pub const ALL: [Self; 4] = [Self::Blocks, Self::Transactions, Self::Receipts, Self::Logs];

    /// Its name in `/status`, and in the answer to `eth_capabilities`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Blocks => "blocks",
            Self::Transactions => "tx",
            Self::Receipts => "receipts",
            Self::Logs => "logs",
        }
    }
}

/// Down to which block a node has one kind of data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HistoryReach {
    /// Nothing was shown.
    #[default]
    Unknown,
    /// It has all that there is.
    Whole,
    /// It has what is in this block and above, and lacks something below.
    From(u64),
}

/// The reach of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HistoryReaches([HistoryReach; HistoryKind::ALL.len()]);

impl HistoryReaches {
    pub(crate) fn of(&self, kind: HistoryKind) -> HistoryReach {
        self.0[kind as usize]
    }

    pub(crate) fn set(&mut self, kind: HistoryKind, reach: HistoryReach) {
        self.0[kind as usize] = reach;
    }
}

/// The reaches that were shown at one time.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShownHistory {
    reaches: HistoryReaches,
    /// The head at that time.
    head: u64,
    at: Instant,
}

impl ShownHistory {
    pub(super) fn new(reaches: HistoryReaches, head: u64, now: Instant) -> Self {
        Self { reaches, head, at: now }
    }

    /// The reach of a kind. What a node lacks is taken for a window that moves with the head.
    pub(super) fn reach(&self, kind: HistoryKind, head: u64, now: Instant) -> HistoryReach {
        match self.reaches.of(kind) {
            _ if now.saturating_duration_since(self.at) > SHOWN_FOR => HistoryReach::Unknown,
            HistoryReach::From(block) => {
                HistoryReach::From(block.saturating_add(head.saturating_sub(self.head)))
            }
            reach @ (HistoryReach::Unknown | HistoryReach::Whole) => reach,
        }
    }

    /// Records that the node did not find what is in a block.
    pub(super) fn record_lacking(&mut self, kind: HistoryKind, block: u64) {
        let above = block.saturating_add(1);
        let lowest = match self.reaches.of(kind) {
            HistoryReach::From(lowest) => lowest.max(above),
            HistoryReach::Unknown | HistoryReach::Whole => above,
        };
        self.reaches.set(kind, HistoryReach::From(lowest));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(kind: HistoryKind, reach: HistoryReach, now: Instant) -> ShownHistory {
        let mut reaches = HistoryReaches::default();
        reaches.set(kind, reach);
        ShownHistory::new(reaches, 1_000, now)
    }

    #[test]
    fn a_window_moves_with_the_head_and_everything_expires() {
        let (kind, now) = (HistoryKind::Logs, Instant::now());
        let window = shown(kind, HistoryReach::From(600), now);
        assert_eq!(window.reach(kind, 1_000, now), HistoryReach::From(600));
        assert_eq!(window.reach(kind, 1_050, now), HistoryReach::From(650));
        assert_eq!(window.reach(kind, 10, now), HistoryReach::From(600), "a chain that was reorganised");
        assert_eq!(window.reach(HistoryKind::Blocks, 1_000, now), HistoryReach::Unknown);
        let whole = shown(kind, HistoryReach::Whole, now);
        assert_eq!(whole.reach(kind, 9_000, now + SHOWN_FOR), HistoryReach::Whole);
        let late = now + SHOWN_FOR + Duration::from_millis(1);
        assert_eq!(whole.reach(kind, 9_000, late), HistoryReach::Unknown);
    }

    #[test]
    fn what_a_node_does_not_find_it_does_not_have() {
        let (kind, now) = (HistoryKind::Transactions, Instant::now());
        for (before, after) in [
            (HistoryReach::Unknown, 8),
            (HistoryReach::Whole, 8),
            (HistoryReach::From(3), 8),
            (HistoryReach::From(20), 20),
        ] {
            let mut history = shown(kind, before, now);
            history.record_lacking(kind, 7);
            assert_eq!(history.reach(kind, 1_000, now), HistoryReach::From(after));
        }
    }
}
