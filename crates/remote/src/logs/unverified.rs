//! Logs of one node that are passed on: nothing proves them, and nobody confirms them. They must be a list of
//! logs in blocks of the range, in their order. Logs of another fork are never delivered.

use bytes::Bytes;
use methods::{BlockRef, LogBlocks};
use nodes::proven::ProofFailure;
use nodes::raw::{LogSpan, read_logs};
use nodes::{
    AbsenceReplies, AnswersEvent, BlockId, HistoryKind, HistoryReach, Judgement, Judging, Needs, NodeAnswer,
    NodeId, NodeReply, RpcCall,
};
use sources::Failure;

use super::text::LogsList;
use super::{LogSearch, ends};
use crate::workers::{PARSED_AT_ONCE_BYTES_MAX, unless_refused};
use crate::{encode, node_failures};

/// The outcome of a log query to one node.
pub(super) enum UnverifiedLogs {
    Logs {
        list: LogsList,
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
    pub(super) async fn forward_unverified(
        &self,
        blocks: LogBlocks<BlockRef>,
        results_left: u64,
    ) -> Result<UnverifiedLogs, Failure> {
        let call = encode::logs(self.filter, blocks).for_account(self.context.account);
        let judge = |node: NodeId, result: &Bytes| self.judge(node, blocks, result);
        let asked = self.logs.pool.ask(self.context.only, &call, &judge, self.context.deadline).await;
        let answered = asked.answer.map_err(node_failures::of_log_query)?;
        match answered.reply {
            NodeReply::Result(result) if answered.is_confirmed => {
                self.counted(result, true, results_left).await
            }
            NodeReply::Result(result) => {
                let result = self.ask_the_others(blocks, &call, &asked.findings, result).await?;
                self.counted(result, false, results_left).await
            }
            NodeReply::Limit(limit) => Ok(UnverifiedLogs::TooWide { most: limit.blocks }),
            NodeReply::Error(error) => Err(node_failures::of_caller_error(&error, &self.logs.limits.now())),
        }
    }

    /// Where all nodes that have answered may lack the logs of old blocks: those that have not answered are waited for. What they
    /// have counts, and it fails if one of them does not answer in time.
    async fn ask_the_others(
        &self,
        blocks: LogBlocks<BlockRef>,
        call: &RpcCall,
        findings: &[(NodeId, Option<Judgement>)],
        told: Bytes,
    ) -> Result<Bytes, Failure> {
        let (pool, mut replies, mut most) = (&self.logs.pool, AbsenceReplies::default(), told);
        replies.without.extend(findings.iter().map(|(node, _)| *node));
        if self.context.only.is_some()
            || !self.is_deep(blocks)
            || replies.without.iter().any(|node| self.has_logs(*node, blocks))
        {
            return Ok(most);
        }
        let (lowest, newest) = (ends(blocks).0.number, ends(blocks).1.number);
        let ids = pool.nodes().iter().map(|node| node.id()).collect::<Vec<_>>();
        let lacks = |node: &NodeId| pool.can_know(*node, HistoryKind::Logs, lowest) == Some(false);
        replies.without.extend(ids.into_iter().filter(lacks));
        // Whether a slow node has the newest block may not be known.
        let call = &RpcCall { needs: Needs::default(), ..call.clone() };
        let mut coming = pool.ask_everyone(call, &replies.without, self.context.deadline);
        while pool.is_some_awaited(call.method, &replies) {
            match coming.next(1).await {
                AnswersEvent::Answer(NodeAnswer { node, reply: NodeReply::Result(result) }) => {
                    match self.judge(node, blocks, &result).finish_before(self.context.deadline).await {
                        Some(Judgement::Believed) if pool.has_reached(node, newest) => return Ok(result),
                        // Nodes lack logs, and none invents any.
                        Some(Judgement::Believed | Judgement::Doubtful) if result.len() > most.len() => {
                            most = result;
                        }
                        Some(_) => {}
                        None => continue,
                    }
                    replies.without.insert(node);
                }
                AnswersEvent::Answer(_) | AnswersEvent::Stalled => {}
                AnswersEvent::Failed { node, fault } => {
                    pool.record_unreachable(HistoryKind::Logs, node, fault, &mut replies);
                }
                AnswersEvent::Over => break,
            }
        }
        match pool.is_some_awaited(call.method, &replies) {
            true => Err(Failure::AbsenceUnknown),
            false => Ok(most),
        }
    }

    /// Whether nothing is known here of the lowest block, and nodes may have dropped it.
    fn is_deep(&self, blocks: LogBlocks<BlockRef>) -> bool {
        ends(blocks).0.number < self.context.chain.lowest()
    }

    /// Whether a node was shown to have the logs of these blocks.
    fn has_logs(&self, node: NodeId, blocks: LogBlocks<BlockRef>) -> bool {
        match self.logs.pool.history(node, HistoryKind::Logs) {
            HistoryReach::Whole => true,
            HistoryReach::From(lowest) => lowest <= ends(blocks).0.number,
            HistoryReach::Unknown => false,
        }
    }

    fn judge(&self, node: NodeId, blocks: LogBlocks<BlockRef>, result: &Bytes) -> Judging<'_, Judgement> {
        let (bytes, result) = (result.len(), result.clone());
        let read = move || read_logs(&result).filter(|logs| are_of_range(blocks, logs));
        if bytes <= PARSED_AT_ONCE_BYTES_MAX {
            return Judging::Done(self.conclude(node, blocks, read()));
        }
        Judging::Elsewhere(Box::pin(async move {
            let read = self
                .logs
                .workers
                .run_sized(self.context.account, bytes, PARSED_AT_ONCE_BYTES_MAX, read)
                .await;
            Some(self.conclude(node, blocks, unless_refused(read)?))
        }))
    }

    fn conclude(&self, node: NodeId, blocks: LogBlocks<BlockRef>, read: Option<Vec<LogSpan>>) -> Judgement {
        let Some(logs) = read else {
            self.logs.workers.integrity.count(ProofFailure::Malformed);
            return Judgement::Wrong(ProofFailure::Malformed);
        };
        let mut found: Vec<BlockId> = logs.iter().map(|log| log.block).collect();
        found.dedup();
        // A block that was named by its hash need not be canonical.
        if !matches!(blocks, LogBlocks::One(_)) && self.context.chain.contradicts(&found) {
            return Judgement::Late;
        }
        let may_lack_some =
            self.context.only.is_none() && self.is_deep(blocks) && !self.has_logs(node, blocks);
        let is_empty_deep = self.is_deep(blocks) && found.is_empty();
        if may_lack_some || is_empty_deep { Judgement::Doubtful } else { Judgement::Believed }
    }

    async fn counted(
        &self,
        result: Bytes,
        is_confirmed: bool,
        results_left: u64,
    ) -> Result<UnverifiedLogs, Failure> {
        let bytes = result.len();
        let count = move || {
            let logs = read_logs(&result).unwrap_or_default();
            match usize::try_from(results_left).ok().and_then(|results_left| logs.get(results_left)) {
                Some(first) => UnverifiedLogs::TooMany { to: first.block.number.checked_sub(1) },
                None => {
                    let count = logs.len() as u64;
                    UnverifiedLogs::Logs { list: LogsList { result, count }, is_confirmed }
                }
            }
        };
        self.logs.workers.run_sized(self.context.account, bytes, PARSED_AT_ONCE_BYTES_MAX, count).await
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
