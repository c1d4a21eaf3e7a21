//! The settings of a key as a form, and the other way round.

use callers::administration::{AdministrationError, KeySummary};
use callers::{KeyRules, KeySettingsChange};

use crate::pages::keys::KeySettingsForm;
use crate::web::form_fields::FormFields;

/// What the form shows for the settings that are stored.
pub(super) fn stored(key: &KeySummary) -> KeySettingsForm {
    let rules = &key.settings;
    let KeyRules { secret_required, jwt_required, .. } = rules;
    let lines = |list: &Option<Vec<String>>| list.as_deref().unwrap_or_default().join("\n");
    let number = |number: &Option<u64>| number.map(|number| number.to_string()).unwrap_or_default();
    KeySettingsForm {
        has_secret: key.has_secret,
        secret_required: secret_required.unwrap_or(true),
        jwt_public_keys: lines(&rules.jwt_public_keys),
        jwt_audience: rules.jwt_audience.clone().unwrap_or_default(),
        jwt_required: jwt_required.unwrap_or(true),
        origins: lines(&rules.origins),
        user_agents: lines(&rules.user_agents),
        addresses: lines(&rules.addresses),
        methods: lines(&rules.methods),
        networks: lines(&rules.networks),
        credits_per_second: number(&rules.credits_per_second),
        credits_per_day: number(&rules.credits_per_day),
    }
}

/// What was typed, for a form that was not accepted.
pub(super) fn typed(form: &FormFields, has_secret: bool) -> KeySettingsForm {
    let text = |name: &str| form.get(name).to_owned();
    KeySettingsForm {
        has_secret,
        secret_required: form.is_on("secret_required"),
        jwt_public_keys: text("jwt_public_keys"),
        jwt_audience: text("jwt_audience"),
        jwt_required: form.is_on("jwt_required"),
        origins: text("origins"),
        user_agents: text("user_agents"),
        addresses: text("addresses"),
        methods: text("methods"),
        networks: text("networks"),
        credits_per_second: text("credits_per_second"),
        credits_per_day: text("credits_per_day"),
    }
}

/// The change that a form asks for. Every setting is in the form, so an empty field removes one.
pub(super) fn change(form: &FormFields, has_secret: bool) -> Result<KeySettingsChange, AdministrationError> {
    let secret = match (form.is_on("remove_secret"), form.get("secret")) {
        (true, _) => Some(None),
        (false, "") => None,
        (false, secret) => Some(Some(secret.to_owned())),
    };
    let keeps_secret = match &secret {
        Some(change) => change.is_some(),
        None => has_secret,
    };
    let jwt_public_keys = public_keys(form.get("jwt_public_keys"));
    let list = |name: &str| Some(lines(form.get(name)));
    Ok(KeySettingsChange {
        secret_required: Some(keeps_secret.then(|| form.is_on("secret_required"))),
        secret,
        jwt_required: Some(jwt_public_keys.as_ref().map(|_| form.is_on("jwt_required"))),
        jwt_public_keys: Some(jwt_public_keys),
        jwt_audience: Some(form.filled("jwt_audience").map(str::to_owned)),
        origins: list("origins"),
        user_agents: list("user_agents"),
        addresses: list("addresses"),
        methods: list("methods"),
        networks: list("networks"),
        credits_per_second: Some(number(form, "credits_per_second")?),
        credits_per_day: Some(number(form, "credits_per_day")?),
    })
}

fn lines(text: &str) -> Option<Vec<String>> {
    let lines: Vec<_> =
        text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect();
    (!lines.is_empty()).then_some(lines)
}

/// The PEM blocks of a text. What is not in a block becomes one, and is refused as such.
fn public_keys(text: &str) -> Option<Vec<String>> {
    const END: &str = "-----END PUBLIC KEY-----";
    let blocks = text.replace('\r', "");
    let blocks = blocks.split_inclusive(END).map(str::trim).filter(|block| !block.is_empty());
    let blocks: Vec<_> = blocks.map(|block| format!("{block}\n")).collect();
    (!blocks.is_empty()).then_some(blocks)
}

fn number(form: &FormFields, field: &'static str) -> Result<Option<u64>, AdministrationError> {
    let Some(text) = form.filled(field) else { return Ok(None) };
    let digits: String = text.chars().filter(|letter| !matches!(letter, ',' | ' ' | '_')).collect();
    let invalid = || AdministrationError::Invalid { field, message: "must be a whole number".to_owned() };
    digits.parse().map(Some).map_err(|_| invalid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_fields_remove_restrictions() {
        let change = change(
            &FormFields::parse("origins=+https%3A%2F%2Fa.example%0D%0A%0D%0Ab.example&credits_per_day=1,000"),
            false,
        );
        let change = change.unwrap();
        assert_eq!(change.origins, Some(Some(vec!["https://a.example".to_owned(), "b.example".to_owned()])));
        assert_eq!((change.credits_per_day, change.credits_per_second), (Some(Some(1_000)), Some(None)));
        assert_eq!((change.methods, change.secret, change.secret_required), (Some(None), None, Some(None)));
    }

    #[test]
    fn a_secret_is_kept_replaced_or_removed() {
        let of = |text: &str| {
            let change = change(&FormFields::parse(text), true).unwrap();
            (change.secret, change.secret_required)
        };
        assert_eq!(of("secret=&secret_required=on"), (None, Some(Some(true))));
        assert_eq!(of("secret=new"), (Some(Some("new".to_owned())), Some(Some(false))));
        assert_eq!(of("secret=new&remove_secret=on&secret_required=on"), (Some(None), Some(None)));
    }

    #[test]
    fn several_public_keys_are_told_apart() {
        let pem = "-----BEGIN PUBLIC KEY-----\r\nAAAA\r\n-----END PUBLIC KEY-----\r\n";
        assert_eq!(public_keys(&format!("{pem}\r\n{pem}")).unwrap().len(), 2);
        assert_eq!(public_keys(" \r\n"), None);
    }

    #[test]
    fn wrong_numbers_are_named() {
        for wrong in ["credits_per_day=-1", "credits_per_day=many", "credits_per_second=1.5"] {
            assert!(change(&FormFields::parse(wrong), false).is_err(), "{wrong}");
        }
    }
}
