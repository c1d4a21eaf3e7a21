//! Step 5: the blocks that a call names → blocks of the view.
//!
//! All blocks come from the view that the request took at its start, so everything in one request belongs to one moment of the chain. A block that does
//! not exist ends the call here: sources are asked only about blocks that are there.

use std::collections::HashMap;

use methods::{BlockParam, BlockRef, FeeQuery, LogBlocks, LogsQuery, Method, MissingBlock, Query, Tag};
use sources::{ChainView, Failure};

/// A call whose blocks are settled.
#[derive(Debug)]
pub enum Resolved {
    Pinned(Query<BlockRef>),
    /// The block is not there, and for this method that is an answer.
    Nothing(MissingBlock),
}

/// Why the blocks of a call cannot be settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unresolved {
    TagNotSupported {
        tag: Tag,
        method: &'static str,
    },
    PendingLogs,
    NoHeader,
    NoHeaderForHash,
    /// The block was reorganised away, and the caller wants canonical ones only.
    NotCanonical,
    NoBlockForTag(Tag),
    UnknownLogsBlock,
    BadRange,
    BeyondHead,
    /// A fee history ends above the head.
    FeesBeyondHead {
        requested: u64,
        head: u64,
    },
    RangeTooLong {
        blocks: u64,
        most: u64,
    },
    /// The source cannot say whether there is such a block.
    Failed(Failure),
}

impl From<Failure> for Unresolved {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Settings of a network about blocks.
#[derive(Clone, Debug, Default)]
pub struct ResolveRules {
    /// Tags that some methods do not take here.
    pub unsupported_tags: HashMap<Tag, Vec<&'static str>>,
    /// Blocks that one `eth_getLogs` may span.
    pub log_blocks_max: Option<u64>,
}

/// Settles every block that a call names.
pub fn resolve(
    view: &dyn ChainView,
    rules: &ResolveRules,
    method: &'static Method,
    query: Query<BlockParam>,
) -> Result<Resolved, Unresolved> {
    let resolver = BlockResolver { view, rules, method, head: view.head() };
    let pinned = match query {
        Query::Logs(LogsQuery { filter, blocks }) => {
            let blocks = resolver.log_blocks(blocks)?;
            return Ok(Resolved::Pinned(Query::Logs(LogsQuery { filter, blocks })));
        }
        Query::Fees(FeeQuery::History { newest: BlockParam::Number(requested), .. })
            if requested > resolver.head.number =>
        {
            return Err(Unresolved::FeesBeyondHead { requested, head: resolver.head.number });
        }
        query @ (Query::Gateway(_)
        | Query::Fees(_)
        | Query::State(_)
        | Query::Simulation(_)
        | Query::Block(_)
        | Query::Transaction(_)
        | Query::RawTransactions(_)) => query.try_map(|block| resolver.pin(block)),
    };
    match pinned {
        Ok(query) => Ok(Resolved::Pinned(query)),
        Err(Unresolved::NoHeader | Unresolved::NoHeaderForHash | Unresolved::NotCanonical)
            if method.rules.missing != MissingBlock::Error =>
        {
            Ok(Resolved::Nothing(method.rules.missing))
        }
        Err(error) => Err(error),
    }
}

struct BlockResolver<'a> {
    view: &'a dyn ChainView,
    rules: &'a ResolveRules,
    method: &'static Method,
    head: BlockRef,
}

impl BlockResolver<'_> {
    fn pin(&self, block: BlockParam) -> Result<BlockRef, Unresolved> {
        match block {
            BlockParam::Number(number) if number == self.head.number => Ok(self.head),
            BlockParam::Number(number) if number > self.head.number => Err(Unresolved::NoHeader),
            BlockParam::Number(number) => self.view.block_by_number(number)?.ok_or(Unresolved::NoHeader),
            BlockParam::Hash { hash, must_be_canonical } => match self.view.block_by_hash(hash)? {
                Some(block) => Ok(block),
                None => match self.view.side_block(hash) {
                    Some(_) if must_be_canonical => Err(Unresolved::NotCanonical),
                    side_block => side_block.ok_or(Unresolved::NoHeaderForHash),
                },
            },
            BlockParam::Tag(tag) => self.tagged(tag),
        }
    }

    fn tagged(&self, tag: Tag) -> Result<BlockRef, Unresolved> {
        let method = self.method.name;
        if self.rules.unsupported_tags.get(&tag).is_some_and(|methods| methods.contains(&method)) {
            return Err(Unresolved::TagNotSupported { tag, method });
        }
        let block = match tag {
            // There is no pending block here, so `pending` means the newest one.
            Tag::Latest | Tag::Pending => Some(self.head),
            Tag::Earliest => self.view.block_by_number(0)?,
            Tag::Finalized => self.view.finalized(),
            Tag::Safe => self.view.safe(),
        };
        block.ok_or(Unresolved::NoBlockForTag(tag))
    }

    fn log_blocks(&self, blocks: LogBlocks<BlockParam>) -> Result<LogBlocks<BlockRef>, Unresolved> {
        let (from, to) = match blocks {
            LogBlocks::One(block) => {
                let block = self.pin(block).map_err(|error| match error {
                    Unresolved::Failed(_) => error,
                    _ => Unresolved::UnknownLogsBlock,
                });
                return block.map(LogBlocks::One);
            }
            LogBlocks::Range { from, to } => (self.log_number(from)?, self.log_number(to)?),
        };
        if from > to {
            return Err(Unresolved::BadRange);
        }
        if to > self.head.number {
            return Err(Unresolved::BeyondHead);
        }
        let blocks = to - from + 1;
        if let Some(most) = self.rules.log_blocks_max.filter(|&most| blocks > most) {
            return Err(Unresolved::RangeTooLong { blocks, most });
        }
        let pin = |number| self.pin(BlockParam::Number(number));
        Ok(LogBlocks::Range { from: pin(from)?, to: pin(to)? })
    }

    /// The number of one end of a range, which need not exist yet.
    fn log_number(&self, block: BlockParam) -> Result<u64, Unresolved> {
        match block {
            BlockParam::Number(number) => Ok(number),
            BlockParam::Tag(Tag::Pending) => Err(Unresolved::PendingLogs),
            other => Ok(self.pin(other)?.number),
        }
    }
}
