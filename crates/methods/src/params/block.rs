//! Block parameters: a number, a tag, a hash, or an EIP-1898 object.

use alloy_primitives::B256;
use jsonrpc::{Kind, Value};

use super::value::{self, What, quoted};

/// A block as the caller named it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockParam {
    Number(u64),
    Tag(Tag),
    Hash {
        hash: B256,
        /// Whether a block that was reorganised away does not count.
        must_be_canonical: bool,
    },
}

impl BlockParam {
    /// The block with this hash, on whatever branch it is.
    pub fn with_hash(hash: B256) -> Self {
        Self::Hash { hash, must_be_canonical: false }
    }
}

/// A block named by where it stands.
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

/// Block numbers end here, because common clients keep them in signed 64-bit integers.
const NUMBER_BITS: usize = 63;

/// A number, a tag, a bare hash, or an EIP-1898 object.
pub(crate) fn block(value: Value<'_>) -> Result<BlockParam, What> {
    match value.kind() {
        Kind::Object => eip_1898(value),
        _ => block_text(&value::text(value, "a block number, tag or hash")?),
    }
}

/// A number or a tag: by-number lookups and filters take no hash here.
pub(crate) fn number_or_tag(value: Value<'_>) -> Result<BlockParam, What> {
    let text = value::text(value, "a block number or tag")?;
    match Tag::named(&text) {
        Some(tag) => Ok(BlockParam::Tag(tag)),
        None => number_text(&text),
    }
}

/// What `eth_getBlockReceipts` takes beyond that: a JSON integer and a decimal string.
pub(crate) fn block_or_decimal(value: Value<'_>) -> Result<BlockParam, What> {
    if value.kind() == Kind::Number {
        return integer(value);
    }
    if let Some(text) = value.as_str()
        && !text.is_empty()
        && text.bytes().all(|digit| digit.is_ascii_digit())
    {
        let number = text.parse().ok().filter(|&number| number <= i64::MAX as u64);
        return number.map(BlockParam::Number).ok_or_else(|| "block number larger than 2^63-1".into());
    }
    block(value)
}

/// A JSON integer and nothing else, as `zks_getRawBlockTransactions` takes it.
pub(crate) fn integer(value: Value<'_>) -> Result<BlockParam, What> {
    if value.kind() != Kind::Number {
        return Err(format!("{} where an integer is expected", value::kind_name(value.kind())).into());
    }
    match value.as_u64() {
        Some(number) if number <= i64::MAX as u64 => Ok(BlockParam::Number(number)),
        Some(_) => Err("block number larger than 2^63-1".into()),
        None => Err(format!("{} is not a block number", quoted(value.raw())).into()),
    }
}

/// A block hash by itself, for the methods that are named after it.
pub(crate) fn by_hash(value: Value<'_>) -> Result<BlockParam, What> {
    value::hash(value).map(BlockParam::with_hash)
}

fn block_text(text: &str) -> Result<BlockParam, What> {
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

fn number_text(text: &str) -> Result<BlockParam, What> {
    match value::quantity_text(text, NUMBER_BITS) {
        Ok(number) => Ok(BlockParam::Number(number.saturating_to())),
        Err(what) if what.contains("bits") => Err("block number larger than 2^63-1".into()),
        Err(what) => Err(what),
    }
}

fn eip_1898(object: Value<'_>) -> Result<BlockParam, What> {
    let (mut number, mut hash, mut must_be_canonical) = (None, None, false);
    for member in object.members().into_iter().flatten() {
        if member.repeated {
            return Err(format!("duplicate member {}", quoted(&member.name)).into());
        }
        if member.value.is_null() {
            continue;
        }
        let in_field = |what: What| What::from(format!("{}: {what}", member.name));
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
