//! The credits that were used on one day, as far as the store knows them.

use std::collections::HashMap;

use resources::DAY_S;
use store::{Store, StoreFailure};

use crate::directory::Directory;

/// Credits by account and by key. A gateway that starts again does not grant them a second time.
#[derive(Debug, Default)]
pub struct DayCredits {
    /// A second of the day, in seconds since 1970, UTC.
    unix_seconds: u64,
    by_account: HashMap<String, u64>,
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
        *self.by_account.entry(account).or_default() += used;
        *self.by_key.entry(key).or_default() += used;
    }

    /// How many accounts have used credits.
    pub fn accounts(&self) -> usize {
        self.by_account.len()
    }

    /// Counts the credits as used in the limits of all accounts and keys, unless they know of more.
    pub fn raise_used(&self, directory: &Directory) {
        directory.each_key(|key| {
            if let Some(used) = self.by_account.get(&key.account.name) {
                key.account.credit_limits.raise_used_today(*used, self.unix_seconds);
            }
            if let (Some(settings), Some(used)) = (&key.settings, self.by_key.get(&*key.id)) {
                settings.credit_limits().raise_used_today(*used, self.unix_seconds);
            }
        });
    }
}
