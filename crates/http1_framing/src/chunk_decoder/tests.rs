//! Bodies by example, and against a naive model that sees all bytes at once.

use proptest::prelude::*;

use super::*;

/// The data of a body, and how many bytes the body has.
type Decoded = (Vec<u8>, usize);

/// Decodes a body that arrives in `pieces`. `None`: it is incomplete.
fn decode<'p>(
    pieces: impl IntoIterator<Item = &'p [u8]>,
    limit: LineLimit,
) -> Result<Option<Decoded>, FramingError> {
    let (mut decoder, mut data, mut length) = (ChunkDecoder::new(limit), Vec::new(), 0);
    for mut piece in pieces {
        loop {
            let (used, step) = decoder.read_lines(piece)?;
            (piece, length) = (&piece[used..], length + used);
            match step {
                ChunkStep::End => return Ok(Some((data, length))),
                ChunkStep::Data(left) if !piece.is_empty() => {
                    let here = usize::try_from(left).unwrap_or(usize::MAX).min(piece.len());
                    data.extend_from_slice(&piece[..here]);
                    (piece, length) = (&piece[here..], length + here);
                    decoder.take_data(here as u64);
                }
                ChunkStep::Line | ChunkStep::Data(_) => break,
            }
        }
        assert!(piece.is_empty(), "all bytes are read");
    }
    Ok(None)
}

/// Decodes `text` at once and byte by byte; the results must be equal.
fn read(text: &str) -> Result<Option<String>, FramingError> {
    let limit = LineLimit::PerBody(100);
    let whole = decode([text.as_bytes()], limit);
    assert_eq!(whole, decode(text.as_bytes().chunks(1), limit), "{text:?}");
    Ok(whole?.map(|(data, _)| String::from_utf8(data).unwrap()))
}

#[test]
fn chunks_are_joined() {
    assert_eq!(read("5\r\nhello\r\n1;a=b\r\n!\r\n0\r\n\r\n"), Ok(Some("hello!".into())));
    assert_eq!(read("A\r\n0123456789\r\n0\r\nx: y\r\n\r\nbehind"), Ok(Some("0123456789".into())));
    assert_eq!(read("000000000000000000001\r\n!\r\n00\r\n\r\n"), Ok(Some("!".into())));
    assert_eq!(read("0\r\n\r\n"), Ok(Some(String::new())));
    for part in ["", "5", "5\r\nhel", "5\r\nhello\r\n", "0\r\n", "0\r\nx: y\r\n", "ffffffffffffffff\r\nx"] {
        assert_eq!(read(part), Ok(None), "{part:?}");
    }
}

#[test]
fn bytes_after_the_end_are_left() {
    let text = "1\r\n!\r\n0\r\n\r\n";
    let decoded = decode([format!("{text}GET /").as_bytes()], LineLimit::PerBody(100));
    assert_eq!(decoded, Ok(Some((b"!".to_vec(), text.len()))));
}

#[test]
fn ambiguous_chunks_are_refused() {
    for text in [
        "5\nhello\r\n",
        "5\r\nhello\n",
        "5\r\nhello!\r\n",
        "5\r\nhello\r\r\n",
        "-1\r\n",
        "0x5\r\nhello\r\n",
        " \r\n",
        "\r\n",
        "5\r\r\n",
        "11111111111111111\r\n",
    ] {
        assert_eq!(read(text), Err(FramingError::Ambiguous), "{text:?}");
    }
}

/// Extensions and trailers were skipped up to the next line feed. Proxies that take a bare carriage return for the end of a
/// line, or fold lines, read other chunks and other headers in them.
#[test]
fn extensions_and_trailers_are_checked_as_strictly_as_a_head() {
    for size in ["5;a\rb", "5;\0", "5; \x01=2", "5;", "5; ;a", "5 a", "5 ", "5\t", "5 ;a", "5;a\x7f"] {
        let text = format!("{size}\r\n");
        assert_eq!(read(&text), Err(FramingError::Ambiguous), "{text:?}");
    }
    for trailer in [
        "no colon",
        " folded: x",
        "\tfolded: x",
        ": no name",
        "a b: c",
        "a : b",
        "a: b\rc: d",
        "a: \0",
        "a\0: b",
        "\r",
    ] {
        let text = format!("0\r\na: b\r\n{trailer}\r\n\r\n");
        assert_eq!(read(&text), Err(FramingError::Ambiguous), "{text:?}");
    }
    for text in ["0;a\r\n\r\n", "0; a=\"x y\";b=1\r\n\r\n", "0\r\nX-Sum: \ta é\r\nempty:\r\n\r\n"] {
        assert_eq!(read(text), Ok(Some(String::new())), "{text:?}");
    }
}

