//! Questions about blocks below the window.

use testkit::heavy::HeavyChain;

use super::questions::{Question, outcome};
use crate::demo::Demo;

/// Blocks that are asked about.
const NUMBERS: std::ops::Range<u64> = 2..6;

pub(super) fn about(blocks: &HeavyChain, node: &Demo) -> Vec<Question> {
    let mut asked = Vec::new();
    for number in NUMBERS {
        let block = &blocks.blocks[number as usize - 1].block;
        let (hash, transaction) = (block.header.hash_slow(), block.body.transactions[1].tx_hash());
        asked.push(("eth_getTransactionReceipt", format!(r#"["{transaction}"]"#)));
        asked.push(("eth_getTransactionByHash", format!(r#"["{transaction}"]"#)));
        asked.push(("eth_getBlockByNumber", format!(r#"["{number:#x}",true]"#)));
        asked.push(("eth_getBlockByHash", format!(r#"["{hash}",false]"#)));
        asked.push(("eth_getBlockReceipts", format!(r#"["{number:#x}"]"#)));
        asked.push(("eth_getTransactionByBlockNumberAndIndex", format!(r#"["{number:#x}","0x1"]"#)));
        asked.push(("eth_getBlockTransactionCountByHash", format!(r#"["{hash}"]"#)));
    }
    let logs = |from: u64, to: u64| format!(r#"[{{"fromBlock":"{from:#x}","toBlock":"{to:#x}"}}]"#);
    asked.push(("eth_getLogs", logs(NUMBERS.start, NUMBERS.end)));
    asked.push(("eth_getLogs", logs(NUMBERS.start, 60)));
    let question = |(method, params): (&'static str, String)| {
        let truth = outcome(&node.call(method, &params));
        Question { method, params, truth }
    };
    asked.into_iter().map(question).collect()
}
