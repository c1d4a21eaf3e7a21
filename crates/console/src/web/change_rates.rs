//! How often one user may change something, so that nobody can fill the store or occupy it.

use std::collections::HashMap;

use parking_lot::Mutex;
use resources::{BucketRate, Clock, TokenBucket};

/// Changes of one user: more than anybody makes by hand.
const CHANGES: BucketRate = BucketRate { per_second: 2, capacity: 120 };

/// Users that are remembered. Those who have not changed anything for a minute are forgotten first.
const USERS_MAX: usize = 10_000;

/// Limits the changes of each user.
#[derive(Debug, Default)]
pub(super) struct ChangeRates {
    clock: Clock,
    users: Mutex<HashMap<String, TokenBucket>>,
}

impl ChangeRates {
    /// Counts a change of the user with this email address; `false` if it is one too many.
    pub(super) fn allow(&self, email: &str) -> bool {
        let now = self.clock.now();
        let mut users = self.users.lock();
        if users.len() >= USERS_MAX && !users.contains_key(email) {
            users.retain(|_, bucket| !bucket.is_full(now));
            if users.len() >= USERS_MAX {
                return false;
            }
        }
        users.entry(email.to_owned()).or_insert_with(|| TokenBucket::full(CHANGES)).take(1, now).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_user_is_slowed_down_and_others_are_not() {
        let rates = ChangeRates::default();
        let allowed = (0..10_000).filter(|_| rates.allow("ada")).count() as u64;
        assert!((CHANGES.capacity..10_000).contains(&allowed), "{allowed}");
        assert!(rates.allow("bob"));
    }
}
