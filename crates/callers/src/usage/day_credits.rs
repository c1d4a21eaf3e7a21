//! The credits that were used on one day, as far as the store knows them.

use std::collections::HashMap;

use resources::DAY_S;
use store::{Store, StoreFailure};

use crate::directory::Directory;
use crate::ledger_text::ledger_text;

/// Credits by account and by key. A gateway that starts again does not grant them a second time.
#[derive(Debug, Default)]
pub struct DayCredits {
    /// A second of the day, in seconds since 1970, UTC.
    unix_seconds: u64,
    by_account: HashMap<String, AccountCredits>,
}

/// The credits of one account. Keys of two accounts can have the same name.
#[derive(Debug, Default)]
struct AccountCredits {
    used: u64,
    by_key: HashMap<String, u64>,
}

impl DayCredits {
    /// Reads what was used on the day of `unix_seconds`, over all networks and gateways of the store.
    pub async fn read(store: &Store, unix_seconds: u64) -> Result<Self, StoreFailure> {
        let mut credits = Self { unix_seconds, ..Self::default() };
        let day = unix_seconds / DAY_S * DAY_S;
        store.credits_of_day(day, |account, key, used| credits.add(account, key, used)).await?;
        Ok(credits)
    }

    fn add(&mut self, account: String, key: String, used: u64) {
        let account = self.by_account.entry(account).or_default();
        account.used = account.used.saturating_add(used);
        let of_key = account.by_key.entry(key).or_default();
        *of_key = of_key.saturating_add(used);
    }

    /// How many accounts have used credits.
    pub fn accounts(&self) -> usize {
        self.by_account.len()
    }

    /// Counts the credits as used in the limits of all accounts and keys, unless they know of more.
    pub fn raise_used(&self, directory: &Directory) {
        directory.each_key(|key| {
            let Some(account) = self.by_account.get(&*ledger_text(&key.account.name)) else { return };
            key.account.credit_limits.raise_used_today(account.used, self.unix_seconds);
            if let (Some(settings), Some(used)) = (&key.settings, account.by_key.get(&*ledger_text(&key.id)))
            {
                settings.credit_limits().raise_used_today(*used, self.unix_seconds);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use resources::MonoTime;

    use super::*;
    use crate::key_rules::KeyRules;
    use crate::plans::Plans;
    use crate::static_key::StaticKey;

    const NOON: u64 = 20_000 * DAY_S + DAY_S / 2;

    fn static_key(key: &str, account: &str) -> StaticKey {
        let rules = KeyRules { credits_per_day: Some(100), ..KeyRules::default() };
        let settings = rules.compile(None, "demo").unwrap().map(Arc::new);
        let (plan, text) = (Plans::default().named("custom").unwrap().clone(), str::to_owned);
        StaticKey { key: text(key), name: text("backend"), account: text(account), plan, settings }
    }

    /// `backend` of acme and `backend` of globex counted as one key, and each used up the daily limit of the other.
    #[test]
    fn keys_of_two_accounts_with_the_same_name_have_their_own_limits() {
        let directory = Directory::new(&[static_key("k1", "acme"), static_key("k2", "glo\0bex")]);
        let mut credits = DayCredits { unix_seconds: NOON, ..DayCredits::default() };
        credits.add("acme".to_owned(), "static:backend".to_owned(), 90);
        credits.add("globex".to_owned(), "static:backend".to_owned(), 20);
        credits.raise_used(&directory);
        let left = |key: &str| {
            let key = directory.find(key.as_bytes()).unwrap();
            let settings = key.settings.as_deref().unwrap();
            let take = |_: &u64| settings.credit_limits().take(MonoTime::default(), || NOON, 1).is_ok();
            (0..200).take_while(take).count()
        };
        assert_eq!((left("k1"), left("k2")), (10, 80));
    }
}
