//! The table of transitions as a pure function.

use std::time::Duration;

use tokio::time::Instant;

use super::{
    Availability, BACK_OFF_MAX, BACK_OFF_MIN, FAULT_WEIGHT_MAX, Observation, PROBE_MAX, RATE_LIMITED,
};
use crate::call::Fault;

/// Good replies that a doubted node owes until it is up again.
const OWED: u8 = 3;
/// Good replies that a node owes after it was proven wrong, once it may be asked again.
const OWED_AFTER_WRONG_ANSWER: u8 = 30;
/// Doublings of the back-off that reach its longest.
const DOUBLINGS_MAX: u8 = 6;

/// How long a node is excluded after its first answer that was proven wrong. It doubles with each further one.
pub(super) const EXCLUSION_MIN: Duration = Duration::from_secs(120);
/// The most doublings of that time, which make a little over half an hour.
pub(super) const EXCLUSION_DOUBLINGS_MAX: u32 = 4;
/// Wrong answers that are older than this are forgotten.
const WRONG_ANSWER_MEMORY: Duration = Duration::from_secs(24 * 3_600);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum HealthLevel {
    #[default]
    Up,
    InDoubt,
    Down,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct HealthState {
    pub(super) level: HealthLevel,
    /// Whether a probe is under way.
    pub(super) is_probed: bool,
    /// When the next probe may start. It is set while the node is not up.
    pub(super) probe_at: Option<Instant>,
    /// Until when other nodes are asked first after "too many requests".
    rate_limited_until: Option<Instant>,
    /// Until when the node is excluded because of a wrong answer.
    pub(super) excluded_until: Option<Instant>,
    wrong_answers: WrongAnswerHistory,
    /// Weight of the faults since the last good reply or change of level.
    faults: u8,
    /// Whether the last call failed. Polls do not change it.
    pub(super) has_failed_call: bool,
    /// Good replies until a doubted node is up again.
    owed: u8,
    /// How often the back-off has doubled.
    doublings: u8,
}

/// Answers that were proven wrong and are not forgotten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct WrongAnswerHistory {
    count: u32,
    last_at: Option<Instant>,
}

fn is_before(now: Instant, until: Option<Instant>) -> bool {
    until.is_some_and(|until| now < until)
}

impl HealthState {
    pub(super) fn availability(&self, now: Instant) -> Availability {
        match self.level {
            HealthLevel::Down => Availability::Down,
            _ if is_before(now, self.rate_limited_until) => Availability::RateLimited,
            HealthLevel::InDoubt => Availability::InDoubt,
            HealthLevel::Up => Availability::Up,
        }
    }

    /// The state after an observation. `chance` spreads the times of probes.
    pub(super) fn after(self, observation: Observation, now: Instant, chance: u8) -> Self {
        let is_excluded = is_before(now, self.excluded_until);
        let after_failed_call = Self { has_failed_call: true, ..self };
        match observation {
            // An exclusion lasts, whatever the node says meanwhile.
            Observation::Good if is_excluded => Self { is_probed: false, has_failed_call: false, ..self },
            Observation::PollGood if is_excluded => Self { is_probed: false, ..self },
            Observation::Good => Self { has_failed_call: false, ..self }.after_good(now, chance),
            Observation::PollGood if self.has_failed_call => self,
            Observation::PollGood => self.after_good(now, chance),
            Observation::Bad(Fault::RateLimited) | Observation::PollBad(Fault::RateLimited) => {
                let rate_limited_until = self.rate_limited_until.max(Some(now + RATE_LIMITED));
                Self { is_probed: false, rate_limited_until, ..self }
            }
            Observation::Bad(Fault::Wrong) => after_failed_call.after_wrong_answer(now),
            Observation::Bad(_) | Observation::Silent => {
                after_failed_call.after_bad(observation, now, chance)
            }
            Observation::PollBad(Fault::Wrong) => self.after_wrong_answer(now),
            Observation::PollBad(_) => self.after_bad(observation, now, chance),
        }
    }

    fn after_good(self, now: Instant, chance: u8) -> Self {
        match self.level {
            HealthLevel::Up => self.restored(),
            HealthLevel::InDoubt if self.owed <= 1 => self.restored(),
            HealthLevel::InDoubt => {
                Self { owed: self.owed - 1, ..self }.trusted_more().backed_off(now, chance)
            }
            HealthLevel::Down => {
                Self { level: HealthLevel::InDoubt, ..self }.trusted_more().backed_off(now, chance)
            }
        }
    }

