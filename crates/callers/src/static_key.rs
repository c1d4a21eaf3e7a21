//! `[[key]]`: the keys that stand in the configuration.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use alloy_primitives::Address;
use methods::{MethodId, Network};
use settings::Section;

use crate::allowance::Allowance;
use crate::hashed::Hashed;
use crate::key_settings::{Credentials, Settings};
use crate::origins::OriginPattern;
use crate::plans::{Plan, Plans};
use crate::tokens::Tokens;

/// A key as the configuration gives it.
pub struct StaticKey {
    pub key: String,
    /// What people call it.
    pub name: String,
    pub account: String,
    pub plan: Plan,
    pub settings: Option<Arc<Settings>>,
}

impl fmt::Debug for StaticKey {
    // The key itself is as good as a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("StaticKey");
        shown.field("name", &self.name).field("account", &self.account).field("plan", &self.plan.name);
        shown.finish_non_exhaustive()
    }
}

/// The key that the demo chain comes with.
const DEMO_KEY: &str = "demo";

/// Reads all keys. What they are is never repeated in a mistake; their place and line is.
pub fn read_keys(root: &mut Section<'_>, plans: &Plans, network: &Network) -> Vec<StaticKey> {
    let mut keys: Vec<StaticKey> = Vec::new();
    for (index, mut section) in root.sections("key").into_iter().enumerate() {
        if let Some(key) = read_one(&mut section, index + 1, plans, network) {
            check_among(&mut section, &key, &keys);
            keys.push(key);
        }
    }
    keys
}

/// Adds the key of the demo chain, unless the configuration has one of this name.
pub fn add_demo_key(keys: &mut Vec<StaticKey>, plans: &Plans) {
    if keys.iter().any(|key| key.key == DEMO_KEY) {
        return;
    }
    let Some(plan) = plans.named("custom") else { return };
    let demo = || DEMO_KEY.to_owned();
    keys.push(StaticKey { key: demo(), name: demo(), account: demo(), plan: plan.clone(), settings: None });
}

fn read_one(section: &mut Section<'_>, place: usize, plans: &Plans, network: &Network) -> Option<StaticKey> {
    let key = section.optional_text("key").unwrap_or_default();
    let usable = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if key.is_empty() || !key.bytes().all(usable) {
        section.mistake("key", "must be letters, digits, - and _");
    }
    let name = section.text("name", &format!("key-{place}"));
    let account = section.text("account", &format!("account of key {place}"));
    let plan = section.text("plan", "custom");
    let settings = settings(section, network);
    let Some(plan) = plans.named(&plan) else {
        let names: Vec<_> = plans.names().collect();
        section.mistake("plan", &format!("unknown plan `{plan}`; must be one of {}", names.join(", ")));
        return None;
    };
    Some(StaticKey { key, name, account, plan: plan.clone(), settings })
}

/// What is wrong with a key only because of those before it.
fn check_among(section: &mut Section<'_>, key: &StaticKey, before: &[StaticKey]) {
    if before.iter().any(|other| other.key == key.key) {
        section.mistake("key", "duplicate key");
    }
    let siblings = || before.iter().filter(|other| other.account == key.account);
    if let Some(other) = siblings().find(|other| other.plan != key.plan) {
        let (account, plan) = (&key.account, &other.plan.name);
        let what = format!("conflicting plans for account \"{account}\": another key of it has \"{plan}\"");
        section.mistake("plan", &what);
    }
    if let Some(most) = key.plan.keys_max
        && siblings().count() as u64 >= most
    {
        let plan = &key.plan.name;
        section
            .mistake("account", &format!("too many keys for this account: the plan `{plan}` allows {most}"));
    }
}

/// Reads the settings; `None` where there are none.
fn settings(section: &mut Section<'_>, network: &Network) -> Option<Arc<Settings>> {
    let asked = Settings {
        credentials: credentials(section),
        other_network: list(section, "networks").is_some_and(|networks| !networks.contains(&network.name)),
        origins: parsed(section, "origins", "an origin such as https://*.example.com", OriginPattern::parse),
        user_agents: list(section, "user_agents"),
        addresses: parsed(section, "addresses", "an address", |text| text.parse::<Address>().ok())
            .map(HashSet::from_iter),
        methods: parsed(section, "methods", "a method", MethodId::named),
        allowance: Allowance::new(
            section.limit("credits_per_second", None),
            section.limit("credits_per_day", None),
        ),
    };
    asked.is_any().then(|| Arc::new(asked))
}

fn credentials(section: &mut Section<'_>) -> Credentials {
    let secret = section.optional_text("secret");
    if secret.as_deref().is_some_and(str::is_empty) {
        section.mistake("secret", "must not be empty");
    }
    let secret_required = section.flag("secret_required", secret.is_some());
    if secret_required && secret.is_none() {
        section.mistake("secret_required", "needs a secret");
    }
    let tokens = tokens(section);
    let token_required = section.flag("jwt_required", tokens.is_some());
    if token_required && tokens.is_none() {
        section.mistake("jwt_required", "needs jwt_public_keys");
    }
    if token_required && secret_required && tokens.is_some() && secret.is_some() {
        let what =
            "a request carries a secret or a token, not both; set secret_required or jwt_required to false";
        section.mistake("jwt_public_keys", what);
    }
    Credentials { secret: secret.as_deref().map(Hashed::new), secret_required, tokens, token_required }
}

fn tokens(section: &mut Section<'_>) -> Option<Tokens> {
    let audience = section.optional_text("jwt_audience");
    let Some(pems) = list(section, "jwt_public_keys") else {
        if audience.is_some() {
            section.mistake("jwt_audience", "needs jwt_public_keys");
        }
        return None;
    };
    let wrong = |place| format!("number {place} must be the PEM of a public key for RS256, ES256 or EdDSA");
    match Tokens::new(&pems, audience.as_deref()) {
        Ok(tokens) => Some(tokens),
        Err(place) => {
            section.mistake("jwt_public_keys", &wrong(place));
            None
        }
    }
}

/// A list that allows what it names. An empty one would allow nothing, which nobody means.
fn list(section: &mut Section<'_>, key: &str) -> Option<Vec<String>> {
    let texts = section.texts(key)?;
    if texts.is_empty() {
        section.mistake(key, "an empty list allows nothing; leave it out to allow everything");
    }
    Some(texts)
}

fn parsed<T>(
    section: &mut Section<'_>,
    key: &str,
    want: &str,
    read: impl Fn(&str) -> Option<T>,
) -> Option<Vec<T>> {
    let mut entries = Vec::new();
    for text in list(section, key)? {
        match read(&text) {
            Some(entry) => entries.push(entry),
            None => section.mistake(key, &format!("`{text}` is not {want}")),
        }
    }
    Some(entries)
}
