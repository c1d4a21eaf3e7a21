//! Keys that callers have already, such as those of another gateway: all of a list, or none.

use std::collections::HashMap;
use std::fmt;

use resources::unix_seconds;
use store::{AccountRecord, HashKey, KeyRecord, KeyStatus, StoreTransaction};

use super::credential;
use super::names::check_name;
use super::{Administration, AdministrationError, audit, check_key_count, checked_json, no_account};
use crate::api_key::API_KEY_BYTES_MAX;
use crate::policy::{IMPORTED_KEY_BYTES_MIN, IMPORTED_KEYS_MAX};
use crate::stored_settings::{KeyPatch, StoredSettings};

/// A key to import.
pub struct KeyImport {
    pub account: String,
    /// The plan of the account. It is needed where the account is new.
    pub plan: Option<String>,
    pub name: String,
    /// The key in clear, of which the store gets a keyed hash.
    pub key: String,
    /// When it expires, in seconds since 1970.
    pub expires_at: Option<i64>,
    pub settings: KeyPatch,
}

impl fmt::Debug for KeyImport {
    // The key is omitted, because it is a credential.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyImport")
            .field("account", &self.account)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// A mistake in one key of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportMistake {
    /// The place of the key in the list, from 0.
    pub place: usize,
    pub message: String,
}

/// The accounts and keys that an import has made, or would make.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportedKeys {
    pub new_accounts: u64,
    pub new_keys: u64,
    /// Keys that the store had already, which stay as they are.
    pub existing_keys: u64,
    /// If there is one, nothing was imported.
    pub mistakes: Vec<ImportMistake>,
}

impl Administration {
    /// Imports all keys, unless there is a mistake in one of them or it `is_dry_run`. A key that its account has already stays as it
    /// is, so an import can be repeated.
    pub async fn import_keys(
        &self,
        actor: &str,
        keys: &[KeyImport],
        is_dry_run: bool,
    ) -> Result<ImportedKeys, AdministrationError> {
        if keys.len() > IMPORTED_KEYS_MAX {
            let message = format!("has more than {IMPORTED_KEYS_MAX} keys; divide it");
            return Err(AdministrationError::Invalid { field: "file", message });
        }
        let mut change = self.store().begin_change().await?;
        let mut import =
            KeyImporter { hash_key: change.hash_key().await?, now: unix_seconds(), places: HashMap::new() };
        let mut imported = ImportedKeys::default();
        for (place, key) in keys.iter().enumerate() {
            match import.add(self, &mut change, actor, (place, key)).await {
                Ok(Added::Key { is_new_account }) => {
                    imported.new_keys += 1;
                    imported.new_accounts += u64::from(is_new_account);
                }
                Ok(Added::Nothing) => imported.existing_keys += 1,
                Err(
                    failure @ (AdministrationError::StoreUnavailable(_)
                    | AdministrationError::StoreTimedOut(_)
                    | AdministrationError::NotSaved(_)),
                ) => return Err(failure),
                Err(mistake) => imported.mistakes.push(ImportMistake { place, message: mistake.to_string() }),
            }
        }
        // A change that is dropped has never been made.
        if imported.mistakes.is_empty() && !is_dry_run {
            self.commit(change).await?;
        }
        Ok(imported)
    }
}

/// An import that has begun.
struct KeyImporter<'a> {
    hash_key: HashKey,
    now: i64,
    /// The place of each key in the list.
    places: HashMap<&'a str, usize>,
}

/// The rows that were added for a key.
enum Added {
    Key { is_new_account: bool },
    Nothing,
}

impl<'a> KeyImporter<'a> {
    async fn add(
        &mut self,
        administration: &Administration,
        change: &mut StoreTransaction,
        actor: &str,
        (place, import): (usize, &'a KeyImport),
    ) -> Result<Added, AdministrationError> {
        check_name("name", &import.name)?;
        check_key(&import.key)?;
        if import.expires_at.is_some_and(|at| at <= self.now) {
            return Err(invalid("expires_at", "must be in the future"));
        }
        if self.places.insert(&import.key, place).is_some() {
            return Err(invalid("key", "it is in the file twice"));
        }
        let hash = self.hash_key.hash_key(import.key.as_bytes());
        let existing = change.key_with_hash(&hash).await?;
        let account = change.account_named(&import.account).await?;
        match (existing, &account) {
            (Some(key), Some(account)) if key.account_id == account.id => return Ok(Added::Nothing),
            (Some(_), _) => return Err(invalid("key", "it belongs to another account already")),
            (None, _) => {}
        }
        let is_new_account = account.is_none();
        let account = match account {
            Some(account) => with_plan(account, import.plan.as_deref())?,
            None => {
                let plan = import.plan.as_deref().ok_or_else(|| no_account(&import.account))?;
                administration.add_account(change, actor, &import.account, plan).await?
            }
        };
        check_key_count(change, &account, &administration.plan(&account.plan)?, 1).await?;
        let row = self.row(import, hash, account.id)?;
        change.insert_key(&row).await?;
        let details = [("account", account.name.as_str()), ("name", row.name.as_str())];
        audit::add(change, actor, "key.import", &row.id, &details).await?;
        Ok(Added::Key { is_new_account })
    }

    fn row(
        &self,
        import: &KeyImport,
        hash: [u8; store::HASH_BYTES],
        account_id: i64,
    ) -> Result<KeyRecord, AdministrationError> {
        let (_, id) = credential::new_key_and_id()?;
        let mut settings = StoredSettings::default();
        settings.change(&import.settings, &self.hash_key, &id)?;
        Ok(KeyRecord {
            settings: checked_json(&settings, &self.hash_key, &id)?,
            prefix: credential::prefix(&import.key),
            hash,
            id,
            account_id,
            name: import.name.clone(),
            created_at: self.now,
            last_used_at: None,
            expires_at: import.expires_at,
            status: KeyStatus::Active,
        })
    }
}

/// An account that exists, if it has the plan that is named.
fn with_plan(account: AccountRecord, plan: Option<&str>) -> Result<AccountRecord, AdministrationError> {
    match plan {
        Some(plan) if plan != account.plan => {
            let message = format!("account `{}` has the plan `{}`", account.name, account.plan);
            Err(invalid("plan", &message))
        }
        _ => Ok(account),
    }
}

/// A key must be one that a URL can have, and that nobody guesses: its first characters are shown to people.
fn check_key(key: &str) -> Result<(), AdministrationError> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if !key.bytes().all(is_allowed) {
        return Err(invalid("key", "must be letters, digits, - and _"));
    }
    if !(IMPORTED_KEY_BYTES_MIN..=API_KEY_BYTES_MAX).contains(&key.len()) {
        let message = format!("must have {IMPORTED_KEY_BYTES_MIN} to {API_KEY_BYTES_MAX} characters");
        return Err(invalid("key", &message));
    }
    Ok(())
}

fn invalid(field: &'static str, message: &str) -> AdministrationError {
    AdministrationError::Invalid { field, message: message.to_owned() }
}
