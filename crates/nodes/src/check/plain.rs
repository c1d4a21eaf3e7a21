//! Answers that are one string, and those of which we know next to nothing.

use super::hex;
use super::{Facts, Lie, Verdict};

/// 256 bits.
const QUANTITY_DIGITS_MAX: usize = 64;

pub(super) fn quantity(result: &[u8]) -> Result<Facts, Lie> {
    let digits = digits(result)?;
    let sensible = (1..=QUANTITY_DIGITS_MAX).contains(&digits.len());
    found(sensible && digits.iter().all(u8::is_ascii_hexdigit))
}

pub(super) fn data(result: &[u8]) -> Result<Facts, Lie> {
    found(hex::is_hex(digits(result)?))
}

pub(super) fn word(result: &[u8]) -> Result<Facts, Lie> {
    let digits = digits(result)?;
    found(digits.len() == 64 && hex::is_hex(digits))
}

pub(super) fn records(result: &[u8]) -> Verdict {
    let Some(inside) = result.strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]")) else {
        return Verdict::Wrong(Lie::Shape);
    };
    match inside.trim_ascii_start().first() {
        None => Verdict::Empty,
        Some(b'{') => Verdict::Sound(Facts::default()),
        Some(_) => Verdict::Wrong(Lie::Shape),
    }
}

fn digits(result: &[u8]) -> Result<&[u8], Lie> {
    let inside = result.strip_prefix(b"\"0x").and_then(|rest| rest.strip_suffix(b"\""));
    inside.ok_or(Lie::Shape)
}

fn found(sound: bool) -> Result<Facts, Lie> {
    if sound { Ok(Facts::default()) } else { Err(Lie::Shape) }
}

#[cfg(test)]
mod tests {
    use super::super::{Expect, Family, check};
    use super::*;

    fn verdict(expect: Expect, result: &str) -> Verdict {
        check(&expect, result.as_bytes(), Family::Ethereum)
    }

    #[test]
    fn a_quantity_has_1_to_64_digits() {
        let sound = Verdict::Sound(Facts::default());
        for good in ["\"0x0\"", " \"0xAbC\"\n", &format!("\"0x{}\"", "f".repeat(64))] {
            assert_eq!(verdict(Expect::Quantity, good), sound, "{good}");
        }
        let long = format!("\"0x{}\"", "f".repeat(65));
        for bad in ["\"0x\"", "\"1\"", "1", "{}", "\"0xg\"", "\"0x", "\"", "", &long] {
            assert_eq!(verdict(Expect::Quantity, bad), Verdict::Wrong(Lie::Shape), "{bad}");
        }
        assert_eq!(verdict(Expect::Count, "null"), Verdict::Null);
    }

    #[test]
    fn data_are_whole_bytes_and_a_word_is_32_of_them() {
        let (sound, wrong) = (Verdict::Sound(Facts::default()), Verdict::Wrong(Lie::Shape));
        let word = format!("\"0x{}\"", "0A".repeat(32));
        for (expect, result, expected) in [
            (Expect::Data, "\"0x\"", &sound),
            (Expect::Data, &word, &sound),
            (Expect::Data, "\"0x1\"", &wrong),
            (Expect::Data, "[]", &wrong),
            (Expect::Word, &word, &sound),
            (Expect::Word, "\"0x0\"", &wrong),
            (Expect::Word, "\"0x\"", &wrong),
        ] {
            assert_eq!(&verdict(expect, result), expected, "{result}");
        }
    }

    #[test]
    fn raw_records_are_a_list_of_objects() {
        assert_eq!(verdict(Expect::RawRecords, "[ ]"), Verdict::Empty);
        assert_eq!(verdict(Expect::RawRecords, "[{}]"), Verdict::Sound(Facts::default()));
        assert_eq!(verdict(Expect::RawRecords, "[1]"), Verdict::Wrong(Lie::Shape));
        assert_eq!(verdict(Expect::RawRecords, "{}"), Verdict::Wrong(Lie::Shape));
    }
}
