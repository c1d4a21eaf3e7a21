//! The filter object of `eth_getLogs`.

use alloy_primitives::{Address, B256};
use jsonrpc::{Value, ValueKind};

use super::block::{BlockParam, Tag, number_or_tag};
use super::value::{self, ValueError, quoted};

/// Topics of a log in the EVM.
const TOPIC_POSITIONS_MAX: usize = 4;

/// The addresses and topics of a log filter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct LogFilterParams {
    /// A log has one of these addresses; an empty list matches any address.
    pub addresses: Vec<Address>,
    /// At each position, a log has one of these topics; an empty list matches any topic, but the topic must exist.
    pub topics: Vec<Vec<B256>>,
}

impl LogFilterParams {
    /// The number of addresses and topics.
    pub fn value_count(&self) -> usize {
        self.addresses.len() + self.topics.iter().map(Vec::len).sum::<usize>()
    }

    pub fn heap_bytes(&self) -> usize {
        size_of::<Self>()
            + self.value_count() * size_of::<B256>()
            + self.topics.len() * size_of::<Vec<B256>>()
    }
}

/// The blocks of a log filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LogBlocks<B> {
    One(B),
    /// Both ends included.
    Range {
        from: B,
        to: B,
    },
}

impl<B> LogBlocks<B> {
    pub(crate) fn try_map<C, E>(self, mut convert: impl FnMut(B) -> Result<C, E>) -> Result<LogBlocks<C>, E> {
        Ok(match self {
            Self::One(block) => LogBlocks::One(convert(block)?),
            Self::Range { from, to } => LogBlocks::Range { from: convert(from)?, to: convert(to)? },
        })
    }
}

pub(super) fn filter(object: Value<'_>) -> Result<(LogFilterParams, LogBlocks<BlockParam>), ValueError> {
    let Some(members) = object.members() else {
        return Err(format!("{} where a filter object is expected", value::kind_name(object.kind())).into());
    };
    let (mut filter, mut from, mut to, mut hash) = (LogFilterParams::default(), None, None, None);
    for member in members {
        if member.repeated {
            return Err(format!("duplicate member {}", quoted(&member.name)).into());
        }
        if member.value.is_null() {
            continue;
        }
        let in_field = |error: ValueError| in_field(&member.name, &error);
        match &*member.name {
            "address" => filter.addresses = addresses(member.value)?,
            "topics" => filter.topics = topics(member.value)?,
            "fromBlock" => from = Some(number_or_tag(member.value).map_err(in_field)?),
            "toBlock" => to = Some(number_or_tag(member.value).map_err(in_field)?),
            "blockHash" | "blockhash" if hash.is_some() => {
                return Err("duplicate member \"blockHash\"".into());
            }
            "blockHash" | "blockhash" => hash = Some(value::hash(member.value).map_err(in_field)?),
            // Clients send additional members, and nodes ignore them.
            _ => {}
        }
    }
    Ok((filter, blocks(from, to, hash)?))
}

/// Adds the path of the value, such as `topics[1][0]`.
fn in_field(field: &str, error: &str) -> ValueError {
    format!("{field}: {error}").into()
}

fn blocks(
    from: Option<BlockParam>,
    to: Option<BlockParam>,
    hash: Option<B256>,
) -> Result<LogBlocks<BlockParam>, ValueError> {
    let latest = BlockParam::Tag(Tag::Latest);
    match hash {
        None => Ok(LogBlocks::Range { from: from.unwrap_or(latest), to: to.unwrap_or(latest) }),
        Some(hash) if from.is_none() && to.is_none() => Ok(LogBlocks::One(BlockParam::with_hash(hash))),
        Some(_) => Err("cannot specify both BlockHash and FromBlock/ToBlock, choose one or the other".into()),
    }
}

fn addresses(value: Value<'_>) -> Result<Vec<Address>, ValueError> {
    match value.elements() {
        None => {
            value::address(value).map(|address| vec![address]).map_err(|error| in_field("address", &error))
        }
        Some(elements) => {
            let each = elements.enumerate().map(|(index, element)| {
                value::address(element).map_err(|error| in_field(&format!("address[{index}]"), &error))
            });
            each.collect()
        }
    }
}

fn topics(value: Value<'_>) -> Result<Vec<Vec<B256>>, ValueError> {
    let Some(elements) = value.elements() else {
        let kind = value::kind_name(value.kind());
        return Err(in_field("topics", &format!("{kind} where an array of topics is expected")));
    };
    let mut topics = Vec::new();
    for (position, element) in elements.enumerate() {
        if position == TOPIC_POSITIONS_MAX {
            return Err(in_field("topics", &format!("too many topics, want at most {TOPIC_POSITIONS_MAX}")));
        }
        topics.push(alternatives(element, position)?);
    }
    Ok(topics)
}

/// The topics of one position: a topic or an array of topics. `null`, `[]` and an array with a `null` match any topic.
fn alternatives(value: Value<'_>, position: usize) -> Result<Vec<B256>, ValueError> {
    match value.kind() {
        ValueKind::Null => Ok(Vec::new()),
        ValueKind::Array => {
            let mut any = false;
            let mut topics = Vec::new();
            for (index, element) in value.elements().into_iter().flatten().enumerate() {
                let in_field = |error: ValueError| in_field(&format!("topics[{position}][{index}]"), &error);
                match element.kind() {
                    ValueKind::Null => any = true,
                    _ => topics.push(value::hash(element).map_err(in_field)?),
                }
            }
            Ok(if any { Vec::new() } else { topics })
        }
        _ => {
            let in_field = |error: ValueError| in_field(&format!("topics[{position}]"), &error);
            value::hash(value).map(|topic| vec![topic]).map_err(in_field)
        }
    }
}
