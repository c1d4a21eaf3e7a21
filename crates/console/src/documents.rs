//! The bodies of requests and replies. Times are seconds since 1970, UTC.

use callers::administration::{AccountRecord, AuditEntry, Changed, KeySummary, NewKey};
use callers::{ChangeEffect, KEY_FIELDS, KeyFieldKind, KeyPatch, KeyRules};
use serde::{Deserialize, Serialize};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{
    ArrayBuilder, KnownFormat, ObjectBuilder, Schema, SchemaFormat, SchemaType, Type,
};
use utoipa::{PartialSchema, ToSchema};

/// An account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AccountDocument {
    pub id: i64,
    /// Unique in the store.
    pub name: String,
    /// Plan of the configuration.
    pub plan: String,
    /// `active` or `suspended`.
    pub status: String,
    pub created_at: i64,
    /// Why a change that this is the reply to is stored, but not in effect on this gateway yet (status 202).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_in_effect_because: Option<String>,
}

/// Accounts in the order of their ids.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AccountListDocument {
    pub accounts: Vec<AccountDocument>,
    /// The value of `after` for the next page; absent after the last account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<i64>,
}

/// A new account.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewAccountBody {
    pub(crate) name: String,
    pub(crate) plan: String,
}

/// The new plan of an account.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlanBody {
    pub(crate) plan: String,
}

/// An operation that needs no further data; the body may be left out.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EmptyBody {}

/// A key, without the key itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeyDocument {
    /// Names the key in other requests; not a secret.
    pub id: String,
    pub account: String,
    pub name: String,
    /// The first characters of the key.
    pub prefix: String,
    /// `active`, `revoked` or `expired`.
    pub status: String,
    pub created_at: i64,
    /// Updated about once a minute.
    pub last_used_at: Option<i64>,
    pub expires_at: Option<i64>,
    pub settings: KeySettingsDocument,
    /// Why a change that this is the reply to is stored, but not in effect on this gateway yet (status 202).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_in_effect_because: Option<String>,
}

/// A new key. Only this reply contains the key itself.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NewKeyDocument {
    /// The key, which callers put into the path of the URL.
    pub key: String,
    #[serde(flatten)]
    pub details: KeyDocument,
}

impl std::fmt::Debug for NewKeyDocument {
    // The key is omitted, because it is a credential.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewKeyDocument").field("details", &self.details).finish_non_exhaustive()
    }
}

/// Keys of an account in the order of their ids, revoked and expired ones included.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeyListDocument {
    pub keys: Vec<KeyDocument>,
    /// The value of `after` for the next page; absent after the last key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// The settings of a key. An absent setting restricts nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeySettingsDocument {
    /// Whether the key has a secret, which is never shown.
    pub has_secret: bool,
    #[serde(flatten)]
    pub rules: KeyRules,
}

impl ToSchema for KeySettingsDocument {}

impl PartialSchema for KeySettingsDocument {
    fn schema() -> RefOr<Schema> {
        let has_secret = ObjectBuilder::new().schema_type(Type::Boolean);
        let has_secret = has_secret.description(Some("Whether the key has a secret, which is never shown."));
        let object = ObjectBuilder::new().property("has_secret", has_secret).required("has_secret");
        with_key_fields(object, |kind| kind != KeyFieldKind::Secret)
            .description(Some("The settings of a key. An absent setting restricts nothing."))
            .into()
    }
}

/// The schema of [`KeyPatch`].
pub(crate) struct KeySettingsBody;

impl ToSchema for KeySettingsBody {}

impl PartialSchema for KeySettingsBody {
    fn schema() -> RefOr<Schema> {
        let description = "New settings of a key. An absent field keeps its value, and `null` removes it. The fields of the same \
                           names are described in `[[key]]` of the configuration.";
        with_key_fields(ObjectBuilder::new(), |_| true).description(Some(description)).into()
    }
}

/// Adds the settings of a key, each of which can be `null`.
fn with_key_fields(object: ObjectBuilder, has: impl Fn(KeyFieldKind) -> bool) -> ObjectBuilder {
    KEY_FIELDS.iter().filter(|field| has(field.kind)).fold(object, |object, field| {
        let nullable = |json_type| SchemaType::from_iter([json_type, Type::Null]);
        let description = Some(format!("{}.", field.description));
        let schema: RefOr<Schema> = match field.kind {
            KeyFieldKind::PublicKeys | KeyFieldKind::AllowList => ArrayBuilder::new()
                .schema_type(nullable(Type::Array))
                .items(ObjectBuilder::new().schema_type(Type::String))
                .description(description)
                .into(),
            KeyFieldKind::Secret | KeyFieldKind::Text => {
                ObjectBuilder::new().schema_type(nullable(Type::String)).description(description).into()
            }
            KeyFieldKind::Required | KeyFieldKind::Right => {
                ObjectBuilder::new().schema_type(nullable(Type::Boolean)).description(description).into()
            }
            KeyFieldKind::Credits => ObjectBuilder::new()
                .schema_type(nullable(Type::Integer))
                .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
                .minimum(Some(0))
                .description(description)
                .into(),
        };
        object.property(field.name, schema)
    })
}

