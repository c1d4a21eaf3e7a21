//! The settings of a key as a form, and the other way round.

use callers::administration::{AdministrationError, KeySummary};
use callers::{KEY_FIELDS, KeyField, KeyFieldKind, KeyPatch};
use serde_json::{Map, Value, json};

use crate::pages::keys::KeySettingsForm;
use crate::web::form_fields::FormFields;

/// The form with the settings that are stored.
pub(super) fn stored(key: &KeySummary) -> KeySettingsForm {
    let rules = serde_json::to_value(&key.settings).unwrap_or_default();
    KeySettingsForm::new(key.has_secret, |field| match (&rules[field.name], field.kind) {
        (Value::Array(entries), _) => entries.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n"),
        (Value::String(text), _) => text.clone(),
        (Value::Number(number), _) => number.to_string(),
        (Value::Bool(true), _) | (Value::Null, KeyFieldKind::Required) => "on".to_owned(),
        _ => String::new(),
    })
}

/// The form as it was filled in, because it was not accepted.
pub(super) fn typed(form: &FormFields, has_secret: bool) -> KeySettingsForm {
    KeySettingsForm::new(has_secret, |field| form.get(field.name).to_owned())
}

/// The change that a form asks for. Every setting that developers may change is in the form, so an empty field removes one. Rights
/// that an operator has granted stay, whatever is sent.
pub(super) fn change(form: &FormFields, has_secret: bool) -> Result<KeyPatch, AdministrationError> {
    let mut patch = Map::new();
    for &KeyField { name, kind, .. } in KEY_FIELDS {
        let value = match kind {
            KeyFieldKind::Secret if form.is_on("remove_secret") => Value::Null,
            KeyFieldKind::Secret if form.get(name).is_empty() => continue,
            KeyFieldKind::Secret => json!(form.get(name)),
            KeyFieldKind::Required => json!(form.is_on(name)),
            KeyFieldKind::Right => continue,
            KeyFieldKind::PublicKeys => json!(public_keys(form.get(name))),
            KeyFieldKind::Text => json!(form.filled(name)),
            KeyFieldKind::AllowList => json!(lines(form.get(name))),
            KeyFieldKind::Credits => json!(number(form, name)?),
        };
        patch.insert(name.to_owned(), value);
    }
    // The check box about a credential that the key does not have means nothing.
    if !patch.get("secret").map_or(has_secret, Value::is_string) {
        patch.insert("secret_required".to_owned(), Value::Null);
    }
    if patch["jwt_public_keys"].is_null() {
        patch.insert("jwt_required".to_owned(), Value::Null);
    }
    KeyPatch::try_from(patch).map_err(|message| AdministrationError::Invalid { field: "settings", message })
}

fn lines(text: &str) -> Option<Vec<String>> {
    let lines: Vec<_> =
        text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect();
    (!lines.is_empty()).then_some(lines)
}

/// The PEM blocks of a text. Text outside of blocks becomes a block, and is refused as such.
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

    fn assert_change(text: &str, has_secret: bool, expected: Value) {
        let found = change(&FormFields::parse(text), has_secret).unwrap();
        // Every other setting is removed.
        let is_kept = |field: &&KeyField| matches!(field.kind, KeyFieldKind::Secret | KeyFieldKind::Right);
        let removed = KEY_FIELDS.iter().filter(|field| !is_kept(field));
        let mut patch: Map<_, _> = removed.map(|field| (field.name.to_owned(), Value::Null)).collect();
        patch.extend(expected.as_object().unwrap().clone());
        assert!(found == KeyPatch::try_from(patch).unwrap(), "{text}");
    }

    #[test]
    fn empty_fields_remove_restrictions() {
        let form = "origins=+https%3A%2F%2Fa.example%0D%0A%0D%0Ab.example&credits_per_day=1,000";
        let expected = json!({"origins": ["https://a.example", "b.example"], "credits_per_day": 1_000});
        assert_change(form, false, expected);
    }

    #[test]
    fn a_secret_is_kept_replaced_or_removed() {
        assert_change("secret=&secret_required=on", true, json!({"secret_required": true}));
        assert_change("secret=new", true, json!({"secret": "new", "secret_required": false}));
        assert_change("secret=new&remove_secret=on&secret_required=on", true, json!({"secret": null}));
    }

    #[test]
    fn developers_neither_grant_nor_remove_rights() {
        assert_change("show_node=on", false, json!({}));
        assert_change("", false, json!({}));
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
