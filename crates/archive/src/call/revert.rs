//! The error message of a revert.

use alloy_primitives::{U256, hex};
use std::borrow::Cow;

/// Selector of `Error(string)`.
const ERROR: [u8; 4] = hex!("08c379a0");

/// Selector of `Panic(uint256)`.
const PANIC: [u8; 4] = hex!("4e487b71");

/// Bytes of an ABI word.
const WORD_BYTES: usize = 32;

/// The message of a revert with this data.
///
/// Only valid encodings of `Error(string)` and `Panic(uint256)` are decoded. A custom error is not, because its name is
/// not in the data.
pub fn revert_message(data: &[u8]) -> String {
    match reason(data) {
        Some(reason) => format!("execution reverted: {reason}"),
        None => "execution reverted".to_owned(),
    }
}

fn reason(data: &[u8]) -> Option<Cow<'_, str>> {
    let (selector, arguments) = data.split_first_chunk()?;
    match *selector {
        ERROR => string(arguments).map(String::from_utf8_lossy),
        PANIC => word(arguments, 0).map(panic_name),
        _ => None,
    }
}

/// The bytes of the string that is the only argument: its offset, its length, itself.
fn string(arguments: &[u8]) -> Option<&[u8]> {
    let offset = usize::try_from(word(arguments, 0)?).ok()?;
    let length = usize::try_from(word(arguments, offset)?).ok()?;
    let start = offset.checked_add(WORD_BYTES)?;
    arguments.get(start..start.checked_add(length)?)
}

fn word(arguments: &[u8], offset: usize) -> Option<U256> {
    let bytes = arguments.get(offset..offset.checked_add(WORD_BYTES)?)?;
    U256::try_from_be_slice(bytes)
}

fn panic_name(code: U256) -> Cow<'static, str> {
    let name = match u64::try_from(code) {
        Ok(0x01) => "assert(false)",
        Ok(0x11) => "arithmetic underflow or overflow",
        Ok(0x12) => "division or modulo by zero",
        Ok(0x21) => "enum overflow",
        Ok(0x22) => "invalid encoded storage byte array accessed",
        Ok(0x31) => "out-of-bounds array access; popping on an empty array",
        Ok(0x32) => "out-of-bounds access of an array or bytesN",
        Ok(0x41) => "out of memory",
        Ok(0x51) => "uninitialized function",
        _ => return format!("unknown panic code: {code:#x}").into(),
    };
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_sol_types::{Panic, Revert, SolError};

    fn error(text: &str) -> Vec<u8> {
        Revert::from(text).abi_encode()
    }

    fn panic(code: u64) -> Vec<u8> {
        Panic { code: U256::from(code) }.abi_encode()
    }

    /// An `Error(string)` with this offset and length, and the text "hi" where it usually is.
    fn crafted(offset: U256, length: U256) -> Vec<u8> {
        let text: [u8; 32] = std::array::from_fn(|i| *b"hi".get(i).unwrap_or(&0));
        [&ERROR[..], &offset.to_be_bytes::<32>(), &length.to_be_bytes::<32>(), &text].concat()
    }

    #[test]
    fn every_reason_has_its_words() {
        let unknown = [&PANIC[..], &U256::MAX.to_be_bytes::<32>()].concat();
        let cases: &[(Vec<u8>, &str)] = &[
            (vec![], "execution reverted"),
            (error("too poor"), "execution reverted: too poor"),
            (error(""), "execution reverted: "),
            (error("größer 💥"), "execution reverted: größer 💥"),
            (panic(0x01), "execution reverted: assert(false)"),
            (panic(0x11), "execution reverted: arithmetic underflow or overflow"),
            (panic(0x12), "execution reverted: division or modulo by zero"),
            (panic(0x21), "execution reverted: enum overflow"),
            (panic(0x22), "execution reverted: invalid encoded storage byte array accessed"),
            (panic(0x31), "execution reverted: out-of-bounds array access; popping on an empty array"),
            (panic(0x32), "execution reverted: out-of-bounds access of an array or bytesN"),
            (panic(0x41), "execution reverted: out of memory"),
            (panic(0x51), "execution reverted: uninitialized function"),
            (panic(0x99), "execution reverted: unknown panic code: 0x99"),
            (unknown, &format!("execution reverted: unknown panic code: 0x{}", "f".repeat(64))),
            (hex!("deadbeef01").to_vec(), "execution reverted"),
            (hex!("08c379").to_vec(), "execution reverted"),
            (ERROR.to_vec(), "execution reverted"),
            (PANIC.to_vec(), "execution reverted"),
            (panic(0x01)[..35].to_vec(), "execution reverted"),
            (crafted(U256::from(32), U256::from(2)), "execution reverted: hi"),
            (crafted(U256::from(32), U256::from(33)), "execution reverted"),
            (crafted(U256::from(32), U256::MAX), "execution reverted"),
            (crafted(U256::MAX, U256::from(2)), "execution reverted"),
            (crafted(U256::from(usize::MAX), U256::from(2)), "execution reverted"),
            (crafted(U256::from(usize::MAX - 31), U256::from(2)), "execution reverted"),
        ];
        for (data, message) in cases {
            assert_eq!(revert_message(data), *message, "data {}", hex::encode(data));
        }
    }

    #[test]
    fn text_that_is_not_utf8_is_shown_as_far_as_it_is() {
        let mut data = error("ab");
        data[4 + 64] = 0xff;
        assert_eq!(revert_message(&data), "execution reverted: \u{fffd}b");
    }
}
