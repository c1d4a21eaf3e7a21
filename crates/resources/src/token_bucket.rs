//! A rate limit: the only one of the workspace. Credits, requests without a key, frames, extra calls and calls to partners are
//! all counted by it.

use crate::clock::MonoTime;

/// Balances are counted in billionths of a token, so that each nanosecond adds a whole number of them.
const TOKEN: i128 = 1_000_000_000;

/// Billionths of a token that a rate of one token per second adds in a millisecond.
const ADDED_PER_MS: u128 = 1_000_000;

/// The bucket has too few tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateExceeded {
    /// The capacity of the bucket.
    pub allowed: u64,
    /// The tokens in use, those that were refused included.
    pub current: u64,
    /// Time until the bucket has enough tokens.
    pub wait_ms: u64,
}

/// How a bucket fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketRate {
    /// Tokens that each second adds. With 0, only [`TokenBucket::put`] adds some.
    pub per_second: u64,
    /// The most tokens that are saved up.
    pub capacity: u64,
}

/// Tokens that are added over time and by [`Self::put`], up to a capacity, and taken by whatever is limited.
///
/// It is a plain value: whoever shares it puts it behind a mutex, together with what must change at the same time.
#[derive(Clone, Copy, Debug)]
pub struct TokenBucket {
    rate: BucketRate,
    /// Billionths of tokens at `refilled_at`. Negative while tokens are owed.
    balance: i128,
    refilled_at: MonoTime,
}

impl TokenBucket {
    pub fn full(rate: BucketRate) -> Self {
        Self { rate, balance: i128::from(rate.capacity) * TOKEN, refilled_at: MonoTime::default() }
    }

    pub fn empty(rate: BucketRate, now: MonoTime) -> Self {
        Self { rate, balance: 0, refilled_at: now }
    }

    /// A full bucket that saves up the tokens of one second.
    pub fn per_second(tokens: u64) -> Self {
        Self::full(BucketRate { per_second: tokens, capacity: tokens })
    }

    /// Takes all of the tokens or none. More than the capacity is always refused.
    pub fn take(&mut self, tokens: u64, now: MonoTime) -> Result<(), RateExceeded> {
        self.take_if_available(tokens, tokens, now)
    }

    /// Takes all of the tokens or none. If no more than `missing_max` tokens are missing from a full bucket, any number is
    /// admitted, and what is missing is owed; otherwise the smallest plan could never make the most expensive call.
    pub fn take_or_owe(&mut self, tokens: u64, missing_max: u64, now: MonoTime) -> Result<(), RateExceeded> {
        let nearly_full = self.rate.capacity.saturating_sub(missing_max);
        self.take_if_available(tokens, tokens.min(nearly_full), now)
    }

    /// Changes how the bucket fills. Tokens in it stay, up to the new capacity; a larger capacity adds none at once, so
    /// changing the rate back and forth grants nothing.
    pub fn set_rate(&mut self, rate: BucketRate, now: MonoTime) {
        self.refill(now);
        self.rate = rate;
        self.add(0);
    }

    pub fn rate(&self) -> BucketRate {
        self.rate
    }

    /// Adds tokens: those of a call that is not charged after all, or those that something else has earned.
    pub fn put(&mut self, tokens: u64) {
        self.add(i128::from(tokens) * TOKEN);
    }

    /// The whole tokens that can be taken.
    pub fn available(&mut self, now: MonoTime) -> u64 {
        self.refill(now);
        u64::try_from(self.balance / TOKEN).unwrap_or(0)
    }

    /// The whole tokens that a full bucket has more, those that are owed included.
    pub fn in_use(&mut self, now: MonoTime) -> u64 {
        self.refill(now);
        u64::try_from((i128::from(self.rate.capacity) * TOKEN - self.balance) / TOKEN).unwrap_or(u64::MAX)
    }

    /// Whether no tokens are in use, as in a new full bucket.
    pub fn is_full(&mut self, now: MonoTime) -> bool {
        self.refill(now);
        self.balance == i128::from(self.rate.capacity) * TOKEN
    }

    fn take_if_available(&mut self, tokens: u64, needed: u64, now: MonoTime) -> Result<(), RateExceeded> {
        self.refill(now);
        if self.balance < i128::from(needed) * TOKEN {
            return Err(self.exceeded(tokens, needed));
        }
        self.balance -= i128::from(tokens) * TOKEN;
        Ok(())
    }

    /// Adds the tokens since the last refill. A time before that adds nothing.
    fn refill(&mut self, now: MonoTime) {
        let elapsed_ns = now.0.saturating_sub(self.refilled_at.0);
        self.refilled_at = self.refilled_at.max(now);
        self.add(i128::from(elapsed_ns).saturating_mul(i128::from(self.rate.per_second)));
    }

