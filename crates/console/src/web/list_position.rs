//! Positions in lists as they stand in addresses.

use std::fmt::Display;
use std::str::FromStr;

use callers::administration::{KeyAgePosition, NamePosition};

use crate::pages::list_pages::ListLinks;
use crate::pages::usage::percent_encoded;

/// A position in a list that is ordered by name, such as `17.acme`.
pub(super) fn name_text(position: &NamePosition<impl Display>) -> String {
    format!("{}.{}", position.id, position.folded_name)
}

pub(super) fn name_position<R: FromStr>(text: &str) -> Option<NamePosition<R>> {
    let (id, folded_name) = text.split_once('.')?;
    Some(NamePosition { folded_name: folded_name.to_owned(), id: id.parse().ok()? })
}

/// A position in the keys of an account, such as `1.1794934800.k_8a41c0de55b2`.
pub(super) fn key_age_text(position: &KeyAgePosition) -> String {
    format!("{}.{}.{}", u8::from(position.is_active), position.created_at, position.id)
}

pub(super) fn key_age_position(text: &str) -> Option<KeyAgePosition> {
    let (is_active, rest) = text.split_once('.')?;
    let (created_at, id) = rest.split_once('.')?;
    Some(KeyAgePosition {
        is_active: is_active == "1",
        created_at: created_at.parse().ok()?,
        id: id.to_owned(),
    })
}

/// The addresses of other pages of a list; `next` is the position of the next one.
pub(super) fn list_links(path: &str, search: &str, is_later_page: bool, next: Option<String>) -> ListLinks {
    ListLinks {
        first: is_later_page.then(|| page_href(path, search, None)),
        next: next.map(|after| page_href(path, search, Some(&after))),
    }
}

/// The address of a page of a list.
fn page_href(path: &str, search: &str, after: Option<&str>) -> String {
    let fields = [("q", Some(search).filter(|search| !search.is_empty())), ("after", after)];
    let fields: Vec<_> = fields
        .into_iter()
        .filter_map(|(name, value)| Some(format!("{name}={}", percent_encoded(value?))))
        .collect();
    if fields.is_empty() { path.to_owned() } else { format!("{path}?{}", fields.join("&")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_as_it_was_written() {
        let key = KeyAgePosition { is_active: true, created_at: -5, id: "k_1".to_owned() };
        assert_eq!(key_age_position(&key_age_text(&key)), Some(key));
        let account = NamePosition { folded_name: "a.b ü".to_owned(), id: 7_i64 };
        assert_eq!(name_position(&name_text(&account)), Some(account));
        for wrong in ["", "x", "x.a", "1", "1.x.k_1"] {
            assert!(name_position::<i64>(wrong).is_none_or(|_| wrong.starts_with("1.")), "{wrong}");
            assert_eq!(key_age_position(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn addresses_of_pages_keep_the_search() {
        assert_eq!(page_href("/keys", "", None), "/keys");
        assert_eq!(page_href("/keys", "a&b", Some("1.x")), "/keys?q=a%26b&after=1.x");
    }
}
