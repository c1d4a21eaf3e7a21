//! The method table: one row per method.
//!
//! Documents, metric labels, prices and the names in allow-lists come from it.

use crate::param::Param;
use crate::params::{self, BlockParam, ParamFault, ParamReader, Query, Tag};

/// One method.
#[derive(Debug)]
pub struct Method {
    pub name: &'static str,
    /// What the method returns, in one sentence without a full stop.
    pub about: &'static str,
    /// The type of the result, as the generated documents name it.
    pub result: &'static str,
    /// The positional parameters.
    pub params: &'static [Param],
    /// The index of the first optional parameter.
    pub optional_from: usize,
    pub(crate) read: fn(&mut ParamReader<'_>) -> Result<Query<BlockParam>, ParamFault>,
    pub families: &'static [NetworkFamily],
    /// Price of an admitted call.
    pub credits: u64,
    pub work: WorkPlacement,
    pub cacheable: Cacheable,

    pub missing: MissingBlock,
    /// Whether a partner may answer during an outage; the configuration can override it.
    pub failover: bool,
    /// Whether a call at `pending` is forwarded to a node; for all other methods, `pending` means the newest block. Wallets read
    /// their next nonce with `eth_getTransactionCount` at `pending`.
    pub asks_nodes_at_pending: bool,
}

/// The kind of network that a method exists on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkFamily {
    Ethereum,
    Zksync,
}

/// The thread that executes a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkPlacement {
    /// Runs on the thread of the connection, because it always takes microseconds.
    Inline,
    /// Is tried for 200 µs on the thread of the connection and then runs in the thread pool until its deadline, because it
    /// may take seconds. Equal calls in flight share one execution.
    Pooled(DeadlineKind),
}

/// Selects the time limit of pooled work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadlineKind {
    Logs,
    Call,
    Fees,
    /// Blocks and receipts, which may be megabytes large.
    Block,
}

/// How long an answer stays valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cacheable {
    Never,
    /// Forever, because the call names its block by hash.
    BlockHash,
    /// As long as the block is canonical.
    CanonicalBlock,
    /// Until the head changes.
    Head,
}

/// The answer to a call that names a block which does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingBlock {
    Null,
    EmptyList,
    Error,
}

impl MissingBlock {
    /// The result as JSON text. Not called for `Error`.
    pub fn json(self) -> &'static [u8] {
        match self {
            Self::Null | Self::Error => b"null",
            Self::EmptyList => b"[]",
        }
    }
}

const ALL_FAMILIES: &[NetworkFamily] = &[NetworkFamily::Ethereum, NetworkFamily::Zksync];

/// The defaults of a row; rows state only what differs.
const DEFAULTS: Method = Method {
    name: "",
    about: "",
    result: "Quantity",
    params: &[],
    optional_from: usize::MAX,
    read: params::chain_id,
    families: ALL_FAMILIES,
    credits: 80,
    work: WorkPlacement::Inline,
    cacheable: Cacheable::Never,
    missing: MissingBlock::Null,
    failover: false,
    asks_nodes_at_pending: false,
};

const STATE: Method =
    Method { cacheable: Cacheable::BlockHash, missing: MissingBlock::Error, optional_from: 1, ..DEFAULTS };
const LOOKUP: Method = Method { cacheable: Cacheable::CanonicalBlock, ..DEFAULTS };
const EVM: Method = Method {
    params: &[Param::Call, Param::StateBlock, Param::StateOverrides, Param::BlockOverrides],
    work: WorkPlacement::Pooled(DeadlineKind::Call),
    asks_nodes_at_pending: true,
    ..STATE
};

/// The OpenRPC document that is generated from this table.
pub const OPENRPC: &str = include_str!("../../../docs/openrpc.json").trim_ascii_end();

