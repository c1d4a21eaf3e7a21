//! The table of transitions, as a function.

use std::time::Duration;

use super::{BACK_OFF_MAX, BACK_OFF_MIN, BREAK, PROBE_MAX, REST, Sign, milliseconds};
use crate::call::Fault;

/// Good replies that a node owes until it is trusted as before.
const OWED: u8 = 3;
/// The same after a proven lie, once it may be asked again.
const OWED_AFTER_LIE: u8 = 30;
/// Doublings of the back-off that reach its longest.
const STEP_MAX: u8 = 6;

/// How long a node is left out after its first proven lie. It doubles with each further one.
pub(super) const LIE_TIME_MIN: Duration = Duration::from_secs(120);
/// Doublings of that time: at the most it is a little over half an hour.
pub(super) const LIE_DOUBLINGS_MAX: u32 = 4;
/// Lies that are older than this are forgotten.
const LIE_MEMORY: Duration = Duration::from_secs(24 * 3_600);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grounds {
    Up,
    Doubted,
    Down,
}

/// Times are milliseconds since the origin of the node's health.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) grounds: Grounds,
    /// Whether a probe is under way. Then `until_ms` is when it is forgotten, else when the next one may start.
    pub(super) probed: bool,
    pub(super) until_ms: u64,
    pub(super) rests_until_ms: u64,
    /// Until when it is left out because of a lie.
    pub(super) lied_until_ms: u64,
    /// Proven lies that are not forgotten, and when the last one was.
    lies: u32,
    lied_at_ms: u64,
    /// Weight of the faults since the last good reply or change of state.
    against: u8,
    /// Whether a call has shown a fault, and none since that there is none. Polls cannot show that.
    pub(super) failed_calls: bool,
    /// Good replies until a doubted node is up again.
    owed: u8,
    /// How often the back-off has doubled.
    step: u8,
}

impl State {
    pub(super) const UP: Self = Self {
        grounds: Grounds::Up,
        probed: false,
        until_ms: 0,
        rests_until_ms: 0,
        lied_until_ms: 0,
        lies: 0,
        lied_at_ms: 0,
        against: 0,
        failed_calls: false,
        owed: 0,
        step: 0,
    };

    pub(super) fn after(self, sign: Sign, now_ms: u64, chance: u8) -> Self {
        let by_call = Self { failed_calls: true, ..self };
        match sign {
            // Whoever lied has to wait, whatever else it says.
            Sign::Good if now_ms < self.lied_until_ms => Self { probed: false, failed_calls: false, ..self },
            Sign::PollGood if now_ms < self.lied_until_ms => Self { probed: false, ..self },
            Sign::Good => Self { failed_calls: false, ..self }.after_good(now_ms, chance),
            Sign::PollGood if self.failed_calls => self,
            Sign::PollGood => self.after_good(now_ms, chance),
            Sign::Bad(Fault::RateLimited) | Sign::PollBad(Fault::RateLimited) => {
                let rests_until_ms = self.rests_until_ms.max(now_ms + milliseconds(REST));
                Self { probed: false, rests_until_ms, ..self }
            }
            Sign::Bad(Fault::Wrong) => by_call.after_lie(now_ms),
            Sign::Bad(_) | Sign::Silent => by_call.after_bad(sign, now_ms, chance),
            Sign::PollBad(Fault::Wrong) => self.after_lie(now_ms),
            Sign::PollBad(_) => self.after_bad(sign, now_ms, chance),
        }
    }

    fn after_good(self, now_ms: u64, chance: u8) -> Self {
        match self.grounds {
            Grounds::Up => self.well(),
            Grounds::Doubted if self.owed <= 1 => self.well(),
            Grounds::Doubted => Self { owed: self.owed - 1, ..self }.trusted_more().waits(now_ms, chance),
            Grounds::Down => Self { grounds: Grounds::Doubted, ..self }.trusted_more().waits(now_ms, chance),
        }
    }

    /// Up, with nothing against it but the lies that are remembered.
    pub(super) fn well(self) -> Self {
        let Self { rests_until_ms, lied_until_ms, lies, lied_at_ms, .. } = self;
        Self { rests_until_ms, lied_until_ms, lies, lied_at_ms, ..Self::UP }
    }

