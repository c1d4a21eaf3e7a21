//! The credits that were used on one day, as far as the store knows them.

use std::collections::HashMap;

use resources::DAY_S;
use store::{DayTotal, Store, StoreFailure};

use super::recorder::UsedKeys;
use crate::api_key::ApiKey;
use crate::directory::Directory;

/// Credits by account and by key, over all networks and gateways of the store. A gateway that starts again does not grant them a
/// second time.
#[derive(Debug, Default)]
pub struct DayCredits {
    /// A second of the day, in seconds since 1970, UTC.
    unix_seconds: u64,
    /// The use of the gateways themselves is under the empty name.
    by_account: HashMap<String, AccountCredits>,
    /// Whether the credits that were used before this process was started are read.
    is_read: bool,
    /// The keys whose limits are raised; `None` for all.
    only: Option<UsedKeys>,
}

/// The credits of one account. Keys of two accounts can have the same name.
#[derive(Debug, Default)]
struct AccountCredits {
    used: u64,
    by_key: HashMap<String, u64>,
}

impl DayCredits {
    /// Begins a new day, and reads the credits that were used on it, unless they are known.
    pub(super) async fn read(&mut self, store: &Store, unix_seconds: u64) -> Result<(), StoreFailure> {
        let day = |seconds: u64| seconds / DAY_S;
        if day(self.unix_seconds) != day(unix_seconds) {
            *self = Self::default();
        }
        self.unix_seconds = unix_seconds;
        if !self.is_read {
            store.credits_of_day(day(unix_seconds) * DAY_S, |total| self.learn(total)).await?;
            self.is_read = true;
        }
        Ok(())
    }

    /// Selects the keys whose limits are raised: all of them take long if there are many.
    pub(super) fn set_keys(&mut self, only: Option<UsedKeys>) {
        self.only = only;
    }

    /// Takes over a total that the store has returned, if it is of this day.
    pub(super) fn learn(&mut self, DayTotal { day, account, key, credits }: DayTotal) {
        if day / DAY_S != self.unix_seconds / DAY_S {
            return;
        }
        let account = self.by_account.entry(account.to_string()).or_default();
        let used = match key {
            None => &mut account.used,
            Some(key) => account.by_key.entry(key.to_string()).or_default(),
        };
        *used = credits.max(*used);
    }

    /// A second of the day.
    pub(crate) fn unix_seconds(&self) -> u64 {
        self.unix_seconds
    }

    /// The use of something by the gateways themselves, such as calls to a partner.
    pub fn used_by_gateways(&self, key: &str) -> u64 {
        let used = self.by_account.get("").and_then(|gateways| gateways.by_key.get(key));
        used.copied().unwrap_or(0)
    }

    /// The number of accounts that have used credits.
    pub fn accounts(&self) -> usize {
        self.by_account.len()
    }

    /// Counts the credits as used in the limits of all accounts and keys, unless they know of more.
    pub fn raise_used(&self, directory: &Directory) {
        match &self.only {
            Some(keys) => keys.values().for_each(|key| self.raise_used_of(key)),
            None => directory.each_key(|key| self.raise_used_of(key)),
        }
    }

    fn raise_used_of(&self, key: &ApiKey) {
        let Some(account) = self.by_account.get(&key.account.name) else { return };
        key.account.credit_limits.raise_used_today(account.used, self.unix_seconds);
        if let (Some(settings), Some(used)) = (&key.settings, account.by_key.get(&*key.id)) {
            settings.credit_limits().raise_used_today(*used, self.unix_seconds);
        }
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
        StaticKey { key: key.into(), name: text("backend"), account: text(account), plan, settings }
    }

    /// `backend` of acme and `backend` of globex counted as one key, and each used up the daily limit of the other.
    #[test]
    fn keys_of_two_accounts_with_the_same_name_have_their_own_limits() {
        let directory = Directory::new(&[static_key("k1", "acme"), static_key("k2", "globex")]);
        let mut credits = DayCredits { unix_seconds: NOON, ..DayCredits::default() };
        for (account, credits_used) in [("acme", 90), ("globex", 20)] {
            let day = NOON / DAY_S * DAY_S;
            for key in [None, Some("static:backend".into())] {
                credits.learn(DayTotal { day, account: account.into(), key, credits: credits_used });
            }
            let yesterday = day - DAY_S;
            credits.learn(DayTotal { day: yesterday, account: account.into(), key: None, credits: 99 });
        }
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
