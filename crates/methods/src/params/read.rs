//! One reader per shape of parameters. The rows of the method table name them, with what differs between methods.

use std::borrow::Cow;
use std::sync::Arc;

use jsonrpc::{Value, ValueKind};

use super::block::{self, BlockParam};
use super::call as call_object;
use super::query::{
    BlockPart, BlockQuery, FeeQuery, LogsQuery, Query, SimulationKind, SimulationQuery, StateQuery,
    StateValue, TransactionPart, TransactionQuery,
};
use super::value::{self, ParamReader, ValueError};
use super::{LogFilterParams, ParamFault, Percentile, filter};

type QueryResult = Result<Query<BlockParam>, ParamFault>;

/// Reads a block in the spellings that a method accepts.
type BlockReader = fn(Value<'_>) -> Result<BlockParam, ValueError>;

/// An account, and the block whose state is read.
pub(crate) fn state(params: &mut ParamReader<'_>, value: StateValue) -> QueryResult {
    let address = params.required(value::address)?;
    Ok(Query::State(StateQuery { address, at: at(params)?, value }))
}

pub(crate) fn storage_at(params: &mut ParamReader<'_>) -> QueryResult {
    let address = params.required(value::address)?;
    let text = params.required(|value| value::text(value, "a storage position"))?;
    let position = value::storage_position(&text).map_err(ParamFault::Text)?;
    let value = StateValue::Storage { position };
    Ok(Query::State(StateQuery { address, at: at(params)?, value }))
}

/// The block whose state is read; `latest` by default.
fn at(params: &mut ParamReader<'_>) -> Result<BlockParam, ParamFault> {
    Ok(params.optional(block::block)?.unwrap_or_default())
}

pub(crate) fn logs(params: &mut ParamReader<'_>) -> QueryResult {
    let (filter, blocks): (LogFilterParams, _) = params.required(filter::filter)?;
    Ok(Query::Logs(LogsQuery { filter: Arc::new(filter), blocks }))
}

pub(crate) fn simulation(params: &mut ParamReader<'_>, kind: SimulationKind) -> QueryResult {
    let request = params.required(call_object::request)?;
    let at = at(params)?;
    let message = Box::new(call_object::message(request, params)?);
    Ok(Query::Simulation(SimulationQuery { kind, message, at }))
}

/// A block, and whether it has whole transactions.
pub(crate) fn whole_block(params: &mut ParamReader<'_>, read_block: BlockReader) -> QueryResult {
    let block = params.required(read_block)?;
    let full = params.optional(value::boolean)?.unwrap_or(false);
    Ok(Query::Block(BlockQuery { block, part: BlockPart::Whole { full } }))
}

pub(crate) fn block_part(
    params: &mut ParamReader<'_>,
    read_block: BlockReader,
    part: BlockPart,
) -> QueryResult {
    Ok(Query::Block(BlockQuery { block: params.required(read_block)?, part }))
}

/// A block, and the index of an item in it.
pub(crate) fn block_item(
    params: &mut ParamReader<'_>,
    read_block: BlockReader,
    part: fn(u64) -> BlockPart,
) -> QueryResult {
    let block = params.required(read_block)?;
    Ok(Query::Block(BlockQuery { block, part: part(params.required(value::u64)?) }))
}

pub(crate) fn transaction(params: &mut ParamReader<'_>, part: TransactionPart) -> QueryResult {
    Ok(Query::Transaction(TransactionQuery { hash: params.required(value::hash)?, part }))
}

pub(crate) fn raw_transactions(params: &mut ParamReader<'_>) -> QueryResult {
    Ok(Query::RawTransactions(params.required(block::integer)?))
}

pub(crate) fn fee_history(params: &mut ParamReader<'_>) -> QueryResult {
    let blocks = params.required(block_count)?;
    let newest = params.required(block::number_or_tag)?;
    let percentiles = params.optional(percentiles)?.unwrap_or_default();
    Ok(Query::Fees(FeeQuery::History { blocks, newest, percentiles }))
}

/// A number of blocks: a quantity, a JSON integer or a decimal string, because clients send all of them.
fn block_count(value: Value<'_>) -> Result<u64, ValueError> {
    if let Some(count) = value.as_u64() {
        return Ok(count);
    }
    match value.as_str() {
        Some(text) if !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit()) => {
            text.parse().map_err(|_| "number larger than 64 bits".into())
        }
        _ => value::u64(value),
    }
}

fn percentiles(value: Value<'_>) -> Result<Vec<Percentile>, ValueError> {
    /// The limit of go-ethereum.
    const PERCENTILES_MAX: usize = 100;
    let Some(elements) = value.elements() else {
        return Err(format!("{} where an array is expected", value::kind_name(value.kind())).into());
    };
    let mut percentiles: Vec<Percentile> = Vec::new();
    for element in elements {
        let number = (element.kind() == ValueKind::Number).then(|| element.raw().parse().ok()).flatten();
        let percentile = number.and_then(Percentile::new).ok_or("percentiles are numbers from 0 to 100")?;
        if percentiles.last().is_some_and(|last| last.get() > percentile.get()) {
            return Err("percentiles must not decrease".into());
        }
        if percentiles.len() == PERCENTILES_MAX {
            return Err(Cow::from(format!("more than {PERCENTILES_MAX} percentiles")));
        }
        percentiles.push(percentile);
    }
    Ok(percentiles)
}
