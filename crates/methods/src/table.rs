//! The method table: one row per method.
//!
//! Documents, metric labels, prices, examples and the names in allow-lists come from it.

use crate::method::{
    Cacheable, DeadlineKind, Effort, Method, MethodRules, MissingBlock, NetworkFamily, WorkPlacement,
};
use crate::param::Param;
use crate::params::{
    self, BlockPart, FeeQuery, GatewayQuery, NextBlockFee, Query, SimulationKind, StateValue, TransactionPart,
};

/// Answers that the gateway knows anyway.
const GATEWAY: MethodRules = MethodRules {
    families: &[NetworkFamily::Ethereum, NetworkFamily::Zksync],
    work: WorkPlacement::Inline,
    effort: Effort::Value,
    cacheable: Cacheable::Never,
    missing: MissingBlock::Null,
    failover: false,
    asks_nodes_at_pending: false,
};
const NEXT_BLOCK_FEE: MethodRules =
    MethodRules { work: WorkPlacement::Pooled(DeadlineKind::Fees), cacheable: Cacheable::Head, ..GATEWAY };
/// Block data, which changes only if a reorganisation replaces the block.
const LOOKUP: MethodRules =
    MethodRules { effort: Effort::Composed, cacheable: Cacheable::CanonicalBlock, ..GATEWAY };
const COUNT: MethodRules = MethodRules { effort: Effort::Value, ..LOOKUP };
const HEADER: MethodRules = MethodRules { effort: Effort::SmallObject, ..LOOKUP };
const STATE: MethodRules =
    MethodRules { cacheable: Cacheable::BlockHash, missing: MissingBlock::Error, ..GATEWAY };
const SIMULATION: MethodRules = MethodRules {
    work: WorkPlacement::Pooled(DeadlineKind::Call),
    effort: Effort::Composed,
    asks_nodes_at_pending: true,
    ..STATE
};

/// The OpenRPC document that is generated from this table.
pub const OPENRPC: &str = include_str!("../../../docs/openrpc.json").trim_ascii_end();

/// The result of `web3_clientVersion`, as JSON.
pub const CLIENT_VERSION: &str = concat!("\"Chaingate/v", env!("CARGO_PKG_VERSION"), "\"");

