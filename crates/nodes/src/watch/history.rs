//! The data of old blocks that a node has, shown by asking for something that its own blocks say exists.
//!
//! A node that has the lowest transaction that is looked at has all of them. Otherwise it has those above some block, which is
//! found by binary search. A node that knows `eth_capabilities` is believed.

use alloy_primitives::{B256, U64};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

use super::Watched;
use super::questions::{BlockSelector, Questions, read, watcher_call};
use crate::call::{Fault, RpcReply};
use crate::node::{HistoryKind, HistoryReach, HistoryReaches};
use crate::node_fault::NodeFault;
use crate::scheduler::{self, ErrorMeaning};
use crate::view::SeenBlock;

/// The lowest blocks are all looked at, because a short chain may have something in few of them.
const LOWEST_BLOCKS: u64 = 32;
/// Blocks above the middle that are looked at in each step of a search until one has something to ask for.
const NEAR_BLOCKS: u64 = 8;

/// Finds out what one node has of old blocks.
#[derive(Debug, Default)]
pub(super) struct HistoryProbe {
    /// The lowest block that has something to ask for, of each kind, as far as was looked.
    lowest: [Option<u64>; HistoryKind::ALL.len()],
}

/// Whether a node has what is in one of its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    Has,
    Lacks,
    /// There is nothing of this kind in the block.
    Nothing,
}

impl HistoryProbe {
    /// The reach of each kind, and whether all could be found out: a node may have trouble with one of them.
    pub(super) async fn run<W: Watched>(
        &mut self,
        questions: &Questions<'_, W>,
        head: u64,
    ) -> (HistoryReaches, bool) {
        let stated = questions.stated_history().await.unwrap_or_default();
        let (mut reaches, mut is_complete) = (HistoryReaches::default(), true);
        for kind in HistoryKind::ALL {
            let reach = match stated.reach(kind, head) {
                Some(stated) => Ok(stated),
                None => self.shown(questions, kind, head).await,
            };
            is_complete &= reach.is_ok();
            reaches.set(kind, reach.unwrap_or_default());
        }
        // Where no block with logs was found: logs are parts of receipts.
        if reaches.of(HistoryKind::Logs) == HistoryReach::Unknown {
            reaches.set(HistoryKind::Logs, reaches.of(HistoryKind::Receipts));
        }
        (reaches, is_complete)
    }

    async fn shown<W: Watched>(
        &mut self,
        questions: &Questions<'_, W>,
        kind: HistoryKind,
        head: u64,
    ) -> Result<HistoryReach, NodeFault> {
        let known = self.lowest[kind as usize].filter(|known| *known <= head);
        let heights = known.into_iter().chain(heights(head));
        for number in heights {
            let shown = questions.shows(kind, number).await?;
            if shown == Shown::Nothing {
                continue;
            }
            self.lowest[kind as usize] = Some(number);
            return match shown {
                Shown::Has => Ok(HistoryReach::Whole),
                _ => lowest_shown(questions, kind, number, head).await.map(HistoryReach::From),
            };
        }
        Ok(HistoryReach::Unknown)
    }
}

/// Blocks that are looked at until one has something to ask for, upwards.
pub(super) fn heights(head: u64) -> impl Iterator<Item = u64> {
    let doubled = std::iter::successors(Some(LOWEST_BLOCKS), |number| number.checked_mul(2)).skip(1);
    (1..=LOWEST_BLOCKS).chain(doubled).take_while(move |number| *number <= head)
}

/// The lowest block down to which a node shows what it has, if it lacks what is in block `lacking`.
async fn lowest_shown<W: Watched>(
    questions: &Questions<'_, W>,
    kind: HistoryKind,
    lacking: u64,
    head: u64,
) -> Result<u64, NodeFault> {
    let (mut without, mut with) = (lacking, head);
    while with - without > 1 {
        let middle = without + (with - without) / 2;
        let mut shown = Shown::Nothing;
        for number in (middle..with).take(NEAR_BLOCKS as usize) {
            shown = questions.shows(kind, number).await?;
            if shown != Shown::Nothing {
                break;
            }
        }
        // Where nothing can be asked for, nothing is shown.
        if shown == Shown::Has { with = middle } else { without = middle }
    }
    Ok(with)
}

