//! One reader per shape of parameters; the method table names them.

use std::borrow::Cow;
use std::sync::Arc;

use jsonrpc::{Value, ValueKind};

use super::block::{self, BlockParam};
use super::call as call_object;
use super::value::{self, ParamReader, ValueError};
use super::{LogFilterParams, ParamFault, Percentile, Query, filter};

type QueryResult = Result<Query<BlockParam>, ParamFault>;

pub(crate) fn storage_at(params: &mut ParamReader<'_>) -> QueryResult {
    let address = params.required(value::address)?;
    let text = params.required(|value| value::text(value, "a storage position"))?;
    let position = value::storage_position(&text).map_err(ParamFault::Text)?;
    Ok(Query::StorageAt { address, position, at: at(params)? })
}

pub(crate) fn balance(params: &mut ParamReader<'_>) -> QueryResult {
    Ok(Query::Balance { address: params.required(value::address)?, at: at(params)? })
}

pub(crate) fn code(params: &mut ParamReader<'_>) -> QueryResult {
    Ok(Query::Code { address: params.required(value::address)?, at: at(params)? })
}

pub(crate) fn transaction_count(params: &mut ParamReader<'_>) -> QueryResult {
    Ok(Query::TransactionCount { address: params.required(value::address)?, at: at(params)? })
}

/// The block whose state is read; `latest` by default.
fn at(params: &mut ParamReader<'_>) -> Result<BlockParam, ParamFault> {
    Ok(params.optional(block::block)?.unwrap_or_default())
}

pub(crate) fn logs(params: &mut ParamReader<'_>) -> QueryResult {
    let (filter, blocks): (LogFilterParams, _) = params.required(filter::filter)?;
    Ok(Query::Logs { filter: Arc::new(filter), blocks })
}

pub(crate) fn call(params: &mut ParamReader<'_>) -> QueryResult {
    let request = params.required(call_object::request)?;
    let at = at(params)?;
    Ok(Query::Call { message: Box::new(call_object::message(request, params)?), at })
}

pub(crate) fn estimate_gas(params: &mut ParamReader<'_>) -> QueryResult {
    let request = params.required(call_object::request)?;
    let at = at(params)?;
    Ok(Query::EstimateGas { message: Box::new(call_object::message(request, params)?), at })
}

pub(crate) fn block_by_number(params: &mut ParamReader<'_>) -> QueryResult {
    let block = params.required(block::number_or_tag)?;
    Ok(Query::Block { block, full: params.optional(value::boolean)?.unwrap_or(false) })
}

pub(crate) fn block_by_hash(params: &mut ParamReader<'_>) -> QueryResult {
    let block = params.required(block::by_hash)?;
    Ok(Query::Block { block, full: params.optional(value::boolean)?.unwrap_or(false) })
}

pub(crate) fn block_receipts(params: &mut ParamReader<'_>) -> QueryResult {
    Ok(Query::BlockReceipts { block: params.required(block::block_or_decimal)? })
}

pub(crate) fn transaction_count_by_number(params: &mut ParamReader<'_>) -> QueryResult {
    Ok(Query::BlockTransactionCount { block: params.required(block::number_or_tag)? })
}

pub(crate) fn transaction_count_by_hash(params: &mut ParamReader<'_>) -> QueryResult {
    Ok(Query::BlockTransactionCount { block: params.required(block::by_hash)? })
}

pub(crate) fn uncle_count_by_number(params: &mut ParamReader<'_>) -> QueryResult {
    Ok(Query::UncleCount { block: params.required(block::number_or_tag)? })
}

pub(crate) fn uncle_count_by_hash(params: &mut ParamReader<'_>) -> QueryResult {
    Ok(Query::UncleCount { block: params.required(block::by_hash)? })
}

pub(crate) fn uncle_by_number(params: &mut ParamReader<'_>) -> QueryResult {
    Ok(Query::Uncle { block: params.required(block::number_or_tag)?, index: params.required(value::u64)? })
}

pub(crate) fn uncle_by_hash(params: &mut ParamReader<'_>) -> QueryResult {
    Ok(Query::Uncle { block: params.required(block::by_hash)?, index: params.required(value::u64)? })
}

pub(crate) fn transaction_by_number(params: &mut ParamReader<'_>) -> QueryResult {
    Ok(Query::TransactionByIndex {
        block: params.required(block::number_or_tag)?,
        index: params.required(value::u64)?,
    })
}

pub(crate) fn transaction_by_block_hash(params: &mut ParamReader<'_>) -> QueryResult {
    Ok(Query::TransactionByIndex {
        block: params.required(block::by_hash)?,
        index: params.required(value::u64)?,
    })
}

pub(crate) fn transaction_by_hash(params: &mut ParamReader<'_>) -> QueryResult {
    Ok(Query::TransactionByHash { hash: params.required(value::hash)? })
}

pub(crate) fn transaction_receipt(params: &mut ParamReader<'_>) -> QueryResult {
    Ok(Query::TransactionReceipt { hash: params.required(value::hash)? })
}

pub(crate) fn raw_block_transactions(params: &mut ParamReader<'_>) -> QueryResult {
    Ok(Query::RawBlockTransactions { block: params.required(block::integer)? })
}

pub(crate) fn fee_history(params: &mut ParamReader<'_>) -> QueryResult {
    let blocks = params.required(block_count)?;
    let newest = params.required(block::number_or_tag)?;
    let percentiles = params.optional(percentiles)?.unwrap_or_default();
    Ok(Query::FeeHistory { blocks, newest, percentiles })
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

macro_rules! without_params {
    ($($name:ident => $query:ident),+ $(,)?) => {$(
        pub(crate) fn $name(_: &mut ParamReader<'_>) -> QueryResult {
            Ok(Query::$query)
        }
    )+};
}

without_params! {
    chain_id => ChainId,
    net_version => NetVersion,
    block_number => BlockNumber,
    syncing => Syncing,
    client_version => ClientVersion,
    discover => Discover,
    gas_price => GasPrice,
    max_priority_fee => MaxPriorityFeePerGas,
}
