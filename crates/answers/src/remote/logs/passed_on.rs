//! Logs of one node, or of a partner, that are passed on: nothing proves them, and nobody confirms them. They must be a list of
//! logs in blocks of the range, in their order. Logs of another fork are never delivered.

use bytes::Bytes;
use methods::{BlockRef, LogBlocks};
use nodes::proven::ProofFailure;
use nodes::raw::{LogSpan, read_logs};
use nodes::{AbsenceReplies, BlockId, HistoryKind, HistoryReach, Judgement, Judging, NodeReply};

use super::{LogSearch, ends};
use crate::failure::Failure;
use crate::remote::sized_work::{PARSED_AT_ONCE_BYTES_MAX, unless_refused};
use crate::remote::{encode, node_failures};

/// The outcome of a log query to one node.
pub(super) enum PassedLogs {
    Logs {
        result: Bytes,
        count: u64,
        /// Whether no other node might have known better.
        is_confirmed: bool,
    },
    /// Up to `to` they would fit.
    TooMany { to: Option<u64> },
    /// The node searches no more than `most` blocks at once.
    TooWide { most: Option<u64> },
}

impl LogSearch<'_> {
    /// Asks for logs in one piece.
    pub(super) async fn pass_on(
        &self,
        blocks: LogBlocks<BlockRef>,
        results_left: u64,
    ) -> Result<PassedLogs, Failure> {
        let call = encode::logs(self.filter, blocks).for_account(self.account);
        let judge = |node: usize, result: &Bytes| self.judge(node, blocks, result);
        let asked = self.remote.pool.ask_of(self.supplier, &call, &judge, self.deadline).await;
        let answered = asked.answer.map_err(node_failures::of_log_query)?;
        if !answered.is_confirmed && self.may_be_known_elsewhere(blocks, &asked.findings) {
            return Err(Failure::AbsenceUnknown);
        }
        match answered.reply {
            NodeReply::Result(result) => self.counted(result, answered.is_confirmed, results_left).await,
            NodeReply::Limit(limit) => Ok(PassedLogs::TooWide { most: limit.blocks }),
            NodeReply::Error(error) => Err(node_failures::of_caller_error(&error, &self.remote.limits)),
        }
    }

    /// Whether all nodes that have answered may lack the logs of old blocks, and another one has not answered.
    fn may_be_known_elsewhere(
        &self,
        blocks: LogBlocks<BlockRef>,
        findings: &[(usize, Option<Judgement>)],
    ) -> bool {
        let mut replies = AbsenceReplies::default();
        replies.without.extend(findings.iter().map(|(node, _)| *node));
        self.supplier.is_of_pool()
            && self.is_deep(blocks)
            && !replies.without.iter().any(|node| self.has_logs(*node, blocks))
            && self.remote.pool.is_some_awaited(HistoryKind::Logs, "eth_getLogs", &replies)
    }

    /// Whether nothing is known here of the lowest block, and nodes may have dropped it.
    fn is_deep(&self, blocks: LogBlocks<BlockRef>) -> bool {
        ends(blocks).0.number < self.chain.lowest()
    }

    /// Whether a node was shown to have the logs of these blocks.
    fn has_logs(&self, node: usize, blocks: LogBlocks<BlockRef>) -> bool {
        match self.remote.pool.history(node, HistoryKind::Logs) {
            HistoryReach::Whole => true,
            HistoryReach::From(lowest) => lowest <= ends(blocks).0.number,
            HistoryReach::Unknown => false,
        }
    }

    fn judge(&self, node: usize, blocks: LogBlocks<BlockRef>, result: &Bytes) -> Judging<'_, Judgement> {
        let (bytes, result) = (result.len(), result.clone());
        let read = move || read_logs(&result).filter(|logs| are_of_range(blocks, logs));
        if bytes <= PARSED_AT_ONCE_BYTES_MAX {
            return Judging::Done(self.conclude(node, blocks, read()));
        }
        Judging::Elsewhere(Box::pin(async move {
            let read = self.remote.run_sized(self.account, bytes, PARSED_AT_ONCE_BYTES_MAX, read).await;
            Some(self.conclude(node, blocks, unless_refused(read)?))
        }))
    }

    fn conclude(&self, node: usize, blocks: LogBlocks<BlockRef>, read: Option<Vec<LogSpan>>) -> Judgement {
        let Some(logs) = read else {
            self.remote.integrity.count(ProofFailure::Malformed);
            return Judgement::Wrong(ProofFailure::Malformed);
        };
        let mut found: Vec<BlockId> = logs.iter().map(|log| log.block).collect();
        found.dedup();
        // A block that was named by its hash need not be canonical.
        if !matches!(blocks, LogBlocks::One(_)) && self.chain.contradicts(&found) {
            return Judgement::Late;
        }
        let may_lack_some =
            self.supplier.is_of_pool() && self.is_deep(blocks) && !self.has_logs(node, blocks);
        let is_empty_deep = self.is_deep(blocks) && found.is_empty();
        if may_lack_some || is_empty_deep { Judgement::Doubtful } else { Judgement::Believed }
    }

    async fn counted(
        &self,
        result: Bytes,
        is_confirmed: bool,
        results_left: u64,
    ) -> Result<PassedLogs, Failure> {
        let bytes = result.len();
        let count = move || {
            let logs = read_logs(&result).unwrap_or_default();
            match usize::try_from(results_left).ok().and_then(|results_left| logs.get(results_left)) {
                Some(first) => PassedLogs::TooMany { to: first.block.number.checked_sub(1) },
                None => PassedLogs::Logs { count: logs.len() as u64, result, is_confirmed },
            }
        };
        self.remote.run_sized(self.account, bytes, PARSED_AT_ONCE_BYTES_MAX, count).await
    }
}

/// Whether logs are in blocks of a range, upwards.
fn are_of_range(blocks: LogBlocks<BlockRef>, logs: &[LogSpan]) -> bool {
    let (from, to) = ends(blocks);
    let is_in_range = |log: &LogSpan| (from.number..=to.number).contains(&log.block.number);
    let is_of_hash = |log: &LogSpan| !matches!(blocks, LogBlocks::One(block) if block.hash != log.block.hash);
    logs.iter().all(|log| is_in_range(log) && is_of_hash(log))
        && logs.is_sorted_by_key(|log| (log.block.number, log.index))
}

#[cfg(test)]
mod tests {
    use alloy_primitives::B256;

    use super::*;

    fn logs(places: &[(u64, u64)]) -> Vec<LogSpan> {
        let log = |&(number, index)| LogSpan {
            block: BlockId { number, hash: B256::repeat_byte(number as u8) },
            index,
            bytes: 0..0,
        };
        places.iter().map(log).collect()
    }

    #[test]
    fn logs_are_in_their_range_and_in_order() {
        let block = |number: u64| BlockRef { number, hash: B256::repeat_byte(number as u8) };
        let range = LogBlocks::Range { from: block(4), to: block(6) };
        for (places, expected) in [
            (&[][..], true),
            (&[(4, 0), (4, 1), (6, 0)], true),
            (&[(3, 0)], false),
            (&[(7, 0)], false),
            (&[(5, 0), (4, 0)], false),
            (&[(5, 1), (5, 0)], false),
        ] {
            assert_eq!(are_of_range(range, &logs(places)), expected, "{places:?}");
        }
        assert!(are_of_range(LogBlocks::One(block(5)), &logs(&[(5, 0)])));
        assert!(!are_of_range(LogBlocks::One(BlockRef { hash: B256::ZERO, ..block(5) }), &logs(&[(5, 0)])));
    }
}
