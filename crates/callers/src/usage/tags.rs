//! Tags: the names that callers give their work in the header `Chaingate-Tag`. There are few tags for each key, because each
//! makes rows of its own in the store.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use resources::{AccountId, DAY_S};

use crate::api_key::{ApiKey, KeyId};
use crate::policy::{TAG_BYTES_MAX, TAGGED_KEYS_MAX, TAGS_OF_KEY_MAX};

/// A tag under which calls are counted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UsageTag(Arc<str>);

/// Stands for every tag that is not counted by itself.
static OTHER: LazyLock<UsageTag> = LazyLock::new(|| UsageTag("other".into()));

impl UsageTag {
    pub(super) fn into_text(self) -> Arc<str> {
        self.0
    }
}

/// The tags of each key that were counted today.
#[derive(Debug, Default)]
pub(super) struct TagSets(Mutex<DayTags>);

#[derive(Debug, Default)]
struct DayTags {
    /// The day since 1970.
    day: u64,
    keys: HashMap<(AccountId, KeyId), Vec<UsageTag>>,
}

impl TagSets {
    /// The tag for a text. What is no tag, or one too many for its key on this day, is the tag `other`.
    pub(super) fn tag(&self, key: &ApiKey, text: &[u8], unix_seconds: u64) -> UsageTag {
        let Some(text) = tag_text(text) else { return OTHER.clone() };
        let mut tags = self.0.lock();
        let day = unix_seconds / DAY_S;
        if tags.day != day {
            *tags = DayTags { day, keys: HashMap::new() };
        }
        let has_room = tags.keys.len() < TAGGED_KEYS_MAX;
        let of_key = match tags.keys.entry((key.account.id, Arc::clone(&key.id))) {
            Entry::Occupied(of_key) => of_key.into_mut(),
            Entry::Vacant(of_key) if has_room => of_key.insert(Vec::new()),
            Entry::Vacant(_) => return OTHER.clone(),
        };
        if let Some(known) = of_key.iter().find(|known| *known.0 == *text) {
            return known.clone();
        }
        if of_key.len() >= TAGS_OF_KEY_MAX {
            return OTHER.clone();
        }
        let tag = UsageTag(text.into());
        of_key.push(tag.clone());
        tag
    }
}

fn tag_text(text: &[u8]) -> Option<&str> {
    let is_allowed = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let is_tag = (1..=TAG_BYTES_MAX).contains(&text.len()) && text.iter().all(is_allowed);
    std::str::from_utf8(text).ok().filter(|_| is_tag)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::Account;
    use crate::plans::Plans;

    fn key(name: &str) -> ApiKey {
        let account = Account::new("a".into(), Plans::default().named("custom").unwrap().clone());
        ApiKey::configured(name, Arc::new(account), None)
    }

    fn tag(tags: &TagSets, key: &ApiKey, text: &str, unix_seconds: u64) -> Arc<str> {
        tags.tag(key, text.as_bytes(), unix_seconds).into_text()
    }

    #[test]
    fn texts_that_are_no_tags_are_counted_together() {
        let (tags, key) = (TagSets::default(), key("one"));
        let longest = "x".repeat(TAG_BYTES_MAX);
        for text in ["a", "Team-7_batch.nightly", &longest] {
            assert_eq!(*tag(&tags, &key, text, 0), *text);
        }
        for text in ["", " a", "a b", "a,b", "ä", "a\0", &"x".repeat(TAG_BYTES_MAX + 1)] {
            assert_eq!(*tag(&tags, &key, text, 0), *"other", "{text:?}");
        }
    }

    /// A caller that sends another tag with each call would fill the store.
    #[test]
    fn a_key_has_few_tags_a_day() {
        let (tags, one, other) = (TagSets::default(), key("one"), key("other"));
        let counted = |key: &ApiKey, unix_seconds| {
            let tags: std::collections::HashSet<_> =
                (0..1_000).map(|number| tag(&tags, key, &number.to_string(), unix_seconds)).collect();
            tags.len()
        };
        assert_eq!(counted(&one, 0), TAGS_OF_KEY_MAX + 1);
        assert_eq!(counted(&one, DAY_S - 1), TAGS_OF_KEY_MAX + 1);
        assert_eq!(*tag(&tags, &one, "7", 0), *"7", "one that is known stays");
        assert_eq!(*tag(&tags, &other, "new", 0), *"new", "other keys have tags of their own");
        assert_eq!(*tag(&tags, &one, "new", 0), *"other");
        assert_eq!(*tag(&tags, &one, "new", DAY_S), *"new", "the next day begins anew");
    }
}
