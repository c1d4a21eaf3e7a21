//! The settings of a stored key as JSON: its restrictions, and the keyed hash of its secret.

use serde::{Deserialize, Deserializer, Serialize};
use store::{HASH_BYTES, HashKey};

use crate::hashed_secret::HashedSecret;
use crate::key_rules::{KeyRuleError, KeyRules};
use crate::key_settings::KeySettings;

/// Bytes of the settings of one key, so that a million keys fit into memory. A long list of addresses has a few kilobytes.
const SETTINGS_BYTES_MAX: usize = 64 << 10;

/// Bytes of a secret; HTTP headers are limited as well.
const SECRET_BYTES_MAX: usize = 512;

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

    /// Applies a change.
    pub(crate) fn change(
        &mut self,
        change: &KeySettingsChange,
        hash_key: &HashKey,
        key_id: &str,
    ) -> Result<(), KeyRuleError> {
        if let Some(secret) = &change.secret {
            self.secret_hash = match secret {
                None => None,
                Some(secret) => Some(hash_of_secret(secret, hash_key, key_id)?),
            };
        }
        let rules = &mut self.rules;
        replace(&mut rules.secret_required, &change.secret_required);
        replace(&mut rules.jwt_public_keys, &change.jwt_public_keys);
        replace(&mut rules.jwt_audience, &change.jwt_audience);
        replace(&mut rules.jwt_required, &change.jwt_required);
        replace(&mut rules.origins, &change.origins);
        replace(&mut rules.user_agents, &change.user_agents);
        replace(&mut rules.addresses, &change.addresses);
        replace(&mut rules.methods, &change.methods);
        replace(&mut rules.networks, &change.networks);
        replace(&mut rules.credits_per_second, &change.credits_per_second);
        replace(&mut rules.credits_per_day, &change.credits_per_day);
        Ok(())
    }
}

fn replace<T: Clone>(value: &mut Option<T>, change: &Option<Option<T>>) {
    if let Some(new) = change {
        value.clone_from(new);
    }
}

fn hash_of_secret(secret: &str, hash_key: &HashKey, key_id: &str) -> Result<String, KeyRuleError> {
    if secret.is_empty() || secret.len() > SECRET_BYTES_MAX {
        let message = format!("must have 1 to {SECRET_BYTES_MAX} bytes");
        return Err(KeyRuleError { field: "secret", message });
    }
    Ok(const_hex::encode(hash_key.hash_secret(key_id, secret.as_bytes())))
}

/// A change of the settings of a key: an absent field keeps its value, `null` removes it.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KeySettingsChange {
    /// The secret in clear.
    #[serde(deserialize_with = "present")]
    pub secret: Option<Option<String>>,
    #[serde(deserialize_with = "present")]
    pub secret_required: Option<Option<bool>>,
    #[serde(deserialize_with = "present")]
    pub jwt_public_keys: Option<Option<Vec<String>>>,
    #[serde(deserialize_with = "present")]
    pub jwt_audience: Option<Option<String>>,
    #[serde(deserialize_with = "present")]
    pub jwt_required: Option<Option<bool>>,
    #[serde(deserialize_with = "present")]
    pub origins: Option<Option<Vec<String>>>,
    #[serde(deserialize_with = "present")]
    pub user_agents: Option<Option<Vec<String>>>,
    #[serde(deserialize_with = "present")]
    pub addresses: Option<Option<Vec<String>>>,
    #[serde(deserialize_with = "present")]
    pub methods: Option<Option<Vec<String>>>,
    #[serde(deserialize_with = "present")]
    pub networks: Option<Option<Vec<String>>>,
    #[serde(deserialize_with = "present")]
    pub credits_per_second: Option<Option<u64>>,
    #[serde(deserialize_with = "present")]
    pub credits_per_day: Option<Option<u64>>,
}

impl std::fmt::Debug for KeySettingsChange {
    // The values are omitted, because one of them can be a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeySettingsChange").finish_non_exhaustive()
    }
}

/// Reads a member that is there, so that `null` differs from an absent member.
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}
