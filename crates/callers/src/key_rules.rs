//! The restrictions of a key as plain data: what the configuration contains and the store keeps. All checks of them are here.

use std::collections::HashSet;
use std::sync::Arc;

use alloy_primitives::Address;
use methods::MethodId;
use serde::{Deserialize, Serialize};

use crate::credit_limits::CreditLimits;
use crate::hashed_secret::HashedSecret;
use crate::key_settings::{Credentials, KeySettings};
use crate::origins::OriginPattern;
use crate::policy::{COMPARED_ENTRIES_MAX, CREDITS_MAX, HASHED_ENTRIES_MAX, PUBLIC_KEYS_MAX};
use crate::token_verifier::TokenVerifier;

/// The restrictions of a key. An absent one restricts nothing. The secret is not part of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KeyRules {
    /// Whether a request must carry the secret; `true` by default if there is a secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_required: Option<bool>,
    /// Public keys in PEM that sign tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jwt_public_keys: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jwt_audience: Option<String>,
    /// Whether a request must carry a token; `true` by default if there are public keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jwt_required: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origins: Option<Vec<String>>,
    /// Parts of the `User-Agent` header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_agents: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub addresses: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub methods: Option<Vec<String>>,
    /// Names of the networks that the key can be used for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub networks: Option<Vec<String>>,
    /// Whether replies name the node that answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub show_node: Option<bool>,
    /// 0 is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credits_per_second: Option<u64>,
    /// 0 is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credits_per_day: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRuleError {
    /// The name of the field in [`KeyRules`], or `secret`.
    pub field: &'static str,
    pub message: String,
}

impl KeyRules {
    /// Checks the restrictions and makes them ready for use on one network; `None` if they change nothing.
    pub(crate) fn compile(
        &self,
        secret: Option<HashedSecret>,
        network: &str,
    ) -> Result<Option<KeySettings>, Vec<KeyRuleError>> {
        let mut errors = KeyRuleErrors::default();
        let settings = KeySettings {
            credentials: self.credentials(secret, &mut errors),
            other_network: list(&self.networks, "networks", COMPARED_ENTRIES_MAX, &mut errors)
                .is_some_and(|networks| !networks.iter().any(|name| name == network)),
            origins: self.parsed_origins(&mut errors),
            user_agents: list(&self.user_agents, "user_agents", COMPARED_ENTRIES_MAX, &mut errors)
                .map(<[_]>::to_vec),
            addresses: parsed(
                &self.addresses,
                ("addresses", HASHED_ENTRIES_MAX),
                "an address",
                &mut errors,
                |text| text.parse::<Address>().ok(),
            )
            .map(HashSet::from_iter),
            methods: parsed(
                &self.methods,
                ("methods", COMPARED_ENTRIES_MAX),
                "a method",
                &mut errors,
                MethodId::named,
            ),
            shows_node: self.show_node.unwrap_or(false),
            credit_limits: Arc::new(self.checked_limits(&mut errors)),
        };
        if !errors.0.is_empty() {
            return Err(errors.0);
        }
        Ok(settings.changes_anything().then_some(settings))
    }

    /// Credits per second and per day; `None` is no limit.
    pub(crate) fn credit_limits(&self) -> [Option<u64>; 2] {
        [self.credits_per_second, self.credits_per_day].map(|credits| credits.filter(|&credits| credits > 0))
    }

    fn checked_limits(&self, errors: &mut KeyRuleErrors) -> CreditLimits {
        let [per_second, per_day] = self.credit_limits();
        for (field, credits) in [("credits_per_second", per_second), ("credits_per_day", per_day)] {
            if credits.is_some_and(|credits| credits > CREDITS_MAX) {
                errors.add(field, &format!("must be at most {CREDITS_MAX}"));
            }
        }
        CreditLimits::new(per_second, per_day)
    }

    fn parsed_origins(&self, errors: &mut KeyRuleErrors) -> Option<Vec<OriginPattern>> {
        let expected = "an origin such as https://*.example.com";
        parsed(&self.origins, ("origins", COMPARED_ENTRIES_MAX), expected, errors, OriginPattern::parse)
    }

    fn credentials(&self, secret: Option<HashedSecret>, errors: &mut KeyRuleErrors) -> Credentials {
        let secret_required = self.secret_required.unwrap_or(secret.is_some());
        if secret_required && secret.is_none() {
            errors.add("secret_required", "needs a secret");
        }
        let tokens = self.tokens(errors);
        let has_public_keys = self.jwt_public_keys.is_some();
        let token_required = self.jwt_required.unwrap_or(has_public_keys);
        if token_required && !has_public_keys {
            errors.add("jwt_required", "needs jwt_public_keys");
        }
        if token_required && secret_required && tokens.is_some() && secret.is_some() {
            let message = "a request carries a secret or a token, not both; set secret_required or jwt_required to false";
            errors.add("jwt_public_keys", message);
        }
        Credentials { secret, secret_required, tokens, token_required }
    }

    fn tokens(&self, errors: &mut KeyRuleErrors) -> Option<TokenVerifier> {
        let Some(pems) = list(&self.jwt_public_keys, "jwt_public_keys", PUBLIC_KEYS_MAX, errors) else {
            if self.jwt_audience.is_some() {
                errors.add("jwt_audience", "needs jwt_public_keys");
            }
            return None;
        };
        match TokenVerifier::new(pems, self.jwt_audience.as_deref()) {
            Ok(tokens) => Some(tokens),
            Err(position) => {
                let message =
                    format!("number {position} must be the PEM of a public key for RS256, ES256 or EdDSA");
                errors.add("jwt_public_keys", &message);
                None
            }
        }
    }
}

#[derive(Debug, Default)]
struct KeyRuleErrors(Vec<KeyRuleError>);

impl KeyRuleErrors {
    fn add(&mut self, field: &'static str, message: &str) {
        self.0.push(KeyRuleError { field, message: message.to_owned() });
    }
}

/// An allow-list. An empty list is an error, because it would allow nothing.
fn list<'a>(
    list: &'a Option<Vec<String>>,
    field: &'static str,
    max: usize,
    errors: &mut KeyRuleErrors,
) -> Option<&'a [String]> {
    let list = list.as_deref()?;
    if list.len() > max {
        errors.add(field, &format!("must have at most {max} entries"));
        return None;
    }
    if list.is_empty() {
        errors.add(field, "an empty list allows nothing; leave it out to allow everything");
    }
    Some(list)
}

fn parsed<T>(
    texts: &Option<Vec<String>>,
    (field, max): (&'static str, usize),
    expected: &str,
    errors: &mut KeyRuleErrors,
    read: impl Fn(&str) -> Option<T>,
) -> Option<Vec<T>> {
    let mut entries = Vec::new();
    for text in list(texts, field, max, errors)? {
        match read(text) {
            Some(entry) => entries.push(entry),
            None => errors.add(field, &format!("`{text}` is not {expected}")),
        }
    }
    Some(entries)
}
