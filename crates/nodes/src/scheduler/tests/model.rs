//! The decisions of a call against a naive model, whether it is for one answer, for several, or for one of every node: whatever nodes
//! reply and when, both ask the same nodes at the same times, and come to the same end.
//!
//! The model knows no timers. It keeps every instant at which something might change, and looks at each of them which of its
//! rules apply. Times are nanoseconds since the call began.

use proptest::prelude::*;

use super::super::next_action::{Action, AnotherAttempt, Ending, NodeFacts, Payment, next_action};
use super::super::policy::{AGAIN_PAUSE, ATTEMPTS_MAX, LATE_FREE_MAX};
use super::super::progress::{AttemptOutcome, CallProgress, CallTerms, NodeStatus, Wanted};
use super::*;
use crate::node::UsualDelays;
use crate::pick::{Candidate, pick};

mod machine; // the code under test, in simulated time
mod naive; // the model

type Nanoseconds = u64;

const MILLISECOND: Nanoseconds = 1_000_000;

/// The reply of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReplyKind {
    Data,
    Null,
    Guess,
    Behind,
    Fault,
    NotHere,
    GrantsBlocks(u64),
    TooManyResults,
}

/// One reply, and how long it takes. `None` for ever.
type TimedReply = (Option<Nanoseconds>, ReplyKind);

#[derive(Clone, Debug)]
struct ModelNode {
    availability: Availability,
    cost: u64,
    usual: Nanoseconds,
    silence_max: Nanoseconds,
    is_probe_due: bool,
    has_fallen_silent: bool,
    /// When it replies to another call.
    speaks_at: Option<Nanoseconds>,
    /// Whether its watcher has lost it.
    is_lost: bool,
    /// To each of its attempts; the last one to all further ones, too.
    replies: [TimedReply; 3],
}

#[derive(Clone, Debug)]
struct Schedule {
    wanted: Wanted,
    /// How many answers end a call for several.
    quorum: usize,
    nodes: Vec<ModelNode>,
    class: Class,
    may_hedge: bool,
    deadline: Nanoseconds,
    retries: u32,
    hedges: u32,
}

/// Who was asked when, and how it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Trace {
    asked: Vec<(Nanoseconds, usize)>,
    answered: Vec<(Nanoseconds, usize)>,
    stalled_at: Option<Nanoseconds>,
    ended_at: Nanoseconds,
    outcome: Option<ModelOutcome>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ModelOutcome {
    Data {
        node: usize,
    },
    Fallback {
        node: usize,
    },
    Limit(Option<u64>),
    /// So many answers, where several or all are wanted.
    Answers(usize),
    Lacking,
    Unavailable,
    Deadline,
}

/// Budgets that never fill.
#[derive(Clone, Copy, Debug)]
struct Purse {
    retries: u32,
    hedges: u32,
}

impl Purse {
    fn retry(&mut self, kept: u32) -> bool {
        let is_paid = self.retries > kept;
        self.retries -= u32::from(is_paid);
        is_paid
    }

    fn hedge(&mut self) -> bool {
        let is_paid = self.hedges > 0 && self.retries > 0;
        self.hedges -= u32::from(is_paid);
        self.retries -= u32::from(is_paid);
        is_paid
    }
}

/// Retries that only calls may use that nobody works on.
const KEPT_FOR_RETRIES: u32 = 2;

/// Whether the last call on it failed, which has nothing to do with its cost otherwise.
fn fails_calls(node: &ModelNode) -> bool {
    node.cost.is_multiple_of(2)
}

fn candidate(node: &ModelNode, excluded: bool) -> Candidate {
    let fails_calls = fails_calls(node);
    Candidate {
        availability: node.availability,
        fails_calls,
        cost: node.cost,
        head: Some(100),
        lowest_state: 0,
        excluded,
    }
}

