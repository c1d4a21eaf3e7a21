//! Names of accounts and keys: two that look the same must be the same.

use super::AdministrationError;

/// Characters of the name of an account or a key.
pub const NAME_CHARACTERS_MAX: usize = 100;

/// Joins two emoji into one, such as a person and a laptop into a programmer.
const JOINER: char = '\u{200d}';

/// Shows the character before it as an emoji, in colour.
const EMOJI_STYLE: char = '\u{fe0f}';

/// Makes a key of the digit before it.
const KEYCAP: char = '\u{20e3}';

/// Begins the flag of a region, whose letters follow as tags that are invisible alone.
const BLACK_FLAG: char = '\u{1f3f4}';

/// Ends the letters of a region.
const TAG_END: char = '\u{e007f}';

/// Whether a character cannot be seen, or changes the direction of others: two names that look the same would be different.
pub(crate) fn is_invisible(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
                | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
                | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e01ef}'
        )
}

pub(super) fn check_name(field: &'static str, name: &str) -> Result<(), AdministrationError> {
    let length = name.chars().count();
    // Browsers and programs leave `.` and `..` out of a path, so that no request could name such an account.
    let is_dots = name.chars().all(|character| character == '.');
    let is_valid = (1..=NAME_CHARACTERS_MAX).contains(&length)
        && name.trim() == name
        && !without_emoji_parts(name).any(is_invisible)
        && !is_dots;
    if is_valid {
        return Ok(());
    }
    let message = format!(
        "must have 1 to {NAME_CHARACTERS_MAX} characters, not only dots, without control characters, invisible ones and outer spaces"
    );
    Err(AdministrationError::Invalid { field, message })
}

/// The characters of a name without the invisible ones that change how an emoji looks.
fn without_emoji_parts(name: &str) -> impl Iterator<Item = char> {
    let characters: Vec<char> = name.chars().collect();
    let kept = |at: &usize| !is_emoji_part(&characters, *at);
    let kept: Vec<char> = (0..characters.len()).filter(kept).map(|at| characters[at]).collect();
    kept.into_iter()
}

/// Whether the character at this place is invisible alone and belongs to an emoji.
fn is_emoji_part(characters: &[char], at: usize) -> bool {
    let before = characters.get(..at).unwrap_or_default();
    let next = characters.get(at + 1).copied();
    match characters.get(at) {
        Some(&JOINER) => {
            let base = before.iter().rev().find(|character| **character != EMOJI_STYLE);
            base.is_some_and(|base| is_emoji(*base)) && next.is_some_and(is_emoji)
        }
        Some(&EMOJI_STYLE) => match before.last() {
            Some('0'..='9' | '#' | '*') => next == Some(KEYCAP),
            base => base.is_some_and(|base| is_emoji(*base)),
        },
        Some('\u{e0020}'..=TAG_END) => {
            let is_tag = |character: &&char| matches!(**character, '\u{e0020}'..TAG_END);
            let base = before.iter().rev().find(|character| !is_tag(character));
            let end = characters.iter().skip(at).find(|character| !is_tag(character));
            base == Some(&BLACK_FLAG) && end == Some(&TAG_END)
        }
        _ => false,
    }
}

/// Whether a character is an emoji, or can be shown as one. The ranges also have some other symbols, all of them visible.
fn is_emoji(character: char) -> bool {
    matches!(
        character,
        '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}' | '\u{2190}'..='\u{21ff}'
            | '\u{2300}'..='\u{27bf}' | '\u{2900}'..='\u{297f}' | '\u{2b00}'..='\u{2bff}' | '\u{3030}'
            | '\u{303d}' | '\u{3297}' | '\u{3299}' | '\u{1f000}'..='\u{1faff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Most emoji of people and flags have joiners or other invisible characters, and were refused.
    #[test]
    fn emoji_are_accepted() {
        for name in [
            "👩‍💻",
            "team 👨‍👩‍👧‍👦",
            "❤️‍🔥 prod",
            "🏳️‍🌈",
            "🏴‍☠️",
            "👩🏽‍🚀",
            "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
            "1️⃣",
            "☎️",
            "🇩🇪",
            "ünï çødé",
        ] {
            assert_eq!(check_name("name", name), Ok(()), "{name:?}");
        }
    }

    #[test]
    fn names_that_look_like_others_are_refused() {
        for name in [
            "",
            " a",
            "a\u{a0}",
            "..",
            "a\nb",
            "a\0",
            "acme\u{200d}",
            "ac\u{200d}me",
            "👩\u{200d}",
            "\u{200d}💻",
            "👩\u{200d}\u{200d}💻",
            "\u{200d}",
            "\u{fe0f}",
            "acme\u{fe0f}",
            "1\u{fe0f}",
            "👩\u{fe0f}\u{fe0f}",
            "☎\u{fe0e}",
            "acme\u{e0067}\u{e007f}",
            "🏴\u{e0067}",
            "🏴\u{e0067}a\u{e007f}",
            "\u{3164}",
            "\u{2800}",
            "\u{202e}emca",
            "\u{2066}acme",
            "acme\u{200b}",
            "ac\u{ad}me",
            &"x".repeat(101),
        ] {
            assert!(check_name("name", name).is_err(), "{name:?}");
        }
    }
}
