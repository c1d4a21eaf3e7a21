//! Keys with what they did today.

use std::collections::HashMap;

use callers::administration::{AccountRecord, KeySummary};

use crate::pages::keys::{KeyRow, KeyRowState};
use crate::pages::usage::UsageSum;
use crate::web::page_error::PageError;
use crate::web::site::ConsoleSite;

impl ConsoleSite {
    /// The rows of a page of keys, in their order.
    pub(super) async fn key_rows(
        &self,
        account: &AccountRecord,
        keys: Vec<KeySummary>,
    ) -> Result<Vec<KeyRow>, PageError> {
        let ids: Vec<_> = keys.iter().map(|key| key.id.as_str()).collect();
        let mut by_key: HashMap<String, UsageSum> = HashMap::new();
        for sum in self.administration.keys_today(account, &ids).await? {
            by_key.entry(sum.key).or_default().add_calls(&sum.outcome, sum.calls, sum.credits);
        }
        let row = |key: KeySummary| KeyRow {
            state: KeyRowState::of(&key, account),
            today: by_key.get(&key.id).copied().unwrap_or_default(),
            key,
        };
        Ok(keys.into_iter().map(row).collect())
    }

    /// The first keys of an account: those that are not revoked, and the newest before the others.
    pub(super) async fn first_keys(
        &self,
        account: &AccountRecord,
        count: u32,
    ) -> Result<Vec<KeySummary>, PageError> {
        Ok(self.administration.keys_by_age(account, None, count).await?.rows)
    }
}