fn any_reply() -> impl Strategy<Value = TimedReply> {
    let kind = prop_oneof![
        2 => Just(ReplyKind::Data),
        2 => Just(ReplyKind::Null),
        1 => Just(ReplyKind::Guess),
        1 => Just(ReplyKind::Behind),
        3 => Just(ReplyKind::Fault),
        1 => Just(ReplyKind::NotHere),
        1 => (1_u64..3).prop_map(ReplyKind::GrantsBlocks),
        1 => Just(ReplyKind::TooManyResults),
    ];
    let after = prop_oneof![
        2 => (1_u64..40).prop_map(Some),
        2 => (1_u64..3_000).prop_map(Some),
        1 => Just(None),
    ];
    (after, kind).prop_map(|(after, kind)| (after.map(|after| after * MILLISECOND), kind))
}

fn any_node() -> impl Strategy<Value = ModelNode> {
    let availability = prop_oneof![
        4 => Just(Availability::Up),
        1 => Just(Availability::InDoubt),
        1 => Just(Availability::RateLimited),
        1 => Just(Availability::Down),
    ];
    (
        (availability, 0_u64..4, 5_u64..200, 100_u64..400),
        (any::<bool>(), any::<bool>(), any::<bool>(), prop::option::of(1_u64..2_000)),
        [any_reply(), any_reply(), any_reply()],
    )
        .prop_map(
            |(
                (availability, cost, usual, silence_max),
                (is_probe_due, has_fallen_silent, is_lost, speaks_at),
                replies,
            )| {
                ModelNode {
                    availability,
                    cost,
                    usual: usual * MILLISECOND,
                    silence_max: silence_max * MILLISECOND,
                    is_probe_due,
                    has_fallen_silent,
                    is_lost,
                    speaks_at: speaks_at.map(|at| at * MILLISECOND),
                    replies,
                }
            },
        )
}

fn any_schedule() -> impl Strategy<Value = Schedule> {
    let nodes = prop::collection::vec(any_node(), 0..6);
    let class = prop::sample::select(Class::ALL.to_vec());
    let wanted = prop::sample::select(vec![Wanted::One, Wanted::Several, Wanted::All]);
    let call = (wanted, 1_usize..4, class, prop::bool::weighted(0.8), 1_u64..4_000);
    (call, nodes, 0_u32..8, 0_u32..4).prop_map(
        |((wanted, quorum, class, may_hedge, deadline), nodes, retries, hedges)| Schedule {
            wanted,
            quorum,
            nodes,
            class,
            may_hedge,
            deadline: deadline * MILLISECOND,
            retries,
            hedges,
        },
    )
}

impl Schedule {
    /// How often a node may be late before its pauses are longer than a call waits for it.
    const TIMES_LATE_MAX: usize = 6;

    fn is_late_sometimes(&self) -> bool {
        let mut replies = self.nodes.iter().flat_map(|node| node.replies);
        replies.any(|(_, kind)| kind == ReplyKind::Behind)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6_000, ..ProptestConfig::default() })]

    #[test]
    fn every_schedule_of_replies_comes_to_what_the_naive_model_says(schedule in any_schedule()) {
        prop_assert_eq!(machine::run(&schedule), naive::run(&schedule));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, ..ProptestConfig::default() })]

    #[test]
    fn no_node_answers_twice(schedule in any_schedule()) {
        let trace = machine::run(&schedule);
        for (answered_at, node) in &trace.answered {
            let again = trace.asked.iter().filter(|(at, asked)| asked == node && at > answered_at);
            prop_assert_eq!(again.count(), 0, "node {} has answered", node);
        }
    }

    #[test]
    fn nodes_are_asked_within_limits_and_budgets(schedule in any_schedule()) {
        let trace = machine::run(&schedule);
        for node in 0..schedule.nodes.len() {
            let asked = trace.asked.iter().filter(|(_, asked)| *asked == node).count();
            prop_assert!(asked <= ATTEMPTS_MAX as usize + Schedule::TIMES_LATE_MAX, "{asked} times");
        }
        let has_free_attempts = schedule.wanted == Wanted::One || schedule.is_late_sometimes();
        let worth = match schedule.wanted {
            Wanted::One => 1,
            Wanted::Several => schedule.quorum,
            Wanted::All => schedule.nodes.len(),
        };
        if !has_free_attempts {
            prop_assert!(trace.asked.len() <= worth + schedule.retries as usize);
        }
    }

    #[test]
    fn calls_end_by_their_deadlines(schedule in any_schedule()) {
        prop_assert!(machine::run(&schedule).ended_at <= schedule.deadline);
    }
}
