//! The time at which an X.509 certificate expires (RFC 5280, section 4.1).
//!
//! rustls checks the certificates of others, but does not tell when one's own expires.

use resources::UtcTime;

/// Tags of DER.
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

struct DerElement<'a> {
    tag: u8,
    contents: &'a [u8],
    /// The bytes after it.
    rest: &'a [u8],
}

/// When the certificate expires, in seconds since 1970; `None` if it is not a certificate.
pub(super) fn expires_at(certificate: &[u8]) -> Option<i64> {
    let signed = element(element(certificate)?.contents)?;
    let first = element(signed.contents)?;
    let mut fields = if first.tag == VERSION { first.rest } else { signed.contents };
    for _serial_algorithm_issuer in 0..3 {
        fields = element(fields)?.rest;
    }
    let not_before = element(element(fields)?.contents)?;
    let not_after = element(not_before.rest)?;
    unix_seconds(not_after.tag, str::from_utf8(not_after.contents).ok()?)
}

fn element(der: &[u8]) -> Option<DerElement<'_>> {
    let (&tag, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x84 => {
            let (length, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (length.iter().fold(0, |sum, byte| (sum << 8) | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    let (contents, rest) = rest.split_at_checked(length)?;
    Some(DerElement { tag, contents, rest })
}

/// Times are `YYMMDDHHMMSSZ` (1950 to 2049) or `YYYYMMDDHHMMSSZ`.
fn unix_seconds(tag: u8, text: &str) -> Option<i64> {
    let digits = text.strip_suffix('Z').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    let (year, rest) = match tag {
        UTC_TIME => {
            let (year, rest) = digits.split_at_checked(2)?;
            let year: i32 = year.parse().ok()?;
            (year + if year < 50 { 2000 } else { 1900 }, rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = digits.split_at_checked(4)?;
            (year.parse().ok()?, rest)
        }
        _ => return None,
    };
    let number = |index: usize| rest.get(2 * index..2 * index + 2)?.parse::<u8>().ok();
    let (month, day) = (number(0)?, number(1)?);
    UtcTime { year, month, day, hour: number(2)?, minute: number(3)?, second: number(4)? }.unix_seconds()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_times_are_read() {
        for (tag, text, expected) in [
            (UTC_TIME, "700101000000Z", Some(0)),
            (UTC_TIME, "491231235959Z", Some(2_524_607_999)),
            (UTC_TIME, "500101000000Z", Some(-631_152_000)),
            (GENERALIZED_TIME, "20500101000000Z", Some(2_524_608_000)),
            (GENERALIZED_TIME, "99991231235959Z", Some(253_402_300_799)),
            (UTC_TIME, "700101000000", None),
            (UTC_TIME, "701301000000Z", None),
            (GENERALIZED_TIME, "2050Z", None),
            (0x02, "700101000000Z", None),
        ] {
            assert_eq!(unix_seconds(tag, text), expected, "{text}");
        }
    }

    /// A certificate without a version: a serial number, an algorithm, an issuer, and the validity.
    #[test]
    fn a_certificate_that_is_cut_has_no_time() {
        let times = b"\x17\x0d700101000000Z\x17\x0d700102000000Z";
        let fields = [&b"\x02\x01\x01\x30\x00\x30\x00\x30\x1e"[..], times].concat();
        let signed = [&[0x30, 0x81, fields.len() as u8][..], &fields].concat();
        let certificate = [&[0x30, 0x82, 0, signed.len() as u8][..], &signed].concat();
        assert_eq!(expires_at(&certificate), Some(86_400));
        for end in 0..certificate.len() {
            assert_eq!(expires_at(&certificate[..end]), None);
        }
    }
}
