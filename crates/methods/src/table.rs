//! The method table: one row per method, and everything that differs between methods.
//!
//! Adding a method is one row, its reader in `params` and its tests. Documents, metric labels, prices and allowlist
//! names come from here.

use crate::param::Param;
use crate::params::{self, Args, BlockParam, ParamFault, Query, Tag};

/// One method.
#[derive(Debug)]
pub struct Method {
    pub name: &'static str,
    /// What it gives, in a sentence without its full stop.
    pub about: &'static str,
    /// The type of the result, as the generated documents name it.
    pub result: &'static str,
    /// The positional parameters; those from `optional_from` on may be left out.
    pub params: &'static [Param],
    pub optional_from: usize,
    pub(crate) read: fn(&mut Args<'_>) -> Result<Query<BlockParam>, ParamFault>,
    pub families: &'static [Family],
    /// What an admitted call costs.
    pub credits: u64,
    pub work: Work,
    pub cacheable: Cacheable,
    /// What the caller gets when the block that it names does not exist.
    pub missing: Missing,
    /// Whether a partner may answer during an outage, unless the operator says otherwise.
    pub failover: bool,
    /// Whether a call at `pending` is forwarded to a node, because a wallet takes its next nonce from there. For all other
    /// methods, the newest block comes closest.
    pub asks_nodes_at_pending: bool,
}

/// Kinds of networks. The demo chain has the methods of all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    Ethereum,
    Zksync,
}

/// Where the work of a call is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Always microseconds: on the thread of its connection.
    Inline,
    /// Possibly seconds: tried for 200 µs on the thread of its connection, then in the pool, within its deadline, shared by
    /// equal calls in flight.
    Pooled(Deadline),
}

/// Which time limit holds for pooled work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    Logs,
    Call,
    Fees,
    /// Blocks and receipts, which may have megabytes.
    Block,
}

/// What an answer hangs on, and so what makes it invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cacheable {
    Never,
    /// True for ever, as long as the block of this hash is asked for.
    BlockHash,
    /// True as long as the block is canonical.
    CanonicalBlock,
    /// True until the next head.
    Head,
}

/// The answer for a block that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    Null,
    EmptyList,
    Error,
}

impl Missing {
    /// The result as JSON text. A method that makes it an error never asks.
    pub fn json(self) -> &'static [u8] {
        match self {
            Self::Null | Self::Error => b"null",
            Self::EmptyList => b"[]",
        }
    }
}

const EVERYWHERE: &[Family] = &[Family::Ethereum, Family::Zksync];

/// What a method has in common with most others; rows name only what differs.
const USUAL: Method = Method {
    name: "",
    about: "",
    result: "Quantity",
    params: &[],
    optional_from: usize::MAX,
    read: params::chain_id,
    families: EVERYWHERE,
    credits: 80,
    work: Work::Inline,
    cacheable: Cacheable::Never,
    missing: Missing::Null,
    failover: false,
    asks_nodes_at_pending: false,
};

const STATE: Method =
    Method { cacheable: Cacheable::BlockHash, missing: Missing::Error, optional_from: 1, ..USUAL };
const LOOKUP: Method = Method { cacheable: Cacheable::CanonicalBlock, ..USUAL };
const EVM: Method = Method {
    params: &[Param::Call, Param::StateBlock, Param::StateOverrides, Param::BlockOverrides],
    work: Work::Pooled(Deadline::Call),
    asks_nodes_at_pending: true,
    ..STATE
};

/// The OpenRPC document, which is generated from this table.
pub const OPENRPC: &str = include_str!("../../../docs/openrpc.json").trim_ascii_end();

