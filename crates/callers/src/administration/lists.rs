//! Lists of accounts and keys and the audit log, page by page.

use std::collections::HashMap;

use resources::{DAY_S, unix_seconds};
use store::{AuditSearch, KeyAgePosition, KeyDaySum, ListPage, NamePosition};

use super::credential::PREFIX_CHARACTERS;
use super::{AccountRecord, Administration, AdministrationError, AuditEntry, KeySummary, no_account};

use crate::policy::KEYS_FOUND_MAX;

/// How many keys and users an account has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountCounts {
    /// Neither revoked nor expired.
    pub valid_keys: u64,
    /// Revoked and expired ones included.
    pub keys: u64,
    pub users: u64,
}

/// A key that was found among those of all accounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundKey {
    pub account: AccountRecord,
    pub key: KeySummary,
}

impl Administration {
    /// The next accounts in the order of their ids.
    pub async fn list_accounts(&self, after_id: i64) -> Result<ListPage<AccountRecord>, AdministrationError> {
        Ok(self.store.accounts_after(after_id).await?)
    }

    /// The next accounts whose names begin with `search`, in the order of their names.
    pub async fn accounts_by_name(
        &self,
        search: &str,
        after: Option<&NamePosition<i64>>,
        count: u32,
    ) -> Result<ListPage<AccountRecord>, AdministrationError> {
        Ok(self.store.accounts_by_name(search, after, i64::from(count)).await?)
    }

    /// How many accounts have names that begin with `search`.
    pub async fn count_accounts(&self, search: &str) -> Result<u64, AdministrationError> {
        Ok(unsigned(self.store.count_accounts(search).await?))
    }

    /// The next keys of an account in the order of their handles, revoked ones included.
    pub async fn list_keys(
        &self,
        account: &str,
        after_id: &str,
    ) -> Result<ListPage<KeySummary>, AdministrationError> {
        let account = self.store.account_named(account).await?.ok_or_else(|| no_account(account))?;
        let rows = self.store.keys_of(account.id, after_id).await?;
        Ok(rows.map(|row| KeySummary::new(row, &account.name)))
    }

    /// The next keys of an account: those that are not revoked first, and the newest before the others.
    pub async fn keys_by_age(
        &self,
        account: &AccountRecord,
        after: Option<&KeyAgePosition>,
        count: u32,
    ) -> Result<ListPage<KeySummary>, AdministrationError> {
        let rows = self.store.keys_by_age(account.id, after, i64::from(count)).await?;
        Ok(rows.map(|row| KeySummary::new(row, &account.name)))
    }

    /// The next keys of an account whose names begin with `search`, in the order of their names.
    pub async fn keys_by_name(
        &self,
        account: &AccountRecord,
        search: &str,
        after: Option<&NamePosition<String>>,
        count: u32,
    ) -> Result<ListPage<KeySummary>, AdministrationError> {
        let rows = self.store.keys_by_name(account.id, search, after, i64::from(count)).await?;
        Ok(rows.map(|row| KeySummary::new(row, &account.name)))
    }

    /// How many keys of an account have names that begin with `search`.
    pub async fn count_keys_by_name(
        &self,
        account: &AccountRecord,
        search: &str,
    ) -> Result<u64, AdministrationError> {
        Ok(unsigned(self.store.count_keys_by_name(account.id, search).await?))
    }

    /// The first keys of an account that begin with `search`, or whose ids do. A whole key is found, too.
    pub async fn keys_of_account_by_prefix(
        &self,
        account: &AccountRecord,
        search: &str,
    ) -> Result<ListPage<KeySummary>, AdministrationError> {
        let rows = self.store.keys_by_prefix(Some(account.id), shown_part(search), KEYS_FOUND_MAX).await?;
        Ok(rows.map(|row| KeySummary::new(row, &account.name)))
    }

