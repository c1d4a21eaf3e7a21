//! The keys of an account: the list, a new key, and the settings of one key.

use askama::Template;

use super::credits_today::CreditsToday;
use super::snippets::{KEY_PLACEHOLDER, Snippet, snippets};
use super::{FormErrors, PageFrame, format};

/// `GET /keys`. The form posts `name` to `/keys`, which answers with a [`NewKeyPage`].
#[derive(Template)]
#[template(path = "keys.html")]
pub(crate) struct KeyListPage {
    pub(crate) frame: PageFrame,
    /// Active keys first, revoked ones last.
    pub(crate) keys: Vec<KeyRow>,
    /// How many active keys the plan allows; `None` is no limit.
    pub(crate) keys_max: Option<u64>,
    /// What was typed as the name of a new key.
    pub(crate) new_name: String,
    pub(crate) errors: FormErrors,
    /// Such as `http://127.0.0.1:8545/v3/`.
    pub(crate) base_url: String,
}

/// Keys of which a list shows all columns, so that a page stays below 100 KB. Further keys are shown by name.
pub(crate) const KEYS_IN_TABLE_MAX: usize = 80;

/// The keys of the table, and the further ones.
pub(crate) fn split_keys(keys: &[KeyRow]) -> (&[KeyRow], &[KeyRow]) {
    keys.split_at(keys.len().min(KEYS_IN_TABLE_MAX))
}

impl KeyListPage {
    fn keys_in_table(&self) -> &[KeyRow] {
        split_keys(&self.keys).0
    }

    fn further_keys(&self) -> &[KeyRow] {
        split_keys(&self.keys).1
    }

    fn active_keys(&self) -> u64 {
        self.keys.iter().filter(|key| key.state.works()).count() as u64
    }

    fn is_full(&self) -> bool {
        self.keys_max.is_some_and(|keys_max| self.active_keys() >= keys_max)
    }
}

/// A key in a list.
#[derive(Clone, Debug)]
pub(crate) struct KeyRow {
    /// The id, such as `k_8a41c0de55b2`.
    pub(crate) id: String,
    pub(crate) name: String,
    /// The first characters of the key.
    pub(crate) prefix: String,
    pub(crate) state: KeyRowState,
    pub(crate) created_at: i64,
    pub(crate) last_used_at: Option<i64>,
    /// Calls of today (UTC).
    pub(crate) calls_today: u64,
    /// Share of them that was answered, from 0 to 1; `None` without calls.
    pub(crate) success_share: Option<f64>,
    pub(crate) credits_today: u64,
}

/// Whether a key works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyRowState {
    Active,
    /// Works until this time, for example because it was rotated.
    ActiveUntil(i64),
    Expired,
    Revoked,
    /// Its account is suspended.
    Suspended,
}

impl KeyRowState {
    /// Whether calls with the key are accepted.
    pub(crate) fn works(self) -> bool {
        matches!(self, Self::Active | Self::ActiveUntil(_))
    }

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Active => "Active",
            Self::ActiveUntil(_) => "Expires",
            Self::Expired => "Expired",
            Self::Revoked => "Revoked",
            Self::Suspended => "Suspended",
        }
    }

    /// The class of its colour.
    pub(crate) fn tone(self) -> &'static str {
        match self {
            Self::Active => "good",
            Self::ActiveUntil(_) => "warn",
            Self::Suspended => "bad",
            Self::Expired | Self::Revoked => "off",
        }
    }
}

/// The answer to `POST /keys` and `POST /keys/{id}/rotate`: the only page that ever shows a key.
///
/// It has no `Debug`, because the key is a credential.
#[derive(Template)]
#[template(path = "new_key.html")]
pub(crate) struct NewKeyPage {
    pub(crate) frame: PageFrame,
    /// The handle of the new key.
    pub(crate) id: String,
    pub(crate) name: String,
    /// The key itself.
    pub(crate) key: String,
    /// Such as `http://127.0.0.1:8545/v3/`.
    pub(crate) base_url: String,
    /// If the key replaces another one: until when the old one works.
    pub(crate) old_key_until: Option<i64>,
    /// Whether calls need a secret beside the key.
    pub(crate) needs_secret: bool,
}

impl NewKeyPage {
    fn snippets(&self) -> Vec<Snippet> {
        snippets(&self.base_url, &self.key)
    }
}

/// `GET /keys/{id}`.
///
/// Its forms post to `/keys/{id}/rename` (`name`), `/keys/{id}/rotate` (`overlap_hours`, and `secret` if the key has one),
/// `/keys/{id}/revoke` (`confirm` = `revoke`) and `/keys/{id}/settings` (the fields of [`KeySettingsForm`]).
#[derive(Template)]
#[template(path = "key_settings.html")]
pub(crate) struct KeySettingsPage {
    pub(crate) frame: PageFrame,
    pub(crate) key: KeyRow,
    /// The limits of the plan, within which the limits of the key are.
    pub(crate) credits: CreditsToday,
    pub(crate) form: KeySettingsForm,
    /// What is wrong with the form that was sent; the fields are told apart by their names.
    pub(crate) errors: FormErrors,
    /// All names of methods, which the page lists.
    pub(crate) method_names: Vec<String>,
    /// Such as `http://127.0.0.1:8545/v3/`.
    pub(crate) base_url: String,
}

impl KeySettingsPage {
    fn snippets(&self) -> Vec<Snippet> {
        snippets(&self.base_url, KEY_PLACEHOLDER)
    }
}

/// The settings of a key as they stand in the form: each field has the name of its input.
///
/// Lists have one entry per line; an empty field restricts nothing. `jwt_public_keys` has PEM blocks one below the other.
/// Numbers are decimal. The secret itself is never shown: `secret` sets a new one, `remove_secret` = `on` removes it.
/// `secret_required` and `jwt_required` are check boxes, which a browser sends as `on` or not at all.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeySettingsForm {
    /// Whether the key has a secret.
    pub(crate) has_secret: bool,
    pub(crate) secret_required: bool,
    pub(crate) jwt_public_keys: String,
    pub(crate) jwt_audience: String,
    pub(crate) jwt_required: bool,
    pub(crate) origins: String,
    pub(crate) user_agents: String,
    pub(crate) addresses: String,
    pub(crate) methods: String,
    pub(crate) networks: String,
    pub(crate) credits_per_second: String,
    pub(crate) credits_per_day: String,
}
