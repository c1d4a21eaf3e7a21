//! The text of logs, in parts that are put together into one answer.

use bytes::Bytes;

/// Some logs: their text, with commas between and nothing around, and their number.
#[derive(Clone, Debug, Default)]
pub(super) struct LogsText {
    pub(super) text: Bytes,
    pub(super) count: u64,
}

/// A list of logs as a node wrote it.
pub(super) struct LogsList {
    pub(super) result: Bytes,
    pub(super) count: u64,
}

impl From<LogsList> for LogsText {
    fn from(LogsList { result, count }: LogsList) -> Self {
        Self { text: result.slice(1..result.len().saturating_sub(1).max(1)), count }
    }
}

/// The whole answer.
pub(super) fn join(parts: &[LogsText]) -> Bytes {
    let bytes = parts.iter().map(|part| part.text.len() + 1).sum::<usize>() + 2;
    let mut text = Vec::with_capacity(bytes);
    text.push(b'[');
    for part in parts.iter().filter(|part| part.count > 0) {
        if text.len() > 1 {
            text.push(b',');
        }
        text.extend_from_slice(&part.text);
    }
    text.push(b']');
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_joined_to_one_list() {
        let list = |result, count| LogsText::from(LogsList { result: Bytes::from_static(result), count });
        let lists = [list(b"[1,2]", 2), list(b"[ ]", 0), list(b"[]", 0), list(b"[3]", 1)];
        assert_eq!(join(&lists), "[1,2,3]");
        assert_eq!(join(&lists[1..3]), "[]");
        assert_eq!(join(&[]), "[]");
    }
}