    /// Up, with nothing remembered but the rate limit and wrong answers.
    fn restored(self) -> Self {
        let Self { rate_limited_until, excluded_until, wrong_answers, .. } = self;
        Self { rate_limited_until, excluded_until, wrong_answers, ..Self::default() }
    }

    fn after_bad(self, observation: Observation, now: Instant, chance: u8) -> Self {
        let faults = self.faults.saturating_add(observation.weight());
        let mut after = if self.is_probed { self.after_bad_probe().backed_off(now, chance) } else { self };
        match self.level {
            HealthLevel::Down => return after,
            _ if faults < FAULT_WEIGHT_MAX => return Self { faults, ..after },
            HealthLevel::Up => after.level = HealthLevel::InDoubt,
            HealthLevel::InDoubt => after.level = HealthLevel::Down,
        }
        after.faults = 0;
        after.owed = self.owed.max(OWED);
        after.backed_off(now, chance)
    }

    /// Down at once, and for longer with each wrong answer. Those to calls that were under way when the node was excluded count
    /// as one.
    fn after_wrong_answer(self, now: Instant) -> Self {
        let WrongAnswerHistory { count, last_at } = self.wrong_answers;
        let is_new = !is_before(now, self.excluded_until);
        let is_old = last_at.is_some_and(|at| now.saturating_duration_since(at) > WRONG_ANSWER_MEMORY);
        let count = if is_old { 0 } else { count } + u32::from(is_new);
        let doublings = count.saturating_sub(1).min(EXCLUSION_DOUBLINGS_MAX);
        let until = Some(now + EXCLUSION_MIN * (1 << doublings));
        Self {
            level: HealthLevel::Down,
            is_probed: false,
            probe_at: until,
            excluded_until: until,
            wrong_answers: WrongAnswerHistory { count, last_at: Some(now) },
            faults: 0,
            owed: OWED_AFTER_WRONG_ANSWER,
            ..self
        }
    }

    pub(super) fn is_probe_due(&self, now: Instant) -> bool {
        self.level != HealthLevel::Up && !is_before(now, self.probe_at)
    }

    pub(super) fn begin_probe(self, now: Instant) -> Option<Self> {
        let probe_at = Some(now + PROBE_MAX);
        self.is_probe_due(now).then_some(Self { is_probed: true, probe_at, ..self })
    }

    /// Shortens the back-off after a good reply, unless the node was proven wrong and owes more of them.
    fn trusted_more(self) -> Self {
        let doublings = if self.owed > OWED { self.doublings } else { self.doublings / 2 };
        Self { faults: 0, doublings, ..self }
    }

    fn after_bad_probe(self) -> Self {
        Self { doublings: (self.doublings + 1).min(DOUBLINGS_MAX), ..self }
    }

    /// Delays the next probe by the back-off. Up to a quarter of it is left to chance, so that nodes that fell together, and
    /// gateways that saw it, do not probe at the same time.
    fn backed_off(self, now: Instant, chance: u8) -> Self {
        let longest = (BACK_OFF_MIN * (1 << self.doublings)).min(BACK_OFF_MAX);
        let back_off = longest - longest * u32::from(chance) / (4 * 256);
        Self { is_probed: false, probe_at: Some(now + back_off), ..self }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn observation() -> impl Strategy<Value = Observation> {
        prop_oneof![
            Just(Observation::Good),
            Just(Observation::PollGood),
            Just(Observation::Silent),
            Just(Observation::Bad(Fault::Closed)),
            Just(Observation::Bad(Fault::Wrong)),
            Just(Observation::Bad(Fault::RateLimited)),
            Just(Observation::PollBad(Fault::Timeout)),
        ]
    }

    proptest! {
        /// Whatever happens in whatever order: no wait is longer than the longest one, and enough good replies always lead back
        /// up once it is over.
        #[test]
        fn every_history_leads_back_up(
            history in prop::collection::vec((observation(), any::<u8>(), any::<bool>(), 0_u64..300_000), 0..60),
        ) {
            let (mut state, mut now) = (HealthState::default(), Instant::now());
            let longest = EXCLUSION_MIN * (1 << EXCLUSION_DOUBLINGS_MAX);
            for (observation, chance, probe, pause_ms) in history {
                now += Duration::from_millis(pause_ms);
                if probe && let Some(probed) = state.begin_probe(now) {
                    state = probed;
                }
                state = state.after(observation, now, chance);
                prop_assert!(state.probe_at <= Some(now + longest));
                prop_assert!(state.excluded_until <= Some(now + longest));
            }
            now += longest;
            for _ in 0..=OWED_AFTER_WRONG_ANSWER {
                state = state.after(Observation::Good, now, 0);
            }
            prop_assert_eq!(state.level, HealthLevel::Up);
        }
    }
}