/// The key that is revoked on one gateway: by its id, or by its account and its name.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LocalRevocationBody {
    #[serde(default)]
    pub(crate) id: Option<String>,
    #[serde(default)]
    pub(crate) account: Option<String>,
    #[serde(default)]
    pub(crate) name: Option<String>,
}

/// The key that is refused on this gateway.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct LocalRevocationDocument {
    pub id: String,
}

/// A new key of an account.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewKeyBody {
    /// Name of the key, for people.
    pub(crate) name: String,
    /// Time from which the key is refused, in seconds since 1970.
    #[serde(default)]
    pub(crate) expires_at: Option<i64>,
    #[serde(default)]
    #[schema(value_type = KeySettingsBody)]
    pub(crate) settings: KeyPatch,
}

/// How a key is replaced by a new one.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RotationBody {
    /// Seconds for which the old key stays valid.
    pub(crate) overlap_seconds: u64,
    /// Secret of the new key, required if the old key has one.
    #[serde(default)]
    pub(crate) secret: Option<String>,
}

/// The new name of a key.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyNameBody {
    pub(crate) name: String,
}

/// An entry of the audit log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditDocument {
    pub id: i64,
    pub at: i64,
    /// Who made the change.
    pub actor: String,
    /// The action, such as `key.revoke`.
    pub action: String,
    /// The account or key that was changed.
    pub subject: String,
    #[schema(value_type = Object)]
    pub details: serde_json::Value,
}

/// Entries of the audit log, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditListDocument {
    pub entries: Vec<AuditDocument>,
    /// The value of `before` for the next page; absent after the oldest entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<i64>,
}

/// The usage of callers in a span of time, which is rounded to whole minutes, hours or days.
#[derive(ToSchema)]
#[allow(dead_code, reason = "only its schema is used; `callers::usage::UsageReport` writes the JSON")]
pub(crate) struct UsageDocument {
    /// Start, such as `2026-11-17T00:00:00Z`.
    since: String,
    /// End, which is not part of it.
    until: String,
    calls: u64,
    /// Credits that were charged.
    credits: u64,
    /// Bytes of the calls, after decompression.
    bytes_in: u64,
    /// Bytes of the results, before compression.
    bytes_out: u64,
    /// Sum of the times that the calls took, in nanoseconds.
    latency_ns: u64,
    /// Calls by how long they took, with the bounds of `chaingate_call_seconds`.
    latency_buckets: Vec<u64>,
    /// The same for each group: its `time`, `network`, `account`, `key`, `method` and `outcome`, as far as they were asked for.
    #[schema(value_type = Vec<Object>)]
    rows: Vec<serde_json::Value>,
    /// The parameters for the next page; absent on the last one. `calls` and the other sums are those of all pages.
    next: Option<NextUsagePage>,
}

/// After what the next page begins.
#[derive(ToSchema)]
#[allow(dead_code, reason = "only its schema is used; `callers::usage::UsageReport` writes the JSON")]
pub(crate) struct NextUsagePage {
    after_account: String,
    after_key: String,
}

impl From<AccountRecord> for AccountDocument {
    fn from(AccountRecord { id, name, plan, status, created_at }: AccountRecord) -> Self {
        Self { id, name, plan, status: status.name().to_owned(), created_at, not_in_effect_because: None }
    }
}

impl From<KeySummary> for KeyDocument {
    fn from(key: KeySummary) -> Self {
        Self {
            id: key.id,
            account: key.account,
            name: key.name,
            prefix: key.prefix,
            status: key.status.to_owned(),
            created_at: key.created_at,
            last_used_at: key.last_used_at,
            expires_at: key.expires_at,
            settings: KeySettingsDocument { has_secret: key.has_secret, rules: key.settings },
            not_in_effect_because: None,
        }
    }
}

impl From<Changed<AccountRecord>> for AccountDocument {
    fn from(Changed { made, effect }: Changed<AccountRecord>) -> Self {
        Self { not_in_effect_because: reason_for_delay(effect), ..made.into() }
    }
}

impl From<Changed<KeySummary>> for KeyDocument {
    fn from(Changed { made, effect }: Changed<KeySummary>) -> Self {
        Self { not_in_effect_because: reason_for_delay(effect), ..made.into() }
    }
}

impl From<Changed<NewKey>> for NewKeyDocument {
    fn from(Changed { made: NewKey { key, summary }, effect }: Changed<NewKey>) -> Self {
        Self { key, details: Changed { made: summary, effect }.into() }
    }
}

fn reason_for_delay(effect: ChangeEffect) -> Option<String> {
    match effect {
        ChangeEffect::Now => None,
        ChangeEffect::Later(reason) => Some(reason),
    }
}

impl From<AuditEntry> for AuditDocument {
    fn from(AuditEntry { id, at, actor, action, subject, details }: AuditEntry) -> Self {
        Self { id, at, actor, action, subject, details }
    }
}

/// The keys of the configuration file whose values have changed, by what they need.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReloadReport {
    /// Those that are in effect now.
    pub changed: Vec<String>,
    /// Those that take effect when the gateway is started again.
    pub needs_restart: Vec<String>,
}
