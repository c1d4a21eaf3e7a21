//! The method table: one row per method, and everything that differs between methods.
//!
//! Adding a method is one row, its reader in `params` and its tests. Documents, metric labels, prices and allowlist
//! names come from here.

mod unavailable; // methods that others have

use crate::params::{self, Args, BlockParam, ParamFault, Query, Tag};

pub(crate) use unavailable::why_not_available;

/// One method.
#[derive(Debug)]
pub struct Method {
    pub name: &'static str,
    /// What it gives, in a sentence without its full stop.
    pub about: &'static str,
    /// The type of the result, as `docs/types.rs` names it.
    pub result: &'static str,
    /// Names of the positional parameters; those from `optional_from` on may be left out.
    pub params: &'static [&'static str],
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
    pub(crate) fn json(self) -> &'static [u8] {
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
};

const STATE: Method =
    Method { cacheable: Cacheable::BlockHash, missing: Missing::Error, optional_from: 1, ..USUAL };
const LOOKUP: Method = Method { cacheable: Cacheable::CanonicalBlock, ..USUAL };
const EVM: Method = Method {
    params: &["call", "block", "stateOverrides", "blockOverrides"],
    work: Work::Pooled(Deadline::Call),
    ..STATE
};

/// Every method there is.
#[rustfmt::skip]
pub static METHODS: &[Method] = &[
    Method { name: "eth_getStorageAt", about: "The value at a place in a contract's storage", result: "Hash", params: &["address", "position", "block"], read: params::storage_at, optional_from: 2, failover: true, ..STATE },
    Method { name: "eth_getLogs", about: "The logs that a filter matches, in the order of the chain", result: "[Log]", params: &["filter"], read: params::logs, credits: 255, work: Work::Pooled(Deadline::Logs), missing: Missing::Error, ..LOOKUP },
    Method { name: "eth_getUncleByBlockNumberAndIndex", about: "An uncle of a block, by its place among them", result: "Uncle|null", params: &["block", "index"], read: params::uncle_by_number, credits: 150, ..LOOKUP },
    Method { name: "eth_getUncleByBlockHashAndIndex", about: "An uncle of a block, by its place among them", result: "Uncle|null", params: &["blockHash", "index"], read: params::uncle_by_hash, credits: 150, cacheable: Cacheable::BlockHash, ..LOOKUP },
    Method { name: "eth_getTransactionByBlockNumberAndIndex", about: "A transaction of a block, by its place in it", result: "Transaction|null", params: &["block", "index"], read: params::transaction_by_number, credits: 150, failover: true, ..LOOKUP },
    Method { name: "eth_getTransactionByBlockHashAndIndex", about: "A transaction of a block, by its place in it", result: "Transaction|null", params: &["blockHash", "index"], read: params::transaction_by_block_hash, credits: 150, cacheable: Cacheable::BlockHash, ..LOOKUP },
    Method { name: "eth_getTransactionByHash", about: "A transaction", result: "Transaction|null", params: &["transactionHash"], read: params::transaction_by_hash, ..LOOKUP },
    Method { name: "eth_getTransactionReceipt", about: "What a transaction did", result: "Receipt|null", params: &["transactionHash"], read: params::transaction_receipt, work: Work::Pooled(Deadline::Block), ..LOOKUP },
    Method { name: "eth_getBlockReceipts", about: "What every transaction of a block did", result: "[Receipt]|null", params: &["block"], read: params::block_receipts, credits: 1_000, work: Work::Pooled(Deadline::Block), ..LOOKUP },
    Method { name: "eth_call", about: "What a message would return, run at a block and then forgotten", result: "Data", read: params::call, ..EVM },
    Method { name: "eth_estimateGas", about: "The least gas with which a message would succeed", read: params::estimate_gas, credits: 300, ..EVM },
    Method { name: "zks_getRawBlockTransactions", about: "The transactions of a block as the layer 2 keeps them", result: "[RawTransaction]", params: &["block"], read: params::raw_block_transactions, families: &[Family::Zksync], missing: Missing::EmptyList, work: Work::Pooled(Deadline::Block), ..LOOKUP },

    Method { name: "eth_chainId", about: "The number of the chain", read: params::chain_id, credits: 5, cacheable: Cacheable::BlockHash, ..USUAL },
    Method { name: "net_version", about: "The number of the chain, in decimal", result: "Decimal", read: params::net_version, credits: 5, cacheable: Cacheable::BlockHash, ..USUAL },
    Method { name: "eth_syncing", about: "Whether the chain is still being read in", result: "Boolean", read: params::syncing, credits: 5, ..USUAL },
    Method { name: "web3_clientVersion", about: "What answers here", result: "Text", read: params::client_version, ..USUAL },
    Method { name: "eth_blockNumber", about: "The number of the newest block", read: params::block_number, cacheable: Cacheable::Head, ..USUAL },
    Method { name: "eth_gasPrice", about: "A price per gas that should do for the next block", read: params::gas_price, cacheable: Cacheable::Head, work: Work::Pooled(Deadline::Fees), ..USUAL },
    Method { name: "eth_maxPriorityFeePerGas", about: "A priority fee that should do for the next block", read: params::max_priority_fee, cacheable: Cacheable::Head, work: Work::Pooled(Deadline::Fees), ..USUAL },
    Method { name: "eth_feeHistory", about: "Fees of a range of blocks, and of the one behind it", result: "FeeHistory", params: &["blockCount", "newestBlock", "rewardPercentiles"], read: params::fee_history, optional_from: 2, missing: Missing::Error, work: Work::Pooled(Deadline::Fees), ..LOOKUP },
    Method { name: "eth_getBalance", about: "The ether of an account, in wei", params: &["address", "block"], read: params::balance, ..STATE },
    Method { name: "eth_getCode", about: "The code of a contract; `0x` where there is none", result: "Data", params: &["address", "block"], read: params::code, ..STATE },
    Method { name: "eth_getTransactionCount", about: "How many transactions an account has sent; for a contract, how many it has created", params: &["address", "block"], read: params::transaction_count, ..STATE },
    Method { name: "eth_getBlockByNumber", about: "A block", result: "Block|null", params: &["block", "fullTransactions"], read: params::block_by_number, optional_from: 1, work: Work::Pooled(Deadline::Block), ..LOOKUP },
    Method { name: "eth_getBlockByHash", about: "A block", result: "Block|null", params: &["blockHash", "fullTransactions"], read: params::block_by_hash, optional_from: 1, cacheable: Cacheable::BlockHash, work: Work::Pooled(Deadline::Block), ..LOOKUP },
    Method { name: "eth_getBlockTransactionCountByNumber", about: "How many transactions a block has", result: "Quantity|null", params: &["block"], read: params::transaction_count_by_number, ..LOOKUP },
    Method { name: "eth_getBlockTransactionCountByHash", about: "How many transactions a block has", result: "Quantity|null", params: &["blockHash"], read: params::transaction_count_by_hash, cacheable: Cacheable::BlockHash, ..LOOKUP },
    Method { name: "eth_getUncleCountByBlockNumber", about: "How many uncles a block has", result: "Quantity|null", params: &["block"], read: params::uncle_count_by_number, ..LOOKUP },
    Method { name: "eth_getUncleCountByBlockHash", about: "How many uncles a block has", result: "Quantity|null", params: &["blockHash"], read: params::uncle_count_by_hash, cacheable: Cacheable::BlockHash, ..LOOKUP },
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

    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Methods whose answer at `pending` nodes are asked for as it is. A wallet takes its next nonce from the first of them; for
/// all other methods, the newest block is what comes closest.
pub(crate) const PENDING_METHODS: [&str; 4] =
    ["eth_getTransactionCount", "eth_getBalance", "eth_call", "eth_estimateGas"];

/// Whether a query is about the pending block, for a method where that matters.
pub(crate) fn is_at_pending(method: &Method, query: &Query<BlockParam>) -> bool {
    query.blocks().any(|block| block == BlockParam::Tag(Tag::Pending))
        && PENDING_METHODS.contains(&method.name)
}

impl Method {
    pub fn exists_on(&self, families: &[Family]) -> bool {
        self.families.iter().any(|family| families.contains(family))
    }

    /// The typed form of a call's parameters.
    pub(crate) fn read(&self, params: &jsonrpc::Params<'_>) -> Result<Query<BlockParam>, ParamFault> {
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
        assert_eq!(METHODS.len(), 29);
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
