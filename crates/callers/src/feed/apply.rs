//! Rows of the store → accounts and keys in memory. A row that is wrong is refused and reported; what was in effect before stays.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use resources::{Clock, unix_seconds};
use store::{AccountRecord, AccountStatus, HashKey, KeyRecord, KeyStatus};

use super::copy_queue::CopyQueue;
use crate::account::Account;
use crate::api_key::ApiKey;
use crate::directory::Directory;
use crate::key_settings::KeySettings;
use crate::plans::{CurrentPlans, Plans};
use crate::policy::{BAD_ROWS_MAX, EXPIRED_KEPT_SECONDS, LOST_KEYS_LOGGED_MAX};
use crate::stored_keys::{KeyChange, StoredKeysBuilder};
use crate::stored_settings::StoredSettings;

/// Bytes of a name; the administration allows fewer.
const NAME_BYTES_MAX: usize = 1_024;

/// A row of either table.
#[derive(Clone, Debug)]
pub(super) enum StoredRow {
    Account(AccountRecord),
    Key(KeyRecord),
}

/// Why a row is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowSource {
    /// A load reads all rows. Its keys take effect together, when it is finished.
    Load,
    /// The row was changed. It takes effect at once, also during a load.
    Change,
}

#[derive(Debug)]
pub(super) struct RowApplier {
    directory: Arc<Directory>,
    /// Changes for the local copy.
    copy: Arc<CopyQueue>,
    current_plans: CurrentPlans,
    /// The plans that the accounts have.
    plans: Arc<Plans>,
    network: String,
    accounts: HashMap<i64, Arc<Account>>,
    /// The keys of a load that is not finished.
    loading: Option<StoredKeysBuilder>,
    /// Ids of refused rows: of keys as they are, of accounts with `account `.
    bad_rows: HashMap<String, BadRow>,
    needs_load: bool,
    /// Changed rows of accounts that the load has not read yet; they take effect with the load.
    left_to_load: u64,
    /// Accounts that have changed during a load. Rows of them that the load has read may be older.
    changed_accounts: HashSet<i64>,
}

/// The action that follows when a refused row is right again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BadRow {
    Replace,
    /// An account that was never known: its keys were refused, too, and have to be read again.
    LoadAll,
}

impl RowApplier {
    pub(super) fn new(
        directory: Arc<Directory>,
        copy: Arc<CopyQueue>,
        plans: CurrentPlans,
        network: String,
    ) -> Self {
        Self {
            directory,
            copy,
            plans: plans.now(),
            current_plans: plans,
            network,
            accounts: HashMap::new(),
            loading: None,
            bad_rows: HashMap::new(),
            needs_load: false,
            left_to_load: 0,
            changed_accounts: HashSet::new(),
        }
    }

    /// Gives the accounts the limits of their plans, if the plans have changed. An account whose plan is gone keeps its limits, as
    /// long as this process knows it.
    pub(super) fn apply_changed_plans(&mut self) {
        let plans = self.current_plans.now();
        if Arc::ptr_eq(&plans, &self.plans) {
            return;
        }
        let now = Clock::default().now();
        for account in self.accounts.values() {
            let name = account.plan().name.clone();
            match plans.named(&name) {
                Some(plan) => account.set_plan(plan, now),
                None => tracing::error!(
                    account = account.name,
                    plan = name,
                    "the configuration has no such plan any more; the account keeps its limits until it has another plan"
                ),
            }
        }
        self.plans = plans;
        // Rows whose plan was missing before are read again.
        self.needs_load |= !self.bad_rows.is_empty();
    }

    pub(super) fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Whether keys that were refused have to be read again.
    pub(super) fn needs_load(&self) -> bool {
        self.needs_load
    }

    /// Whether all changed rows are in effect. Those of accounts that the load has not read yet are not.
    pub(super) fn has_applied_all(&self) -> bool {
        self.left_to_load == 0
    }

    pub(super) fn counts(&self) -> (u64, u64, u64) {
        let keys = self.directory.stored().map_or(0, |keys| keys.len());
        (self.accounts.len() as u64, keys as u64, self.bad_rows.len() as u64)
    }

