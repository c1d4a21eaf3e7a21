//! `[[key]]`: the keys of the configuration file.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use alloy_primitives::Address;
use methods::{MethodId, Network};
use settings::Section;

use crate::credit_limits::CreditLimits;
use crate::hashed_secret::HashedSecret;
use crate::key_settings::{Credentials, KeySettings};
use crate::origins::OriginPattern;
use crate::plans::{Plan, Plans};
use crate::token_verifier::TokenVerifier;

/// A key of the configuration file.
pub struct StaticKey {
    pub key: String,
    /// The name of the key in logs.
    pub name: String,
    pub account: String,
    pub plan: Plan,
    pub settings: Option<Arc<KeySettings>>,
}

impl fmt::Debug for StaticKey {
    // The key is omitted, because it is a credential.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("StaticKey");
        shown.field("name", &self.name).field("account", &self.account).field("plan", &self.plan.name);
        shown.finish_non_exhaustive()
    }
}

/// The default key of the demo chain.
const DEMO_KEY: &str = "demo";

/// Reads all keys. Errors contain the position and the line of a key, never the key itself.
pub fn read_keys(root: &mut Section<'_>, plans: &Plans, network: &Network) -> Vec<StaticKey> {
    let mut keys: Vec<StaticKey> = Vec::new();
    for (index, mut section) in root.sections("key").into_iter().enumerate() {
        if let Some(key) = read_one(&mut section, index + 1, plans, network) {
            check_against_others(&mut section, &key, &keys);
            keys.push(key);
        }
    }
    keys
}

/// Adds the default key of the demo chain, unless the configuration has it.
pub fn add_demo_key(keys: &mut Vec<StaticKey>, plans: &Plans) {
    if keys.iter().any(|key| key.key == DEMO_KEY) {
        return;
    }
    let Some(plan) = plans.named("custom") else { return };
    let demo = || DEMO_KEY.to_owned();
    keys.push(StaticKey { key: demo(), name: demo(), account: demo(), plan: plan.clone(), settings: None });
}

fn read_one(
    section: &mut Section<'_>,
    position: usize,
    plans: &Plans,
    network: &Network,
) -> Option<StaticKey> {
    let key = section.optional_text("key").unwrap_or_default();
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if key.is_empty() || !key.bytes().all(is_allowed) {
        section.error("key", "must be letters, digits, - and _");
    }
    let name = section.text("name", &format!("key-{position}"));
    let account = section.text("account", &format!("account of key {position}"));
    let plan = section.text("plan", "custom");
    let settings = settings(section, network);
    let Some(plan) = plans.named(&plan) else {
        let names: Vec<_> = plans.names().collect();
        section.error("plan", &format!("unknown plan `{plan}`; must be one of {}", names.join(", ")));
        return None;
    };
    Some(StaticKey { key, name, account, plan: plan.clone(), settings })
}

/// Reports conflicts of a key with the keys before it.
fn check_against_others(section: &mut Section<'_>, key: &StaticKey, before: &[StaticKey]) {
    if before.iter().any(|other| other.key == key.key) {
        section.error("key", "duplicate key");
    }
    let siblings = || before.iter().filter(|other| other.account == key.account);
    if let Some(other) = siblings().find(|other| other.plan != key.plan) {
        let (account, plan) = (&key.account, &other.plan.name);
        let message =
            format!("conflicting plans for account \"{account}\": another key of it has \"{plan}\"");
        section.error("plan", &message);
    }
    if let Some(max) = key.plan.keys_max
        && siblings().count() as u64 >= max
    {
        let plan = &key.plan.name;
        section.error("account", &format!("too many keys for this account: the plan `{plan}` allows {max}"));
    }
}

/// Reads the restrictions of a key; `None` if there are none.
fn settings(section: &mut Section<'_>, network: &Network) -> Option<Arc<KeySettings>> {
    let settings = KeySettings {
        credentials: credentials(section),
        other_network: list(section, "networks").is_some_and(|networks| !networks.contains(&network.name)),
        origins: parsed(section, "origins", "an origin such as https://*.example.com", OriginPattern::parse),
        user_agents: list(section, "user_agents"),
        addresses: parsed(section, "addresses", "an address", |text| text.parse::<Address>().ok())
            .map(HashSet::from_iter),
        methods: parsed(section, "methods", "a method", MethodId::named),
        credit_limits: CreditLimits::new(
            section.limit("credits_per_second", None),
            section.limit("credits_per_day", None),
        ),
    };
    settings.restricts_anything().then(|| Arc::new(settings))
}

fn credentials(section: &mut Section<'_>) -> Credentials {
    let secret = section.optional_text("secret");
    if secret.as_deref().is_some_and(str::is_empty) {
        section.error("secret", "must not be empty");
    }
    let secret_required = section.flag("secret_required", secret.is_some());
    if secret_required && secret.is_none() {
        section.error("secret_required", "needs a secret");
    }
    let tokens = tokens(section);
    let token_required = section.flag("jwt_required", tokens.is_some());
    if token_required && tokens.is_none() {
        section.error("jwt_required", "needs jwt_public_keys");
    }
    if token_required && secret_required && tokens.is_some() && secret.is_some() {
        let message =
            "a request carries a secret or a token, not both; set secret_required or jwt_required to false";
        section.error("jwt_public_keys", message);
    }
    Credentials { secret: secret.as_deref().map(HashedSecret::new), secret_required, tokens, token_required }
}

fn tokens(section: &mut Section<'_>) -> Option<TokenVerifier> {
    let audience = section.optional_text("jwt_audience");
    let Some(pems) = list(section, "jwt_public_keys") else {
        if audience.is_some() {
            section.error("jwt_audience", "needs jwt_public_keys");
        }
        return None;
    };
    match TokenVerifier::new(&pems, audience.as_deref()) {
        Ok(tokens) => Some(tokens),
        Err(position) => {
            let message =
                format!("number {position} must be the PEM of a public key for RS256, ES256 or EdDSA");
            section.error("jwt_public_keys", &message);
            None
        }
    }
}

/// Reads an allow-list. An empty list is an error, because it would allow nothing.
fn list(section: &mut Section<'_>, key: &str) -> Option<Vec<String>> {
    let texts = section.texts(key)?;
    if texts.is_empty() {
        section.error(key, "an empty list allows nothing; leave it out to allow everything");
    }
    Some(texts)
}

fn parsed<T>(
    section: &mut Section<'_>,
    key: &str,
    expected: &str,
    read: impl Fn(&str) -> Option<T>,
) -> Option<Vec<T>> {
    let mut entries = Vec::new();
    for text in list(section, key)? {
        match read(&text) {
            Some(entry) => entries.push(entry),
            None => section.error(key, &format!("`{text}` is not {expected}")),
        }
    }
    Some(entries)
}
