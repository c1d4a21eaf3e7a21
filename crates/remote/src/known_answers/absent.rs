//! Receipts that are not there at one head.
//!
//! Clients that wait for a transaction ask for its receipt again and again, and each null makes the gateway ask every node.
//! When none of them has it, there is none until the next head, because a receipt comes with a block. With the next head
//! everything is forgotten.

use std::collections::HashMap;

use alloy_primitives::B256;
use methods::BlockRef;
use nodes::TrustMark;
use parking_lot::Mutex;
use sources::Verification;

/// Transactions that are remembered: more than are waited for between two blocks. Some 8 MB when full.
const ABSENT_MAX: usize = 65_536;

/// A receipt that is not there.
#[derive(Clone, Copy, Debug)]
pub(super) struct AbsentReceipt {
    pub(super) verified: Verification,
    pub(super) trust: TrustMark,
}

/// Transactions without a receipt at a head.
#[derive(Debug, Default)]
pub(super) struct AbsentReceipts(Mutex<AtHead>);

#[derive(Debug, Default)]
struct AtHead {
    /// The epoch of the head, and the head.
    head: Option<(u64, BlockRef)>,
    transactions: HashMap<B256, AbsentReceipt>,
}

impl AbsentReceipts {
    /// The entry for a receipt that is not there at this head.
    pub(super) fn get(&self, head: BlockRef, transaction: &B256) -> Option<AbsentReceipt> {
        let known = self.0.lock();
        known.head.filter(|(_, known)| *known == head)?;
        known.transactions.get(transaction).copied()
    }

    /// Remembers a transaction as absent. A call that began at an older head says nothing about the present one. A chain that
    /// begins anew has lower numbers and another epoch.
    pub(super) fn add(&self, epoch: u64, head: BlockRef, transaction: B256, absent: AbsentReceipt) {
        let mut known = self.0.lock();
        let is_newer =
            |(known_epoch, known): (u64, BlockRef)| (known_epoch, known.number) > (epoch, head.number);
        if known.head.is_some_and(is_newer) {
            return;
        }
        if known.head != Some((epoch, head)) {
            known.head = Some((epoch, head));
            known.transactions.clear();
        }
        if known.transactions.len() < ABSENT_MAX || known.transactions.contains_key(&transaction) {
            known.transactions.insert(transaction, absent);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(number: u64) -> B256 {
        B256::left_padding_from(&number.to_be_bytes())
    }

    fn has(absent: &AbsentReceipts, head: BlockRef, transaction: &B256) -> bool {
        absent.get(head, transaction).is_some()
    }

    fn add(absent: &AbsentReceipts, epoch: u64, head: BlockRef, transaction: B256) {
        let receipt = AbsentReceipt { verified: Verification::None, trust: TrustMark::expired(0) };
        absent.add(epoch, head, transaction, receipt);
    }

    fn head(number: u64) -> BlockRef {
        BlockRef { number, hash: hash(number) }
    }

    #[test]
    fn all_is_forgotten_with_the_next_head() {
        let absent = AbsentReceipts::default();
        add(&absent, 0, head(1), hash(7));
        assert!(has(&absent, head(1), &hash(7)));
        assert!(!has(&absent, head(1), &hash(8)) && !has(&absent, head(2), &hash(7)));
        add(&absent, 0, head(2), hash(8));
        assert!(has(&absent, head(2), &hash(8)));
        assert!(!has(&absent, head(2), &hash(7)) && !has(&absent, head(1), &hash(7)));
    }

    /// A slow call that had begun at an older head cleared what was known at the newer one.
    #[test]
    fn what_was_found_at_an_older_head_changes_nothing() {
        let absent = AbsentReceipts::default();
        add(&absent, 0, head(2), hash(8));
        add(&absent, 0, head(1), hash(7));
        assert!(has(&absent, head(2), &hash(8)) && !has(&absent, head(1), &hash(7)));
    }

    /// After a chain had begun anew at a lower number, nothing was remembered until it was as long as the old one.
    #[test]
    fn a_chain_that_begins_anew_is_remembered() {
        let absent = AbsentReceipts::default();
        add(&absent, 0, head(1_000), hash(7));
        add(&absent, 1, head(3), hash(8));
        assert!(has(&absent, head(3), &hash(8)) && !has(&absent, head(1_000), &hash(7)));
        add(&absent, 0, head(1_001), hash(9));
        assert!(has(&absent, head(3), &hash(8)));
    }

    #[test]
    fn there_is_an_end_to_it() {
        let absent = AbsentReceipts::default();
        (0..=ABSENT_MAX as u64).for_each(|number| add(&absent, 0, head(1), hash(number)));
        assert!(has(&absent, head(1), &hash(0)) && !has(&absent, head(1), &hash(ABSENT_MAX as u64)));
    }
}