    /// Until [`Self::finish_load`], callers see the keys of before, and what changes in them.
    pub(super) fn begin_load(&mut self, hash_key: HashKey) {
        if self.directory.stored().is_some_and(|keys| *keys.hash_key() != hash_key) {
            // Another store: an account with the same id is not the same account.
            self.accounts.clear();
        }
        self.loading = Some(StoredKeysBuilder::new(hash_key));
        self.bad_rows.clear();
        self.changed_accounts.clear();
        (self.needs_load, self.left_to_load) = (false, 0);
    }

    /// Makes the loaded rows effective. `has_lost_changes` is whether the store has lost changes that were in effect.
    pub(super) fn finish_load(&mut self, has_lost_changes: bool) {
        let Some(keys) = self.loading.take() else { return };
        let (keys, before) = (keys.build(), self.directory.stored());
        if let Some(before) = before.filter(|before| has_lost_changes && before.hash_key() == keys.hash_key())
        {
            let (accepted, accepted_keys) = keys.missing_in(&before, LOST_KEYS_LOGGED_MAX);
            let (refused, refused_keys) = before.missing_in(&keys, LOST_KEYS_LOGGED_MAX);
            tracing::error!(
                accepted,
                ?accepted_keys,
                refused,
                ?refused_keys,
                "the store has lost changes of keys: those named first are accepted now and were not before, such as revoked ones; \
                 the others are refused now and were accepted before; make the lost changes again"
            );
        }
        self.left_to_load = 0;
        self.changed_accounts.clear();
        self.directory.replace_stored(keys);
    }

    /// Drops the rows that were loaded so far; callers keep what they have.
    pub(super) fn give_up_load(&mut self) {
        // The refused rows were forgotten when the load began, so only another load finds them all.
        self.needs_load |= self.loading.take().is_some();
    }

    pub(super) fn apply(&mut self, rows: Vec<StoredRow>, source: RowSource) {
        self.directory.feed_status().record_progress();
        let (mut accounts, mut changes) = (Vec::new(), Vec::with_capacity(rows.len()));
        for row in rows {
            if self.is_left_to_load(&row, source) {
                self.left_to_load += 1;
                continue;
            }
            if self.is_older_than_change(&row, source) {
                continue;
            }
            let (id, applied) = match &row {
                StoredRow::Account(account) => {
                    let applied = self.apply_account(account);
                    accounts.extend(self.accounts.get(&account.id).map(Arc::clone));
                    (format!("account {}", account.id), applied)
                }
                StoredRow::Key(key) => {
                    let change = self.key_change(key);
                    (key.id.clone(), change.map(|change| changes.push(change)))
                }
            };
            match applied {
                Ok(()) => self.needs_load |= self.bad_rows.remove(&id) == Some(BadRow::LoadAll),
                Err(reason) => self.refuse(id, &row, &reason, &mut changes),
            }
        }
        let hashes = changes.iter().map(|change| change.hash).collect();
        self.apply_keys(changes, source);
        if source == RowSource::Change {
            self.copy.add(accounts, hashes);
        }
    }

    /// Whether a changed key belongs to an account that the load has not read yet. The end of the load reads the key again.
    fn is_left_to_load(&self, row: &StoredRow, source: RowSource) -> bool {
        let StoredRow::Key(KeyRecord { account_id, status: KeyStatus::Active, .. }) = row else {
            return false;
        };
        source == RowSource::Change && self.loading.is_some() && !self.accounts.contains_key(account_id)
    }

    /// Whether a load may have read an account before a change of it that is in effect. Accounts of a load take effect at once, so
    /// that the old row would take back the change until the end of the load.
    fn is_older_than_change(&mut self, row: &StoredRow, source: RowSource) -> bool {
        let StoredRow::Account(AccountRecord { id, .. }) = row else { return false };
        if source == RowSource::Change && self.loading.is_some() {
            self.changed_accounts.insert(*id);
        }
        source == RowSource::Load && self.changed_accounts.contains(id)
    }

    fn apply_keys(&mut self, changes: Vec<KeyChange>, source: RowSource) {
        let mut is_same_store = true;
        if let Some(loading) = &mut self.loading {
            changes.iter().for_each(|change| loading.change(change));
            is_same_store = self.directory.stored().is_some_and(|keys| keys.hash_key() == loading.hash_key());
        }
        if let Some(keys) = self.directory.stored().filter(|_| is_same_store && source == RowSource::Change) {
            keys.change(changes);
        }
    }

