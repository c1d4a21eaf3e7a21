//! The known key that an unknown one is probably a misspelling of.

/// The known key with the fewest edits to the unknown one, if a third of the letters at most are wrong.
pub(crate) fn nearest_key<'a>(unknown: &str, known: &'a [String]) -> Option<&'a str> {
    let (edits, nearest) =
        known.iter().map(|key| (edit_distance(unknown, key), key)).min_by_key(|(edits, _)| *edits)?;
    (edits <= unknown.chars().count().div_ceil(3)).then_some(nearest.as_str())
}

/// How many letters have to be inserted, deleted or replaced to make one text of the other (Levenshtein).
fn edit_distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    // The distances of what was read of `one` to each beginning of `other`.
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, letter) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, expected) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *expected);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        for (one, other, edits) in [
            ("", "", 0),
            ("", "abc", 3),
            ("public", "public", 0),
            ("pubic", "public", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(
                (edit_distance(one, other), edit_distance(other, one)),
                (edits, edits),
                "{one} {other}"
            );
        }
    }

    #[test]
    fn a_misspelt_key_is_found_and_another_word_is_not() {
        let known = ["public", "operator", "console", "workers"].map(str::to_owned);
        for (unknown, nearest) in [
            ("pubilc", Some("public")),
            ("operater", Some("operator")),
            ("worker", Some("workers")),
            ("Console", Some("console")),
            ("port", None),
            ("", None),
        ] {
            assert_eq!(nearest_key(unknown, &known), nearest, "{unknown}");
        }
        assert_eq!(nearest_key("public", &[]), None);
    }
}
