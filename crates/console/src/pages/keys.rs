//! The keys of an account: the list, a new key, and the settings of one key.

use askama::Template;
use callers::administration::{AccountCounts, AccountRecord, AccountStatus, KeySummary};
use callers::{KEY_FIELDS, KeyField, KeyFieldKind, KeyFieldSection};

use super::credits_today::CreditsToday;
use super::list_pages::ListLinks;
use super::snippets::{KEY_PLACEHOLDER, Snippet, snippets};
use super::usage::UsageSum;
use super::{FormErrors, PageFrame, format};

/// `GET /keys?q=&after=`, or the same below `/accounts/{name}` for operators. The form posts `name` to the same path, which
/// answers with a [`NewKeyPage`].
#[derive(Template)]
#[template(path = "keys.html")]
pub(crate) struct KeyListPage {
    pub(crate) frame: PageFrame,
    /// The path of this list.
    pub(crate) path: String,
    /// The name and the path of the account, if it is not the own one.
    pub(crate) account: Option<(String, String)>,
    /// One page of keys.
    pub(crate) keys: Vec<KeyRow>,
    /// The search text; empty if all keys are listed.
    pub(crate) search: String,
    /// How many keys the search has found; `None` without a search.
    pub(crate) found: Option<FoundKeyCount>,
    pub(crate) pages: ListLinks,
    pub(crate) counts: AccountCounts,
    /// How many active keys the plan allows; `None` is no limit.
    pub(crate) keys_max: Option<u64>,
    /// The name that was typed for a new key.
    pub(crate) new_name: String,
    pub(crate) errors: FormErrors,
    /// Such as `http://127.0.0.1:8545/v3/`.
    pub(crate) base_url: String,
}

impl KeyListPage {
    fn is_full(&self) -> bool {
        self.keys_max.is_some_and(|keys_max| self.counts.valid_keys >= keys_max)
    }
}

/// How many keys a search has found, on all pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoundKeyCount {
    pub(crate) count: u64,
    /// Whether there are no further keys with these first characters, of which only some are listed.
    pub(crate) is_all: bool,
}

/// A key, and its calls of today (UTC) over all networks.
#[derive(Clone, Debug)]
pub(crate) struct KeyRow {
    pub(crate) key: KeySummary,
    pub(crate) state: KeyRowState,
    pub(crate) today: UsageSum,
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
    pub(crate) fn of(key: &KeySummary, account: &AccountRecord) -> Self {
        match (key.status, key.expires_at) {
            ("revoked", _) => Self::Revoked,
            ("expired", _) => Self::Expired,
            _ if account.status == AccountStatus::Suspended => Self::Suspended,
            (_, Some(until)) => Self::ActiveUntil(until),
            (_, None) => Self::Active,
        }
    }

    /// Whether calls with the key are accepted.
    pub(crate) fn works(self) -> bool {
        matches!(self, Self::Active | Self::ActiveUntil(_))
    }

    /// Whether the key works, or will when its account is resumed, so that it can be limited and revoked.
    pub(crate) fn is_valid(self) -> bool {
        self.works() || self == Self::Suspended
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
    /// The path of the list of keys.
    pub(crate) list_path: String,
    /// The handle of the new key.
    pub(crate) id: String,
    pub(crate) name: String,
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

/// `GET /keys/{id}`, or the same below `/accounts/{name}` for operators.
///
/// Its forms post to `/rename` (`name`), `/rotate` (`overlap_hours`, and `secret` if the key has one), `/revoke` (`confirm` =
/// `revoke`) and `/settings` (the fields of [`KeySettingsForm`]) below its path.
#[derive(Template)]
#[template(path = "key_settings.html")]
pub(crate) struct KeySettingsPage {
    pub(crate) frame: PageFrame,
    /// The path of this page.
    pub(crate) path: String,
    /// The path of the list of keys.
    pub(crate) list_path: String,
    /// The path of the usage of the account.
    pub(crate) usage_path: String,
    /// The name and the path of the account, if it is not the own one.
    pub(crate) account: Option<(String, String)>,
    pub(crate) row: KeyRow,
    /// The limits of the plan, within which the limits of the key are.
    pub(crate) credits: CreditsToday,
    pub(crate) form: KeySettingsForm,
    /// Errors in the form that was sent, by the names of the fields.
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
    pub(crate) has_secret: bool,
    fields: Vec<KeyFormField>,
}

/// One setting in the form.
#[derive(Clone, Debug)]
pub(crate) struct KeyFormField {
    pub(crate) setting: &'static KeyField,
    /// The text of the input; of a check box, `on` or nothing.
    pub(crate) text: String,
}

impl KeySettingsForm {
    /// Asks for the text of each setting but the secret, and rights that only operators grant.
    pub(crate) fn new(has_secret: bool, text: impl Fn(&KeyField) -> String) -> Self {
        let is_left_out = |kind| matches!(kind, KeyFieldKind::Secret | KeyFieldKind::Right);
        let settings = KEY_FIELDS.iter().filter(|setting| !is_left_out(setting.kind));
        let fields = settings.map(|setting| KeyFormField { setting, text: text(setting) });
        Self { has_secret, fields: fields.collect() }
    }

    fn fields_of(&self, section: KeyFieldSection) -> impl Iterator<Item = &KeyFormField> {
        self.fields.iter().filter(move |field| field.setting.section == section)
    }
}
