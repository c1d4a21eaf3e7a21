//! Accounts and keys that operators create and change: the one place of the rules for changes. The command line and the
//! console with its admin API use it.
//!
//! Every change is one transaction with its entry in the audit log. A key is shown once, when it is created.

pub(crate) mod audit; // entries of the audit log
pub(crate) mod credential; // new keys and their handles
mod import; // keys that callers have already
mod lists; // lists, page by page
mod names; // which names are accepted
mod summaries; // keys as operators see them
mod usage; // reports of usage

use std::collections::HashSet;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use resources::{counted, unix_seconds, unix_time};
use store::{HashKey, KeyRecord, KeyStatus, Store, StoreFailure, StoreTransaction};

pub use store::{
    AUDIT_COUNT_MAX, AccountRecord, AccountStatus, KeyAgePosition, KeyDaySum, ListPage, NamePosition,
};

pub use self::audit::AuditEntry;
pub use self::import::{ImportMistake, ImportedKeys, KeyImport};
pub use self::lists::{AccountCounts, FoundKey};
pub use self::names::NAME_CHARACTERS_MAX;
use self::names::check_name;
pub(crate) use self::names::is_invisible;
pub use self::summaries::{KeySummary, NewKey};
use crate::feed::{ChangeEffect, FeedHandle};
use crate::key_rules::KeyRuleError;
use crate::local_revocations::{LocalRevocation, LocalRevocations};
use crate::plans::{CurrentPlans, Plan, Plans};
use crate::policy::{KEYS_OF_ACCOUNT_MAX, OVERLAP_SECONDS_MAX};
use crate::stored_settings::{KeyPatch, StoredSettings};
use crate::usage::UsageSettings;

/// Why a change was not made, or a question not answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdministrationError {
    #[error("there is no {what} `{name}`")]
    NotFound { what: &'static str, name: String },
    #[error("the {what} `{name}` exists already")]
    AlreadyExists { what: &'static str, name: String },
    #[error("{field}: {message}")]
    Invalid { field: &'static str, message: String },
    #[error("the plan `{plan}` allows {}", counted(*.max, "key"))]
    TooManyKeys { plan: String, max: u64 },
    #[error("{0}")]
    StoreUnavailable(String),
    /// The store can be reached, but has not answered in time.
    #[error("{0}")]
    StoreTimedOut(String),
    /// A key is refused on this gateway, and will not be after the next start.
    #[error("the key is refused now, but not after the next start of the gateway: {0}")]
    NotSaved(String),
}

impl From<StoreFailure> for AdministrationError {
    fn from(failure: StoreFailure) -> Self {
        match failure {
            StoreFailure::TimedOut(_) => Self::StoreTimedOut(failure.to_string()),
            _ => Self::StoreUnavailable(failure.to_string()),
        }
    }
}

impl From<KeyRuleError> for AdministrationError {
    fn from(KeyRuleError { field, message }: KeyRuleError) -> Self {
        Self::Invalid { field, message }
    }
}

/// The result of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed<T> {
    pub made: T,
    /// When it takes effect on this gateway; others have it within a second.
    pub effect: ChangeEffect,
}

impl<T> Deref for Changed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.made
    }
}

#[derive(Clone, Debug, Default)]
pub struct KeyCreation {
    pub account: String,
    pub name: String,
    /// When it expires, in seconds since 1970.
    pub expires_at: Option<i64>,
    pub settings: KeyPatch,
}

/// Which key is revoked on this gateway alone.
#[derive(Clone, Debug)]
pub enum LocalKey {
    Id(String),
    /// By its account and its name, as far as this gateway knows them.
    Named {
        account: String,
        name: String,
    },
}

/// Changes accounts and keys in the store. `actor` is who makes the change, for the audit log.
#[derive(Debug)]
pub struct Administration {
    store: Store,
    plans: CurrentPlans,
    /// Names of accounts in the configuration, if there is no feed that knows them. An account of the store with such a name would share its usage.
    configured_accounts: HashSet<String>,
    feed: Option<FeedHandle>,
    /// Keys that are revoked on this gateway, if no gateway runs; a feed has them otherwise.
    local_revocations: Option<Arc<LocalRevocations>>,
    usage: UsageSettings,
}

impl Administration {
    pub fn new(store: Store, plans: impl Into<CurrentPlans>) -> Self {
        let (configured_accounts, usage) = (HashSet::new(), UsageSettings::default());
        Self { store, plans: plans.into(), configured_accounts, feed: None, local_revocations: None, usage }
    }