    fn add(&mut self, amount: i128) {
        self.balance = self.balance.saturating_add(amount).min(i128::from(self.rate.capacity) * TOKEN);
    }

    fn exceeded(&self, tokens: u64, needed: u64) -> RateExceeded {
        let BucketRate { per_second, capacity } = self.rate;
        let in_use = (i128::from(capacity) + i128::from(tokens)) * TOKEN - self.balance;
        let missing = (i128::from(needed) * TOKEN - self.balance).unsigned_abs();
        let wait_ms = match u128::from(per_second) * ADDED_PER_MS {
            0 => u64::MAX,
            _ if needed > capacity => u64::MAX,
            per_ms => u64::try_from(missing.div_ceil(per_ms)).unwrap_or(u64::MAX),
        };
        let current = u64::try_from(in_use / TOKEN).unwrap_or(u64::MAX);
        RateExceeded { allowed: capacity, current, wait_ms }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;
    const MS: u64 = 1_000_000;

    fn at(ms: u64) -> MonoTime {
        MonoTime(SECOND_NS + ms * MS)
    }

    #[test]
    fn used_up_tokens_are_refused_with_the_time_to_wait() {
        let mut bucket = TokenBucket::per_second(500);
        for _ in 0..6 {
            assert_eq!(bucket.take(80, at(0)), Ok(()));
        }
        let refused = bucket.take(80, at(0)).unwrap_err();
        assert_eq!(refused, RateExceeded { allowed: 500, current: 560, wait_ms: 120 });
        assert!(bucket.take(80, at(119)).is_err());
        assert_eq!(bucket.take(80, at(120)), Ok(()));
    }

    #[test]
    fn a_cost_above_the_capacity_is_owed_or_refused() {
        let mut bucket = TokenBucket::per_second(500);
        assert_eq!(bucket.take(501, at(0)).unwrap_err().wait_ms, u64::MAX);
        assert_eq!((bucket.in_use(at(0)), bucket.take_or_owe(1_000, 0, at(0))), (0, Ok(())));
        assert_eq!((bucket.in_use(at(0)), bucket.in_use(at(100))), (1_000, 950));
        assert_eq!(bucket.take_or_owe(80, 0, at(1_000)).unwrap_err().wait_ms, 160);
        assert!(bucket.take_or_owe(80, 0, at(1_159)).is_err());
        assert_eq!(bucket.take_or_owe(80, 0, at(1_160)), Ok(()));
    }

    #[test]
    fn without_a_rate_only_what_was_put_in_can_be_taken() {
        let rate = BucketRate { per_second: 0, capacity: 3 };
        let mut bucket = TokenBucket::empty(rate, at(0));
        assert_eq!(bucket.take(1, at(1_000_000)).unwrap_err().wait_ms, u64::MAX);
        bucket.put(9);
        assert_eq!((bucket.available(at(0)), bucket.is_full(at(0))), (3, true));
        assert_eq!(bucket.take(3, at(0)), Ok(()));
        assert_eq!(bucket.available(at(0)), 0);
    }

    #[test]
    fn a_change_of_the_rate_keeps_the_tokens_up_to_the_new_capacity() {
        let rate = |tokens| BucketRate { per_second: tokens, capacity: tokens };
        let mut bucket = TokenBucket::per_second(500);
        bucket.take_or_owe(100, 0, at(0)).unwrap();
        bucket.set_rate(rate(4_000), at(0));
        assert_eq!(bucket.available(at(0)), 400);
        assert_eq!(bucket.available(at(100)), 800);
        bucket.set_rate(rate(50), at(100));
        bucket.set_rate(rate(4_000), at(100));
        assert_eq!(bucket.available(at(100)), 50);
    }

    /// One step of a schedule.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        Wait(u64),
        Take(u64),
        TakeOrOwe(u64, u64),
        Put(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0..2 * SECOND_NS).prop_map(Step::Wait),
            (0..30_u64).prop_map(Step::Take),
            (0..30_u64, 0..4_u64).prop_map(|(count, missing)| Step::TakeOrOwe(count, missing)),
            (0..5_u64).prop_map(Step::Put),
        ]
    }

    /// The tokens of a bucket, times [`SECOND_NS`], computed from everything that happened since it was full.
    fn tokens_by_history(rate: BucketRate, history: &[Step]) -> i128 {
        let capacity = i128::from(rate.capacity) * i128::from(SECOND_NS);
        history.iter().fold(capacity, |tokens, step| {
            let change = match *step {
                Step::Wait(ns) => i128::from(ns) * i128::from(rate.per_second),
                Step::Put(count) => i128::from(count) * i128::from(SECOND_NS),
                Step::Take(count) | Step::TakeOrOwe(count, _) => -i128::from(count) * i128::from(SECOND_NS),
            };
            capacity.min(tokens + change)
        })
    }

    proptest! {
        #[test]
        fn a_bucket_grants_what_a_naive_model_grants(
            per_second in 0..20_u64,
            capacity in 1..20_u64,
            steps in prop::collection::vec(step(), 0..60),
        ) {
            let rate = BucketRate { per_second, capacity };
            let (mut bucket, mut now, mut history) = (TokenBucket::full(rate), at(0), Vec::new());
            for step in steps {
                let tokens = tokens_by_history(rate, &history);
                let has = |count: u64| tokens >= i128::from(count) * i128::from(SECOND_NS);
                let (granted, expected) = match step {
                    Step::Wait(ns) => {
                        now = MonoTime(now.0 + ns);
                        (true, true)
                    }
                    Step::Put(count) => {
                        bucket.put(count);
                        (true, true)
                    }
                    Step::Take(count) => (bucket.take(count, now).is_ok(), has(count)),
                    Step::TakeOrOwe(count, missing) => {
                        let nearly_full = capacity.saturating_sub(missing);
                        (bucket.take_or_owe(count, missing, now).is_ok(), has(count.min(nearly_full)))
                    }
                };
                prop_assert_eq!(granted, expected, "{:?} after {:?}", step, history);
                if granted {
                    history.push(step);
                }
            }
        }

        /// Whatever the schedule: between any two grants there are no more tokens than the capacity and what the time between them
        /// adds. A time that goes back, as between two threads, counts as the latest one.
        #[test]
        fn no_schedule_grants_more_than_the_limit(
            per_second in 1..20_u64,
            capacity in 1..20_u64,
            requests in prop::collection::vec((0..5 * SECOND_NS, 0..25_u64), 0..40),
        ) {
            let mut bucket = TokenBucket::full(BucketRate { per_second, capacity });
            let mut granted: Vec<(u64, u64)> = Vec::new();
            let mut latest_ns = 0;
            for (ns, tokens) in requests {
                latest_ns = ns.max(latest_ns);
                if bucket.take(tokens, MonoTime(ns)).is_ok() {
                    granted.push((latest_ns, tokens));
                }
            }
            for (first, _) in &granted {
                for (last, _) in &granted {
                    let within = granted.iter().filter(|(ns, _)| (first..=last).contains(&ns));
                    let total: u64 = within.map(|(_, tokens)| tokens).sum();
                    let added = u128::from(last.saturating_sub(*first)) * u128::from(per_second);
                    let allowed = u128::from(capacity) * u128::from(SECOND_NS) + added;
                    prop_assert!(u128::from(total) * u128::from(SECOND_NS) <= allowed);
                }
            }
        }

        /// Between any two grants there are no more tokens than the largest capacity and what the rates in force added.
        #[test]
        fn no_change_of_the_rate_grants_more_than_the_limits_in_force(
            steps in prop::collection::vec((0..SECOND_NS, 0..25_u64, prop::option::of(1..20_u64)), 1..40),
        ) {
            let (mut bucket, mut now_ns, mut rate) = (TokenBucket::per_second(10), 0, 10);
            let (mut added, mut granted) = (0_u128, Vec::new());
            for (wait_ns, tokens, new_rate) in steps {
                now_ns += wait_ns;
                added += u128::from(wait_ns) * u128::from(rate);
                if let Some(tokens) = new_rate {
                    rate = tokens;
                    bucket.set_rate(BucketRate { per_second: rate, capacity: rate }, MonoTime(now_ns));
                }
                if bucket.take(tokens, MonoTime(now_ns)).is_ok() {
                    granted.push((added, tokens));
                }
            }
            for first in 0..granted.len() {
                let mut total = 0;
                for (added, tokens) in &granted[first..] {
                    total += u128::from(*tokens) * u128::from(SECOND_NS);
                    prop_assert!(total <= 20 * u128::from(SECOND_NS) + added - granted[first].0);
                }
            }
        }

        /// Whoever waits as long as a refusal says is admitted, and one millisecond less is too short.
        #[test]
        fn the_time_to_wait_is_exact(per_second in 1..2_000_u64, used in 1..40_u64, wanted in 1..40_u64) {
            let mut bucket = TokenBucket::full(BucketRate { per_second, capacity: 40 });
            bucket.take(used, at(0)).unwrap();
            if let Err(refused) = bucket.take(wanted, at(0)) {
                let mut asked_early = bucket;
                prop_assert!(asked_early.take(wanted, at(refused.wait_ms - 1)).is_err());
                prop_assert!(bucket.take(wanted, at(refused.wait_ms)).is_ok());
            }
        }
    }
}
