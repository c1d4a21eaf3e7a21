//! Why a delivery of a node is not proven.

/// Why a delivery is not proven block data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unproven {
    /// The node does not have the block, which may not be its fault.
    #[error("the node does not have it")]
    NotThere,
    /// A transaction is of a type whose encoding is unknown here, or has no signature, so that no root can be computed.
    /// That proves nothing about the node.
    #[error("a transaction of type {0:#x} cannot be proven")]
    UnknownType(u64),
    /// The header has members of a later fork without those of an earlier one, so that its hash does not say which they are.
    /// That proves nothing about the node.
    #[error("the header lacks members before others")]
    OddHeader,
    /// The node has delivered something that is not the block.
    #[error("{0}")]
    Wrong(#[from] ProofFailure),
}

/// Which part of a delivery differs from what the block's hash commits to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProofFailure {
    #[error("a member is missing, duplicate or malformed")]
    Malformed,
    #[error("the header does not have the expected hash")]
    HeaderHash,
    #[error("the block has another number")]
    OtherNumber,
    #[error("the transactions are not those of the header's root")]
    TransactionsRoot,
    #[error("the withdrawals are not those of the header's root")]
    WithdrawalsRoot,
    #[error("the uncles are not those of the header's hash")]
    UnclesHash,
    #[error("the receipts are not those of the header's root")]
    ReceiptsRoot,
    #[error("the blooms of the receipts are not the header's")]
    LogsBloom,
    #[error("the gas of the receipts does not grow")]
    GasUsed,
    #[error("the block does not contain the transaction")]
    NotInBlock,
    #[error("the account is not proven by the state root")]
    StateRoot,
    #[error("a slot is not proven by the storage root")]
    StorageRoot,
    #[error("the code has another hash")]
    CodeHash,
}

impl ProofFailure {
    pub const ALL: [Self; 13] = [
        Self::Malformed,
        Self::HeaderHash,
        Self::OtherNumber,
        Self::TransactionsRoot,
        Self::WithdrawalsRoot,
        Self::UnclesHash,
        Self::ReceiptsRoot,
        Self::LogsBloom,
        Self::GasUsed,
        Self::NotInBlock,
        Self::StateRoot,
        Self::StorageRoot,
        Self::CodeHash,
    ];

    /// The name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Malformed => "shape",
            Self::HeaderHash => "header_hash",
            Self::OtherNumber => "number",
            Self::TransactionsRoot => "transactions_root",
            Self::WithdrawalsRoot => "withdrawals_root",
            Self::UnclesHash => "uncles",
            Self::ReceiptsRoot => "receipts_root",
            Self::LogsBloom => "bloom",
            Self::GasUsed => "gas",
            Self::NotInBlock => "other_block",
            Self::StateRoot => "state_root",
            Self::StorageRoot => "storage_root",
            Self::CodeHash => "code_hash",
        }
    }
}
