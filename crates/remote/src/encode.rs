//! A pinned query → the call that goes to a node.
//!
//! Blocks are named by hash wherever the method allows it: a node on another fork, or one that has not seen the block,
//! then says so instead of answering for another block. Everything is written anew from the typed parameters; the
//! caller's own bytes never reach a node. A call is the gateway's own until [`RpcCall::for_account`] says for whom it is.

use alloy_primitives::{Address, B256};
use alloy_rpc_types_eth::TransactionRequest;
use bytes::Bytes;
use methods::{
    BlockPart, BlockQuery, BlockRef, CallMessage, FeeQuery, LogBlocks, LogFilterParams, Method,
    SimulationKind, SimulationQuery, StateQuery, StateValue, Tag, TransactionPart, TransactionQuery,
};
use nodes::{BlockId, Class, Needs, RpcCall};
use resources::AccountId;
use sources::Json;

use super::block_ids::block_id;
use super::simulation_gas::{SimulationGas, named_gas};
use crate::chain_query::ChainQuery;

/// A proof of more slots takes longer than other look-ups.
const QUICK_PROOF_SLOTS_MAX: usize = 16;

/// The call that answers a query of `method`. `gas` is `None` if nobody can tell how much a simulation may use.
pub(super) fn call(method: &Method, query: ChainQuery<'_>, gas: Option<SimulationGas>) -> RpcCall {
    let method = method.name;
    match query {
        ChainQuery::Fees(FeeQuery::NextBlock(_)) => quick(method, Needs::default(), |_| {}),
        ChainQuery::Fees(FeeQuery::History { blocks, newest, percentiles }) => {
            of_class(Class::Bulk, method, data_of(newest), |params| {
                params.quantity(*blocks);
                params.quantity(newest.number);
                params.percentiles(percentiles.iter().map(|percentile| percentile.get()));
            })
        }
        ChainQuery::State(query) => state(method, query, |params| params.block(&query.at)),
        ChainQuery::Simulation(query) => simulation(method, query, gas, |params| params.block(&query.at)),
        ChainQuery::Block(query) => block_part(query),
        ChainQuery::Transaction(TransactionQuery { hash, part }) => match part {
            TransactionPart::Transaction => transaction(hash),
            TransactionPart::Receipt => receipt(hash),
        },
        ChainQuery::RawTransactions(block) => of_class(Class::Bulk, method, data_of(&block), |params| {
            params.raw(block.number.to_string().as_bytes());
        }),
    }
}

/// The call that answers a query of `method` about the pending block. `None` for queries that are not asked at `pending`.
pub(super) fn pending_call(method: &Method, query: ChainQuery<'_>, gas: SimulationGas) -> Option<RpcCall> {
    let method = method.name;
    match query {
        ChainQuery::State(query) => match query.value {
            StateValue::Balance | StateValue::TransactionCount => {
                Some(state(method, query, ParamsWriter::pending))
            }
            StateValue::Code | StateValue::Storage { .. } => None,
        },
        ChainQuery::Simulation(query) => Some(simulation(method, query, Some(gas), ParamsWriter::pending)),
        ChainQuery::Fees(_)
        | ChainQuery::Block(_)
        | ChainQuery::Transaction(_)
        | ChainQuery::RawTransactions(_) => None,
    }
}

fn state(
    method: &'static str,
    query: StateQuery<BlockRef>,
    write_block: impl FnOnce(&mut ParamsWriter),
) -> RpcCall {
    quick(method, state_of(&query.at), |params| {
        params.address(query.address);
        if let StateValue::Storage { position } = query.value {
            params.hash(position);
        }
        write_block(params);
    })
}

fn simulation(
    method: &'static str,
    query: &SimulationQuery<BlockRef>,
    gas: Option<SimulationGas>,
    write_block: impl FnOnce(&mut ParamsWriter),
) -> RpcCall {
    let message = &query.message;
    let gas = match query.kind {
        SimulationKind::Call => call_gas(message, gas),
        SimulationKind::Estimate => estimate_gas(message, gas),
    };
    of_message(method, message, gas, state_of(&query.at), write_block)
}

/// Names the block by its hash, however the caller named it.
fn block_part(query: BlockQuery<BlockRef>) -> RpcCall {
    let BlockQuery { block, part } = query;
    match part {
        BlockPart::Whole { full: true } => whole_block(&block),
        BlockPart::Whole { full: false } => header_of_hash(&block),
        BlockPart::Header => by_hash("eth_getHeaderByHash", &block),
        BlockPart::TransactionCount => by_hash("eth_getBlockTransactionCountByHash", &block),
        BlockPart::Receipts => block_receipts(&block),
        BlockPart::UncleCount => by_hash("eth_getUncleCountByBlockHash", &block),
        BlockPart::Uncle { index } => uncle(&block, index),
        BlockPart::Transaction { index } => by_index("eth_getTransactionByBlockHashAndIndex", &block, index),
    }
}

