//! `[[key]]`: the keys of the configuration file.

use std::fmt;
use std::sync::Arc;

use methods::Network;
use serde_json::{Map, Value, json};
use settings::Section;

use crate::configured_key::ConfiguredKey;
use crate::hashed_secret::HashedSecret;
use crate::key_fields::{KEY_FIELDS, KeyField, KeyFieldKind};
use crate::key_rules::{KeyRuleError, KeyRules};
use crate::key_settings::KeySettings;
use crate::plans::{Plan, Plans};

/// A key of the configuration file.
pub struct StaticKey {
    pub key: ConfiguredKey,
    /// The name of the key in logs.
    pub name: String,
    pub account: String,
    pub plan: Plan,
    pub settings: Option<Arc<KeySettings>>,
}

impl StaticKey {
    /// Whether it is the key of the demo chain.
    pub fn is_demo(&self) -> bool {
        self.key.sha256() == ConfiguredKey::from(DEMO_KEY).sha256()
    }
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
    if keys.iter().any(StaticKey::is_demo) {
        return;
    }
    let Some(plan) = plans.named("custom") else { return };
    let (key, demo) = (DEMO_KEY.into(), || DEMO_KEY.to_owned());
    keys.push(StaticKey { key, name: demo(), account: demo(), plan: plan.clone(), settings: None });
}

fn read_one(
    section: &mut Section<'_>,
    position: usize,
    plans: &Plans,
    network: &Network,
) -> Option<StaticKey> {
    let key = ConfiguredKey::read(section);
    let name = section.text("name", &format!("key-{position}"));
    let account = section.text("account", &format!("account of key {position}"));
    let plan = section.text("plan", "custom");
    let settings = settings(section, network);
    let Some(plan) = plans.named(&plan) else {
        let names: Vec<_> = plans.names().collect();
        section.error("plan", &format!("unknown plan `{plan}`; must be one of {}", names.join(", ")));
        return None;
    };
    Some(StaticKey { key: key?, name, account, plan: plan.clone(), settings })
}

/// Reports conflicts of a key with the keys before it.
fn check_against_others(section: &mut Section<'_>, key: &StaticKey, before: &[StaticKey]) {
    if before.iter().any(|other| other.key.sha256() == key.key.sha256()) {
        let written = if matches!(key.key, ConfiguredKey::Plain(_)) { "key" } else { "key_hash" };
        section.error(written, "duplicate key");
    }
    let siblings = || before.iter().filter(|other| other.account == key.account);
    if siblings().any(|other| other.name == key.name) {
        section.error(
            "name",
            "another key of this account has the same name; usage and limits are counted by name",
        );
    }
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
    let secret = section.optional_text("secret");
    if secret.as_deref().is_some_and(str::is_empty) {
        section.error("secret", "must not be empty");
    }
    let mut values = Map::new();
    for &KeyField { name, kind, .. } in KEY_FIELDS {
        let value = match kind {
            KeyFieldKind::Secret => continue,
            KeyFieldKind::Required | KeyFieldKind::Right => json!(section.optional_flag(name)),
            KeyFieldKind::PublicKeys | KeyFieldKind::AllowList => json!(section.texts(name)),
            KeyFieldKind::Text => json!(section.optional_text(name)),
            KeyFieldKind::Credits => json!(section.limit(name, None)),
        };
        values.insert(name.to_owned(), value);
    }
    let rules = match serde_json::from_value::<KeyRules>(Value::Object(values)) {
        Ok(rules) => rules,
        Err(error) => {
            section.error("key", &error.to_string());
            return None;
        }
    };
    match rules.compile(secret.as_deref().map(HashedSecret::new), &network.name) {
        Ok(settings) => settings.map(Arc::new),
        Err(errors) => {
            for KeyRuleError { field, message } in errors {
                section.error(field, &message);
            }
            None
        }
    }
}
