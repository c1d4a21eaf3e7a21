//! Slows down guesses of passwords: after some attempts for one email address, or from one network address, each further one
//! has to wait longer.
//!
//! Attempts are counted before the password is checked, so that many at once are no way around it. Guesses of others do not
//! lock out somebody who signs in from where they have signed in before.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};

use parking_lot::Mutex;

use crate::policy::{
    FIRST_WAIT_S, FORGOTTEN_AFTER_S, FREE_BY_ADDRESS, FREE_BY_EMAIL, FREE_BY_EMAIL_ANYWHERE,
    THROTTLE_ENTRIES_MAX, WAIT_S_MAX,
};

/// Attempts to sign in, by email address and by network address.
#[derive(Debug, Default)]
pub(super) struct AttemptThrottle {
    tables: Mutex<AttemptTables>,
}

#[derive(Debug, Default)]
struct AttemptTables {
    by_email_and_address: AttemptTable<(String, IpAddr)>,
    by_email: AttemptTable<String>,
    by_address: AttemptTable<IpAddr>,
    /// From where people have signed in; how often does not matter.
    known: AttemptTable<(String, IpAddr)>,
}

impl AttemptThrottle {
    /// Counts an attempt, or returns how many seconds it has to wait.
    pub(super) fn begin(&self, email: &str, address: IpAddr, now: u64) -> Result<(), u64> {
        let tables = &mut *self.tables.lock();
        let (email, network) = (email.to_owned(), network_of(address));
        let place = (email.clone(), network);
        let wait_anywhere = match tables.known.entries.contains_key(&place) {
            true => 0,
            false => tables.by_email.wait(&email, FREE_BY_EMAIL_ANYWHERE, now),
        };
        let wait = tables.by_email_and_address.wait(&place, FREE_BY_EMAIL, now);
        let wait = wait.max(wait_anywhere).max(tables.by_address.wait(&network, FREE_BY_ADDRESS, now));
        if wait > 0 {
            return Err(wait);
        }
        tables.by_email_and_address.count(place, now);
        tables.by_email.count(email, now);
        tables.by_address.count(network, now);
        Ok(())
    }

    /// Counts an attempt that is for nobody in particular, such as the use of a link, or says how long to wait.
    pub(super) fn begin_from(&self, address: IpAddr, now: u64) -> Result<(), u64> {
        let by_address = &mut self.tables.lock().by_address;
        let network = network_of(address);
        match by_address.wait(&network, FREE_BY_ADDRESS, now) {
            0 => {
                by_address.count(network, now);
                Ok(())
            }
            wait => Err(wait),
        }
    }

    /// Forgets the attempts of somebody who has signed in. The count of the network address only drops by one, because
    /// otherwise an attacker with one valid password could reset it.
    pub(super) fn succeeded(&self, email: &str, address: IpAddr, now: u64) {
        let tables = &mut *self.tables.lock();
        let network = network_of(address);
        let place = (email.to_owned(), network);
        tables.by_email_and_address.entries.remove(&place);
        tables.by_email.entries.remove(email);
        tables.known.count(place, now);
        if let Some(attempts) = tables.by_address.entries.get_mut(&network) {
            attempts.count = attempts.count.saturating_sub(1);
        }
    }
}

/// IPv6 addresses are counted by their /64 network, because one person has all of its addresses.
fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        address => address,
    }
}

#[derive(Debug)]
struct AttemptTable<K> {
    entries: HashMap<K, Attempts>,
}

#[derive(Clone, Copy, Debug)]
struct Attempts {
    count: u32,
    last_at: u64,
}

impl<K> Default for AttemptTable<K> {
    fn default() -> Self {
        Self { entries: HashMap::new() }
    }
}

impl<K: Clone + Eq + Hash> AttemptTable<K> {
    fn wait(&self, key: &K, free: u32, now: u64) -> u64 {
        let Some(attempts) = self.entries.get(key).filter(|attempts| !attempts.is_forgotten(now)) else {
            return 0;
        };
        let Some(over) = (attempts.count + 1).checked_sub(free + 1) else { return 0 };
        let wait = FIRST_WAIT_S.saturating_mul(1 << over.min(16)).min(WAIT_S_MAX);
        (attempts.last_at + wait).saturating_sub(now)
    }

    fn count(&mut self, key: K, now: u64) {
        if self.entries.len() >= THROTTLE_ENTRIES_MAX && !self.entries.contains_key(&key) {
            self.make_room(now);
        }
        let attempts = self.entries.entry(key).or_insert(Attempts { count: 0, last_at: now });
        let before = if attempts.is_forgotten(now) { 0 } else { attempts.count };
        *attempts = Attempts { count: before.saturating_add(1), last_at: now };
    }

    fn make_room(&mut self, now: u64) {
        self.entries.retain(|_, attempts| !attempts.is_forgotten(now));
        if self.entries.len() < THROTTLE_ENTRIES_MAX {
            return;
        }
        // The entry with the fewest attempts is the one that is worth least; among equals the oldest.
        let least = self.entries.iter().min_by_key(|(_, attempts)| (attempts.count, attempts.last_at));
        if let Some(key) = least.map(|(key, _)| key.clone()) {
            self.entries.remove(&key);
        }
    }
}