#[test]
fn lines_are_limited() {
    let decode = |text: &str, limit| decode([text.as_bytes()], limit).map(|decoded| decoded.is_some());
    let (per_body, per_chunk) = (LineLimit::PerBody(20), LineLimit::PerChunk(20));
    for limit in [per_body, per_chunk] {
        assert_eq!(decode(&"0".repeat(21), limit), Err(FramingError::LinesTooLong));
        assert_eq!(decode(&"x".repeat(21), limit), Err(FramingError::LinesTooLong), "malformed, too");
        assert_eq!(decode(&format!("1;{}\r\n", "x".repeat(17)), limit), Err(FramingError::LinesTooLong));
        assert_eq!(decode(&format!("1;{}\r\n", "x".repeat(16)), limit), Ok(false));
        assert_eq!(decode(&format!("0\r\n{}", "x: y\r\n".repeat(3)), limit), Err(FramingError::LinesTooLong));
        assert_eq!(decode(&format!("0\r\n{}\r\n", "x: y\r\n".repeat(2)), limit), Ok(true));
    }
    let many = "1\r\n!\r\n".repeat(100) + "0\r\n\r\n";
    assert_eq!(decode(&many, per_chunk), Ok(true));
    assert_eq!(decode(&many, per_body), Err(FramingError::LinesTooLong));
}

/// Decodes all bytes at once, line by line.
fn naive(bytes: &[u8], lines_max: usize) -> Result<Option<Decoded>, FramingError> {
    let (mut data, mut at, mut line_bytes, mut is_last) = (Vec::new(), 0, 0, false);
    let mut size = None;
    loop {
        let line = bytes[at..].split_inclusive(|&byte| byte == b'\n').next().unwrap_or_default();
        at += line.len();
        line_bytes += line.len();
        if line_bytes > lines_max {
            return Err(FramingError::LinesTooLong);
        }
        if !line.ends_with(b"\n") {
            return Ok(None);
        }
        let text: String = line.iter().copied().map(char::from).collect();
        let text = text.strip_suffix("\r\n").ok_or(FramingError::Ambiguous)?;
        match size {
            _ if is_last && text.is_empty() => return Ok(Some((data, at))),
            _ if is_last => is_field(text).then_some(()).ok_or(FramingError::Ambiguous)?,
            Some(()) if text.is_empty() => size = None,
            Some(()) => return Err(FramingError::Ambiguous),
            None => match naive_size(text).ok_or(FramingError::Ambiguous)? {
                0 => is_last = true,
                count => {
                    let count = usize::try_from(count).unwrap_or(usize::MAX);
                    let here = count.min(bytes.len() - at);
                    data.extend_from_slice(&bytes[at..at + here]);
                    at += here;
                    size = Some(());
                    if here < count {
                        return Ok(None);
                    }
                }
            },
        }
    }
}

fn naive_size(text: &str) -> Option<u64> {
    let (digits, extension) = match text.split_once(';') {
        Some((digits, extension)) => (digits, Some(extension)),
        None => (text, None),
    };
    let is_named = |text: &str| text.trim_start_matches([' ', '\t']).starts_with(is_token);
    let is_valid = extension.is_none_or(|text| is_named(text) && text.chars().all(is_visible));
    let is_plain = !digits.is_empty() && digits.chars().all(|digit| digit.is_ascii_hexdigit());
    if is_valid && is_plain { u64::from_str_radix(digits, 16).ok() } else { None }
}

fn is_field(text: &str) -> bool {
    text.split_once(':').is_some_and(|(name, value)| {
        !name.is_empty() && name.chars().all(is_token) && value.chars().all(is_visible)
    })
}

fn is_token(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(letter)
}

fn is_visible(letter: char) -> bool {
    letter == '\t' || !letter.is_ascii_control()
}

/// A part of a body; most parts are those of valid bodies.
fn part() -> impl Strategy<Value = Vec<u8>> {
    let text = |texts: &'static [&'static str]| prop::sample::select(texts).prop_map(|text| text.into());
    prop_oneof![
        6 => prop::collection::vec(any::<u8>(), 1..30).prop_map(|data| {
            [format!("{:x}\r\n", data.len()).as_bytes(), &data, b"\r\n"].concat()
        }),
        2 => text(&["0\r\n", "x: y\r\n", "\r\n", "0\r\n\r\n", "3;a=b\r\nabc\r\n"]),
        1 => text(&["5", "\n", "\r", ";", " ", "\t", ":", "a", "F", "-", "\0", "é", "ffffffffffffffff1", "GET /"]),
        1 => any::<u8>().prop_map(|byte| vec![byte]),
    ]
}

/// The pieces between the given places.
fn pieces<'b>(bytes: &'b [u8], cuts: &[prop::sample::Index]) -> Vec<&'b [u8]> {
    let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    ends.push(bytes.len());
    ends.sort_unstable();
    let starts = std::iter::once(0).chain(ends.iter().copied());
    starts.zip(&ends).map(|(start, &end)| &bytes[start..end]).collect()
}

proptest! {
    #[test]
    fn any_pieces_of_a_body_give_what_a_naive_model_gives(
        parts in prop::collection::vec(part(), 0..12),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        lines_max in 10..200_usize,
    ) {
        let bytes = parts.concat();
        let expected = naive(&bytes, lines_max);
        prop_assert_eq!(&decode(pieces(&bytes, &cuts), LineLimit::PerBody(lines_max)), &expected);
        prop_assert_eq!(&decode(bytes.chunks(1), LineLimit::PerBody(lines_max)), &expected);
        let unlimited = naive(&bytes, usize::MAX);
        prop_assert_eq!(decode(pieces(&bytes, &cuts), LineLimit::PerChunk(usize::MAX)), unlimited);
    }
}
