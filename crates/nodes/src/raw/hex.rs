//! Numbers and bytes as JSON-RPC writes them: `0x` and hexadecimal digits of either case.
//!
//! Leading zeros are tolerated, a missing `0x` is not. The types read themselves from JSON, so that structs of them
//! refuse members that occur twice.
//!
//! A `u64` counts or orders something: blocks, seconds, gas, indices. Half of its range is more than any chain reaches, so greater
//! numbers are refused here, and two of them can be added everywhere. A [`U64`] may be any number of 64 bits.

use std::fmt;
use std::marker::PhantomData;

use alloy_primitives::{Bytes, FixedBytes, U64, U256};
use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// The number of these digits.
#[inline]
pub(super) fn number(digits: &[u8]) -> Option<u64> {
    leading_number(digits).filter(|(_, count)| *count == digits.len()).map(|(number, _)| number)
}

/// The number of the leading digits, and how many they are: at least one, and at most what fits into 63 bits.
#[inline]
pub(super) fn leading_number(text: &[u8]) -> Option<(u64, usize)> {
    let (mut number, mut count) = (0_u64, 0);
    while let Some(value) = text.get(count).map(|digit| VALUES[usize::from(*digit)])
        && value < 16
    {
        if number >> 59 != 0 {
            return None;
        }
        number = number << 4 | u64::from(value);
        count += 1;
    }
    (count > 0).then_some((number, count))
}

/// The value of each byte as a digit, or 16 if it is not one.
const VALUES: [u8; 256] = {
    let mut values = [16; 256];
    let mut value = 0;
    while value < 16 {
        values[b"0123456789abcdef"[value] as usize] = value as u8;
        values[b"0123456789ABCDEF"[value] as usize] = value as u8;
        value += 1;
    }
    values
};

/// The bytes of exactly `2 × N` digits.
#[inline]
pub(super) fn fixed<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    decode(digits, &mut bytes).map(|()| bytes)
}

/// Writes the bytes of exactly `2 × N` digits to a buffer of the caller.
#[inline]
pub(super) fn decode<const N: usize>(digits: &[u8], bytes: &mut [u8; N]) -> Option<()> {
    // The decoder would take a second `0x` for a prefix.
    (digits.len() == 2 * N && const_hex::decode_to_slice(digits, bytes).is_ok()).then_some(())
}

/// Whether these are digits of whole bytes and nothing else.
#[inline]
pub(super) fn is_hex(digits: &[u8]) -> bool {
    digits.len().is_multiple_of(2) && const_hex::check_raw(digits)
}

/// A value that can be read from the digits after `0x`.
pub(crate) trait FromDigits: Sized {
    fn from_digits(digits: &[u8]) -> Option<Self>;
}

/// A value in hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hex<T>(pub(crate) T);

impl FromDigits for u64 {
    fn from_digits(digits: &[u8]) -> Option<Self> {
        number(digits)
    }
}

impl FromDigits for U64 {
    fn from_digits(digits: &[u8]) -> Option<Self> {
        U256::from_digits(digits)?.try_into().ok().map(|number: u64| Self::from(number))
    }
}

impl FromDigits for u128 {
    fn from_digits(digits: &[u8]) -> Option<Self> {
        U256::from_digits(digits)?.try_into().ok()
    }
}

impl FromDigits for U256 {
    fn from_digits(digits: &[u8]) -> Option<Self> {
        let sensible = (1..=64).contains(&digits.len()) && is_hex_of_any_length(digits);
        let text = std::str::from_utf8(digits).ok().filter(|_| sensible)?;
        Self::from_str_radix(text, 16).ok()
    }
}

fn is_hex_of_any_length(digits: &[u8]) -> bool {
    digits.iter().all(u8::is_ascii_hexdigit)
}

impl<const N: usize> FromDigits for FixedBytes<N> {
    fn from_digits(digits: &[u8]) -> Option<Self> {
        fixed(digits).map(Self)
    }
}

impl FromDigits for alloy_primitives::Address {
    fn from_digits(digits: &[u8]) -> Option<Self> {
        fixed(digits).map(|bytes| Self(FixedBytes(bytes)))
    }
}

impl FromDigits for alloy_primitives::Bloom {
    fn from_digits(digits: &[u8]) -> Option<Self> {
        fixed(digits).map(|bytes| Self(FixedBytes(bytes)))
    }
}

impl FromDigits for Bytes {
    fn from_digits(digits: &[u8]) -> Option<Self> {
        // Checked first: the decoder would take a second `0x` for a prefix.
        if is_hex(digits) { const_hex::decode(digits).ok().map(Self::from) } else { None }
    }
}

impl<'de, T: FromDigits> Deserialize<'de> for Hex<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(HexVisitor(PhantomData))
    }
}

struct HexVisitor<T>(PhantomData<T>);

impl<T: FromDigits> Visitor<'_> for HexVisitor<T> {
    type Value = Hex<T>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("hexadecimal digits behind 0x")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Hex<T>, E> {
        let digits = text.strip_prefix("0x").map(str::as_bytes);
        let value = digits.and_then(T::from_digits).map(Hex);
        value.ok_or_else(|| E::custom("no such value"))
    }
}

#[cfg(test)]
mod tests {
    use alloy_primitives::B64;

    use super::*;

    fn read<T: FromDigits>(json: &str) -> Option<T> {
        serde_json::from_str::<Hex<T>>(json).ok().map(|hex| hex.0)
    }

    #[test]
    fn numbers_have_digits_of_either_case_and_a_prefix() {
        assert_eq!(read(r#""0xAb""#), Some(0xab_u64));
        assert_eq!(read(r#""0x00""#), Some(0_u64));
        assert_eq!(read(r#""0x7fffffffffffffff""#), Some(u64::MAX / 2));
        assert_eq!(read(r#""0xffffffffffffffff""#), Some(U64::MAX));
        assert_eq!(read::<U64>(r#""0x10000000000000000""#), None);
        for bad in [r#""0x""#, r#""ab""#, r#""0x10000000000000000""#, "1", r#""0x+1""#, r#""0x0x1""#] {
            assert_eq!(read::<u64>(bad), None, "{bad}");
        }
        assert_eq!(read(r#""0xffffffffffffffffffffffffffffffff""#), Some(u128::MAX));
        assert_eq!(read::<u128>(r#""0x100000000000000000000000000000000""#), None);
        for bad in [r#""0x_1""#, r#""0x""#, r#""0x 1""#] {
            assert_eq!(read::<U256>(bad), None, "{bad}");
        }
    }

    /// A header with the number 2^64 - 1 ended the thread that follows the chain, because it computed the number after it.
    #[test]
    fn a_number_that_no_chain_has_is_refused() {
        for bad in [r#""0x8000000000000000""#, r#""0xffffffffffffffff""#, r#""0x008000000000000000""#] {
            assert_eq!(read::<u64>(bad), None, "{bad}");
        }
    }

    #[test]
    fn fixed_bytes_have_exactly_their_digits() {
        assert_eq!(read(r#""0x00000000000000Ff""#), Some(B64::from([0, 0, 0, 0, 0, 0, 0, 255])));
        for bad in [r#""0x""#, r#""0xff""#, r#""0x0x00000000000000ff""#, r#""0x00000000000000fg""#] {
            assert_eq!(read::<B64>(bad), None, "{bad}");
        }
        assert_eq!(read(r#""0x""#), Some(Bytes::new()));
        assert_eq!(read::<Bytes>(r#""0x123""#), None);
        assert_eq!(read::<Bytes>(r#""0x0x12""#), None);
    }
}
