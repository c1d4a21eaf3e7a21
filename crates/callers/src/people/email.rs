//! Email addresses of people.

use super::{PeopleError, invalid};
use crate::administration::is_invisible;
use crate::policy::EMAIL_BYTES_MAX;

/// The address in lower case. Only its form is checked: no mail is ever sent to it.
pub(super) fn normalised(text: &str) -> Result<String, PeopleError> {
    let email = text.trim().to_lowercase();
    let (name, host) = email.rsplit_once('@').unwrap_or_default();
    let is_plain =
        |letter: char| !letter.is_whitespace() && !is_invisible(letter) && !"<>\"'`,;\\".contains(letter);
    let is_valid =
        !name.is_empty() && !host.is_empty() && email.len() <= EMAIL_BYTES_MAX && email.chars().all(is_plain);
    if is_valid {
        Ok(email)
    } else {
        Err(invalid("email", "must be an email address such as ada@example.com"))
    }
}

/// Refuses what is not an email address.
pub fn check_email(text: &str) -> Result<(), PeopleError> {
    normalised(text).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_differ_only_by_letters() {
        assert_eq!(normalised(" Ada@Example.COM ").unwrap(), "ada@example.com");
        assert!(normalised("operator@localhost").is_ok());
        for wrong in [
            "",
            "ada",
            "@example.com",
            "ada@",
            "a b@c",
            "<a@b>",
            "a\u{0}@b",
            "a\u{200b}@b",
            "a\u{202e}@b",
            &"a@".repeat(200),
        ] {
            let checked = normalised(wrong);
            assert!(checked.is_err(), "{wrong:?}");
        }
    }
}
