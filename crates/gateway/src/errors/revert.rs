//! The reason that a contract gives for reverting, in the words of geth.

use std::borrow::Cow;

use alloy_primitives::U256;
use alloy_sol_types::{Panic, PanicKind, Revert, SolError};

use crate::policy::REASON_DATA_BYTES_MAX;

/// `execution reverted`, with the reason if the data is an `Error(string)` or a `Panic(uint256)`. A custom error has none,
/// because its name is not in the data.
pub(super) fn message(data: &[u8]) -> Cow<'static, str> {
    match reason(data) {
        Some(reason) => format!("execution reverted: {reason}").into(),
        None => "execution reverted".into(),
    }
}

fn reason(data: &[u8]) -> Option<Cow<'static, str>> {
    if data.len() > REASON_DATA_BYTES_MAX {
        return None;
    }
    let panic = || Panic::abi_decode(data).map(|panic| panic_name(panic.code));
    Revert::abi_decode(data).map(|revert| revert.reason.into()).or_else(|_| panic()).ok()
}

/// The words of geth, which clients compare; `PanicKind` has others.
fn panic_name(code: U256) -> Cow<'static, str> {
    let kind = u32::try_from(code).ok().and_then(PanicKind::from_number);
    let name = match kind {
        Some(PanicKind::Assert) => "assert(false)",
        Some(PanicKind::UnderOverflow) => "arithmetic underflow or overflow",
        Some(PanicKind::DivisionByZero) => "division or modulo by zero",
        Some(PanicKind::EnumConversionError) => "enum overflow",
        Some(PanicKind::StorageEncodingError) => "invalid encoded storage byte array accessed",
        Some(PanicKind::EmptyArrayPop) => "out-of-bounds array access; popping on an empty array",
        Some(PanicKind::ArrayOutOfBounds) => "out-of-bounds access of an array or bytesN",
        Some(PanicKind::ResourceError) => "out of memory",
        Some(PanicKind::InvalidInternalFunction) => "uninitialized function",
        _ => return format!("unknown panic code: {code:#x}").into(),
    };
    name.into()
}

#[cfg(test)]
mod tests {
    use alloy_primitives::hex;

    use super::*;

    fn error(text: &str) -> Vec<u8> {
        Revert::from(text).abi_encode()
    }

    fn panic(code: u64) -> Vec<u8> {
        Panic { code: U256::from(code) }.abi_encode()
    }

    /// An `Error(string)` with this offset and length, and the text "hi" where it usually is.
    fn crafted(offset: U256, length: U256) -> Vec<u8> {
        let text: [u8; 32] = std::array::from_fn(|i| *b"hi".get(i).unwrap_or(&0));
        [&Revert::SELECTOR[..], &offset.to_be_bytes::<32>(), &length.to_be_bytes::<32>(), &text].concat()
    }

    #[test]
    fn every_reason_has_its_words() {
        let unknown = [&Panic::SELECTOR[..], &U256::MAX.to_be_bytes::<32>()].concat();
        let cases: &[(Vec<u8>, &str)] = &[
            (vec![], "execution reverted"),
            (error("too poor"), "execution reverted: too poor"),
            (error("too poor")[..4 + 64 + 8].to_vec(), "execution reverted: too poor"),
            (error(""), "execution reverted: "),
            (error("größer 💥"), "execution reverted: größer 💥"),
            (panic(0x00), "execution reverted: unknown panic code: 0x0"),
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
            (Revert::SELECTOR.to_vec(), "execution reverted"),
            (Panic::SELECTOR.to_vec(), "execution reverted"),
            (panic(0x01)[..35].to_vec(), "execution reverted"),
            (crafted(U256::from(32), U256::from(2)), "execution reverted: hi"),
            (crafted(U256::from(32), U256::from(33)), "execution reverted"),
            (crafted(U256::from(32), U256::MAX), "execution reverted"),
            (crafted(U256::MAX, U256::from(2)), "execution reverted"),
            (crafted(U256::from(usize::MAX), U256::from(2)), "execution reverted"),
            (crafted(U256::from(usize::MAX - 31), U256::from(2)), "execution reverted"),
        ];
        for (data, text) in cases {
            assert_eq!(message(data), *text, "data {}", hex::encode(data));
        }
    }

    /// The reason had no limit, and was escaped byte by byte on the thread of a connection: 0.1 s for 12.5 MB.
    #[test]
    fn a_long_reason_is_only_in_the_data() {
        let head = error("").len();
        let longest = "x".repeat((REASON_DATA_BYTES_MAX - head) / 32 * 32);
        assert_eq!(message(&error(&longest)), format!("execution reverted: {longest}"));
        assert_eq!(message(&error(&"x".repeat(REASON_DATA_BYTES_MAX))), "execution reverted");
    }

    #[test]
    fn text_that_is_not_utf8_is_shown_as_far_as_it_is() {
        let mut data = error("ab");
        data[4 + 64] = 0xff;
        assert_eq!(message(&data), "execution reverted: \u{fffd}b");
    }
}