/// A call without gas of its own gets all that it may use.
fn call_gas(message: &CallMessage, gas: Option<SimulationGas>) -> Option<u64> {
    named_gas(message, gas).or(gas.map(|gas| gas.added))
}

/// An estimate without gas of its own gets what the node thinks right.
fn estimate_gas(message: &CallMessage, gas: Option<SimulationGas>) -> Option<u64> {
    named_gas(message, gas)
}

/// A block without whole transactions, by its number.
pub(super) fn header_of_number(number: u64) -> RpcCall {
    let needs = Needs { block: Some(number), state: false, log_blocks: 0, gas: 0 };
    quick("eth_getBlockByNumber", needs, |params| {
        params.quantity(number);
        params.raw(b"false");
    })
}

/// A block without whole transactions, by its hash.
pub(super) fn header_of_hash(block: &BlockRef) -> RpcCall {
    quick("eth_getBlockByHash", data_of(block), |params| {
        params.hash(block.hash);
        params.raw(b"false");
    })
}

/// A block with whole transactions.
pub(super) fn whole_block(block: &BlockRef) -> RpcCall {
    of_class(Class::Bulk, "eth_getBlockByHash", data_of(block), |params| {
        params.hash(block.hash);
        params.raw(b"true");
    })
}

/// A block with whole transactions, by its number.
pub(super) fn whole_block_of_number(number: u64) -> RpcCall {
    let needs = Needs { block: Some(number), state: false, log_blocks: 0, gas: 0 };
    of_class(Class::Bulk, "eth_getBlockByNumber", needs, |params| {
        params.quantity(number);
        params.raw(b"true");
    })
}

/// All receipts of a block.
pub(super) fn block_receipts(block: &BlockRef) -> RpcCall {
    of_class(Class::Bulk, "eth_getBlockReceipts", data_of(block), |params| {
        params.block_by_hash = Some(block_id(*block));
        params.hash(block.hash);
    })
}

/// One uncle of a block.
pub(super) fn uncle(block: &BlockRef, index: u64) -> RpcCall {
    by_index("eth_getUncleByBlockHashAndIndex", block, index)
}

/// The code of an account.
pub(super) fn code(address: Address, at: &BlockRef) -> RpcCall {
    let query = StateQuery { address, at: *at, value: StateValue::Code };
    state("eth_getCode", query, |params| params.block(at))
}

/// An account and some of its storage slots, with their proofs.
pub(super) fn account_proof(address: Address, slots: &[B256], at: &BlockRef) -> RpcCall {
    let class = if slots.len() <= QUICK_PROOF_SLOTS_MAX { Class::Quick } else { Class::Bulk };
    of_class(class, "eth_getProof", state_of(at), |params| {
        params.address(address);
        params.next().list(slots, |json, slot| json.data(slot.as_slice()));
        params.block(at);
    })
}

/// The accounts and storage slots that a message reads, as far as a node can tell.
pub(super) fn access_list(message: &CallMessage, gas: SimulationGas, at: &BlockRef) -> RpcCall {
    let gas = call_gas(message, Some(gas));
    of_message("eth_createAccessList", message, gas, state_of(at), |params| params.block(at))
}

/// A transaction, wherever it is.
pub(super) fn transaction(hash: B256) -> RpcCall {
    quick("eth_getTransactionByHash", Needs::default(), |params| params.hash(hash))
}

/// The receipt of a transaction, wherever it is.
pub(super) fn receipt(hash: B256) -> RpcCall {
    quick("eth_getTransactionReceipt", Needs::default(), |params| params.hash(hash))
}

/// The log query for a range of numbers, or for the one block that a caller named by its hash.
pub(super) fn logs(filter: &LogFilterParams, blocks: LogBlocks<BlockRef>) -> RpcCall {
    let (newest, log_blocks) = match blocks {
        LogBlocks::One(block) => (block, 1),
        LogBlocks::Range { from, to } => (to, (to.number - from.number).saturating_add(1)),
    };
    let needs = Needs { log_blocks, ..data_of(&newest) };
    of_class(Class::Logs, "eth_getLogs", needs, |params| params.filter(filter, blocks))
}

fn quick(method: &'static str, needs: Needs, write: impl FnOnce(&mut ParamsWriter)) -> RpcCall {
    of_class(Class::Quick, method, needs, write)
}

fn of_class(
    class: Class,
    method: &'static str,
    needs: Needs,
    write: impl FnOnce(&mut ParamsWriter),
) -> RpcCall {
    let mut params = ParamsWriter::new();
    write(&mut params);
    RpcCall {
        method,
        block_by_hash: params.block_by_hash,
        params: params.end(),
        class,
        needs,
        may_hedge: true,
        account: AccountId::GATEWAY,
        trace: None,
    }
}