impl<W: Watched> Questions<'_, W> {
    /// Whether the node has what is in one of its blocks. It lacks what is in blocks that it does not have.
    async fn shows(&self, kind: HistoryKind, number: u64) -> Result<Shown, NodeFault> {
        let Some(block) = self.block_if_known(BlockSelector::Number(number)).await? else {
            return Ok(Shown::Lacks);
        };
        let Some((method, params)) = question(kind, &block) else { return Ok(Shown::Nothing) };
        let call = watcher_call(method, params.to_string());
        let has = match self.reply(call.clone()).await? {
            RpcReply::Result(result) => match kind {
                HistoryKind::Logs => {
                    read::<Option<Vec<IgnoredAny>>>(&result)?.is_some_and(|logs| !logs.is_empty())
                }
                HistoryKind::Blocks | HistoryKind::Transactions | HistoryKind::Receipts => {
                    read::<Option<FoundInBlock>>(&result)?.is_some_and(|found| found.is_in(&block))
                }
            },
            RpcReply::Error(error) => match scheduler::read(&error, &call) {
                ErrorMeaning::NotHere(_) => false,
                ErrorMeaning::Node(fault) => return Err(fault.into()),
                ErrorMeaning::Caller(_) | ErrorMeaning::Limit(_) | ErrorMeaning::Unclear => {
                    return Err(Fault::Refused.into());
                }
            },
        };
        Ok(if has { Shown::Has } else { Shown::Lacks })
    }

    /// The statement of the node itself. Most nodes do not know the method.
    async fn stated_history(&self) -> Option<StatedHistory> {
        let call = watcher_call("eth_capabilities", "[]".to_owned());
        match self.reply(call).await {
            Ok(RpcReply::Result(result)) => read(&result).ok(),
            Ok(RpcReply::Error(_)) | Err(_) => None,
        }
    }
}

/// The call for something that is in a block. `None` if there is nothing of this kind in it.
fn question(kind: HistoryKind, block: &SeenBlock) -> Option<(&'static str, Value)> {
    let transaction = || block.reported.transactions().last();
    match kind {
        HistoryKind::Blocks => Some(("eth_getBlockByHash", json!([block.id.hash, false]))),
        HistoryKind::Transactions => Some(("eth_getTransactionByHash", json!([transaction()?]))),
        HistoryKind::Receipts => Some(("eth_getTransactionReceipt", json!([transaction()?]))),
        // Its bloom shows that it has logs.
        HistoryKind::Logs => {
            let number = format!("{:#x}", block.id.number);
            let filter = json!([{ "fromBlock": number, "toBlock": number }]);
            (!block.logs_bloom.is_zero()).then_some(("eth_getLogs", filter))
        }
    }
}

/// A block, a transaction or a receipt: the hash of its block.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct FoundInBlock {
    hash: Option<B256>,
    block_hash: Option<B256>,
}

impl FoundInBlock {
    fn is_in(&self, block: &SeenBlock) -> bool {
        self.block_hash.or(self.hash) == Some(block.id.hash)
    }
}

/// The statement of a node itself, by the names of the kinds. Other members are ignored.
#[derive(Debug, Default, Deserialize)]
struct StatedHistory(Map<String, Value>);

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StatedKind {
    #[serde(default)]
    disabled: bool,
    oldest_block: Option<U64>,
}

impl StatedHistory {
    /// The reach that the node states for a kind. `None` if it says nothing that can be read.
    fn reach(&self, kind: HistoryKind, head: u64) -> Option<HistoryReach> {
        let stated: StatedKind = serde_json::from_value(self.0.get(kind.name())?.clone()).ok()?;
        match (stated.disabled, stated.oldest_block) {
            (true, _) => Some(HistoryReach::From(head)),
            // There is nothing to ask for in block 0.
            (false, Some(oldest)) if oldest.to::<u64>() <= 1 => Some(HistoryReach::Whole),
            (false, Some(oldest)) => Some(HistoryReach::From(oldest.to())),
            (false, None) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_blocks_and_then_ever_fewer_are_looked_at() {
        assert_eq!(heights(0).count(), 0);
        assert_eq!(heights(3).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(heights(200).skip(30).collect::<Vec<_>>(), [31, 32, 64, 128]);
        assert_eq!(heights(u64::MAX).last(), Some(1 << 63));
    }

    #[test]
    fn what_a_node_says_of_itself_is_read() {
        let text = r#"{
            "head": {"number": "0x64", "hash": "0x00"},
            "blocks": {"disabled": false, "oldestBlock": "0x0"},
            "tx": {"disabled": false, "oldestBlock": "0x14",
                   "deleteStrategy": {"type": "window", "retentionBlocks": "0x50"}},
            "receipts": {"disabled": true},
            "logs": {"disabled": false}
        }"#;
        let stated: StatedHistory = read(text.as_bytes()).unwrap();
        for (kind, reach) in [
            (HistoryKind::Blocks, Some(HistoryReach::Whole)),
            (HistoryKind::Transactions, Some(HistoryReach::From(20))),
            (HistoryKind::Receipts, Some(HistoryReach::From(100))),
            (HistoryKind::Logs, None),
        ] {
            assert_eq!(stated.reach(kind, 100), reach, "{kind:?}");
        }
        assert!(read::<StatedHistory>(b"[]").is_err());
    }
}