    /// The first keys of all accounts that begin with `search`, or whose ids do. A whole key is found, too.
    pub async fn keys_by_prefix(&self, search: &str) -> Result<ListPage<FoundKey>, AdministrationError> {
        let page = self.store.keys_by_prefix(None, shown_part(search), KEYS_FOUND_MAX).await?;
        let mut rows = Vec::new();
        for row in page.rows {
            if let Some(account) = self.store.account(row.account_id).await? {
                let key = KeySummary::new(row, &account.name);
                rows.push(FoundKey { account, key });
            }
        }
        Ok(ListPage { rows, has_more: page.has_more })
    }

    /// The names of some keys of an account by their ids.
    pub async fn key_names(
        &self,
        account: &AccountRecord,
        ids: &[&str],
    ) -> Result<HashMap<String, String>, AdministrationError> {
        // Keys of the configuration have ids of their own, which may contain anything.
        let ids: Vec<_> = ids.iter().copied().filter(|id| !id.contains('\0')).collect();
        Ok(self.store.key_names(account.id, &ids).await?.into_iter().collect())
    }

    /// The use of some keys of an account today (UTC).
    pub async fn keys_today(
        &self,
        account: &AccountRecord,
        keys: &[&str],
    ) -> Result<Vec<KeyDaySum>, AdministrationError> {
        let now = unsigned(unix_seconds());
        Ok(self.store.key_day_sums(&account.name, keys, now / DAY_S * DAY_S).await?)
    }

    /// How many keys and users an account has.
    pub async fn account_counts(
        &self,
        account: &AccountRecord,
    ) -> Result<AccountCounts, AdministrationError> {
        let keys = self.store.key_counts(account.id, unix_seconds()).await?;
        let users = self.store.count_users(account.id, "").await?;
        Ok(AccountCounts {
            valid_keys: unsigned(keys.valid),
            keys: unsigned(keys.all),
            users: unsigned(users),
        })
    }

    /// The newest entries of the audit log before the entry with the id `before`, the newest first: all of them, or those that
    /// have `search` as their subject, as their action or as who made the change.
    pub async fn audit_entries(
        &self,
        search: Option<&str>,
        before: Option<i64>,
        count: u32,
    ) -> Result<ListPage<AuditEntry>, AdministrationError> {
        let (search, before) = (search.map(audit_search), before.unwrap_or(i64::MAX));
        let rows = self.store.audit_entries(search.as_ref(), before, i64::from(count)).await?;
        Ok(rows.map(Into::into))
    }

    /// How many entries the audit log has, but at most one more than [`store::AUDIT_COUNT_MAX`].
    pub async fn count_audit_entries(&self, search: Option<&str>) -> Result<u64, AdministrationError> {
        Ok(unsigned(self.store.count_audit_entries(search.map(audit_search).as_ref()).await?))
    }
}

fn unsigned(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0)
}

/// The part of a key that the store knows, if somebody searches for a whole key, or as it is shown in a list.
fn shown_part(search: &str) -> &str {
    let search = search.trim_end_matches('…');
    match search.get(..PREFIX_CHARACTERS) {
        Some(prefix) if search.bytes().all(|byte| byte.is_ascii_hexdigit()) => prefix,
        _ => search,
    }
}

/// The start of an entry that is searched for in the audit log: people are users, and actions have no capital letters.
fn audit_search(search: &str) -> AuditSearch {
    let is_email = search.contains('@') && !search.contains(' ') && !search.starts_with("user:");
    AuditSearch {
        subject: search.to_owned(),
        actor: if is_email { format!("user:{}", search.to_lowercase()) } else { search.to_owned() },
        action: search.to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_key_is_looked_for_by_the_part_that_is_stored() {
        assert_eq!(shown_part("0a1b2c3d4e5f"), "0a1b2c");
        assert_eq!(shown_part("0A1B2C…"), "0A1B2C");
        assert_eq!(shown_part("0a1"), "0a1");
        assert_eq!(shown_part("k_8a41c0de55b2"), "k_8a41c0de55b2");
    }

    #[test]
    fn people_are_found_in_the_audit_log_by_their_email() {
        assert_eq!(audit_search("Ada@example.com").actor, "user:ada@example.com");
        assert_eq!(audit_search("user:ada@example.com").actor, "user:ada@example.com");
        assert_eq!(audit_search("Key.Revoke").action, "key.revoke");
    }
}
