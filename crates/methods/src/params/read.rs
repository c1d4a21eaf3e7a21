//! One reader per shape of parameters; the method table names them.

use std::borrow::Cow;
use std::sync::Arc;

use jsonrpc::{Kind, Value};

use super::block::{self, BlockParam};
use super::call as call_object;
use super::value::{self, Args, What};
use super::{LogFilter, ParamFault, Percentile, Query, filter};

type Asked = Result<Query<BlockParam>, ParamFault>;

pub(crate) fn storage_at(args: &mut Args<'_>) -> Asked {
    let address = args.required(value::address)?;
    let text = args.required(|value| value::text(value, "a storage position"))?;
    let position = value::storage_position(&text).map_err(ParamFault::Said)?;
    Ok(Query::StorageAt { address, position, at: at(args)? })
}

pub(crate) fn balance(args: &mut Args<'_>) -> Asked {
    Ok(Query::Balance { address: args.required(value::address)?, at: at(args)? })
}

pub(crate) fn code(args: &mut Args<'_>) -> Asked {
    Ok(Query::Code { address: args.required(value::address)?, at: at(args)? })
}

pub(crate) fn transaction_count(args: &mut Args<'_>) -> Asked {
    Ok(Query::TransactionCount { address: args.required(value::address)?, at: at(args)? })
}

/// The block that a state is read at; left out, it is the newest.
fn at(args: &mut Args<'_>) -> Result<BlockParam, ParamFault> {
    Ok(args.optional(block::block)?.unwrap_or_default())
}

pub(crate) fn logs(args: &mut Args<'_>) -> Asked {
    let (filter, blocks): (LogFilter, _) = args.required(filter::filter)?;
    Ok(Query::Logs { filter: Arc::new(filter), blocks })
}

pub(crate) fn call(args: &mut Args<'_>) -> Asked {
    let request = args.required(call_object::request)?;
    let at = at(args)?;
    Ok(Query::Call { message: Box::new(call_object::message(request, args)?), at })
}

pub(crate) fn estimate_gas(args: &mut Args<'_>) -> Asked {
    let request = args.required(call_object::request)?;
    let at = at(args)?;
    Ok(Query::EstimateGas { message: Box::new(call_object::message(request, args)?), at })
}

pub(crate) fn block_by_number(args: &mut Args<'_>) -> Asked {
    let block = args.required(block::number_or_tag)?;
    Ok(Query::Block { block, full: args.optional(value::boolean)?.unwrap_or(false) })
}

pub(crate) fn block_by_hash(args: &mut Args<'_>) -> Asked {
    let block = args.required(block::by_hash)?;
    Ok(Query::Block { block, full: args.optional(value::boolean)?.unwrap_or(false) })
}

pub(crate) fn block_receipts(args: &mut Args<'_>) -> Asked {
    Ok(Query::BlockReceipts { block: args.required(block::block_or_decimal)? })
}

pub(crate) fn transaction_count_by_number(args: &mut Args<'_>) -> Asked {
    Ok(Query::BlockTransactionCount { block: args.required(block::number_or_tag)? })
}

pub(crate) fn transaction_count_by_hash(args: &mut Args<'_>) -> Asked {
    Ok(Query::BlockTransactionCount { block: args.required(block::by_hash)? })
}

pub(crate) fn uncle_count_by_number(args: &mut Args<'_>) -> Asked {
    Ok(Query::UncleCount { block: args.required(block::number_or_tag)? })
}

pub(crate) fn uncle_count_by_hash(args: &mut Args<'_>) -> Asked {
    Ok(Query::UncleCount { block: args.required(block::by_hash)? })
}

pub(crate) fn uncle_by_number(args: &mut Args<'_>) -> Asked {
    Ok(Query::Uncle { block: args.required(block::number_or_tag)?, index: args.required(value::u64)? })
}

pub(crate) fn uncle_by_hash(args: &mut Args<'_>) -> Asked {
    Ok(Query::Uncle { block: args.required(block::by_hash)?, index: args.required(value::u64)? })
}

pub(crate) fn transaction_by_number(args: &mut Args<'_>) -> Asked {
    Ok(Query::TransactionByIndex {
        block: args.required(block::number_or_tag)?,
        index: args.required(value::u64)?,
    })
}

pub(crate) fn transaction_by_block_hash(args: &mut Args<'_>) -> Asked {
    Ok(Query::TransactionByIndex { block: args.required(block::by_hash)?, index: args.required(value::u64)? })
}

pub(crate) fn transaction_by_hash(args: &mut Args<'_>) -> Asked {
    Ok(Query::TransactionByHash { hash: args.required(value::hash)? })
}

pub(crate) fn transaction_receipt(args: &mut Args<'_>) -> Asked {
    Ok(Query::TransactionReceipt { hash: args.required(value::hash)? })
}

pub(crate) fn raw_block_transactions(args: &mut Args<'_>) -> Asked {
    Ok(Query::RawBlockTransactions { block: args.required(block::integer)? })
}

pub(crate) fn fee_history(args: &mut Args<'_>) -> Asked {
    let blocks = args.required(count)?;
    let newest = args.required(block::number_or_tag)?;
    let percentiles = args.optional(percentiles)?.unwrap_or_default();
    Ok(Query::FeeHistory { blocks, newest, percentiles })
}

/// How many blocks: clients send a quantity, a JSON integer or a decimal string.
fn count(value: Value<'_>) -> Result<u64, What> {
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

fn percentiles(value: Value<'_>) -> Result<Vec<Percentile>, What> {
    /// As many as go-ethereum takes.
    const PERCENTILES_MAX: usize = 100;
    let Some(elements) = value.elements() else {
        return Err(format!("{} where an array is expected", value::kind_name(value.kind())).into());
    };
    let mut percentiles: Vec<Percentile> = Vec::new();
    for element in elements {
        let number = (element.kind() == Kind::Number).then(|| element.raw().parse().ok()).flatten();
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
        pub(crate) fn $name(_: &mut Args<'_>) -> Asked {
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
