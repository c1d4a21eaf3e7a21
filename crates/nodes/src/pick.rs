//! The choice of a node: a pure function of what is known of the nodes, what the call needs, and a random number.

use crate::call::Needs;
use crate::health::Availability;

/// The facts about a node that the choice depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) availability: Availability,
    /// Whether the last call on it failed. Among nodes that are all down, those that answer are preferred: one that was proven wrong is
    /// down for minutes, and may answer well meanwhile.
    pub(crate) fails_calls: bool,
    /// Expected latency × (calls in flight + 1).
    pub(crate) cost: u64,
    /// Number of its newest block, if it is known.
    pub(crate) head: Option<u64>,
    /// The lowest block whose state it has.
    pub(crate) lowest_state: u64,
    /// Whether it cannot be asked whatever its health: of another chain, without the method, or tried already.
    pub(crate) excluded: bool,
}

/// The cheaper of two random nodes among those that can answer and have the best availability. `worst` is the lowest availability
/// that is accepted.
///
/// Two random nodes are compared instead of all, because otherwise all calls of one moment would go to the same node before its load
/// shows.
pub(crate) fn pick(
    candidates: &[Candidate],
    needs: Needs,
    worst: Availability,
    random: u64,
) -> Option<usize> {
    let best = candidates.iter().filter(|c| c.can_answer(needs)).map(Candidate::rank).min()?;
    let drawn = |nth: usize| {
        let mut equals =
            candidates.iter().enumerate().filter(|(_, c)| c.rank() == best && c.can_answer(needs));
        equals.nth(nth)
    };
    let equals = candidates.iter().filter(|c| c.rank() == best && c.can_answer(needs)).count();
    let (first, second) = two_of(equals, random);
    let cheaper = [drawn(first), drawn(second)].into_iter().flatten().min_by_key(|(_, c)| c.cost)?;
    (best.0 <= worst).then_some(cheaper.0)
}

impl Candidate {
    /// Its rank, the best first.
    fn rank(&self) -> (Availability, bool) {
        (self.availability, self.availability == Availability::Down && self.fails_calls)
    }

    /// Whether it has what the call needs. One whose head is unknown counts as having no block.
    pub(crate) fn can_answer(&self, needs: Needs) -> bool {
        let Some(block) = needs.block else { return !self.excluded };
        let has_block = self.head.is_some_and(|head| head >= block);
        let has_state = !needs.state || self.lowest_state <= block;
        !self.excluded && has_block && has_state
    }
}

/// Two positions below `len`, different if there are two.
fn two_of(len: usize, random: u64) -> (usize, usize) {
    let len = (len as u64).max(1);
    let first = (random & u64::from(u32::MAX)) % len;
    let second = (first + 1 + (random >> 32) % len.saturating_sub(1).max(1)) % len;
    (first as usize, second as usize)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WELL: Candidate = Candidate {
        availability: Availability::Up,
        fails_calls: false,
        cost: 10,
        head: Some(100),
        lowest_state: 0,
        excluded: false,
    };
    const NEEDS: Needs = Needs { block: Some(90), state: true, log_blocks: 0, gas: 0 };

    fn picked(candidates: &[Candidate]) -> Option<usize> {
        pick(candidates, NEEDS, Availability::Down, 7)
    }

    #[test]
    fn nodes_that_cannot_answer_are_not_picked() {
        let behind = Candidate { head: Some(89), ..WELL };
        let unknown = Candidate { head: None, ..WELL };
        let pruned = Candidate { lowest_state: 91, ..WELL };
        let excluded = Candidate { excluded: true, ..WELL };
        assert_eq!(picked(&[behind, unknown, pruned, excluded]), None);
        assert_eq!(picked(&[behind, unknown, WELL, pruned, excluded]), Some(2));
        let stateless = Needs { state: false, ..NEEDS };
        assert_eq!(pick(&[pruned], stateless, Availability::Down, 7), Some(0));
        assert_eq!(pick(&[unknown], Needs::default(), Availability::Down, 7), Some(0));
    }

    #[test]
    fn better_health_comes_first_whatever_it_costs() {
        let [up, doubted, rate_limited, down] =
            Availability::ALL.map(|availability| Candidate { availability, ..WELL });
        let dear = Candidate { cost: 1_000_000, ..up };
        assert_eq!(picked(&[down, rate_limited, doubted, dear]), Some(3));
        assert_eq!(picked(&[down, rate_limited, doubted]), Some(2));
        assert_eq!(picked(&[down, rate_limited]), Some(1));
        assert_eq!(picked(&[down]), Some(0), "a closed door helps nobody");
    }

    /// All three were proven wrong, and only one of them answers at all.
    #[test]
    fn of_nodes_that_are_down_one_that_answers_comes_first() {
        let down = Candidate { availability: Availability::Down, ..WELL };
        let failing = Candidate { fails_calls: true, cost: 1, ..down };
        assert_eq!(picked(&[failing, down, failing]), Some(1));
        let doubted = Candidate { availability: Availability::InDoubt, fails_calls: true, cost: 99, ..WELL };
        assert_eq!(picked(&[down, doubted]), Some(1), "only among those that are down");
    }

    #[test]
    fn nodes_below_the_worst_accepted_availability_are_not_picked() {
        let down = Candidate { availability: Availability::Down, ..WELL };
        assert_eq!(pick(&[down], NEEDS, Availability::InDoubt, 7), None);
        assert_eq!(pick(&[down, WELL], NEEDS, Availability::InDoubt, 7), Some(1));
    }

    #[test]
    fn the_most_expensive_of_three_nodes_is_never_picked() {
        let cost = |cost| Candidate { cost, ..WELL };
        let candidates = [cost(30), cost(10), cost(20)];
        let mut times = [0; 3];
        for n in 0..3_000_u64 {
            let random = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            times[pick(&candidates, NEEDS, Availability::Up, random).unwrap()] += 1;
        }
        assert_eq!(times[0], 0);
        assert!(times[1] > 1_800 && times[2] > 800, "{times:?}");
    }

    fn candidate() -> impl Strategy<Value = Candidate> {
        let availability = prop::sample::select(Availability::ALL.to_vec());
        (availability, 0..50_u64, prop::option::of(80..110_u64), 0..110_u64, prop::bool::weighted(0.2))
            .prop_map(|(availability, cost, head, lowest_state, excluded)| Candidate {
                availability,
                fails_calls: cost.is_multiple_of(2),
                cost,
                head,
                lowest_state,
                excluded,
            })
    }

    proptest! {
        #[test]
        fn someone_is_picked_exactly_if_someone_can_answer(
            candidates in prop::collection::vec(candidate(), 0..9),
            random in any::<u64>(),
        ) {
            let able = || candidates.iter().filter(|candidate| candidate.can_answer(NEEDS));
            match pick(&candidates, NEEDS, Availability::Down, random) {
                None => prop_assert_eq!(able().count(), 0),
                Some(position) => {
                    prop_assert!(candidates[position].can_answer(NEEDS));
                    prop_assert_eq!(Some(candidates[position].availability), able().map(|c| c.availability).min());
                }
            }
        }

        #[test]
        fn two_are_different_if_there_are_two(len in 2_usize..200, random in any::<u64>()) {
            let (first, second) = two_of(len, random);
            prop_assert!(first < len && second < len && first != second);
        }
    }
}
