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
    /// The name under which documents list it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::Position => "position",
            Self::StateBlock | Self::BlockNumber | Self::AnyBlock | Self::BlockInteger => "block",
            Self::BlockHash => "blockHash",
            Self::NewestBlock => "newestBlock",
            Self::BlockCount => "blockCount",
            Self::RewardPercentiles => "rewardPercentiles",
            Self::Index => "index",
            Self::TransactionHash => "transactionHash",
            Self::Filter => "filter",
            Self::Call => "call",
            Self::StateOverrides => "stateOverrides",
            Self::BlockOverrides => "blockOverrides",
            Self::FullTransactions => "fullTransactions",
        }
    }
}
