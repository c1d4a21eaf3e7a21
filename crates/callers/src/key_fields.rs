//! The settings of a key, one row each. The schema of the admin API, the options of commands, the form of the console and the
//! reader of `[[key]]` are made from these rows; [`crate::KeyRules`] has the values.

use serde_json::Value;

use self::KeyFieldKind::{AllowList, Credits, PublicKeys, Required, Right, Secret, Text};
use self::KeyFieldSection::{Allowed, Limits, Tokens};

/// A setting of a key.
#[derive(Debug)]
pub struct KeyField {
    /// Its name in the configuration, in the admin API and in the store.
    pub name: &'static str,
    /// Its name as an option of commands, after `--`.
    pub option: &'static str,
    pub kind: KeyFieldKind,
    pub section: KeyFieldSection,
    /// The label of its field in the console.
    pub label: &'static str,
    /// An entry as an example; empty if none helps.
    pub example: &'static str,
    /// A sentence without its full stop.
    pub description: &'static str,
}

/// The type of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyFieldKind {
    /// The secret in clear. Only its keyed hash is stored, and it is never shown.
    Secret,
    /// Whether calls without the secret or without a token are refused; `true` by default if there is one.
    Required,
    /// Whether callers get what others do not; `false` by default. Only operators grant it.
    Right,
    /// Public keys in PEM.
    PublicKeys,
    Text,
    /// Texts, one of which must apply.
    AllowList,
    /// A number of credits; 0 is no limit.
    Credits,
}

/// Settings that people see together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyFieldSection {
    Secret,
    Tokens,
    Allowed,
    Limits,
}

/// All settings of a key.
#[rustfmt::skip]
pub static KEY_FIELDS: &[KeyField] = &[
    field("secret", "secret", Secret, KeyFieldSection::Secret, "Secret", "", "Secret that callers send as the password of HTTP Basic"),
    field("secret_required", "secret-required", Required, KeyFieldSection::Secret, "Refuse calls without the secret", "", "Whether requests without the secret are refused; by default they are"),
    field("jwt_public_keys", "jwt-public-keys", PublicKeys, Tokens, "Public keys", "-----BEGIN PUBLIC KEY-----", "PEM public keys whose JSON Web Tokens are accepted"),
    field("jwt_audience", "jwt-audience", Text, Tokens, "Audience", "", "Audience that the tokens must name"),
    field("jwt_required", "jwt-required", Required, Tokens, "Refuse calls without a token", "", "Whether requests without a token are refused; by default they are"),
    field("origins", "origins", AllowList, Allowed, "Origins of web pages", "https://*.example.com", "Web pages that may use the key"),
    field("user_agents", "user-agents", AllowList, Allowed, "User agents", "my-app/", "Texts, one of which must occur in `User-Agent`"),
    field("addresses", "addresses", AllowList, Allowed, "Contract addresses", "0x…", "Contracts that the key may query"),
    field("networks", "networks", AllowList, Allowed, "Networks", "", "Networks that the key may be used for"),
    field("methods", "methods", AllowList, Allowed, "Methods", "eth_call", "Methods that the key may call"),
    field("show_node", "show-node", Right, Allowed, "Name of the node", "", "Whether replies name the node that answered, in `Chaingate-Node`"),
    field("credits_per_second", "credits-per-second", Credits, Limits, "Credits per second", "", "Credits per second, within the limits of the account"),
    field("credits_per_day", "credits-per-day", Credits, Limits, "Credits per day", "", "Credits per day (UTC), within the limits of the account"),
];

const fn field(
    name: &'static str,
    option: &'static str,
    kind: KeyFieldKind,
    section: KeyFieldSection,
    label: &'static str,
    example: &'static str,
    description: &'static str,
) -> KeyField {
    KeyField { name, option, kind, section, label, example, description }
}

impl KeyField {
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        KEY_FIELDS.iter().find(|field| field.name == name)
    }
}

impl KeyFieldKind {
    /// Whether a value of the admin API has the right type.
    pub(crate) fn is_type_of(self, value: &Value) -> bool {
        match self {
            Secret | Text => value.is_string(),
            Required | Right => value.is_boolean(),
            PublicKeys | AllowList => {
                value.as_array().is_some_and(|entries| entries.iter().all(Value::is_string))
            }
            Credits => value.is_u64(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Map, json};

    use super::*;
    use crate::key_rules::KeyRules;

    #[test]
    fn every_rule_has_a_row_and_every_row_a_rule() {
        let sample = |kind| match kind {
            Secret | Text => json!("a"),
            Required | Right => json!(true),
            PublicKeys | AllowList => json!(["a"]),
            Credits => json!(1),
        };
        let rows = KEY_FIELDS.iter().filter(|field| field.kind != Secret);
        let values: Map<_, _> = rows.map(|field| (field.name.to_owned(), sample(field.kind))).collect();
        let rules: KeyRules = serde_json::from_value(Value::Object(values.clone())).unwrap();
        assert_eq!(serde_json::to_value(&rules).unwrap(), Value::Object(values), "a row is no rule");
        let unknown = serde_json::from_value::<KeyRules>(json!({ "": 1 })).unwrap_err().to_string();
        let (_, expected) = unknown.split_once("expected one of ").unwrap();
        let rules: BTreeSet<_> = expected.split('`').skip(1).step_by(2).collect();
        let rows: BTreeSet<_> =
            KEY_FIELDS.iter().map(|field| field.name).filter(|&name| name != "secret").collect();
        assert_eq!(rules, rows);
    }
}
