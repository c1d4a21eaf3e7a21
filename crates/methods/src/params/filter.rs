//! The filter object of `eth_getLogs`.

use alloy_primitives::{Address, B256};
use jsonrpc::{Kind, Value};

use super::block::{BlockParam, Tag, number_or_tag};
use super::value::{self, What, quoted};

/// Topic positions of a log; the EVM has no more.
const TOPIC_POSITIONS_MAX: usize = 4;

/// Which logs are meant, apart from their blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct LogFilter {
    /// Any of these; none = any address.
    pub addresses: Vec<Address>,
    /// By position, any of these; none = any topic, but there must be one.
    pub topics: Vec<Vec<B256>>,
}

impl LogFilter {
    /// How many values the filter has; the limit of 5,000 counts these.
    pub fn params(&self) -> usize {
        self.addresses.len() + self.topics.iter().map(Vec::len).sum::<usize>()
    }

    pub fn heap_bytes(&self) -> usize {
        size_of::<Self>() + self.params() * size_of::<B256>() + self.topics.len() * size_of::<Vec<B256>>()
    }
}

/// The blocks of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Blocks<B> {
    One(B),
    /// Both ends included.
    Range {
        from: B,
        to: B,
    },
}

impl<B> Blocks<B> {
    pub(super) fn try_map<C, E>(self, mut name: impl FnMut(B) -> Result<C, E>) -> Result<Blocks<C>, E> {
        Ok(match self {
            Self::One(block) => Blocks::One(name(block)?),
            Self::Range { from, to } => Blocks::Range { from: name(from)?, to: name(to)? },
        })
    }
}

pub(super) fn filter(object: Value<'_>) -> Result<(LogFilter, Blocks<BlockParam>), What> {
    let Some(members) = object.members() else {
        return Err(format!("{} where a filter object is expected", value::kind_name(object.kind())).into());
    };
    let (mut filter, mut from, mut to, mut hash) = (LogFilter::default(), None, None, None);
    for member in members {
        if member.repeated {
            return Err(format!("duplicate member {}", quoted(&member.name)).into());
        }
        if member.value.is_null() {
            continue;
        }
        let in_field = |what: What| in_field(&member.name, &what);
        match &*member.name {
            "address" => filter.addresses = addresses(member.value)?,
            "topics" => filter.topics = topics(member.value)?,
            "fromBlock" => from = Some(number_or_tag(member.value).map_err(in_field)?),
            "toBlock" => to = Some(number_or_tag(member.value).map_err(in_field)?),
            "blockHash" | "blockhash" if hash.is_some() => {
                return Err("duplicate member \"blockHash\"".into());
            }
            "blockHash" | "blockhash" => hash = Some(value::hash(member.value).map_err(in_field)?),
            // Clients add members of their own, and nodes ignore them.
            _ => {}
        }
    }
    Ok((filter, blocks(from, to, hash)?))
}

/// An error with the place of the value that it is about, such as `topics[1][0]`.
fn in_field(field: &str, what: &str) -> What {
    format!("{field}: {what}").into()
}

fn blocks(
    from: Option<BlockParam>,
    to: Option<BlockParam>,
    hash: Option<B256>,
) -> Result<Blocks<BlockParam>, What> {
    let latest = BlockParam::Tag(Tag::Latest);
    match hash {
        None => Ok(Blocks::Range { from: from.unwrap_or(latest), to: to.unwrap_or(latest) }),
        Some(hash) if from.is_none() && to.is_none() => Ok(Blocks::One(BlockParam::with_hash(hash))),
        Some(_) => Err("cannot specify both BlockHash and FromBlock/ToBlock, choose one or the other".into()),
    }
}

fn addresses(value: Value<'_>) -> Result<Vec<Address>, What> {
    match value.elements() {
        None => value::address(value).map(|address| vec![address]).map_err(|what| in_field("address", &what)),
        Some(elements) => {
            let each = elements.enumerate().map(|(index, element)| {
                value::address(element).map_err(|what| in_field(&format!("address[{index}]"), &what))
            });
            each.collect()
        }
    }
}

fn topics(value: Value<'_>) -> Result<Vec<Vec<B256>>, What> {
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

/// One position: null or `[]` = any, a topic, or an array of topics of which a null one makes it any again.
fn alternatives(value: Value<'_>, position: usize) -> Result<Vec<B256>, What> {
    match value.kind() {
        Kind::Null => Ok(Vec::new()),
        Kind::Array => {
            let mut any = false;
            let mut topics = Vec::new();
            for (index, element) in value.elements().into_iter().flatten().enumerate() {
                let in_field = |what: What| in_field(&format!("topics[{position}][{index}]"), &what);
                match element.kind() {
                    Kind::Null => any = true,
                    _ => topics.push(value::hash(element).map_err(in_field)?),
                }
            }
            Ok(if any { Vec::new() } else { topics })
        }
        _ => {
            let in_field = |what: What| in_field(&format!("topics[{position}]"), &what);
            value::hash(value).map(|topic| vec![topic]).map_err(in_field)
        }
    }
}
