//! One line of JSON. Whatever a value contains, it is one line, and all of its control characters are escaped.

use std::fmt::{self, Display};
use std::io::Write as _;
use std::time::Duration;

use resources::UtcTime;

/// A line that is being written.
#[derive(Debug)]
pub(crate) struct JsonLine(Vec<u8>);

/// Room for a usual line.
const LINE_BYTES_USUAL: usize = 640;

impl JsonLine {
    /// Begins a line with its time, in the time since 1970.
    pub(crate) fn begin(time: Duration) -> Self {
        let mut line = Self(Vec::with_capacity(LINE_BYTES_USUAL));
        line.0.push(b'{');
        line.text("time", Some(&Rfc3339(time).to_string()));
        line
    }

    /// Adds a text, or `null`.
    pub(crate) fn text(&mut self, name: &str, text: Option<&str>) {
        self.name(name);
        let Some(text) = text else { return self.0.extend_from_slice(b"null") };
        self.0.push(b'"');
        for character in text.chars() {
            self.character(character);
        }
        self.0.push(b'"');
    }

    /// Adds a number, or `null`.
    pub(crate) fn number(&mut self, name: &str, number: Option<impl Display>) {
        self.name(name);
        match number {
            Some(number) => self.write(format_args!("{number}")),
            None => self.0.extend_from_slice(b"null"),
        }
    }

    /// The whole line.
    pub(crate) fn end(mut self) -> Vec<u8> {
        self.0.extend_from_slice(b"}\n");
        self.0
    }

    /// Names are our own, and need no escapes.
    fn name(&mut self, name: &str) {
        let comma = if self.0.len() > 1 { "," } else { "" };
        self.write(format_args!("{comma}\"{name}\":"));
    }

    /// Terminals act on control characters, and some programs take U+2028 for the end of a line.
    fn character(&mut self, character: char) {
        match character {
            '"' | '\\' => self.0.extend_from_slice(&[b'\\', character as u8]),
            ' '..='~' => self.0.push(character as u8),
            _ => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    self.write(format_args!("\\u{unit:04x}"));
                }
            }
        }
    }

    fn write(&mut self, text: fmt::Arguments<'_>) {
        let written = self.0.write_fmt(text);
        debug_assert!(written.is_ok(), "a vector grows");
    }
}

/// `2026-11-19T14:25:43.123456Z`.
struct Rfc3339(Duration);

impl Display for Rfc3339 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = i64::try_from(self.0.as_secs()).unwrap_or(i64::MAX);
        let time = UtcTime::new(seconds).unwrap_or(UtcTime::EPOCH);
        let UtcTime { hour, minute, second, .. } = time;
        write!(f, "{}T{hour:02}:{minute:02}:{second:02}.{:06}Z", time.date(), self.0.subsec_micros())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn whatever_a_text_contains_it_stays_one_line_of_printable_characters() {
        let hostile: String =
            (0..0x300).chain([0x2028, 0x2029, 0x202e, 0xfeff, 0x1f600]).filter_map(char::from_u32).collect();
        let mut line = JsonLine::begin(Duration::new(1_709_251_199, 1_234_567));
        line.text("hostile", Some(&hostile));
        line.text("absent", None);
        line.number("number", Some(7));
        line.number("unknown", None::<u64>);
        let bytes = line.end();
        let (last, rest) = bytes.split_last().unwrap();
        assert_eq!(*last, b'\n');
        assert!(rest.iter().all(|byte| (b' '..=b'~').contains(byte)));
        let read: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(read["time"], "2024-02-29T23:59:59.001234Z");
        assert_eq!((read["hostile"].as_str(), &read["number"]), (Some(hostile.as_str()), &Value::from(7)));
        assert!(read["absent"].is_null() && read["unknown"].is_null());
    }
}