/// All methods.
#[rustfmt::skip]
pub static METHODS: &[Method] = &[
    Method { name: "eth_getStorageAt", about: "The value of a storage slot", result: "Hash", params: &[Param::Address, Param::Position, Param::StateBlock], read: params::storage_at, optional_from: 2, failover: true, ..STATE },
    Method { name: "eth_getLogs", about: "The logs that match a filter, in the order of the chain", result: "[Log]", params: &[Param::Filter], read: params::logs, credits: 255, work: WorkPlacement::Pooled(DeadlineKind::Logs), missing: MissingBlock::Error, ..LOOKUP },
    Method { name: "eth_getUncleByBlockNumberAndIndex", about: "An uncle of a block, by block number and index", result: "Uncle|null", params: &[Param::BlockNumber, Param::Index], read: params::uncle_by_number, credits: 150, ..LOOKUP },
    Method { name: "eth_getUncleByBlockHashAndIndex", about: "An uncle of a block, by block hash and index", result: "Uncle|null", params: &[Param::BlockHash, Param::Index], read: params::uncle_by_hash, credits: 150, cacheable: Cacheable::BlockHash, ..LOOKUP },
    Method { name: "eth_getTransactionByBlockNumberAndIndex", about: "A transaction, by block number and index", result: "Transaction|null", params: &[Param::BlockNumber, Param::Index], read: params::transaction_by_number, credits: 150, failover: true, ..LOOKUP },
    Method { name: "eth_getTransactionByBlockHashAndIndex", about: "A transaction, by block hash and index", result: "Transaction|null", params: &[Param::BlockHash, Param::Index], read: params::transaction_by_block_hash, credits: 150, cacheable: Cacheable::BlockHash, ..LOOKUP },
    Method { name: "eth_getTransactionByHash", about: "A transaction, by its hash", result: "Transaction|null", params: &[Param::TransactionHash], read: params::transaction_by_hash, ..LOOKUP },
    Method { name: "eth_getTransactionReceipt", about: "The receipt of a transaction", result: "Receipt|null", params: &[Param::TransactionHash], read: params::transaction_receipt, work: WorkPlacement::Pooled(DeadlineKind::Block), ..LOOKUP },
    Method { name: "eth_getBlockReceipts", about: "The receipts of all transactions of a block", result: "[Receipt]|null", params: &[Param::AnyBlock], read: params::block_receipts, credits: 1_000, work: WorkPlacement::Pooled(DeadlineKind::Block), ..LOOKUP },
    Method { name: "eth_call", about: "The return data of a message that is executed on the state of a block and changes nothing", result: "Data", read: params::call, ..EVM },
    Method { name: "eth_estimateGas", about: "The gas that a message needs to succeed", read: params::estimate_gas, credits: 300, ..EVM },
    Method { name: "zks_getRawBlockTransactions", about: "The transactions of a block in the internal format of zkSync nodes", result: "[RawTransaction]", params: &[Param::BlockInteger], read: params::raw_block_transactions, families: &[NetworkFamily::Zksync], missing: MissingBlock::EmptyList, work: WorkPlacement::Pooled(DeadlineKind::Block), ..LOOKUP },

    Method { name: "eth_chainId", about: "The chain id", read: params::chain_id, credits: 5, cacheable: Cacheable::BlockHash, ..DEFAULTS },
    Method { name: "net_version", about: "The chain id in decimal", result: "Decimal", read: params::net_version, credits: 5, cacheable: Cacheable::BlockHash, ..DEFAULTS },
    Method { name: "eth_syncing", about: "Whether the gateway is behind its chain, which is always `false`", result: "Boolean", read: params::syncing, credits: 5, ..DEFAULTS },
    Method { name: "web3_clientVersion", about: "The name and version of this program", result: "Text", read: params::client_version, ..DEFAULTS },
    Method { name: "rpc.discover", about: "The OpenRPC document that describes all methods", result: "OpenRpc", read: params::discover, ..DEFAULTS },
    Method { name: "eth_blockNumber", about: "The number of the newest block", read: params::block_number, cacheable: Cacheable::Head, ..DEFAULTS },
    Method { name: "eth_gasPrice", about: "A suggested gas price for the next block, in wei", read: params::gas_price, cacheable: Cacheable::Head, work: WorkPlacement::Pooled(DeadlineKind::Fees), ..DEFAULTS },
    Method { name: "eth_maxPriorityFeePerGas", about: "A suggested priority fee for the next block, in wei", read: params::max_priority_fee, cacheable: Cacheable::Head, work: WorkPlacement::Pooled(DeadlineKind::Fees), ..DEFAULTS },
    Method { name: "eth_feeHistory", about: "The fees of a range of blocks and of the next block", result: "FeeHistory", params: &[Param::BlockCount, Param::NewestBlock, Param::RewardPercentiles], read: params::fee_history, optional_from: 2, missing: MissingBlock::Error, work: WorkPlacement::Pooled(DeadlineKind::Fees), ..LOOKUP },
    Method { name: "eth_getBalance", about: "The balance of an account, in wei", params: &[Param::Address, Param::StateBlock], read: params::balance, asks_nodes_at_pending: true, ..STATE },
    Method { name: "eth_getCode", about: "The code of a contract; `0x` where there is none", result: "Data", params: &[Param::Address, Param::StateBlock], read: params::code, ..STATE },
    Method { name: "eth_getTransactionCount", about: "The nonce of an account: the number of transactions that it has sent, or of contracts that it has created", params: &[Param::Address, Param::StateBlock], read: params::transaction_count, asks_nodes_at_pending: true, ..STATE },
    Method { name: "eth_getBlockByNumber", about: "A block, by its number", result: "Block|null", params: &[Param::BlockNumber, Param::FullTransactions], read: params::block_by_number, optional_from: 1, work: WorkPlacement::Pooled(DeadlineKind::Block), ..LOOKUP },
    Method { name: "eth_getBlockByHash", about: "A block, by its hash", result: "Block|null", params: &[Param::BlockHash, Param::FullTransactions], read: params::block_by_hash, optional_from: 1, cacheable: Cacheable::BlockHash, work: WorkPlacement::Pooled(DeadlineKind::Block), ..LOOKUP },
    Method { name: "eth_getBlockTransactionCountByNumber", about: "The number of transactions of a block", result: "Quantity|null", params: &[Param::BlockNumber], read: params::transaction_count_by_number, ..LOOKUP },
    Method { name: "eth_getBlockTransactionCountByHash", about: "The number of transactions of a block", result: "Quantity|null", params: &[Param::BlockHash], read: params::transaction_count_by_hash, cacheable: Cacheable::BlockHash, ..LOOKUP },
    Method { name: "eth_getUncleCountByBlockNumber", about: "The number of uncles of a block", result: "Quantity|null", params: &[Param::BlockNumber], read: params::uncle_count_by_number, ..LOOKUP },
    Method { name: "eth_getUncleCountByBlockHash", about: "The number of uncles of a block", result: "Quantity|null", params: &[Param::BlockHash], read: params::uncle_count_by_hash, cacheable: Cacheable::BlockHash, ..LOOKUP },
];

