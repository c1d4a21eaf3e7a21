//! The parameters that methods have.

/// A positional parameter. Its name means the same for all methods; how a block may be written differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Param {
    Address,
    Position,
    /// A block whose state is read: any spelling of a number, tag, hash or object. Left out, it is the newest.
    StateBlock,
    /// A block by number or tag.
    BlockNumber,
    /// A block in any spelling, also a decimal number.
    AnyBlock,
    /// A block by number, as a JSON integer.
    BlockInteger,
    BlockHash,
    NewestBlock,
    BlockCount,
    RewardPercentiles,
    Index,
    TransactionHash,
    Filter,
    Call,
    StateOverrides,
    BlockOverrides,
    FullTransactions,
}

impl Param {
    /// The name under which documents list it, the type of its values, and what it means, in Markdown.
    #[rustfmt::skip]
    fn row(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Address           => ("address", "Address", "the account or contract"),
            Self::Position          => ("position", "Position", "the storage slot"),
            Self::StateBlock        => ("block", "BlockId", "the block"),
            Self::BlockNumber       => ("block", "BlockNumber", "the block"),
            Self::AnyBlock          => ("block", "BlockIdOrDecimal", "the block"),
            Self::BlockInteger      => ("block", "Integer", "the block"),
            Self::BlockHash         => ("blockHash", "Hash", "the block"),
            Self::NewestBlock       => ("newestBlock", "BlockNumber", "the last block of the range"),
            Self::BlockCount        => ("blockCount", "Count", "the number of blocks, at most 1,024"),
            Self::RewardPercentiles => ("rewardPercentiles", "[Number]", "up to 100 numbers from 0 to 100, sorted"),
            Self::Index             => ("index", "Quantity", "the index in the block, counted from 0"),
            Self::TransactionHash   => ("transactionHash", "Hash", "the transaction"),
            Self::Filter            => ("filter", "Filter", "the blocks, addresses and topics"),
            Self::Call              => ("call", "Call", "the message to execute"),
            Self::StateOverrides    => ("stateOverrides", "StateOverrides", "accounts to change for this call"),
            Self::BlockOverrides    => ("blockOverrides", "BlockOverrides", "fields of the block to change for this call"),
            Self::FullTransactions  => ("fullTransactions", "Boolean", "whether `transactions` has whole transactions instead of hashes"),
        }
    }

    /// The name under which documents list it.
    pub fn name(self) -> &'static str {
        self.row().0
    }

    /// The type of its values, which `docs/methods.md` and `docs/openrpc.json` describe.
    pub fn type_name(self) -> &'static str {
        self.row().1
    }

    /// Its meaning, in Markdown.
    pub fn about(self) -> &'static str {
        self.row().2
    }
}
