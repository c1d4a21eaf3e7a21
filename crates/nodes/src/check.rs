//! Whether an answer can be true.
//!
//! A node's result is held against what was asked and against itself: hashes are computed again, roots are built
//! again, every log is held against the filter. Nothing is fetched and nothing is kept, so a wrong answer that fits
//! together in itself (another balance, a log left out) is not found here.

mod lie; // what can be wrong, by name
pub(crate) mod hex; // numbers and bytes as JSON writes them
mod plain; // answers that are one string
mod cursor; // forward over JSON, which is proven on the way
mod usual; // one log as common nodes write it
mod log; // one log
mod logs; // the answer of a log query
mod spans; // where each log of an answer lies
pub(crate) mod header; // a header and its hash
pub(crate) mod transaction; // a transaction, its hash and its sender
mod block; // a block and its roots
mod bloom; // the bloom of logs
pub(crate) mod receipt; // a receipt and its logs
pub(crate) mod receipts; // the receipts of a block
mod fees; // a history of fees

#[cfg(test)]
pub(crate) mod tests;

use std::sync::Arc;

use alloy_primitives::B256;

use crate::BlockId;

pub use fees::FeesAsked;
pub use lie::Lie;
pub use logs::LogQuery;
pub use spans::{LogSpan, LogSpans, log_blocks};

/// How a chain makes its hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    Ethereum,
    /// Hashes of blocks and transactions are not those of an encoding we know, senders may be contracts, blooms and
    /// running totals are left empty. Only ids, order and filters are judged.
    Zksync,
}

/// What the answer must fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expect {
    Anything,
    Quantity,
    Data,
    /// 32 bytes.
    Word,
    /// A quantity, or null where there is no such block.
    Count,
    Block {
        hash: Option<B256>,
        number: Option<u64>,
        /// With whole transactions rather than their hashes.
        full: bool,
    },
    Transaction {
        hash: Option<B256>,
        block: Option<BlockId>,
        index: Option<u64>,
    },
    Receipt {
        transaction: B256,
    },
    Receipts {
        block: BlockId,
        /// What the block's header says of them, if it is known.
        header: Option<Arc<BlockFacts>>,
    },
    Uncle {
        block: BlockId,
        /// The uncle's own hash, as most nodes report it.
        hash: Option<B256>,
    },
    Logs(Arc<LogQuery>),
    FeeHistory(FeesAsked),
    /// Transactions as a layer 2 keeps them: a list of objects of which we know nothing.
    RawRecords,
}

/// What the check of an answer comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Sound(Facts),
    /// `null`. Another node may have it.
    Null,
    /// `[]`, and nothing says that there should be more.
    Empty,
    /// More logs than allowed. From the start of the range up to this block they would fit.
    TooMany {
        to: Option<u64>,
        /// The blocks of the logs up to there, and the one that is too many.
        blocks: Vec<BlockId>,
    },
    Wrong(Lie),
    /// It contradicts something that most nodes say and no hash proves. Another node is asked, and nobody is blamed.
    Contradicted,
}

/// What was learned from an answer on the way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The block that the answer is about, or that the transaction or receipt is in. None for a pending one.
    pub block: Option<BlockId>,
    /// The blocks that the logs are in, each once, in their order.
    pub blocks: Vec<BlockId>,
    /// How many logs, receipts or transactions there are.
    pub count: usize,
    /// Whether hashes or roots tie the content to its id. If not, only the ids were judged.
    pub proven: bool,
    /// What a block says of its content.
    pub header: Option<Arc<BlockFacts>>,
}

/// What a block says of its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockFacts {
    pub id: BlockId,
    pub parent: B256,
    pub timestamp: u64,
    pub receipts_root: B256,
    /// The hashes of its transactions, in their order, where they are known. Only a block with whole transactions proves
    /// them.
    pub transactions: Option<Vec<B256>>,
    /// The hashes of its uncles, in their order.
    pub uncles: Vec<B256>,
}

/// Holds a node's result against what was asked. Whatever is not wrong is proven to be one JSON value on the way.
pub fn check(expect: &Expect, result: &[u8], family: Family) -> Verdict {
    let result = trimmed(result);
    if result == b"null" {
        return Verdict::Null;
    }
    let judged = match expect {
        Expect::Logs(query) => return logs::check(query, result),
        Expect::Quantity | Expect::Count => plain::quantity(result),
        Expect::Data => plain::data(result),
        Expect::Word => plain::word(result),
        Expect::Receipt { transaction } => receipt::check(result, *transaction, family),
        Expect::Receipts { block, header } => {
            return receipts::check(result, *block, header.as_deref(), family);
        }
        Expect::Uncle { block, hash } => return header::check_uncle(result, *block, *hash, family),
        Expect::Anything | Expect::RawRecords if !is_json(result) => Err(Lie::Shape),
        Expect::Anything => Ok(Facts::default()),
        Expect::RawRecords => return plain::records(result),
        // Parsers do not look into strings that nobody asks them for.
        _ if std::str::from_utf8(result).is_err() => Err(Lie::Shape),
        Expect::Block { hash, number, full } => block::check(result, *hash, *number, *full, family),
        Expect::Transaction { hash, block, index } => {
            transaction::check(result, *hash, *block, *index, family)
        }
        Expect::FeeHistory(asked) => fees::check(result, asked),
    };
    judged.map_or_else(Verdict::Wrong, Verdict::Sound)
}

/// Whether this is one JSON value, for those who deliver what they did not check.
pub fn is_json(result: &[u8]) -> bool {
    std::str::from_utf8(result).is_ok_and(|text| jsonrpc::Value::read(text).is_some())
}

/// Without the white space around it, of which JSON knows less than ASCII.
fn trimmed(result: &[u8]) -> &[u8] {
    let is_text = |byte: &u8| !matches!(byte, b' ' | b'\n' | b'\t' | b'\r');
    let start = result.iter().position(is_text).unwrap_or(result.len());
    let end = result.iter().rposition(is_text).map_or(start, |last| last + 1);
    &result[start..end]
}
