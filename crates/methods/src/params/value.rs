//! Strict readers for quantities, data, addresses and hashes.

use std::borrow::Cow;

use alloy_primitives::{Address, B256, Bytes, U256};
use jsonrpc::{Params, Value, ValueKind};

use super::ParamFault;

/// Why a value was refused, as text for the caller.
pub(crate) type ValueError = Cow<'static, str>;

/// Reads the parameters of a call in order.
#[derive(Debug)]
pub(crate) struct ParamReader<'a> {
    params: &'a Params<'a>,
    next: usize,
}

impl<'a> ParamReader<'a> {
    /// Refuses named parameters, and more parameters than `max`.
    pub(crate) fn new(params: &'a Params<'a>, max: usize) -> Result<Self, ParamFault> {
        if params.is_not_array() {
            return Err(ParamFault::NotArray);
        }
        if params.count() > max {
            return Err(ParamFault::TooMany { max });
        }
        Ok(Self { params, next: 0 })
    }

    /// The next parameter, which must be present and not null.
    pub(crate) fn required<T>(
        &mut self,
        read: impl Fn(Value<'a>) -> Result<T, ValueError>,
    ) -> Result<T, ParamFault> {
        let position = self.next;
        self.optional(read)?.ok_or(ParamFault::Missing { position })
    }

    /// The next parameter, or `None` if it is absent or null.
    pub(crate) fn optional<T>(
        &mut self,
        read: impl Fn(Value<'a>) -> Result<T, ValueError>,
    ) -> Result<Option<T>, ParamFault> {
        let position = self.next;
        match self.raw() {
            None => Ok(None),
            Some(value) => read(value).map(Some).map_err(|reason| ParamFault::Invalid { position, reason }),
        }
    }

    /// The next parameter unparsed, or `None` if it is absent or null.
    pub(crate) fn raw(&mut self) -> Option<Value<'a>> {
        let value = self.params.get(self.next);
        self.next += 1;
        value.filter(|value| !value.is_null())
    }
}

/// The text of a string. The error names the kind of any other value and what was `expected`.
pub(crate) fn text<'a>(value: Value<'a>, expected: &'static str) -> Result<Cow<'a, str>, ValueError> {
    value.as_str().ok_or_else(|| format!("{} where {expected} is expected", kind_name(value.kind())).into())
}

pub(crate) fn kind_name(kind: ValueKind) -> &'static str {
    match kind {
        ValueKind::Null => "null",
        ValueKind::Bool => "a boolean",
        ValueKind::Number => "a number",
        ValueKind::String => "a string",
        ValueKind::Array => "an array",
        ValueKind::Object => "an object",
    }
}

/// The digits after `0x`.
fn digits(text: &str) -> Result<&str, ValueError> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => Ok(digits),
        None if text.is_empty() => Err("empty hex string".into()),
        None => Err("hex string without 0x prefix".into()),
    }
}

/// A quantity of at most `bits` bits.
fn quantity(value: Value<'_>, bits: usize) -> Result<U256, ValueError> {
    let text = text(value, "a hex quantity")?;
    parse_quantity(&text, bits)?.ok_or_else(|| format!("hex number > {bits} bits").into())
}

/// Parses `0x` and hexadecimal digits without leading zeros. `None`: the number has more than `bits` bits.
pub(crate) fn parse_quantity(text: &str, bits: usize) -> Result<Option<U256>, ValueError> {
    let digits = digits(text)?;
    if digits.is_empty() {
        return Err("hex string \"0x\" has no digits".into());
    }
    if digits.len() > 1 && digits.starts_with('0') {
        return Err("hex number with leading zero digits".into());
    }
    if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err("invalid hex string".into());
    }
    let number = if digits.len() > 64 { None } else { U256::from_str_radix(digits, 16).ok() };
    Ok(number.filter(|number| number.bit_len() <= bits))
}

pub(crate) fn u256(value: Value<'_>) -> Result<U256, ValueError> {
    quantity(value, 256)
}