    /// Refuses new accounts with the names of these, which the configuration has.
    pub fn with_configured_accounts<'a>(self, names: impl Iterator<Item = &'a str>) -> Self {
        let configured_accounts = names.map(str::to_owned).collect();
        Self { configured_accounts, ..self }
    }

    /// Whether a key of the configuration belongs to an account with this name.
    pub(crate) fn is_configured_account(&self, name: &str) -> bool {
        match &self.feed {
            Some(feed) => feed.has_configured_account(name),
            None => self.configured_accounts.contains(name),
        }
    }

    /// Makes changes wait until the directory of this process has them.
    pub fn with_feed(self, feed: FeedHandle) -> Self {
        Self { feed: Some(feed), ..self }
    }

    /// Keeps keys that are revoked on this gateway alone in the file of a gateway that does not run.
    pub fn with_local_revocations(self, revoked: LocalRevocations) -> Self {
        Self { local_revocations: Some(Arc::new(revoked)), ..self }
    }

    pub async fn create_account(
        &self,
        actor: &str,
        name: &str,
        plan: &str,
    ) -> Result<Changed<AccountRecord>, AdministrationError> {
        let mut change = self.store.begin_change().await?;
        let account = self.add_account(&mut change, actor, name, plan).await?;
        let effect = self.commit(change).await?;
        Ok(Changed { made: account, effect })
    }

    pub(crate) async fn add_account(
        &self,
        change: &mut StoreTransaction,
        actor: &str,
        name: &str,
        plan: &str,
    ) -> Result<AccountRecord, AdministrationError> {
        check_name("name", name)?;
        let (name, plan) = (name.to_owned(), self.plan(plan)?.name);
        if self.is_configured_account(&name) {
            return Err(AdministrationError::AlreadyExists { what: "account", name });
        }
        let (now, status) = (unix_seconds(), AccountStatus::Active);
        let mut account = AccountRecord { id: 0, name, plan, status, created_at: now };
        account.id = match change.insert_account(&account).await {
            Err(StoreFailure::AlreadyExists) => {
                return Err(AdministrationError::AlreadyExists { what: "account", name: account.name });
            }
            inserted => inserted?,
        };
        audit::add(change, actor, "account.create", &account.name, &[("plan", &account.plan)]).await?;
        Ok(account)
    }

    pub async fn account(&self, name: &str) -> Result<AccountRecord, AdministrationError> {
        self.store.account_named(name).await?.ok_or_else(|| no_account(name))
    }

    /// A key of an account. A key of another account is not found.
    pub async fn key_of(&self, account: &str, id: &str) -> Result<KeySummary, AdministrationError> {
        let not_found = || AdministrationError::NotFound { what: "key", name: id.to_owned() };
        let owner = self.store.account_named(account).await?.ok_or_else(|| no_account(account))?;
        let key = self.store.key(id).await?.filter(|key| key.account_id == owner.id).ok_or_else(not_found)?;
        Ok(KeySummary::new(key, account))
    }

    /// The plans that accounts can have.
    pub fn plans(&self) -> Arc<Plans> {
        self.plans.now()
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    pub async fn suspend_account(
        &self,
        actor: &str,
        name: &str,
    ) -> Result<Changed<AccountRecord>, AdministrationError> {
        self.set_account_status(actor, name, AccountStatus::Suspended, "account.suspend").await
    }

    pub async fn resume_account(
        &self,
        actor: &str,
        name: &str,
    ) -> Result<Changed<AccountRecord>, AdministrationError> {
        self.set_account_status(actor, name, AccountStatus::Active, "account.resume").await
    }

    async fn set_account_status(
        &self,
        actor: &str,
        name: &str,
        status: AccountStatus,
        action: &str,
    ) -> Result<Changed<AccountRecord>, AdministrationError> {
        let mut change = self.store.begin_change().await?;
        let mut account = account_named(&mut change, name).await?;
        account.status = status;
        change.update_account(&account).await?;
        audit::add(&mut change, actor, action, name, &[]).await?;
        let effect = self.commit(change).await?;
        Ok(Changed { made: account, effect })
    }

    /// Moves an account to another plan. The account must not have more keys than that plan allows.
    pub async fn set_plan(
        &self,
        actor: &str,
        name: &str,
        plan: &str,
    ) -> Result<Changed<AccountRecord>, AdministrationError> {
        let plan = self.plan(plan)?;
        let mut change = self.store.begin_change().await?;
        let mut account = account_named(&mut change, name).await?;
        check_key_count(&mut change, &account, &plan, 0).await?;
        let before = std::mem::replace(&mut account.plan, plan.name);
        change.update_account(&account).await?;
        let details = [("before", before.as_str()), ("plan", account.plan.as_str())];
        audit::add(&mut change, actor, "account.plan", name, &details).await?;
        let effect = self.commit(change).await?;
        Ok(Changed { made: account, effect })
    }

    pub async fn create_key(
        &self,
        actor: &str,
        creation: &KeyCreation,
    ) -> Result<Changed<NewKey>, AdministrationError> {
        check_name("name", &creation.name)?;
        let now = unix_seconds();
        if creation.expires_at.is_some_and(|at| at <= now) {
            let message = "must be in the future".to_owned();
            return Err(AdministrationError::Invalid { field: "expires_at", message });
        }
        let hash_key = &self.hash_key().await?;
        let (key, id) = credential::new_key_and_id()?;
        let mut settings = StoredSettings::default();
        settings.change(&creation.settings, hash_key, &id)?;
        let settings = checked_json(&settings, hash_key, &id)?;
        let mut change = self.store.begin_change().await?;
        let account = account_named(&mut change, &creation.account).await?;
        check_key_count(&mut change, &account, &self.plan(&account.plan)?, 1).await?;
        let row = KeyRecord {
            prefix: credential::prefix(&key),
            hash: hash_key.hash_key(key.as_bytes()),
            id,
            account_id: account.id,
            name: creation.name.clone(),
            created_at: now,
            last_used_at: None,
            expires_at: creation.expires_at,
            status: KeyStatus::Active,
            settings,
        };
        change.insert_key(&row).await?;
        let details = [("account", account.name.as_str()), ("name", row.name.as_str())];
        audit::add(&mut change, actor, "key.create", &row.id, &details).await?;
        let effect = self.commit(change).await?;
        Ok(Changed { made: NewKey { key, summary: KeySummary::new(row, &account.name) }, effect })
    }

    /// Creates a key with the name and the settings of another one, which stays valid for `overlap_seconds`. Until then the
    /// account may have one key more than its plan allows. The secret of the old key is also that of the new one only if
    /// `secret` repeats it, because the store does not know it.
    pub async fn rotate_key(
        &self,
        actor: &str,
        id: &str,
        overlap_seconds: u64,
        secret: Option<&str>,
    ) -> Result<Changed<NewKey>, AdministrationError> {
        if overlap_seconds > OVERLAP_SECONDS_MAX {
            let message = format!("must be at most {OVERLAP_SECONDS_MAX} seconds");
            return Err(AdministrationError::Invalid { field: "overlap_seconds", message });
        }
        let (now, hash_key) = (unix_seconds(), &self.hash_key().await?);
        let (key, new_id) = credential::new_key_and_id()?;
        let mut change = self.store.begin_change().await?;
        let (mut old, account) = valid_key(&mut change, id, now).await?;
        let settings = rotated_settings(&old, hash_key, &new_id, secret)?;
        let overlap_end = overlap_end(unix_time(), overlap_seconds);
        let new = KeyRecord {
            prefix: credential::prefix(&key),
            hash: hash_key.hash_key(key.as_bytes()),
            id: new_id,
            created_at: now,
            last_used_at: None,
            settings,
            ..old.clone()
        };
        old.expires_at = Some(old.expires_at.map_or(overlap_end, |at| at.min(overlap_end)));
        change.update_key(&old).await?;
        check_key_count(&mut change, &account, &self.plan(&account.plan)?, 0).await?;
        change.insert_key(&new).await?;
        audit::add(&mut change, actor, "key.rotate", id, &[("new_key", &new.id)]).await?;
        let effect = self.commit(change).await?;
        Ok(Changed { made: NewKey { key, summary: KeySummary::new(new, &account.name) }, effect })
    }

    pub async fn revoke_key(
        &self,
        actor: &str,
        id: &str,
    ) -> Result<Changed<KeySummary>, AdministrationError> {
        self.change_key(actor, "key.revoke", id, |key| {
            key.status = KeyStatus::Revoked;
            Ok(Vec::new())
        })
        .await
    }

    /// Refuses a key on this gateway at once, whether or not the store can be reached. It is revoked in the store as soon as that
    /// can be reached. Returns the id of the key.
    pub fn revoke_key_here(&self, actor: &str, key: &LocalKey) -> Result<String, AdministrationError> {
        let of_feed = self.feed.as_ref().and_then(FeedHandle::local_revocations);
        let revoked = of_feed.or(self.local_revocations.as_ref()).ok_or_else(|| {
            AdministrationError::NotSaved("there is no file for keys that are revoked here".to_owned())
        })?;
        let id = match key {
            LocalKey::Id(id) => id.clone(),
            LocalKey::Named { account, name } => self.id_in_memory(account, name)?,
        };
        // A key of the configuration would still be accepted.
        let is_of_store = !id.is_empty() && !id.starts_with("static:");
        if !is_of_store || id.chars().count() > NAME_CHARACTERS_MAX || id.chars().any(is_invisible) {
            let message = "must be the id of a key of the store, such as k_0123456789ab".to_owned();
            return Err(AdministrationError::Invalid { field: "id", message });
        }
        let revocation = LocalRevocation { at: unix_seconds(), actor: actor.to_owned() };
        let added = revoked.add(&id, revocation);
        if let Some(feed) = &self.feed {
            feed.wake();
        }
        added.map(|()| id).map_err(|error| AdministrationError::NotSaved(error.to_string()))
    }

    /// The id of the only key that an account has with this name, as far as this gateway knows.
    fn id_in_memory(&self, account: &str, name: &str) -> Result<String, AdministrationError> {
        let Some(feed) = &self.feed else {
            let message = "must be given, because no gateway runs that knows the names of keys".to_owned();
            return Err(AdministrationError::Invalid { field: "id", message });
        };
        match feed.ids_named(account, name).as_slice() {
            [] => Err(AdministrationError::NotFound { what: "key", name: name.to_owned() }),
            [only] => Ok(only.to_string()),
            several => {
                let message = format!("several keys have this name: {}; give an id", several.join(", "));
                Err(AdministrationError::Invalid { field: "name", message })
            }
        }
    }

    pub async fn rename_key(
        &self,
        actor: &str,
        id: &str,
        name: &str,
    ) -> Result<Changed<KeySummary>, AdministrationError> {
        check_name("name", name)?;
        self.change_key(actor, "key.rename", id, |key| {
            let before = std::mem::replace(&mut key.name, name.to_owned());
            Ok(vec![("before", before), ("name", name.to_owned())])
        })
        .await
    }

    /// Changes allow-lists, the secret, public keys of tokens and limits of a key.
    pub async fn set_key_settings(
        &self,
        actor: &str,
        id: &str,
        patch: &KeyPatch,
    ) -> Result<Changed<KeySummary>, AdministrationError> {
        let hash_key = &self.hash_key().await?;
        self.change_key(actor, "key.settings", id, |key| {
            let mut settings = StoredSettings::parse(&key.settings)?;
            settings.change(patch, hash_key, id)?;
            key.settings = checked_json(&settings, hash_key, id)?;
            Ok(audit::settings_details(&settings, patch))
        })
        .await
    }

    async fn change_key(
        &self,
        actor: &str,
        action: &str,
        id: &str,
        edit: impl FnOnce(&mut KeyRecord) -> Result<Vec<(&'static str, String)>, AdministrationError>,
    ) -> Result<Changed<KeySummary>, AdministrationError> {
        let mut change = self.store.begin_change().await?;
        let (mut key, account) = key_and_account(&mut change, id).await?;
        let details = edit(&mut key)?;
        change.update_key(&key).await?;
        let details: Vec<(&str, &str)> =
            details.iter().map(|(name, value)| (*name, value.as_str())).collect();
        audit::add(&mut change, actor, action, id, &details).await?;
        let effect = self.commit(change).await?;
        Ok(Changed { made: KeySummary::new(key, &account.name), effect })
    }

    pub(crate) fn plan(&self, name: &str) -> Result<Plan, AdministrationError> {
        let plans = self.plans();
        plans.named(name).cloned().ok_or_else(|| {
            let names: Vec<_> = plans.names().collect();
            let message = format!("unknown plan `{name}`; must be one of {}", names.join(", "));
            AdministrationError::Invalid { field: "plan", message }
        })
    }

    /// The hash key, which is read each time, because the store can be replaced by another one.
    pub(crate) async fn hash_key(&self) -> Result<HashKey, AdministrationError> {
        Ok(self.store.hash_key().await?)
    }

    /// Stores a change, and waits until it is in effect on this gateway.
    async fn commit(&self, change: StoreTransaction) -> Result<ChangeEffect, AdministrationError> {
        let revision = change.commit().await?;
        Ok(match &self.feed {
            Some(feed) => feed.apply(revision).await,
            None => ChangeEffect::Now,
        })
    }
}

async fn account_named(
    change: &mut StoreTransaction,
    name: &str,
) -> Result<AccountRecord, AdministrationError> {
    change.account_named(name).await?.ok_or_else(|| no_account(name))
}

fn no_account(name: &str) -> AdministrationError {
    AdministrationError::NotFound { what: "account", name: name.to_owned() }
}

async fn key_and_account(
    change: &mut StoreTransaction,
    id: &str,
) -> Result<(KeyRecord, AccountRecord), AdministrationError> {
    let not_found = || AdministrationError::NotFound { what: "key", name: id.to_owned() };
    let key = change.key(id).await?.ok_or_else(not_found)?;
    let account = change.account(key.account_id).await?.ok_or_else(not_found)?;
    Ok((key, account))
}

/// A key that is neither revoked nor expired.
async fn valid_key(
    change: &mut StoreTransaction,
    id: &str,
    now: i64,
) -> Result<(KeyRecord, AccountRecord), AdministrationError> {
    let (key, account) = key_and_account(change, id).await?;
    if key.status == KeyStatus::Revoked || key.expires_at.is_some_and(|at| at <= now) {
        let message = "is revoked or has expired; create a new key instead".to_owned();
        return Err(AdministrationError::Invalid { field: "id", message });
    }
    Ok((key, account))
}

/// Refuses more valid keys, `added` ones included, than the plan allows, and more than [`KEYS_OF_ACCOUNT_MAX`].
async fn check_key_count(
    change: &mut StoreTransaction,
    account: &AccountRecord,
    plan: &Plan,
    added: u64,
) -> Result<(), AdministrationError> {
    let max = plan.keys_max.unwrap_or(KEYS_OF_ACCOUNT_MAX).min(KEYS_OF_ACCOUNT_MAX);
    let count = change.count_valid_keys(account.id, unix_seconds()).await?;
    if u64::try_from(count).unwrap_or(0).saturating_add(added) > max {
        return Err(AdministrationError::TooManyKeys { plan: plan.name.clone(), max });
    }
    Ok(())
}

/// When a key expires that is replaced at `now`, the time since 1970. Keys expire at whole seconds, and the old key is valid for
/// no less than `overlap_seconds`.
fn overlap_end(now: Duration, overlap_seconds: u64) -> i64 {
    let end = match overlap_seconds {
        0 => now.as_secs(),
        _ => now.as_secs().saturating_add(overlap_seconds) + u64::from(now.subsec_nanos() > 0),
    };
    i64::try_from(end).unwrap_or(i64::MAX)
}

/// The settings of the key that replaces `old`. A secret is hashed with the id of its key and has to be given again.
fn rotated_settings(
    old: &KeyRecord,
    hash_key: &HashKey,
    new_id: &str,
    secret: Option<&str>,
) -> Result<String, AdministrationError> {
    let mut settings = StoredSettings::parse(&old.settings)?;
    if settings.secret_hash.is_some() && secret.is_none() {
        let message = "the key has a secret; give the secret of the new key".to_owned();
        return Err(AdministrationError::Invalid { field: "secret", message });
    }
    if let Some(secret) = secret {
        settings.set_secret(Some(secret), hash_key, new_id)?;
    }
    checked_json(&settings, hash_key, new_id)
}

/// The settings as they are stored, if they are valid. The name of the network does not matter for that.
fn checked_json(
    settings: &StoredSettings,
    hash_key: &HashKey,
    key_id: &str,
) -> Result<String, AdministrationError> {
    let compiled = settings.compile(hash_key, key_id, "");
    if let Err(errors) = compiled
        && let Some(first) = errors.into_iter().next()
    {
        return Err(first.into());
    }
    Ok(settings.to_json()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key that was replaced at the end of a second was valid for up to a second less than its overlap: of one second, for
    /// some milliseconds.
    #[test]
    fn an_overlap_is_not_shorter_than_what_was_asked_for() {
        let now = |seconds, nanoseconds| Duration::new(seconds, nanoseconds);
        assert_eq!(overlap_end(now(100, 999_999_999), 1), 102);
        assert_eq!(overlap_end(now(100, 1), 60), 161);
        assert_eq!(overlap_end(now(100, 0), 60), 160);
        assert_eq!(overlap_end(now(100, 999_999_999), 0), 100, "the old key is refused at once");
    }
}
