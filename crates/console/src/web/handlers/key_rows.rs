//! Keys with what they did today.

use std::collections::HashMap;

use callers::administration::{AccountSummary, KeyListEntry};
use callers::usage::UsageDimension;

use crate::pages::credits_today::CreditsToday;
use crate::pages::keys::{KeyRow, KeyRowState};
use crate::pages::outcomes::OutcomeCounts;
use crate::pages::usage::UsageSum;
use crate::web::page_error::PageError;
use crate::web::site::ConsoleSite;
use crate::web::usage_sums;

/// Keys that are read for one page. Nobody reads a longer list.
pub(super) const KEYS_MAX: u32 = 500;

/// The keys of an account, and what it used today.
pub(super) struct AccountToday {
    /// Keys that work first, the most used before the others.
    pub(super) keys: Vec<KeyRow>,
    pub(super) outcomes: OutcomeCounts,
    pub(super) credits: CreditsToday,
}

impl ConsoleSite {
    pub(super) async fn account_today(&self, account: &AccountSummary) -> Result<AccountToday, PageError> {
        let report = self.usage_today(&account.name, &[UsageDimension::Key]).await?;
        let total = usage_sums::total(&report);
        let by_key: HashMap<_, _> = usage_sums::by_name(&report, UsageDimension::Key).into_iter().collect();
        let keys = self.administration.key_list(account, KEYS_MAX).await?;
        let row = |key: KeyListEntry| {
            let today = by_key.get(&key.id).copied().unwrap_or_default();
            key_row(key, account, &today)
        };
        let mut keys: Vec<_> = keys.into_iter().map(row).collect();
        keys.sort_by_key(|key| (rank(key.state), std::cmp::Reverse((key.calls_today, key.created_at))));
        let credits = self.credits_today(account, total.credits);
        Ok(AccountToday { keys, outcomes: total.outcomes, credits })
    }
}

fn rank(state: KeyRowState) -> u8 {
    match state {
        KeyRowState::Active | KeyRowState::Suspended => 0,
        KeyRowState::ActiveUntil(_) => 1,
        KeyRowState::Expired => 2,
        KeyRowState::Revoked => 3,
    }
}

pub(super) fn key_row(key: KeyListEntry, account: &AccountSummary, today: &UsageSum) -> KeyRow {
    let state = match (key.status, key.expires_at) {
        ("revoked", _) => KeyRowState::Revoked,
        ("expired", _) => KeyRowState::Expired,
        _ if account.status == "suspended" => KeyRowState::Suspended,
        (_, Some(until)) => KeyRowState::ActiveUntil(until),
        (_, None) => KeyRowState::Active,
    };
    KeyRow {
        id: key.id,
        name: key.name,
        prefix: key.prefix,
        state,
        created_at: key.created_at,
        last_used_at: key.last_used_at,
        calls_today: today.outcomes.calls(),
        success_share: today.outcomes.success_share(),
        credits_today: today.credits,
    }
}

/// The account of the session. Operators may have none, and get to their own pages instead.
pub(super) fn account_of(session: &callers::people::ActiveSession) -> Result<&AccountSummary, PageError> {
    session.account().ok_or_else(|| match session.is_operator() {
        true => PageError::Redirect("/live".to_owned()),
        false => PageError::Status(403),
    })
}