/// The index of a row in the method table. Metrics use it as an array index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MethodId(u8);

impl MethodId {
    /// Finds the row with exactly this name. A linear search is faster than hashing the name, because most comparisons end
    /// at the length.
    pub fn named(name: &str) -> Option<Self> {
        METHODS.iter().position(|method| method.name == name).map(|index| Self(index as u8))
    }

    pub fn row(self) -> &'static Method {
        &METHODS[usize::from(self.0)]
    }

    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Whether a query names the pending block and its method is forwarded to nodes at `pending`.
pub fn is_at_pending(method: &Method, query: &Query<BlockParam>) -> bool {
    method.asks_nodes_at_pending && query.blocks().any(|block| block == BlockParam::Tag(Tag::Pending))
}

impl Method {
    pub fn exists_on(&self, families: &[NetworkFamily]) -> bool {
        self.families.iter().any(|family| families.contains(family))
    }

    /// Reads the parameters of a call into a typed query.
    pub fn read(&self, params: &jsonrpc::Params<'_>) -> Result<Query<BlockParam>, ParamFault> {
        (self.read)(&mut ParamReader::new(params, self.params.len())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_matched_exactly() {
        for method in METHODS {
            assert_eq!(MethodId::named(method.name).unwrap().row().name, method.name);
        }
        assert_eq!(METHODS.len(), 30);
        for name in ["eth_chainid", "eth_chainId ", "eth_chainId\0", "", "eth_sendRawTransaction"] {
            assert_eq!(MethodId::named(name), None, "{name:?}");
        }
    }

    #[test]
    fn no_method_has_more_parameters_than_the_parser_keeps() {
        assert!(METHODS.iter().all(|method| method.params.len() <= jsonrpc::POSITIONS_MAX));
    }

    #[test]
    fn prices_do_not_change_unnoticed() {
        let cost = |name| MethodId::named(name).unwrap().row().credits;
        assert_eq!(cost("eth_getStorageAt"), 80);
        assert_eq!(cost("eth_getTransactionReceipt"), 80);
        assert_eq!(cost("eth_call"), 80);
        assert_eq!(cost("zks_getRawBlockTransactions"), 80);
        assert_eq!(cost("eth_getUncleByBlockHashAndIndex"), 150);
        assert_eq!(cost("eth_getTransactionByBlockNumberAndIndex"), 150);
        assert_eq!(cost("eth_getLogs"), 255);
        assert_eq!(cost("eth_estimateGas"), 300);
        assert_eq!(cost("eth_getBlockReceipts"), 1_000);
        assert_eq!(cost("eth_syncing"), 5);
        assert_eq!(cost("eth_blockNumber"), 80);
    }
}
