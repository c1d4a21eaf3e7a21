//! The table of transitions, as a function, and its state in one word.

use super::{BACK_OFF_MAX, BACK_OFF_MIN, BREAK, PROBE_MAX, Sign, milliseconds};
use crate::call::Fault;

/// Good replies that a node owes until it is trusted as before.
const OWED: u8 = 3;
/// The same after a proven lie. With a poll each second this is the better part of a minute, unless it is probed.
const OWED_AFTER_LIE: u8 = 30;
/// Doublings of the back-off that reach its longest.
const STEP_MAX: u8 = 6;
/// A liar is probed no more often than after so many doublings, or it would live by its probes.
const STEP_AFTER_LIE: u8 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grounds {
    Up,
    Doubted,
    Down,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) grounds: Grounds,
    /// Whether a probe is under way. Then `until_ms` is when it is forgotten, else when the next one may start.
    pub(super) probed: bool,
    pub(super) until_ms: u64,
    /// Weight of the faults since the last good reply or change of state.
    against: u8,
    /// Good replies until a doubted node is up again.
    owed: u8,
    /// How often the back-off has doubled.
    step: u8,
}

impl State {
    pub(super) const UP: Self =
        Self { grounds: Grounds::Up, probed: false, until_ms: 0, against: 0, owed: 0, step: 0 };

    pub(super) fn after(self, sign: Sign, now_ms: u64, chance: u8) -> Self {
        match sign {
            Sign::Good => self.after_good(now_ms, chance),
            Sign::Bad(Fault::RateLimited) => Self { probed: false, ..self },
            Sign::Bad(_) | Sign::Silent => self.after_bad(sign, now_ms, chance),
        }
    }

    fn after_good(self, now_ms: u64, chance: u8) -> Self {
        match self.grounds {
            Grounds::Up => Self::UP,
            Grounds::Doubted if self.owed <= 1 => Self::UP,
            Grounds::Doubted => Self { owed: self.owed - 1, ..self }.trusted_more().waits(now_ms, chance),
            Grounds::Down => Self { grounds: Grounds::Doubted, ..self }.trusted_more().waits(now_ms, chance),
        }
    }

    fn after_bad(self, sign: Sign, now_ms: u64, chance: u8) -> Self {
        let sum = self.against.saturating_add(sign.weight());
        let after_lie = sign == Sign::Bad(Fault::Wrong);
        let mut after = if self.probed { self.probed_in_vain().waits(now_ms, chance) } else { self };
        match self.grounds {
            Grounds::Down => return after,
            _ if sum < BREAK => return Self { against: sum, ..after },
            Grounds::Up => after.grounds = Grounds::Doubted,
            Grounds::Doubted => after.grounds = Grounds::Down,
        }
        after.against = 0;
        after.owed = self.owed.max(if after_lie { OWED_AFTER_LIE } else { OWED });
        after.step = after.step.max(if after_lie { STEP_AFTER_LIE } else { 0 });
        after.waits(now_ms, chance)
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

    pub(super) fn pack(self) -> u64 {
        let grounds = match self.grounds {
            Grounds::Up => 0,
            Grounds::Doubted => 1,
            Grounds::Down => 2,
        };
        grounds
            | u64::from(self.probed) << 2
            | u64::from(self.against & 0xf) << 3
            | u64::from(self.owed & 0x3f) << 7
            | u64::from(self.step & 0x7) << 13
            | self.until_ms << 16
    }

    pub(super) fn unpack(word: u64) -> Self {
        let part = |shift: u32, mask: u8| (word >> shift).to_le_bytes()[0] & mask;
        Self {
            grounds: match part(0, 3) {
                0 => Grounds::Up,
                1 => Grounds::Doubted,
                _ => Grounds::Down,
            },
            probed: part(2, 1) == 1,
            against: part(3, 0xf),
            owed: part(7, 0x3f),
            step: part(13, 0x7),
            until_ms: word >> 16,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sign() -> impl Strategy<Value = Sign> {
        prop_oneof![
            Just(Sign::Good),
            Just(Sign::Silent),
            Just(Sign::Bad(Fault::Closed)),
            Just(Sign::Bad(Fault::Wrong)),
            Just(Sign::Bad(Fault::RateLimited)),
        ]
    }

    proptest! {
        /// Whatever happens in whatever order: the word holds all of the state, no wait is longer than the longest
        /// back-off, and enough good replies always lead back up.
        #[test]
        fn no_history_is_lost_in_the_word_and_none_is_a_ban(
            history in prop::collection::vec((sign(), any::<u8>(), any::<bool>(), 0_u64..3_000), 0..60),
        ) {
            let (mut state, mut now_ms) = (State::UP, 0);
            for (sign, chance, probe, pause_ms) in history {
                now_ms += pause_ms;
                if probe && let Some(probed) = state.begin_probe(now_ms) {
                    state = probed;
                }
                state = state.after(sign, now_ms, chance);
                prop_assert_eq!(State::unpack(state.pack()), state);
                prop_assert!(state.until_ms <= now_ms + milliseconds(BACK_OFF_MAX));
            }
            for _ in 0..=OWED_AFTER_LIE {
                state = state.after(Sign::Good, now_ms, 0);
            }
            prop_assert_eq!(state, State::UP);
        }
    }
}
