//! The settings of a stored key as JSON: its restrictions, and the keyed hash of its secret.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::{HASH_BYTES, HashKey};

use crate::hashed_secret::HashedSecret;
use crate::key_fields::{KEY_FIELDS, KeyField};
use crate::key_rules::{KeyRuleError, KeyRules};
use crate::key_settings::KeySettings;
use crate::policy::{SECRET_BYTES_MAX, SETTINGS_BYTES_MAX};

/// The settings of a stored key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct StoredSettings {
    /// The keyed hash of the secret in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) secret_hash: Option<String>,
    pub(crate) rules: KeyRules,
}

impl StoredSettings {
    pub(crate) fn parse(json: &str) -> Result<Self, KeyRuleError> {
        let invalid = |message| KeyRuleError { field: "settings", message };
        if json.len() > SETTINGS_BYTES_MAX {
            return Err(invalid(format!("more than {SETTINGS_BYTES_MAX} bytes")));
        }
        // The message of `serde_json` can repeat a value, but the settings contain nothing in clear that is secret.
        serde_json::from_str(json).map_err(|error| invalid(error.to_string()))
    }

    pub(crate) fn to_json(&self) -> Result<String, KeyRuleError> {
        let json = serde_json::to_string(self)
            .map_err(|error| KeyRuleError { field: "settings", message: error.to_string() })?;
        if json.len() > SETTINGS_BYTES_MAX {
            let message =
                format!("all settings of a key together must have at most {SETTINGS_BYTES_MAX} bytes");
            return Err(KeyRuleError { field: "settings", message });
        }
        Ok(json)
    }

    /// Checks the settings and makes them ready for use on one network; `None` if nothing is restricted.
    pub(crate) fn compile(
        &self,
        hash_key: &HashKey,
        key_id: &str,
        network: &str,
    ) -> Result<Option<KeySettings>, Vec<KeyRuleError>> {
        let secret = match &self.secret_hash {
            None => None,
            Some(hex) => {
                let mut hash = [0; HASH_BYTES];
                const_hex::decode_to_slice(hex, &mut hash).map_err(|_| {
                    vec![KeyRuleError { field: "secret_hash", message: "must be 64 hex digits".to_owned() }]
                })?;
                let (hash_key, key_id) = (hash_key.clone(), key_id.to_owned());
                Some(HashedSecret::Stored { hash_key, key_id, hash })
            }
        };
        self.rules.compile(secret, network)
    }

    pub(crate) fn change(
        &mut self,
        patch: &KeyPatch,
        hash_key: &HashKey,
        key_id: &str,
    ) -> Result<(), KeyRuleError> {
        if let Some(secret) = patch.secret() {
            self.set_secret(secret, hash_key, key_id)?;
        }
        self.rules = patch.applied_to(&self.rules)?;
        Ok(())
    }

    pub(crate) fn set_secret(
        &mut self,
        secret: Option<&str>,
        hash_key: &HashKey,
        key_id: &str,
    ) -> Result<(), KeyRuleError> {
        self.secret_hash = secret.map(|secret| hash_of_secret(secret, hash_key, key_id)).transpose()?;
        Ok(())
    }
}

fn hash_of_secret(secret: &str, hash_key: &HashKey, key_id: &str) -> Result<String, KeyRuleError> {
    if secret.is_empty() || secret.len() > SECRET_BYTES_MAX {
        let message = format!("must have 1 to {SECRET_BYTES_MAX} bytes");
        return Err(KeyRuleError { field: "secret", message });
    }
    Ok(const_hex::encode(hash_key.hash_secret(key_id, secret.as_bytes())))
}

/// A change of the settings of a key: a merge patch (RFC 7396) of [`KeyRules`] and of the secret in clear. An absent field keeps its
/// value, `null` removes it.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Map<String, Value>")]
pub struct KeyPatch(Map<String, Value>);

impl KeyPatch {
    /// The change of the secret: `Some(None)` removes it.
    pub(crate) fn secret(&self) -> Option<Option<&str>> {
        self.0.get("secret").map(Value::as_str)
    }

    fn applied_to(&self, rules: &KeyRules) -> Result<KeyRules, KeyRuleError> {
        let invalid =
            |error: serde_json::Error| KeyRuleError { field: "settings", message: error.to_string() };
        let mut merged = serde_json::to_value(rules).map_err(invalid)?;
        for (name, value) in self.0.iter().filter(|(name, _)| *name != "secret") {
            merged[name] = value.clone();
        }
        serde_json::from_value(merged).map_err(invalid)
    }
}

impl TryFrom<Map<String, Value>> for KeyPatch {
    type Error = String;

    /// Checks names and types. The messages contain no values, because one of them can be a secret.
    fn try_from(members: Map<String, Value>) -> Result<Self, String> {
        for (name, value) in &members {
            let Some(field) = KeyField::named(name) else {
                let names: Vec<_> = KEY_FIELDS.iter().map(|field| format!("`{}`", field.name)).collect();
                return Err(format!("unknown field `{name}`, expected one of {}", names.join(", ")));
            };
            if !(value.is_null() || field.kind.is_type_of(value)) {
                return Err(format!("wrong type of field `{name}`"));
            }
        }
        Ok(Self(members))
    }
}

impl std::fmt::Debug for KeyPatch {
    // The values are omitted, because one of them can be a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