pub(crate) fn u128(value: Value<'_>) -> Result<u128, ValueError> {
    quantity(value, 128).map(|number| number.saturating_to())
}

pub(crate) fn u64(value: Value<'_>) -> Result<u64, ValueError> {
    quantity(value, 64).map(|number| number.saturating_to())
}

pub(crate) fn boolean(value: Value<'_>) -> Result<bool, ValueError> {
    value.as_bool().ok_or_else(|| format!("{} where a boolean is expected", kind_name(value.kind())).into())
}

/// Bytes of any length.
pub(crate) fn data(value: Value<'_>) -> Result<Bytes, ValueError> {
    let text = text(value, "hex data")?;
    let digits = digits(&text)?;
    if digits.len() % 2 == 1 {
        return Err("hex string of odd length".into());
    }
    const_hex::decode(digits).map(Bytes::from).map_err(|_| "invalid hex string".into())
}

/// Exactly `N` bytes. The error has go-ethereum's text, and `go_type` is go-ethereum's name of the type.
fn fixed<const N: usize>(
    value: Value<'_>,
    expected: &'static str,
    go_type: &str,
) -> Result<[u8; N], ValueError> {
    let text = text(value, expected)?;
    let digits = digits(&text)?;
    if digits.len() != 2 * N {
        return Err(format!("hex string has length {}, want {} for {go_type}", digits.len(), 2 * N).into());
    }
    let mut bytes = [0; N];
    const_hex::decode_to_slice(digits, &mut bytes).map_err(|_| ValueError::from("invalid hex string"))?;
    Ok(bytes)
}

pub(crate) fn address(value: Value<'_>) -> Result<Address, ValueError> {
    fixed(value, "an address", "common.Address").map(Address::new)
}

pub(crate) fn hash(value: Value<'_>) -> Result<B256, ValueError> {
    fixed(value, "a hash", "common.Hash").map(B256::new)
}

/// A storage position of at most 32 bytes. Odd lengths and leading zeros are accepted, because clients send them.
pub(crate) fn storage_position(text: &str) -> Result<B256, ValueError> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(format!("invalid hex in storage key: {}", quoted(text)).into());
    }
    if digits.len() > 64 {
        return Err(format!("storage key too long (want at most 32 bytes): {}", quoted(text)).into());
    }
    let mut padded = [b'0'; 64];
    padded[64 - digits.len()..].copy_from_slice(digits.as_bytes());
    let position = const_hex::decode_to_array(padded);
    position.map(B256::new).map_err(|_| format!("invalid hex in storage key: {}", quoted(text)).into())
}

/// A caller's text in quotes for an error message, shortened if it is long.
pub(crate) fn quoted(text: &str) -> String {
    const SHOWN_MAX: usize = 140;
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn quantities_are_read_without_leading_zeros_and_within_their_bits(number: u64, upper: bool) {
            let text = if upper { format!("0x{number:X}") } else { format!("{number:#x}") };
            prop_assert_eq!(parse_quantity(&text, 64), Ok(Some(U256::from(number))));
            let padded = format!("0x0{}", &text[2..]);
            prop_assert!(parse_quantity(&padded, 64).is_err());
            prop_assert_eq!(parse_quantity(&text, 63).unwrap().is_some(), number >> 63 == 0);
        }

        #[test]
        fn storage_positions_may_have_leading_zeros(number: u64, zeros in 0_usize..48) {
            let text = format!("0x{}{number:x}", "0".repeat(zeros));
            let expected = B256::left_padding_from(&number.to_be_bytes());
            prop_assert_eq!(storage_position(&text), Ok(expected));
        }

        #[test]
        fn no_text_makes_a_reader_panic(text: String) {
            let _results = (parse_quantity(&text, 256).is_ok(), storage_position(&text).is_ok(), quoted(&text));
            let json = serde_json::to_string(&text).unwrap();
            let value = Value::read(&json).unwrap();
            let _results = (data(value).is_ok(), address(value).is_ok(), hash(value).is_ok());
        }
    }
}
