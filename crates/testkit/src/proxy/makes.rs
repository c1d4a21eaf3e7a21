//! Replies of nodes of other makes about old data that they have dropped, from their sources and issue threads.

use serde_json::{Value, json};

use super::pruned::{TrueResult, block_of_state, number};

/// The most blocks whose logs these nodes search at once.
const LOG_BLOCKS_MAX: u64 = 100;

/// A program of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeMake {
    Geth,
    Erigon,
    Nethermind,
    Besu,
    Reth,
}

/// The kind of data that a call asks a node for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DroppedData {
    /// A value of the state of an old block.
    State,
    /// The result of a call at an old block.
    Simulation,
    BlockReceipts,
    /// A transaction of an old block, or its receipt.
    Transaction,
    Logs,
    /// The logs of more blocks than the node searches at once.
    WideLogs,
    Pending,
    Block,
}

/// An error of a node: code and message.
type NodeError = (i64, &'static str);

impl NodeMake {
    pub const ALL: [Self; 5] = [Self::Geth, Self::Erigon, Self::Nethermind, Self::Besu, Self::Reth];

    /// The reply about what this make has dropped or does not grant. `None` is its usual reply.
    #[rustfmt::skip]
    pub(super) fn told(self, asked: DroppedData) -> Option<Result<Value, NodeError>> {
        use NodeMake as M;
        use DroppedData as D;
        const EXPIRED: NodeError = (4444, "pruned history unavailable");
        let error = |code, message| Some(Err((code, message)));
        let null = || Some(Ok(Value::Null));
        match (self, asked) {
            (M::Geth, D::State | D::Simulation) => error(-32000, "missing trie node 3b1e (path ) state 0x3b1e is not available, not found"),
            (M::Geth, D::WideLogs) => error(-32602, "block range greater than 100 max"),
            (M::Geth, D::Pending) => error(-32000, "pending state is not available"),
            (M::Geth, D::BlockReceipts | D::Logs | D::Block) => Some(Err(EXPIRED)),

            (M::Erigon, D::State | D::Simulation) => error(-32000, "old data not available due to pruning: from tx: 1909646215, min tx: 3200000000"),
            (M::Erigon, D::BlockReceipts) => error(-32000, "getReceipt error: ReceiptsGen: PrepareEnv: bn=71837901, old data not available due to pruning"),
            (M::Erigon, D::Logs) => error(-32000, "state transitaion failed: seek with txNum=1962853355 but data before txNum=2662500000 is not available: blockNum=16999999"),
            (M::Erigon, D::WideLogs) => error(-32602, "query block range exceeds server limit, narrow your filter: 100"),
            (M::Erigon, D::Block) => null(),

            (M::Nethermind, D::State | D::Simulation) => error(-32002, "No state available for block 0x3b1e"),
            (M::Nethermind, D::Logs) => error(-32000, "Receipt not available for From block 14319330."),
            (M::Nethermind, D::WideLogs) => error(-32602, "Block range 300 exceeds the maximum of 100 blocks per logs request. Use a narrower fromBlock/toBlock range or increase Receipt.MaxBlockDepth."),
            (M::Nethermind, D::BlockReceipts | D::Block) => error(4444, "Pruned history unavailable"),

            // Bonsai returns defaults for states below its limit.
            (M::Besu, D::State) => Some(Ok(json!("0x0"))),
            (M::Besu, D::Simulation) => error(-32000, "World state unavailable"),
            (M::Besu, D::Logs) => Some(Ok(json!([]))),
            (M::Besu, D::WideLogs) => error(-32602, "Requested range exceeds maximum RPC range limit"),
            (M::Besu, D::BlockReceipts | D::Block) => null(),

            (M::Reth, D::State | D::Simulation) => error(-32603, "state at block #5 is pruned"),
            (M::Reth, D::BlockReceipts) => null(),
            // The headers are there, so that blocks that match are skipped.
            (M::Reth, D::Logs) => Some(Ok(json!([]))),
            (M::Reth, D::WideLogs) => error(-32602, "query exceeds max block range 100"),
            (M::Reth, D::Block) => Some(Err(EXPIRED)),

            (_, D::Transaction) => null(),
            (M::Erigon | M::Nethermind | M::Besu | M::Reth, D::Pending) => None,
        }
    }
}

impl NodeMake {
    /// Changes the reply to a call about what is in blocks below this number, or about what these nodes do not grant.
    pub(super) fn apply(self, below: u64, node: TrueResult<'_>, call: &Value, reply: &mut Value) {
        let told = dropped_data(below, node, call, &reply["result"]).and_then(|asked| self.told(asked));
        let id = call["id"].clone();
        match told {
            Some(Ok(result)) => *reply = json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Some(Err((code, message))) => {
                *reply = json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}});
            }
            None => {}
        }
    }
}

/// The kind of data that a call asks for, if these nodes reply to it in their own way.
fn dropped_data(below: u64, node: TrueResult<'_>, call: &Value, result: &Value) -> Option<DroppedData> {
    let params = &call["params"];
    let is_old = |block: Option<u64>| block.is_some_and(|block| block < below);
    let of_state = |block: &Value, asked: DroppedData| match block.as_str() {
        Some("pending") => Some(DroppedData::Pending),
        _ => is_old(block_of_state(node, block)).then_some(asked),
    };
    match call["method"].as_str()? {
        "eth_getTransactionByHash" | "eth_getTransactionReceipt" => {
            is_old(number(&result["blockNumber"])).then_some(DroppedData::Transaction)
        }
        "eth_getBlockReceipts" => {
            is_old(number(&result[0]["blockNumber"])).then_some(DroppedData::BlockReceipts)
        }
        "eth_getBlockByNumber" | "eth_getBlockByHash" => {
            // Nodes of all makes keep block 0.
            let block = number(&result["number"]).filter(|block| *block > 0);
            is_old(block).then_some(DroppedData::Block)
        }
        "eth_getLogs" => {
            let (from, to) = (number(&params[0]["fromBlock"]), number(&params[0]["toBlock"]));
            let is_wide = from.zip(to).is_some_and(|(from, to)| to.saturating_sub(from) >= LOG_BLOCKS_MAX);
            if is_wide { Some(DroppedData::WideLogs) } else { is_old(from).then_some(DroppedData::Logs) }
        }
        "eth_getBalance" | "eth_getTransactionCount" | "eth_getCode" => {
            of_state(&params[1], DroppedData::State)
        }
        "eth_getStorageAt" => of_state(&params[2], DroppedData::State),
        "eth_call" | "eth_estimateGas" => of_state(&params[1], DroppedData::Simulation),
        "eth_getProof" => Some(DroppedData::Simulation),
        _ => None,
    }
}
