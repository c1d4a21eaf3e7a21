//! Keys with what they did today.

use std::collections::HashMap;

use callers::administration::{AccountSummary, KeyAgePosition, KeyListEntry};
use callers::usage::Outcome;

use crate::pages::keys::{KeyRow, KeyRowState};
use crate::pages::outcomes::OutcomeCounts;
use crate::web::page_error::PageError;
use crate::web::site::ConsoleSite;

/// What a key did today, over all networks.
#[derive(Clone, Copy, Debug, Default)]
struct KeyToday {
    outcomes: OutcomeCounts,
    credits: u64,
}

impl ConsoleSite {
    /// The rows of a page of keys, in their order.
    pub(super) async fn key_rows(
        &self,
        account: &AccountSummary,
        keys: Vec<KeyListEntry>,
    ) -> Result<Vec<KeyRow>, PageError> {
        let ids: Vec<_> = keys.iter().map(|key| key.id.as_str()).collect();
        let mut by_key: HashMap<String, KeyToday> = HashMap::new();
        for sum in self.administration.keys_today(account, &ids).await? {
            let today = by_key.entry(sum.key).or_default();
            // The store may have outcomes that a later version has written.
            if let Some(outcome) = Outcome::from_label(&sum.outcome) {
                today.outcomes.add(outcome, sum.calls);
            }
            today.credits = today.credits.saturating_add(sum.credits);
        }
        let row = |key: KeyListEntry| {
            let today = by_key.get(&key.id).copied().unwrap_or_default();
            key_row(key, account, &today)
        };
        Ok(keys.into_iter().map(row).collect())
    }

    /// The first keys of an account: those that are not revoked, and the newest before the others.
    pub(super) async fn first_keys(
        &self,
        account: &AccountSummary,
        count: u32,
    ) -> Result<Vec<KeyListEntry>, PageError> {
        let start: Option<&KeyAgePosition> = None;
        Ok(self.administration.keys_by_age(account, start, count).await?.rows)
    }
}

/// Whether a key of an account works.
pub(super) fn key_state(key: &KeyListEntry, account: &AccountSummary) -> KeyRowState {
    match (key.status, key.expires_at) {
        ("revoked", _) => KeyRowState::Revoked,
        ("expired", _) => KeyRowState::Expired,
        _ if account.status == "suspended" => KeyRowState::Suspended,
        (_, Some(until)) => KeyRowState::ActiveUntil(until),
        (_, None) => KeyRowState::Active,
    }
}

fn key_row(key: KeyListEntry, account: &AccountSummary, today: &KeyToday) -> KeyRow {
    KeyRow {
        state: key_state(&key, account),
        id: key.id,
        name: key.name,
        prefix: key.prefix,
        created_at: key.created_at,
        last_used_at: key.last_used_at,
        calls_today: today.outcomes.calls(),
        success_share: today.outcomes.success_share(),
        credits_today: today.credits,
    }
}
