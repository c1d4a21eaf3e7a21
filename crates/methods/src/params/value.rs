//! The values that parameters are made of, read strictly.

use std::borrow::Cow;

use alloy_primitives::{Address, B256, Bytes, U256};
use jsonrpc::{Kind, Params, Value};

use super::ParamFault;

/// What is wrong with a value, in plain words.
pub(crate) type What = Cow<'static, str>;

/// The parameters of a call, taken one after another.
#[derive(Debug)]
pub(crate) struct Args<'a> {
    params: &'a Params<'a>,
    next: usize,
}

impl<'a> Args<'a> {
    /// Refuses what no reader has to look at: named parameters, and more than the method takes.
    pub(crate) fn new(params: &'a Params<'a>, most: usize) -> Result<Self, ParamFault> {
        if params.is_not_array() {
            return Err(ParamFault::NotArray);
        }
        if params.count() > most {
            return Err(ParamFault::TooMany { most });
        }
        Ok(Self { params, next: 0 })
    }

    /// The next parameter, which must be there and not null.
    pub(crate) fn required<T>(
        &mut self,
        read: impl Fn(Value<'a>) -> Result<T, What>,
    ) -> Result<T, ParamFault> {
        let position = self.next;
        self.optional(read)?.ok_or(ParamFault::Missing { position })
    }

    /// The next parameter; null and left out mean the same.
    pub(crate) fn optional<T>(
        &mut self,
        read: impl Fn(Value<'a>) -> Result<T, What>,
    ) -> Result<Option<T>, ParamFault> {
        let position = self.next;
        match self.raw() {
            None => Ok(None),
            Some(value) => read(value).map(Some).map_err(|what| ParamFault::Wrong { position, what }),
        }
    }

    /// The next parameter as it was written, unless it is null or left out.
    pub(crate) fn raw(&mut self) -> Option<Value<'a>> {
        let value = self.params.get(self.next);
        self.next += 1;
        value.filter(|value| !value.is_null())
    }
}

/// A string's text; other kinds are refused by name.
pub(crate) fn text<'a>(value: Value<'a>, want: &'static str) -> Result<Cow<'a, str>, What> {
    value.as_str().ok_or_else(|| format!("{} where {want} is expected", kind_name(value.kind())).into())
}

pub(crate) fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Null => "null",
        Kind::Bool => "a boolean",
        Kind::Number => "a number",
        Kind::String => "a string",
        Kind::Array => "an array",
        Kind::Object => "an object",
    }
}

/// The digits behind `0x`.
fn digits(text: &str) -> Result<&str, What> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => Ok(digits),
        None if text.is_empty() => Err("empty hex string".into()),
        None => Err("hex string without 0x prefix".into()),
    }
}

/// A quantity of at most `bits` bits: `0x` and minimal hexadecimal.
fn quantity(value: Value<'_>, bits: usize) -> Result<U256, What> {
    let text = text(value, "a hex quantity")?;
    quantity_text(&text, bits)
}

pub(crate) fn quantity_text(text: &str, bits: usize) -> Result<U256, What> {
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
    let too_large = || What::from(format!("hex number > {bits} bits"));
    let number = if digits.len() > 64 { None } else { U256::from_str_radix(digits, 16).ok() };
    number.filter(|number| number.bit_len() <= bits).ok_or_else(too_large)
}

pub(crate) fn u256(value: Value<'_>) -> Result<U256, What> {
    quantity(value, 256)
}

pub(crate) fn u128(value: Value<'_>) -> Result<u128, What> {
    quantity(value, 128).map(|number| number.saturating_to())
}

pub(crate) fn u64(value: Value<'_>) -> Result<u64, What> {
    quantity(value, 64).map(|number| number.saturating_to())
}

pub(crate) fn boolean(value: Value<'_>) -> Result<bool, What> {
    value.as_bool().ok_or_else(|| format!("{} where a boolean is expected", kind_name(value.kind())).into())
}

/// Bytes of any length.
pub(crate) fn data(value: Value<'_>) -> Result<Bytes, What> {
    let text = text(value, "hex data")?;
    let digits = digits(&text)?;
    if digits.len() % 2 == 1 {
        return Err("hex string of odd length".into());
    }
    const_hex::decode(digits).map(Bytes::from).map_err(|_| "invalid hex string".into())
}

/// Exactly `N` bytes. Clients know these texts with the name that the most common node has for the type.
fn fixed<const N: usize>(value: Value<'_>, want: &'static str, name: &str) -> Result<[u8; N], What> {
    let text = text(value, want)?;
    let digits = digits(&text)?;
    if digits.len() != 2 * N {
        return Err(format!("hex string has length {}, want {} for {name}", digits.len(), 2 * N).into());
    }
    let mut bytes = [0; N];
    const_hex::decode_to_slice(digits, &mut bytes).map_err(|_| What::from("invalid hex string"))?;
    Ok(bytes)
}

pub(crate) fn address(value: Value<'_>) -> Result<Address, What> {
    fixed(value, "an address", "common.Address").map(Address::new)
}

pub(crate) fn hash(value: Value<'_>) -> Result<B256, What> {
    fixed(value, "a hash", "common.Hash").map(B256::new)
}

/// A storage position: at most 32 bytes; odd length and leading zeros are what real callers send.
pub(crate) fn storage_position(text: &str) -> Result<B256, What> {
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

/// A caller's text inside a message, no longer than a message should be.
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
        fn a_quantity_is_what_its_number_is_written_as(number: u64, upper: bool) {
            let text = if upper { format!("0x{number:X}") } else { format!("{number:#x}") };
            prop_assert_eq!(quantity_text(&text, 64), Ok(U256::from(number)));
            let padded = format!("0x0{}", &text[2..]);
            prop_assert!(quantity_text(&padded, 64).is_err());
            prop_assert_eq!(quantity_text(&text, 63).is_ok(), number >> 63 == 0);
        }

        #[test]
        fn a_storage_position_is_its_number_however_it_is_padded(number: u64, zeros in 0_usize..48) {
            let text = format!("0x{}{number:x}", "0".repeat(zeros));
            let expected = B256::left_padding_from(&number.to_be_bytes());
            prop_assert_eq!(storage_position(&text), Ok(expected));
        }

        #[test]
        fn no_text_makes_a_reader_panic(text: String) {
            let _judged = (quantity_text(&text, 256).is_ok(), storage_position(&text).is_ok(), quoted(&text));
            let json = serde_json::to_string(&text).unwrap();
            let value = Value::read(&json).unwrap();
            let _judged = (data(value).is_ok(), address(value).is_ok(), hash(value).is_ok());
        }
    }
}