impl Attempts {
    fn is_forgotten(self, now: u64) -> bool {
        now.saturating_sub(self.last_at) >= FORGOTTEN_AFTER_S
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

    fn address(number: u32) -> IpAddr {
        IpAddr::V4(std::net::Ipv4Addr::from_bits(0x0a00_0000 + number))
    }

    #[test]
    fn guesses_for_one_person_get_slower_from_any_address() {
        let throttle = AttemptThrottle::default();
        for number in 0..FREE_BY_EMAIL_ANYWHERE {
            assert_eq!(throttle.begin("ada", address(number), 1_000), Ok(()));
        }
        assert_eq!(throttle.begin("ada", address(99), 1_000), Err(5));
        assert_eq!(throttle.begin("ada", address(99), 1_004), Err(1));
        assert_eq!(throttle.begin("ada", address(99), 1_005), Ok(()));
        assert_eq!(throttle.begin("ada", address(98), 1_005), Err(10));
        assert_eq!(throttle.begin("bob", HERE, 1_005), Ok(()), "others are not affected");
        let mut now = 2_000;
        for _ in 0..100 {
            let wait = throttle.begin("ada", HERE, now).err().unwrap_or_default();
            assert!(wait <= WAIT_S_MAX, "{wait}");
            now += wait;
        }
        let total = now - 2_000;
        assert!(total > 40 * WAIT_S_MAX, "fifty guesses took only {total} s");
    }

    #[test]
    fn guesses_from_one_address_get_slower_for_any_person() {
        let throttle = AttemptThrottle::default();
        for number in 0..FREE_BY_ADDRESS {
            assert_eq!(throttle.begin(&number.to_string(), HERE, 1_000), Ok(()));
        }
        assert_eq!(throttle.begin("another", HERE, 1_000), Err(5));
        assert_eq!(throttle.begin("another", address(1), 1_000), Ok(()));
    }

    #[test]
    fn attempts_with_links_count_for_their_address_alone() {
        let throttle = AttemptThrottle::default();
        for _ in 0..FREE_BY_ADDRESS {
            assert_eq!(throttle.begin_from(HERE, 1_000), Ok(()));
        }
        assert_eq!(
            (throttle.begin_from(HERE, 1_000), throttle.begin_from(address(1), 1_000)),
            (Err(5), Ok(()))
        );
        assert_eq!(throttle.begin("ada", address(2), 1_000), Ok(()));
    }

    #[test]
    fn a_network_of_ipv6_is_one_address() {
        let throttle = AttemptThrottle::default();
        let inside = |number: u16| IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 7, number, 1, 2, 3));
        for number in 0..FREE_BY_ADDRESS {
            assert_eq!(throttle.begin(&number.to_string(), inside(number as u16), 1_000), Ok(()));
        }
        assert!(throttle.begin("another", inside(999), 1_000).is_err());
    }

    #[test]
    fn success_and_time_forget_attempts() {
        let throttle = AttemptThrottle::default();
        for _ in 0..FREE_BY_EMAIL {
            assert_eq!(throttle.begin("ada", HERE, 1_000), Ok(()));
        }
        throttle.succeeded("ada", HERE, 1_000);
        assert_eq!(throttle.begin("ada", HERE, 1_000), Ok(()));
        for number in 0..FREE_BY_EMAIL_ANYWHERE {
            let _ = throttle.begin("bob", address(number), 1_000);
        }
        assert!(throttle.begin("bob", HERE, 1_000).is_err());
        assert_eq!(throttle.begin("bob", HERE, 1_000 + FORGOTTEN_AFTER_S), Ok(()));
    }

    /// Whoever knew an email address could keep its owner out for as long as they liked.
    #[test]
    fn guesses_of_others_do_not_lock_out_somebody_at_a_known_place() {
        let throttle = AttemptThrottle::default();
        assert_eq!(throttle.begin("ada", HERE, 1_000), Ok(()));
        throttle.succeeded("ada", HERE, 1_000);
        for number in 0..200 {
            let _ = throttle.begin("ada", address(number), 1_000);
        }
        assert!(throttle.begin("ada", address(999), 1_000).is_err());
        for _ in 0..FREE_BY_EMAIL {
            assert_eq!(throttle.begin("ada", HERE, 1_000), Ok(()));
        }
        assert!(throttle.begin("ada", HERE, 1_000).is_err(), "this place has its own limit");
    }

    #[test]
    fn the_tables_are_bounded_and_keep_the_worst() {
        let throttle = AttemptThrottle::default();
        for number in 0..FREE_BY_EMAIL_ANYWHERE {
            let _ = throttle.begin("ada", address(number), 1_000);
        }
        for number in 0..20_000 {
            let _ = throttle.begin(&format!("{number}"), address(1_000 + number), 1_000);
        }
        assert_eq!(throttle.tables.lock().by_email.entries.len(), THROTTLE_ENTRIES_MAX);
        assert!(throttle.begin("ada", HERE, 1_000).is_err());
    }
}
