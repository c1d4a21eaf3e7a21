//! Compression of replies for callers that accept it.

use std::io::{self, Write};

use bytes::Bytes;
use http::header;
use resources::{AccountId, ThreadPool};

use crate::content_coding::ReplyCoding;
use crate::head::{Headers, visible_ascii};
use crate::policy::INLINE_COMPRESSION_BYTES_MAX;
use crate::reply_parts::ReplyParts;

/// The encoding that the caller prefers for a reply of `len` bytes; among equals, the first of [`ReplyCoding::ALL`]. `None`: not
/// compressed.
pub fn accepted_encoding(headers: Headers<'_>, len: usize) -> Option<ReplyCoding> {
    let values = headers.all(&header::ACCEPT_ENCODING).filter_map(visible_ascii);
    let accepted: Vec<(&str, u32)> = values.flat_map(|value| value.split(',')).map(parse_weight).collect();
    let weight = |name: &str| {
        let entry = accepted.iter().find(|(accepted, _)| accepted.eq_ignore_ascii_case(name));
        entry.map(|(_, weight)| *weight)
    };
    // `max_by_key` returns the last maximum, so the preferred encodings come last.
    let weight_of = |encoding: &ReplyCoding| weight(encoding.name()).unwrap_or(0);
    let worthwhile = ReplyCoding::ALL.into_iter().filter(|coding| coding.is_worthwhile(len));
    let best = worthwhile.rev().max_by_key(weight_of).filter(|best| weight_of(best) > 0);
    // `*` means gzip, which every client can read.
    let any = weight("*").is_some_and(|weight| weight > 0) && weight("gzip").is_none();
    best.or(any.then_some(ReplyCoding::Gzip))
}

/// Parses `gzip;q=0.5` into the name and the weight in thousandths.
fn parse_weight(item: &str) -> (&str, u32) {
    let (name, parameters) = item.split_once(';').unwrap_or((item, ""));
    let quality = parameters.trim().strip_prefix(['q', 'Q']).and_then(|text| text.trim().strip_prefix('='));
    let quality = quality.map(|text| text.trim().parse::<f32>());
    let thousandths = match quality {
        None => 1_000,
        Some(Ok(quality)) => (quality.clamp(0.0, 1.0) * 1_000.0) as u32,
        Some(Err(_)) => 0,
    };
    (name.trim(), thousandths)
}

impl ReplyCoding {
    /// Whether a reply of so many bytes is compressed this way. Brotli takes 0.4 ms for any reply, more than ten times as long as
    /// the others for a short one, so it is never used on the thread of a connection.
    fn is_worthwhile(self, len: usize) -> bool {
        self != Self::Brotli || len > INLINE_COMPRESSION_BYTES_MAX
    }
}

/// Compresses a reply. `None`: the account's share of the pool is used up, or compressing failed, and the reply is sent
/// uncompressed.
pub async fn compress(
    encoding: ReplyCoding,
    parts: &ReplyParts,
    account: AccountId,
    pool: &ThreadPool,
) -> Option<Bytes> {
    let parts = parts.clone();
    let compressed = if parts.total_len() <= INLINE_COMPRESSION_BYTES_MAX {
        compress_parts(encoding, &parts)
    } else {
        pool.run(account, move || compress_parts(encoding, &parts)).await.ok()?
    };
    compressed.inspect_err(|error| tracing::warn!(%error, "cannot compress a reply")).ok()
}

// Fast levels compress hexadecimal text to about half; higher levels save little more.
const GZIP_LEVEL: u32 = 1;
const ZSTD_LEVEL: i32 = 1;
const BROTLI_LEVEL: u32 = 3;
const BROTLI_WINDOW_LOG: u32 = 20;
const BUFFER_BYTES: usize = 16 << 10;

fn compress_parts(encoding: ReplyCoding, parts: &ReplyParts) -> io::Result<Bytes> {
    let out = match encoding {
        ReplyCoding::Gzip => {
            let level = flate2::Compression::new(GZIP_LEVEL);
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
            write_all(&mut encoder, parts)?;
            encoder.finish()?
        }
        ReplyCoding::Zstd => {
            let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), ZSTD_LEVEL)?;
            write_all(&mut encoder, parts)?;
            encoder.finish()?
        }
        ReplyCoding::Brotli => {
            let mut encoder =
                brotli::CompressorWriter::new(Vec::new(), BUFFER_BYTES, BROTLI_LEVEL, BROTLI_WINDOW_LOG);
            write_all(&mut encoder, parts)?;
            encoder.into_inner()
        }
    };
    Ok(out.into())
}

fn write_all(encoder: &mut impl Write, parts: &ReplyParts) -> io::Result<()> {
    parts.iter().try_for_each(|part| encoder.write_all(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preference_of_the_caller_comes_first() {
        let choice_for = |accept: &'static str, len| {
            let name = "Accept-Encoding";
            accepted_encoding(Headers::Lines(&[httparse::Header { name, value: accept.as_bytes() }]), len)
        };
        let choice = |accept| choice_for(accept, INLINE_COMPRESSION_BYTES_MAX + 1);
        assert_eq!(choice("gzip, deflate, br, zstd"), Some(ReplyCoding::Zstd));
        assert_eq!(choice("gzip, deflate, br"), Some(ReplyCoding::Gzip));
        assert_eq!(choice("gzip;q=1.0, br;q=0.5"), Some(ReplyCoding::Gzip));
        assert_eq!(choice("gzip;q=0, br;q=0.1"), Some(ReplyCoding::Brotli));
        assert_eq!(choice("*"), Some(ReplyCoding::Gzip));
        assert_eq!(choice("gzip;q=0, *"), None);
        assert_eq!(choice("gzip; Q=0"), None);
        assert_eq!(choice("identity"), None);
        assert_eq!(choice("gzip;q=nonsense"), None);
        // Brotli took 0.45 ms for a reply of 2.4 KB, on the thread of its connection.
        assert_eq!(choice_for("br", INLINE_COMPRESSION_BYTES_MAX), None);
        assert_eq!(choice_for("br, gzip;q=0.5", INLINE_COMPRESSION_BYTES_MAX), Some(ReplyCoding::Gzip));
    }
}
