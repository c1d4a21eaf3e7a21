//! Smaller replies, for callers who say that they can read them.

use std::io::{self, Write};

use bytes::Bytes;
use http::header;
use resources::{AccountId, Threads};

use crate::head::{Headers, plain};

/// An encoding that we write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Zstd,
    Brotli,
    Gzip,
}

impl Encoding {
    /// In our order of preference: by what a byte saved costs.
    const ALL: [Self; 3] = [Self::Zstd, Self::Brotli, Self::Gzip];

    pub fn name(self) -> &'static str {
        match self {
            Self::Zstd => "zstd",
            Self::Brotli => "br",
            Self::Gzip => "gzip",
        }
    }
}

/// The encoding that the caller likes best, and of those we like best. `None` = as it is.
pub fn accepted_encoding(headers: Headers<'_>) -> Option<Encoding> {
    let values = headers.all(&header::ACCEPT_ENCODING).filter_map(plain);
    let liked: Vec<(&str, u32)> = values.flat_map(|value| value.split(',')).map(weighed).collect();
    let quality = |name: &str| {
        let named = liked.iter().find(|(liked, _)| liked.eq_ignore_ascii_case(name));
        named.map(|(_, quality)| *quality)
    };
    // The last of the best wins, so ours come in reverse.
    let named = |encoding: &Encoding| quality(encoding.name()).unwrap_or(0);
    let best = Encoding::ALL.into_iter().rev().max_by_key(named).filter(|best| named(best) > 0);
    // Who says "anything" can read at least what everyone can.
    let anything = quality("*").is_some_and(|quality| quality > 0) && quality("gzip").is_none();
    best.or(anything.then_some(Encoding::Gzip))
}

/// `gzip;q=0.5` → the name and its weight in thousandths.
fn weighed(item: &str) -> (&str, u32) {
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

/// From here on the work would keep a connection's thread from its other connections.
const INLINE_BYTES_MAX: usize = 32 << 10;

/// The reply in fewer bytes, or `None` if the account's share of the pool is used up: it then goes out as it is.
pub async fn compress(
    encoding: Encoding,
    parts: &[Bytes; 3],
    account: AccountId,
    pool: &Threads,
) -> Option<Bytes> {
    let parts = parts.clone();
    let squeezed = if parts.iter().map(Bytes::len).sum::<usize>() <= INLINE_BYTES_MAX {
        squeeze(encoding, &parts)
    } else {
        pool.run(account, move || squeeze(encoding, &parts)).await?
    };
    squeezed.inspect_err(|error| tracing::warn!(%error, "a reply could not be compressed")).ok()
}

/// Hexadecimal text compresses to a half at once and to little less with effort, so the fast levels do.
const GZIP_LEVEL: u32 = 1;
const ZSTD_LEVEL: i32 = 1;
const BROTLI_LEVEL: u32 = 3;
const BROTLI_WINDOW_LOG: u32 = 20;
const BUFFER_BYTES: usize = 16 << 10;

fn squeeze(encoding: Encoding, parts: &[Bytes; 3]) -> io::Result<Bytes> {
    let out = match encoding {
        Encoding::Gzip => {
            let level = flate2::Compression::new(GZIP_LEVEL);
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
            write_all(&mut encoder, parts)?;
            encoder.finish()?
        }
        Encoding::Zstd => {
            let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), ZSTD_LEVEL)?;
            write_all(&mut encoder, parts)?;
            encoder.finish()?
        }
        Encoding::Brotli => {
            let mut encoder =
                brotli::CompressorWriter::new(Vec::new(), BUFFER_BYTES, BROTLI_LEVEL, BROTLI_WINDOW_LOG);
            write_all(&mut encoder, parts)?;
            encoder.into_inner()
        }
    };
    Ok(out.into())
}

fn write_all(encoder: &mut impl Write, parts: &[Bytes; 3]) -> io::Result<()> {
    parts.iter().try_for_each(|part| encoder.write_all(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_callers_preference_comes_before_ours() {
        let choice = |accept: &'static str| {
            accepted_encoding(Headers::Lines(&[httparse::Header {
                name: "Accept-Encoding",
                value: accept.as_bytes(),
            }]))
        };
        assert_eq!(choice("gzip, deflate, br, zstd"), Some(Encoding::Zstd));
        assert_eq!(choice("gzip, deflate, br"), Some(Encoding::Brotli));
        assert_eq!(choice("gzip;q=1.0, br;q=0.5"), Some(Encoding::Gzip));
        assert_eq!(choice("gzip;q=0, br;q=0.1"), Some(Encoding::Brotli));
        assert_eq!(choice("*"), Some(Encoding::Gzip));
        assert_eq!(choice("gzip;q=0, *"), None);
        assert_eq!(choice("gzip; Q=0"), None);
        assert_eq!(choice("identity"), None);
        assert_eq!(choice("gzip;q=nonsense"), None);
    }
}
