//! Block parameters: a number, a tag, a hash, or an EIP-1898 object.

use alloy_primitives::B256;
use jsonrpc::{Value, ValueKind};

use super::value::{self, ValueError, quoted};

/// A block as the caller named it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockParam {
    Number(u64),
    Tag(Tag),
    Hash {
        hash: B256,
        /// Whether a reorganised block is refused.
        must_be_canonical: bool,
    },
}

impl BlockParam {
    /// The block with this hash, on any branch.
    pub fn with_hash(hash: B256) -> Self {
        Self::Hash { hash, must_be_canonical: false }
    }
}

/// A block named by its position in the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tag {
    Latest,
    Earliest,
    Pending,
    Finalized,
    Safe,
}

impl Tag {
    pub const ALL: [Self; 5] = [Self::Latest, Self::Earliest, Self::Pending, Self::Finalized, Self::Safe];

    pub fn name(self) -> &'static str {
        match self {
            Self::Latest => "latest",
            Self::Earliest => "earliest",
            Self::Pending => "pending",
            Self::Finalized => "finalized",
            Self::Safe => "safe",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tag| tag.name() == name)
    }
}

impl Default for BlockParam {
    fn default() -> Self {
        Self::Tag(Tag::Latest)
    }
}

/// Bits of a block number; common clients keep it in a signed 64-bit integer.
const NUMBER_BITS: usize = 63;

const NUMBER_TOO_LARGE: &str = "block number larger than 2^63-1";

/// A number, a tag, a bare hash, or an EIP-1898 object.
pub(crate) fn block(value: Value<'_>) -> Result<BlockParam, ValueError> {
    match value.kind() {
        ValueKind::Object => eip_1898(value),
        _ => block_text(&value::text(value, "a block number, tag or hash")?),
    }
}

/// A number or a tag, as lookups by number and log filters accept it.
pub(crate) fn number_or_tag(value: Value<'_>) -> Result<BlockParam, ValueError> {
    let text = value::text(value, "a block number or tag")?;
    match Tag::named(&text) {
        Some(tag) => Ok(BlockParam::Tag(tag)),
        None => number_text(&text),
    }
}

/// A block as in [`block`], a JSON integer or a decimal string, as `eth_getBlockReceipts` accepts it.
pub(crate) fn block_or_decimal(value: Value<'_>) -> Result<BlockParam, ValueError> {
    if value.kind() == ValueKind::Number {
        return integer(value);
    }
    if let Some(text) = value.as_str()
        && !text.is_empty()
        && text.bytes().all(|digit| digit.is_ascii_digit())
    {
        let number = text.parse().ok().filter(|&number| number <= i64::MAX as u64);
        return number.map(BlockParam::Number).ok_or_else(|| NUMBER_TOO_LARGE.into());
    }
    block(value)
}

/// Only a JSON integer, as `zks_getRawBlockTransactions` accepts it.
pub(crate) fn integer(value: Value<'_>) -> Result<BlockParam, ValueError> {
    if value.kind() != ValueKind::Number {
        return Err(format!("{} where an integer is expected", value::kind_name(value.kind())).into());
    }
    match value.as_u64() {
        Some(number) if number <= i64::MAX as u64 => Ok(BlockParam::Number(number)),
        Some(_) => Err(NUMBER_TOO_LARGE.into()),
        None => Err(format!("{} is not a block number", quoted(value.raw())).into()),
    }
}

/// Only a hash, as the `…ByHash` methods accept it.
pub(crate) fn by_hash(value: Value<'_>) -> Result<BlockParam, ValueError> {
    value::hash(value).map(BlockParam::with_hash)
}

fn block_text(text: &str) -> Result<BlockParam, ValueError> {
    if let Some(tag) = Tag::named(text) {
        return Ok(BlockParam::Tag(tag));
    }
    const HASH_TEXT_LEN: usize = 66;
    if text.len() == HASH_TEXT_LEN
        && let Ok(hash) = text.parse()
    {
        return Ok(BlockParam::with_hash(hash));
    }
    number_text(text)
}

fn number_text(text: &str) -> Result<BlockParam, ValueError> {
    let number = value::parse_quantity(text, NUMBER_BITS)?.ok_or(NUMBER_TOO_LARGE)?;
    Ok(BlockParam::Number(number.saturating_to()))
}

fn eip_1898(object: Value<'_>) -> Result<BlockParam, ValueError> {
    let (mut number, mut hash, mut must_be_canonical) = (None, None, false);
    for member in object.members().into_iter().flatten() {
        if member.repeated {
            return Err(format!("duplicate member {}", quoted(&member.name)).into());
        }
        if member.value.is_null() {
            continue;
        }
        let in_field = |error: ValueError| ValueError::from(format!("{}: {error}", member.name));
        match &*member.name {
            "blockNumber" => number = Some(number_or_tag(member.value).map_err(in_field)?),
            "blockHash" => hash = Some(value::hash(member.value).map_err(in_field)?),
            "requireCanonical" => must_be_canonical = value::boolean(member.value).map_err(in_field)?,
            other => return Err(format!("unknown member {}", quoted(other)).into()),
        }
    }
    match (number, hash) {
        (Some(_), Some(_)) => {
            Err("cannot specify both blockHash and blockNumber, choose one or the other".into())
        }
        (Some(number), None) => Ok(number),
        (None, Some(hash)) => Ok(BlockParam::Hash { hash, must_be_canonical }),
        (None, None) => Err("a block object needs blockNumber or blockHash".into()),
    }
}