    fn apply_account(&mut self, row: &AccountRecord) -> Result<(), String> {
        let known = self.accounts.get(&row.id);
        // A suspension holds whatever else is wrong with the row.
        if let (Some(account), AccountStatus::Suspended) = (known, row.status) {
            account.set_suspended(true);
        }
        if row.name.len() > NAME_BYTES_MAX {
            return Err(format!("its name has more than {NAME_BYTES_MAX} bytes"));
        }
        let plan = self.plans.named(&row.plan);
        let plan = plan.ok_or_else(|| format!("the configuration has no plan `{}`", row.plan))?;
        let account = match known {
            Some(account) => account,
            None => {
                if self.directory.has_configured_account(&row.name) {
                    tracing::warn!(
                        account = row.name,
                        "an account of the store has the same name as one of [[key]] in the configuration, so they share usage \
                         and daily limits; give the [[key]] entries another `account`"
                    );
                }
                let account = Account::stored(row.id, row.name.clone(), plan.clone());
                if let Some(shared) = self.directory.shared_limits() {
                    account.credit_limits.share_as(&format!("account:{}", row.id), shared);
                }
                &*self.accounts.entry(row.id).or_insert_with(|| Arc::new(account))
            }
        };
        account.set_plan(plan, Clock::default().now());
        account.set_suspended(row.status == AccountStatus::Suspended);
        Ok(())
    }

    fn key_change(&self, row: &KeyRecord) -> Result<KeyChange, String> {
        let is_long_expired =
            row.expires_at.is_some_and(|at| at.saturating_add(EXPIRED_KEPT_SECONDS) <= unix_seconds());
        if row.status == KeyStatus::Revoked || is_long_expired {
            return Ok(KeyChange { hash: row.hash, key: None });
        }
        if row.name.len() > NAME_BYTES_MAX {
            return Err(format!("its name has more than {NAME_BYTES_MAX} bytes"));
        }
        if let Some(revoked) = self.directory.local_revocations() {
            revoked.accepted_by_store(&row.id);
        }
        let account = self.accounts.get(&row.account_id);
        let account =
            account.ok_or_else(|| format!("its account {} is unknown or refused", row.account_id))?;
        let settings = self.compiled_settings(row)?.map(Arc::new);
        if let (Some(settings), Some(shared)) = (&settings, self.directory.shared_limits()) {
            settings.credit_limits().share_as(&format!("key:{}", row.id), shared);
        }
        let key = Arc::new(ApiKey::stored(row, Arc::clone(account), settings));
        Ok(KeyChange { hash: row.hash, key: Some(key) })
    }

    fn compiled_settings(&self, row: &KeyRecord) -> Result<Option<KeySettings>, String> {
        let stored = self.directory.stored();
        let loading = self.loading.as_ref().map(StoredKeysBuilder::hash_key);
        let Some(hash_key) = loading.or(stored.as_ref().map(|keys| keys.hash_key())) else {
            return Err("nothing was loaded before it".to_owned());
        };
        let settings = StoredSettings::parse(&row.settings)
            .map_err(|error| format!("{}: {}", error.field, error.message))?;
        let compiled = settings.compile(hash_key, &row.id, &self.network).map_err(|errors| {
            let errors = errors.iter().map(|error| format!("{}: {}", error.field, error.message));
            errors.collect::<Vec<_>>().join("; ")
        })?;
        let before = stored.as_ref().and_then(|keys| keys.with_hash(&row.hash));
        Ok(compiled.map(|new| match before.as_ref().and_then(|key| key.settings.as_deref()) {
            Some(old) => new.replacing(old, Clock::default().now()),
            None => new,
        }))
    }

    /// Reports a row that is refused. During a load, what was in effect for it before is taken over.
    fn refuse(&mut self, id: String, row: &StoredRow, reason: &str, changes: &mut Vec<KeyChange>) {
        tracing::error!(row = id, reason, "a row of the store of accounts and keys is refused");
        let then = match row {
            StoredRow::Account(account) if !self.accounts.contains_key(&account.id) => BadRow::LoadAll,
            StoredRow::Account(_) => BadRow::Replace,
            StoredRow::Key(key) => {
                let before = self.directory.stored().and_then(|keys| keys.with_hash(&key.hash));
                if self.loading.is_some() && before.is_some() {
                    changes.push(KeyChange { hash: key.hash, key: before });
                }
                BadRow::Replace
            }
        };
        if self.bad_rows.len() < BAD_ROWS_MAX {
            self.bad_rows.insert(id, then);
        }
    }
}