pub static METHODS: &[Method] = &[
    Method {
        name: "eth_getStorageAt",
        about: "The value of a storage slot",
        required: &[Param::Address, Param::Position],
        optional: &[Param::StateBlock],
        read: params::storage_at,
        example: r#"["0xA7918D253764E42d60C3ce2010a34d5a1e7C1398","0x0","latest"]"#,
        result: "Hash",
        credits: 80,
        rules: MethodRules { failover: true, ..STATE },
    },
    Method {
        name: "eth_getLogs",
        about: "The logs that match a filter, in the order of the chain",
        required: &[Param::Filter],
        optional: &[],
        read: params::logs,
        example: r#"[{"address":"0x93C7a6D00849c44Ef3E92E95DCEFfccd447909Ae","fromBlock":"0x21","toBlock":"0x21"}]"#,
        result: "[Log]",
        credits: 255,
        rules: MethodRules {
            work: WorkPlacement::Pooled(DeadlineKind::Logs),
            missing: MissingBlock::Error,
            ..LOOKUP
        },
    },
    Method {
        name: "eth_getUncleByBlockNumberAndIndex",
        about: "An uncle of a block, by block number and index",
        required: &[Param::BlockNumber, Param::Index],
        optional: &[],
        read: |params| params::block_item(params, params::number_or_tag, |index| BlockPart::Uncle { index }),
        example: r#"["0x9","0x1"]"#,
        result: "Uncle|null",
        credits: 150,
        rules: HEADER,
    },
    Method {
        name: "eth_getUncleByBlockHashAndIndex",
        about: "An uncle of a block, by block hash and index",
        required: &[Param::BlockHash, Param::Index],
        optional: &[],
        read: |params| params::block_item(params, params::by_hash, |index| BlockPart::Uncle { index }),
        example: r#"["0x273dc032ab73b3e23fae9c4ba873a075d41e8ca05df32ac7a0c7598ba6b36b5b","0x1"]"#,
        result: "Uncle|null",
        credits: 150,
        rules: MethodRules { cacheable: Cacheable::BlockHash, ..HEADER },
    },
    Method {
        name: "eth_getTransactionByBlockNumberAndIndex",
        about: "A transaction, by block number and index",
        required: &[Param::BlockNumber, Param::Index],
        optional: &[],
        read: |params| {
            params::block_item(params, params::number_or_tag, |index| BlockPart::Transaction { index })
        },
        example: r#"["0x48","0x0"]"#,
        result: "Transaction|null",
        credits: 150,
        rules: MethodRules { failover: true, ..LOOKUP },
    },
    Method {
        name: "eth_getTransactionByBlockHashAndIndex",
        about: "A transaction, by block hash and index",
        required: &[Param::BlockHash, Param::Index],
        optional: &[],
        read: |params| params::block_item(params, params::by_hash, |index| BlockPart::Transaction { index }),
        example: r#"["0xc8266b6f482fbd9dcfc7f9d31af54038efa36aa85fcd88e7154497bad9eb4f56","0x0"]"#,
        result: "Transaction|null",
        credits: 150,
        rules: MethodRules { cacheable: Cacheable::BlockHash, ..LOOKUP },
    },
    Method {
        name: "eth_getTransactionByHash",
        about: "A transaction, by its hash",
        required: &[Param::TransactionHash],
        optional: &[],
        read: |params| params::transaction(params, TransactionPart::Transaction),
        example: r#"["0x75833d471ead0a61f9d0458257a3c1f7f3702365bb5611aa32284c31d7cf692f"]"#,
        result: "Transaction|null",
        credits: 80,
        rules: LOOKUP,
    },
    Method {
        name: "eth_getTransactionReceipt",
        about: "The receipt of a transaction",
        required: &[Param::TransactionHash],
        optional: &[],
        read: |params| params::transaction(params, TransactionPart::Receipt),
        example: r#"["0x75833d471ead0a61f9d0458257a3c1f7f3702365bb5611aa32284c31d7cf692f"]"#,
        result: "Receipt|null",
        credits: 80,
        rules: MethodRules { work: WorkPlacement::Pooled(DeadlineKind::Block), ..LOOKUP },
    },
    Method {
        name: "eth_getBlockReceipts",
        about: "The receipts of all transactions of a block",
        required: &[Param::AnyBlock],
        optional: &[],
        read: |params| params::block_part(params, params::block_or_decimal, BlockPart::Receipts),
        example: r#"["0x21"]"#,
        result: "[Receipt]|null",
        credits: 1_000,
        rules: MethodRules { work: WorkPlacement::Pooled(DeadlineKind::Block), ..LOOKUP },
    },
    Method {
        name: "eth_call",
        about: "The return data of a message that is executed on the state of a block and changes nothing",
        required: &[Param::Call],
        optional: &[Param::StateBlock, Param::StateOverrides, Param::BlockOverrides],
        read: |params| params::simulation(params, SimulationKind::Call),
        example: r#"[{"to":"0xA7918D253764E42d60C3ce2010a34d5a1e7C1398","data":"0x85bb7d69"},"latest"]"#,
        result: "Data",
        credits: 80,
        rules: SIMULATION,
    },
    Method {
        name: "eth_estimateGas",
        about: "The gas that a message needs to succeed",
        required: &[Param::Call],
        optional: &[Param::StateBlock, Param::StateOverrides, Param::BlockOverrides],
        read: |params| params::simulation(params, SimulationKind::Estimate),
        example: r#"[{"from":"0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266","to":"0x70997970C51812dc3A010C7d01b50e0d17dc79C8","value":"0x1"}]"#,
        result: "Quantity",
        credits: 300,
        rules: SIMULATION,
    },
    Method {
        name: "zks_getRawBlockTransactions",
        about: "The transactions of a block in the internal format of zkSync nodes",
        required: &[Param::BlockInteger],
        optional: &[],
        read: params::raw_transactions,
        example: "[241]",
        result: "[RawTransaction]",
        credits: 80,
        rules: MethodRules {
            families: &[NetworkFamily::Zksync],
            work: WorkPlacement::Pooled(DeadlineKind::Block),
            missing: MissingBlock::EmptyList,
            ..LOOKUP
        },
    },
    Method {
        name: "eth_chainId",
        about: "The chain id",
        required: &[],
        optional: &[],
        read: |_| Ok(Query::Gateway(GatewayQuery::ChainId)),
        example: "[]",
        result: "Quantity",
        credits: 5,
        rules: MethodRules { cacheable: Cacheable::BlockHash, ..GATEWAY },
    },
    Method {
        name: "net_version",
        about: "The chain id in decimal",
        required: &[],
        optional: &[],
        read: |_| Ok(Query::Gateway(GatewayQuery::NetVersion)),
        example: "[]",
        result: "Decimal",
        credits: 5,
        rules: MethodRules { cacheable: Cacheable::BlockHash, ..GATEWAY },
    },
    Method {
        name: "eth_syncing",
        about: "Whether the gateway is behind its chain, which is always `false`",
        required: &[],
        optional: &[],
        read: |_| Ok(Query::Gateway(GatewayQuery::Syncing)),
        example: "[]",
        result: "Boolean",
        credits: 5,
        rules: GATEWAY,
    },
    Method {
        name: "web3_clientVersion",
        about: "The name and version of this program",
        required: &[],
        optional: &[],
        read: |_| Ok(Query::Gateway(GatewayQuery::ClientVersion)),
        example: "[]",
        result: "Text",
        credits: 80,
        rules: GATEWAY,
    },
    Method {
        name: "rpc.discover",
        about: "The OpenRPC document that describes all methods",
        required: &[],
        optional: &[],
        read: |_| Ok(Query::Gateway(GatewayQuery::Discover)),
        example: "[]",
        result: "OpenRpc",
        credits: 80,
        rules: GATEWAY,
    },
    Method {
        name: "eth_blockNumber",
        about: "The number of the newest block",
        required: &[],
        optional: &[],
        read: |_| Ok(Query::Gateway(GatewayQuery::BlockNumber)),
        example: "[]",
        result: "Quantity",
        credits: 80,
        rules: MethodRules { cacheable: Cacheable::Head, ..GATEWAY },
    },
    Method {
        name: "eth_gasPrice",
        about: "A suggested gas price for the next block, in wei",
        required: &[],
        optional: &[],
        read: |_| Ok(Query::Fees(FeeQuery::NextBlock(NextBlockFee::GasPrice))),
        example: "[]",
        result: "Quantity",
        credits: 80,
        rules: NEXT_BLOCK_FEE,
    },
    Method {
        name: "eth_maxPriorityFeePerGas",
        about: "A suggested priority fee for the next block, in wei",
        required: &[],
        optional: &[],
        read: |_| Ok(Query::Fees(FeeQuery::NextBlock(NextBlockFee::PriorityFee))),
        example: "[]",
        result: "Quantity",
        credits: 80,
        rules: NEXT_BLOCK_FEE,
    },
    Method {
        name: "eth_feeHistory",
        about: "The fees of a range of blocks and of the next block",
        required: &[Param::BlockCount, Param::NewestBlock],
        optional: &[Param::RewardPercentiles],
        read: params::fee_history,
        example: r#"["0x2","0x50",[50]]"#,
        result: "FeeHistory",
        credits: 80,
        rules: MethodRules {
            work: WorkPlacement::Pooled(DeadlineKind::Fees),
            missing: MissingBlock::Error,
            ..LOOKUP
        },
    },
    Method {
        name: "eth_getBalance",
        about: "The balance of an account, in wei",
        required: &[Param::Address],
        optional: &[Param::StateBlock],
        read: |params| params::state(params, StateValue::Balance),
        example: r#"["0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266","latest"]"#,
        result: "Quantity",
        credits: 80,
        rules: MethodRules { asks_nodes_at_pending: true, ..STATE },
    },
    Method {
        name: "eth_getCode",
        about: "The code of a contract; `0x` where there is none",
        required: &[Param::Address],
        optional: &[Param::StateBlock],
        read: |params| params::state(params, StateValue::Code),
        example: r#"["0x90F79bf6EB2c4f870365E785982E1f101E93b906","latest"]"#,
        result: "Data",
        credits: 80,
        rules: MethodRules { effort: Effort::LargeValue, ..STATE },
    },
    Method {
        name: "eth_getTransactionCount",
        about: "The nonce of an account: the number of transactions that it has sent, or of contracts that it has created",
        required: &[Param::Address],
        optional: &[Param::StateBlock],
        read: |params| params::state(params, StateValue::TransactionCount),
        example: r#"["0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266","latest"]"#,
        result: "Quantity",
        credits: 80,
        rules: MethodRules { asks_nodes_at_pending: true, ..STATE },
    },
    Method {
        name: "eth_getBlockByNumber",
        about: "A block, by its number",
        required: &[Param::BlockNumber],
        optional: &[Param::FullTransactions],
        read: |params| params::whole_block(params, params::number_or_tag),
        example: r#"["0x5",false]"#,
        result: "Block|null",
        credits: 80,
        rules: MethodRules { work: WorkPlacement::Pooled(DeadlineKind::Block), ..LOOKUP },
    },
    Method {
        name: "eth_getBlockByHash",
        about: "A block, by its hash",
        required: &[Param::BlockHash],
        optional: &[Param::FullTransactions],
        read: |params| params::whole_block(params, params::by_hash),
        example: r#"["0x5d188de39fd4d4e36005680538cec8cb01d43396d9e0901f19ff2d08620c9304",false]"#,
        result: "Block|null",
        credits: 80,
        rules: MethodRules {
            work: WorkPlacement::Pooled(DeadlineKind::Block),
            cacheable: Cacheable::BlockHash,
            ..LOOKUP
        },
    },
    Method {
        name: "eth_getHeaderByNumber",
        about: "The header of a block, by its number",
        required: &[Param::BlockNumber],
        optional: &[],
        read: |params| params::block_part(params, params::number_or_tag, BlockPart::Header),
        example: r#"["0x5"]"#,
        result: "Header|null",
        credits: 80,
        rules: HEADER,
    },
    Method {
        name: "eth_getHeaderByHash",
        about: "The header of a block, by its hash",
        required: &[Param::BlockHash],
        optional: &[],
        read: |params| params::block_part(params, params::by_hash, BlockPart::Header),
        example: r#"["0x5d188de39fd4d4e36005680538cec8cb01d43396d9e0901f19ff2d08620c9304"]"#,
        result: "Header|null",
        credits: 80,
        rules: MethodRules { cacheable: Cacheable::BlockHash, ..HEADER },
    },
    Method {
        name: "eth_getBlockTransactionCountByNumber",
        about: "The number of transactions of a block",
        required: &[Param::BlockNumber],
        optional: &[],
        read: |params| params::block_part(params, params::number_or_tag, BlockPart::TransactionCount),
        example: r#"["0x21"]"#,
        result: "Quantity|null",
        credits: 80,
        rules: COUNT,
    },
    Method {
        name: "eth_getBlockTransactionCountByHash",
        about: "The number of transactions of a block",
        required: &[Param::BlockHash],
        optional: &[],
        read: |params| params::block_part(params, params::by_hash, BlockPart::TransactionCount),
        example: r#"["0x2493ecf7e627e5576cb86006737f1d27ef70130cc2cc6c04384e940312820769"]"#,
        result: "Quantity|null",
        credits: 80,
        rules: MethodRules { cacheable: Cacheable::BlockHash, ..COUNT },
    },
    Method {
        name: "eth_getUncleCountByBlockNumber",
        about: "The number of uncles of a block",
        required: &[Param::BlockNumber],
        optional: &[],
        read: |params| params::block_part(params, params::number_or_tag, BlockPart::UncleCount),
        example: r#"["0x9"]"#,
        result: "Quantity|null",
        credits: 80,
        rules: COUNT,
    },
    Method {
        name: "eth_getUncleCountByBlockHash",
        about: "The number of uncles of a block",
        required: &[Param::BlockHash],
        optional: &[],
        read: |params| params::block_part(params, params::by_hash, BlockPart::UncleCount),
        example: r#"["0x273dc032ab73b3e23fae9c4ba873a075d41e8ca05df32ac7a0c7598ba6b36b5b"]"#,
        result: "Quantity|null",
        credits: 80,
        rules: MethodRules { cacheable: Cacheable::BlockHash, ..COUNT },
    },
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_matched_exactly() {
        for method in METHODS {
            assert_eq!(MethodId::named(method.name).unwrap().row().name, method.name);
        }
        for name in ["eth_chainid", "eth_chainId ", "eth_chainId\0", "", "eth_sendRawTransaction"] {
            assert_eq!(MethodId::named(name), None, "{name:?}");
        }
    }

    #[test]
    fn no_method_has_more_parameters_than_the_parser_keeps() {
        assert!(METHODS.iter().all(|method| method.params().count() <= jsonrpc::POSITIONS_MAX));
    }

    #[test]
    fn every_method_has_an_example_with_valid_parameters() {
        for method in METHODS {
            assert!(method.example_query().is_ok(), "{}: {:?}", method.name, method.example_query());
        }
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