fn by_hash(method: &'static str, block: &BlockRef) -> RpcCall {
    quick(method, data_of(block), |params| params.hash(block.hash))
}

fn by_index(method: &'static str, block: &BlockRef, index: u64) -> RpcCall {
    quick(method, data_of(block), |params| {
        params.hash(block.hash);
        params.quantity(index);
    })
}

fn of_message(
    method: &'static str,
    message: &CallMessage,
    gas: Option<u64>,
    needs: Needs,
    write_block: impl FnOnce(&mut ParamsWriter),
) -> RpcCall {
    let needs = Needs { gas: gas.unwrap_or(0), ..needs };
    of_class(Class::Evm, method, needs, |params| {
        // Every node reads `data`. EthereumJS takes no notice of `input` where it estimates gas.
        let request = TransactionRequest { gas, ..message.request.clone() }.normalized_data();
        params.serialized(&request);
        write_block(params);
        let overrides = &message.overrides;
        if overrides.state.is_some() || overrides.block.is_some() {
            params.serialized(&overrides.state.clone().unwrap_or_default());
        }
        if let Some(block) = &overrides.block {
            params.serialized(block);
        }
    })
}

fn data_of(block: &BlockRef) -> Needs {
    Needs { block: Some(block.number), state: false, log_blocks: 0, gas: 0 }
}

fn state_of(block: &BlockRef) -> Needs {
    Needs { block: Some(block.number), state: true, log_blocks: 0, gas: 0 }
}

/// Room for most parameters without growing.
const PARAMS_BYTES_USUAL: usize = 256;

/// An array of parameters that is being written.
struct ParamsWriter {
    text: Vec<u8>,
    /// The block that they name by its hash.
    block_by_hash: Option<BlockId>,
}

impl ParamsWriter {
    fn new() -> Self {
        let mut text = Vec::with_capacity(PARAMS_BYTES_USUAL);
        text.push(b'[');
        Self { text, block_by_hash: None }
    }

    fn end(mut self) -> Bytes {
        self.text.push(b']');
        self.text.into()
    }

    /// Begins the next element.
    fn next(&mut self) -> Json<'_> {
        if self.text.len() > 1 {
            self.text.push(b',');
        }
        Json(&mut self.text)
    }

    fn raw(&mut self, text: &[u8]) {
        self.next().raw(text);
    }

    fn hash(&mut self, hash: B256) {
        self.next().data(hash.as_slice());
    }

    fn address(&mut self, address: Address) {
        self.next().data(address.as_slice());
    }

    fn quantity(&mut self, quantity: u64) {
        self.next().quantity(quantity);
    }

    /// Plain text that needs no escapes.
    fn text(&mut self, text: &str) {
        let mut json = self.next();
        json.raw(b"\"");
        json.raw(text.as_bytes());
        json.raw(b"\"");
    }

    /// The block of a state query.
    fn block(&mut self, block: &BlockRef) {
        self.block_by_hash = Some(block_id(*block));
        let mut json = self.next();
        json.raw(br#"{"blockHash":"#);
        json.data(block.hash.as_slice());
        json.raw(b"}");
    }

    fn pending(&mut self) {
        self.text(Tag::Pending.name());
    }

    fn percentiles(&mut self, percentiles: impl Iterator<Item = f64>) {
        self.next().list(percentiles, |json, percentile| {
            json.raw(percentile.to_string().as_bytes());
        });
    }

    /// Types of the field, which know how they are written.
    fn serialized(&mut self, value: &impl serde::Serialize) {
        let json = self.next();
        // Only maps with keys that are no strings fail, and none of these has one.
        if serde_json::to_writer(&mut *json.0, value).is_err() {
            json.0.extend_from_slice(b"null");
        }
    }

    fn filter(&mut self, filter: &LogFilterParams, blocks: LogBlocks<BlockRef>) {
        let mut json = self.next();
        match blocks {
            LogBlocks::One(block) => {
                json.raw(br#"{"blockHash":"#);
                json.data(block.hash.as_slice());
            }
            LogBlocks::Range { from, to } => {
                json.raw(br#"{"fromBlock":"#);
                json.quantity(from.number);
                json.raw(br#","toBlock":"#);
                json.quantity(to.number);
            }
        }
        if !filter.addresses.is_empty() {
            json.raw(br#","address":"#);
            json.list(&filter.addresses, |json, address| {
                json.data(address.as_slice());
            });
        }
        if !filter.topics.is_empty() {
            json.raw(br#","topics":"#);
            json.list(&filter.topics, |json, topics| match topics.is_empty() {
                true => {
                    json.raw(b"null");
                }
                false => json.list(topics, |json, topic| {
                    json.data(topic.as_slice());
                }),
            });
        }
        json.raw(b"}");
    }
}