/// Every method there is.
#[rustfmt::skip]
pub static METHODS: &[Method] = &[
    Method { name: "eth_getStorageAt", about: "The value of a storage slot", result: "Hash", params: &[Param::Address, Param::Position, Param::StateBlock], read: params::storage_at, optional_from: 2, failover: true, ..STATE },
    Method { name: "eth_getLogs", about: "The logs that match a filter, in the order of the chain", result: "[Log]", params: &[Param::Filter], read: params::logs, credits: 255, work: Work::Pooled(Deadline::Logs), missing: Missing::Error, ..LOOKUP },
    Method { name: "eth_getUncleByBlockNumberAndIndex", about: "An uncle of a block, by block number and index", result: "Uncle|null", params: &[Param::BlockNumber, Param::Index], read: params::uncle_by_number, credits: 150, ..LOOKUP },
    Method { name: "eth_getUncleByBlockHashAndIndex", about: "An uncle of a block, by block hash and index", result: "Uncle|null", params: &[Param::BlockHash, Param::Index], read: params::uncle_by_hash, credits: 150, cacheable: Cacheable::BlockHash, ..LOOKUP },
    Method { name: "eth_getTransactionByBlockNumberAndIndex", about: "A transaction, by block number and index", result: "Transaction|null", params: &[Param::BlockNumber, Param::Index], read: params::transaction_by_number, credits: 150, failover: true, ..LOOKUP },
    Method { name: "eth_getTransactionByBlockHashAndIndex", about: "A transaction, by block hash and index", result: "Transaction|null", params: &[Param::BlockHash, Param::Index], read: params::transaction_by_block_hash, credits: 150, cacheable: Cacheable::BlockHash, ..LOOKUP },
    Method { name: "eth_getTransactionByHash", about: "A transaction, by its hash", result: "Transaction|null", params: &[Param::TransactionHash], read: params::transaction_by_hash, ..LOOKUP },
    Method { name: "eth_getTransactionReceipt", about: "The receipt of a transaction", result: "Receipt|null", params: &[Param::TransactionHash], read: params::transaction_receipt, work: Work::Pooled(Deadline::Block), ..LOOKUP },
    Method { name: "eth_getBlockReceipts", about: "The receipts of all transactions of a block", result: "[Receipt]|null", params: &[Param::AnyBlock], read: params::block_receipts, credits: 1_000, work: Work::Pooled(Deadline::Block), ..LOOKUP },
    Method { name: "eth_call", about: "The return data of a message that is executed on the state of a block and changes nothing", result: "Data", read: params::call, ..EVM },
    Method { name: "eth_estimateGas", about: "The gas that a message needs to succeed", read: params::estimate_gas, credits: 300, ..EVM },
    Method { name: "zks_getRawBlockTransactions", about: "The transactions of a block in the internal format of zkSync nodes", result: "[RawTransaction]", params: &[Param::BlockInteger], read: params::raw_block_transactions, families: &[Family::Zksync], missing: Missing::EmptyList, work: Work::Pooled(Deadline::Block), ..LOOKUP },

    Method { name: "eth_chainId", about: "The chain id", read: params::chain_id, credits: 5, cacheable: Cacheable::BlockHash, ..USUAL },
    Method { name: "net_version", about: "The chain id in decimal", result: "Decimal", read: params::net_version, credits: 5, cacheable: Cacheable::BlockHash, ..USUAL },
    Method { name: "eth_syncing", about: "Whether the gateway is behind its chain, which is always `false`", result: "Boolean", read: params::syncing, credits: 5, ..USUAL },
    Method { name: "web3_clientVersion", about: "The name and version of this program", result: "Text", read: params::client_version, ..USUAL },
    Method { name: "rpc.discover", about: "The OpenRPC document that describes all methods", result: "OpenRpc", read: params::discover, ..USUAL },
    Method { name: "eth_blockNumber", about: "The number of the newest block", read: params::block_number, cacheable: Cacheable::Head, ..USUAL },
    Method { name: "eth_gasPrice", about: "A suggested gas price for the next block, in wei", read: params::gas_price, cacheable: Cacheable::Head, work: Work::Pooled(Deadline::Fees), ..USUAL },
    Method { name: "eth_maxPriorityFeePerGas", about: "A suggested priority fee for the next block, in wei", read: params::max_priority_fee, cacheable: Cacheable::Head, work: Work::Pooled(Deadline::Fees), ..USUAL },
    Method { name: "eth_feeHistory", about: "The fees of a range of blocks and of the next block", result: "FeeHistory", params: &[Param::BlockCount, Param::NewestBlock, Param::RewardPercentiles], read: params::fee_history, optional_from: 2, missing: Missing::Error, work: Work::Pooled(Deadline::Fees), ..LOOKUP },
    Method { name: "eth_getBalance", about: "The balance of an account, in wei", params: &[Param::Address, Param::StateBlock], read: params::balance, asks_nodes_at_pending: true, ..STATE },
    Method { name: "eth_getCode", about: "The code of a contract; `0x` where there is none", result: "Data", params: &[Param::Address, Param::StateBlock], read: params::code, ..STATE },
    Method { name: "eth_getTransactionCount", about: "The nonce of an account: the number of transactions that it has sent, or of contracts that it has created", params: &[Param::Address, Param::StateBlock], read: params::transaction_count, asks_nodes_at_pending: true, ..STATE },
    Method { name: "eth_getBlockByNumber", about: "A block, by its number", result: "Block|null", params: &[Param::BlockNumber, Param::FullTransactions], read: params::block_by_number, optional_from: 1, work: Work::Pooled(Deadline::Block), ..LOOKUP },
    Method { name: "eth_getBlockByHash", about: "A block, by its hash", result: "Block|null", params: &[Param::BlockHash, Param::FullTransactions], read: params::block_by_hash, optional_from: 1, cacheable: Cacheable::BlockHash, work: Work::Pooled(Deadline::Block), ..LOOKUP },
    Method { name: "eth_getBlockTransactionCountByNumber", about: "The number of transactions of a block", result: "Quantity|null", params: &[Param::BlockNumber], read: params::transaction_count_by_number, ..LOOKUP },
    Method { name: "eth_getBlockTransactionCountByHash", about: "The number of transactions of a block", result: "Quantity|null", params: &[Param::BlockHash], read: params::transaction_count_by_hash, cacheable: Cacheable::BlockHash, ..LOOKUP },
    Method { name: "eth_getUncleCountByBlockNumber", about: "The number of uncles of a block", result: "Quantity|null", params: &[Param::BlockNumber], read: params::uncle_count_by_number, ..LOOKUP },
    Method { name: "eth_getUncleCountByBlockHash", about: "The number of uncles of a block", result: "Quantity|null", params: &[Param::BlockHash], read: params::uncle_count_by_hash, cacheable: Cacheable::BlockHash, ..LOOKUP },
];

