//! What can be wrong with an answer.

/// Why an answer cannot be true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Lie {
    #[error("a member is missing, twice there, or no such value")]
    Shape,
    #[error("the answer is about another block")]
    OtherBlock,
    #[error("the answer is about another transaction")]
    OtherTransaction,
    #[error("the answer is about another place in the block")]
    OtherIndex,
    #[error("the answer is about other blocks than the range asked for")]
    OtherRange,
    #[error("the hash of the header is another one")]
    HeaderHash,
    #[error("the hash of the transaction is another one")]
    TransactionHash,
    #[error("the signature is not the sender's")]
    Sender,
    #[error("the transactions are not those of the header's root")]
    TransactionsRoot,
    #[error("the uncles are not those of the header's hash")]
    Uncles,
    #[error("the withdrawals are not those of the header's root")]
    WithdrawalsRoot,
    #[error("the receipts are not those of the header's root")]
    ReceiptsRoot,
    #[error("the bloom is not that of the logs")]
    Bloom,
    #[error("gas used does not add up")]
    Gas,
    #[error("a log does not match the filter")]
    Filter,
    #[error("a log lies outside the range")]
    Range,
    #[error("logs are out of order, or not numbered one after another")]
    Order,
    #[error("logs of one block or transaction disagree about its hash")]
    Torn,
    #[error("a log was removed")]
    Removed,
}

impl Lie {
    pub const ALL: [Self; 19] = [
        Self::Shape,
        Self::OtherBlock,
        Self::OtherTransaction,
        Self::OtherIndex,
        Self::OtherRange,
        Self::HeaderHash,
        Self::TransactionHash,
        Self::Sender,
        Self::TransactionsRoot,
        Self::Uncles,
        Self::WithdrawalsRoot,
        Self::ReceiptsRoot,
        Self::Bloom,
        Self::Gas,
        Self::Filter,
        Self::Range,
        Self::Order,
        Self::Torn,
        Self::Removed,
    ];

    /// The name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Shape => "shape",
            Self::OtherBlock => "other_block",
            Self::OtherTransaction => "other_transaction",
            Self::OtherIndex => "other_index",
            Self::OtherRange => "other_range",
            Self::HeaderHash => "header_hash",
            Self::TransactionHash => "transaction_hash",
            Self::Sender => "sender",
            Self::TransactionsRoot => "transactions_root",
            Self::Uncles => "uncles",
            Self::WithdrawalsRoot => "withdrawals_root",
            Self::ReceiptsRoot => "receipts_root",
            Self::Bloom => "bloom",
            Self::Gas => "gas",
            Self::Filter => "filter",
            Self::Range => "range",
            Self::Order => "order",
            Self::Torn => "torn",
            Self::Removed => "removed",
        }
    }
}