    fn after_bad(self, sign: Sign, now_ms: u64, chance: u8) -> Self {
        let sum = self.against.saturating_add(sign.weight());
        let mut after = if self.probed { self.probed_in_vain().waits(now_ms, chance) } else { self };
        match self.grounds {
            Grounds::Down => return after,
            _ if sum < BREAK => return Self { against: sum, ..after },
            Grounds::Up => after.grounds = Grounds::Doubted,
            Grounds::Doubted => after.grounds = Grounds::Down,
        }
        after.against = 0;
        after.owed = self.owed.max(OWED);
        after.waits(now_ms, chance)
    }

    /// Out at once, and for longer with each lie. Lies of calls that were under way when it was left out count as one.
    fn after_lie(self, now_ms: u64) -> Self {
        let is_new = now_ms >= self.lied_until_ms;
        let is_old = now_ms.saturating_sub(self.lied_at_ms) > milliseconds(LIE_MEMORY);
        let lies = if is_old { 0 } else { self.lies } + u32::from(is_new);
        let doublings = lies.saturating_sub(1).min(LIE_DOUBLINGS_MAX);
        let until_ms = now_ms + (milliseconds(LIE_TIME_MIN) << doublings);
        Self {
            grounds: Grounds::Down,
            probed: false,
            until_ms,
            lied_until_ms: until_ms,
            lies,
            lied_at_ms: now_ms,
            against: 0,
            owed: OWED_AFTER_LIE,
            ..self
        }
    }

    pub(super) fn probe_due(self, now_ms: u64) -> bool {
        self.grounds != Grounds::Up && now_ms >= self.until_ms
    }

    pub(super) fn begin_probe(self, now_ms: u64) -> Option<Self> {
        let until_ms = now_ms + milliseconds(PROBE_MAX);
        self.probe_due(now_ms).then_some(Self { probed: true, until_ms, ..self })
    }

    /// Shorter waits after good replies, except for one who lied: that one has more to show first.
    fn trusted_more(self) -> Self {
        let step = if self.owed > OWED { self.step } else { self.step / 2 };
        Self { against: 0, step, ..self }
    }

    fn probed_in_vain(self) -> Self {
        Self { step: (self.step + 1).min(STEP_MAX), ..self }
    }

    /// No probe until the back-off is over. A part of it is left to chance, so that nodes that fell together, and
    /// gateways that saw it, do not probe in step.
    fn waits(self, now_ms: u64, chance: u8) -> Self {
        let whole = (milliseconds(BACK_OFF_MIN) << self.step).min(milliseconds(BACK_OFF_MAX));
        let until_ms = now_ms + whole - whole * u64::from(chance) / (4 * 256);
        Self { probed: false, until_ms, ..self }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sign() -> impl Strategy<Value = Sign> {
        prop_oneof![
            Just(Sign::Good),
            Just(Sign::PollGood),
            Just(Sign::Silent),
            Just(Sign::Bad(Fault::Closed)),
            Just(Sign::Bad(Fault::Wrong)),
            Just(Sign::Bad(Fault::RateLimited)),
            Just(Sign::PollBad(Fault::Timeout)),
        ]
    }

    proptest! {
        /// Whatever happens in whatever order: no wait is longer than the longest one, and enough good replies always lead back
        /// up once it is over.
        #[test]
        fn no_history_is_a_ban(
            history in prop::collection::vec((sign(), any::<u8>(), any::<bool>(), 0_u64..300_000), 0..60),
        ) {
            let (mut state, mut now_ms) = (State::UP, 0);
            let longest_ms = milliseconds(LIE_TIME_MIN) << LIE_DOUBLINGS_MAX;
            for (sign, chance, probe, pause_ms) in history {
                now_ms += pause_ms;
                if probe && let Some(probed) = state.begin_probe(now_ms) {
                    state = probed;
                }
                state = state.after(sign, now_ms, chance);
                prop_assert!(state.until_ms <= now_ms + longest_ms);
                prop_assert!(state.lied_until_ms <= now_ms + longest_ms);
            }
            now_ms += longest_ms;
            for _ in 0..=OWED_AFTER_LIE {
                state = state.after(Sign::Good, now_ms, 0);
            }
            prop_assert_eq!(state.grounds, Grounds::Up);
        }
    }
}