/// A row of the table, by its place in it. Metrics use it as an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MethodId(u8);

impl MethodId {
    /// The row of this exact name. Thirty comparisons of lengths beat a hash of the name.
    pub fn named(name: &str) -> Option<Self> {
        METHODS.iter().position(|method| method.name == name).map(|place| Self(place as u8))
    }

    pub fn row(self) -> &'static Method {
        &METHODS[usize::from(self.0)]
    }

    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Whether a query is about the pending block, for a method where that matters.
pub fn is_at_pending(method: &Method, query: &Query<BlockParam>) -> bool {
    method.asks_nodes_at_pending && query.blocks().any(|block| block == BlockParam::Tag(Tag::Pending))
}

impl Method {
    pub fn exists_on(&self, families: &[Family]) -> bool {
        self.families.iter().any(|family| families.contains(family))
    }

    /// The typed form of a call's parameters.
    pub fn read(&self, params: &jsonrpc::Params<'_>) -> Result<Query<BlockParam>, ParamFault> {
        (self.read)(&mut Args::new(params, self.params.len())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_finds_its_own_row_and_no_other() {
        for method in METHODS {
            assert_eq!(MethodId::named(method.name).unwrap().row().name, method.name);
        }
        assert_eq!(METHODS.len(), 30);
        for name in ["eth_chainid", "eth_chainId ", "eth_chainId\0", "", "eth_sendRawTransaction"] {
            assert_eq!(MethodId::named(name), None, "{name:?}");
        }
    }

    #[test]
    fn no_method_takes_more_parameters_than_the_parser_keeps() {
        assert!(METHODS.iter().all(|method| method.params.len() <= jsonrpc::POSITIONS_MAX));
    }

    #[test]
    fn each_method_costs_what_the_price_list_says() {
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
