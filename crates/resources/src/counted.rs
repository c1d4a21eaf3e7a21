//! Numbers with their nouns, for messages.

/// `1 key`, `2 keys`.
pub fn counted(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages said "1 keys" and "1 nodes".
    #[test]
    fn one_thing_has_no_plural() {
        assert_eq!([0, 1, 2].map(|number| counted(number, "key")), ["0 keys", "1 key", "2 keys"]);
    }
}
