//! The fields of a query or a form (`application/x-www-form-urlencoded`).

use std::fmt;

use percent_encoding::percent_decode_str;

/// Fields of one form; the largest form of the console has fifteen.
const FIELDS_MAX: usize = 64;

/// Decoded names and values, in their order.
#[derive(Clone, Default)]
pub(super) struct FormFields(Vec<(String, String)>);

impl fmt::Debug for FormFields {
    // The values are omitted, because some are passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

impl FormFields {
    pub(super) fn parse(text: &str) -> Self {
        let fields = text.split('&').filter(|field| !field.is_empty()).take(FIELDS_MAX).map(|field| {
            let (name, value) = field.split_once('=').unwrap_or((field, ""));
            (decoded(name), decoded(value))
        });
        Self(fields.collect())
    }

    /// The first value of a field; empty if it is absent.
    pub(super) fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(found, _)| found == name).map_or("", |(_, value)| value)
    }

    /// The value without outer spaces; `None` if nothing is left.
    pub(super) fn filled(&self, name: &str) -> Option<&str> {
        Some(self.get(name).trim()).filter(|value| !value.is_empty())
    }

    /// Whether a check box is checked.
    pub(super) fn is_on(&self, name: &str) -> bool {
        !self.get(name).is_empty()
    }

    pub(super) fn all(&self) -> &[(String, String)] {
        &self.0
    }
}

fn decoded(text: &str) -> String {
    percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_decoded() {
        let fields = FormFields::parse("a=1&name=My+first%20key&empty&u=%C3%BC%2B&a=2&&x=%zz");
        assert_eq!((fields.get("a"), fields.get("name"), fields.get("u")), ("1", "My first key", "ü+"));
        assert_eq!((fields.get("empty"), fields.get("none"), fields.get("x")), ("", "", "%zz"));
        assert_eq!(FormFields::parse(&"a=1&".repeat(1_000)).all().len(), FIELDS_MAX);
        assert!(!format!("{:?}", FormFields::parse("password=hunter2")).contains("hunter2"));
    }
}
