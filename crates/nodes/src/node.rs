//! One node: who it is, how it does, and what it is known to have.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tokio::time::Instant;

use crate::call::{Ask, Call, Class, Fault, Reply};
use crate::health::{Grade, Health, Sign};
use crate::latency::{Latency, index};
use crate::pick::Candidate;

mod counts;
mod known;
mod presence;

#[cfg(test)]
mod tests;

pub use counts::{Counts, fault_kind};
pub use known::{Known, Lack, Standing};
use presence::Presence;

/// A second node is asked no sooner: a pause of this length is not worth a call.
pub(crate) const HEDGE_DELAY_MIN: Duration = Duration::from_millis(5);
/// And no later, however slow this one usually is.
pub(crate) const HEDGE_DELAY_MAX: Duration = Duration::from_secs(1);

/// Other calls than look-ups may take long without anything being wrong. A node that says nothing to anyone for this time,
/// in which it is polled too, has fallen silent nevertheless.
const SILENCE_MIN: Duration = Duration::from_secs(2);

/// A node that says nothing for so many times what is usual is asked after the others,
const UNRESPONSIVE_FACTOR: u32 = 4;
/// but not before this time: a short pause is nothing unusual.
const UNRESPONSIVE_MIN: Duration = Duration::from_millis(100);

/// How long a node that has placed a transaction in a block that is not on the chain is asked after the others for places. It may
/// be on another branch, or make places up, each of which costs a look-up at all nodes.
const PLACES_DOUBTED_FOR: Duration = Duration::from_secs(60);

/// Methods that say which block a transaction is in.
const PLACE_METHODS: [&str; 2] = ["eth_getTransactionByHash", "eth_getTransactionReceipt"];

pub struct Node<A> {
    /// Host and port: what may be shown to anyone.
    name: String,
    ask: A,
    health: Health,
    latency: Latency,
    known: Known,
    counts: Counts,
    presence: Presence,
    in_flight: [AtomicU32; Class::ALL.len()],
    origin: Instant,
    /// Microseconds from the origin to the last reply of any kind, or to the first call of each class that has been made since.
    unanswered_since: [AtomicU64; Class::ALL.len()],
    /// Microseconds from the origin to the last reply of any kind,
    replied_at: AtomicU64,
    /// to the last poll that was answered,
    polled_at: AtomicU64,
    /// and to the last call that was given up without a reply.
    silent_at: AtomicU64,
    /// Microseconds from the origin to when it is asked for places as before.
    places_doubted_until: AtomicU64,
}

impl<A: Ask> Node<A> {
    /// `name` is host and port, never a URL: those have credentials in them.
    pub fn new(name: impl Into<String>, ask: A, now: Instant) -> Self {
        Self {
            name: name.into(),
            ask,
            health: Health::new(now),
            latency: Latency::new(now),
            known: Known::default(),
            counts: Counts::default(),
            presence: Presence::default(),
            in_flight: Default::default(),
            origin: now,
            unanswered_since: Default::default(),
            replied_at: AtomicU64::new(0),
            polled_at: AtomicU64::new(0),
            silent_at: AtomicU64::new(0),
            places_doubted_until: AtomicU64::new(0),
        }
    }

    /// Asks, and takes note of how long it took and of what fault there was. What a reply is worth is for others to
    /// say, with [`Self::good`] and [`Self::bad`]; a fault has been said already.
    pub async fn ask(&self, call: &Call, deadline: Instant) -> Result<Reply, Fault> {
        let asked_at = Instant::now();
        let _place = Place::take(&self.in_flight[index(call.class)]);
        if self.in_flight(call.class) == 1 {
            self.unanswered_since[index(call.class)].store(self.microseconds(asked_at), Relaxed);
        }
        self.counts.attempts.fetch_add(1, Relaxed);
        let reply = self.ask.ask(call, deadline).await;
        let now = Instant::now();
        self.restart_unanswered(now);
        match reply {
            Ok(_) => self.replied(call.class, asked_at, now),
            Err(fault) => self.failed(fault, call.class, asked_at, now),
        }
        reply
    }

    /// The reply was worth having, or its error was the caller's.
    pub fn good(&self, now: Instant) {
        self.health.record(Sign::Good, now);
    }

    /// The node is to blame.
    pub fn bad(&self, fault: Fault, now: Instant) {
        self.counts.count(fault);
        self.health.record(Sign::Bad(fault), now);
    }

    /// How a poll of its watcher ended.
    pub fn polled(&self, outcome: Result<(), Fault>, now: Instant) {
        match outcome {
            Ok(()) => {
                self.polled_at.fetch_max(self.microseconds(now), Relaxed);
                self.health.record(Sign::PollGood, now);
            }
            Err(fault) => {
                self.counts.count(fault);
                if !fault.is_our_shortage() {
                    self.health.record(Sign::PollBad(fault), now);
                }
            }
        }
    }

    /// A call was given up, because another node answered it or because time was up. That this one took longer than
    /// usual is counted as a silence only if it said nothing to anyone since: else it was the call that was slow.
    pub fn given_up(&self, class: Class, asked_at: Instant, now: Instant) {
        let waited = now.saturating_duration_since(asked_at);
        if waited >= self.hedge_delay(class) {
            self.latency.record(class, waited, now);
            if self.silent_since(asked_at) && (class == Class::Quick || waited >= SILENCE_MIN) {
                self.silent_at.fetch_max(self.microseconds(now), Relaxed);
                self.health.record(Sign::Silent, now);
            }
        }
    }

    fn replied(&self, class: Class, asked_at: Instant, now: Instant) {
        self.replied_at.fetch_max(self.microseconds(now), Relaxed);
        self.latency.record(class, now.saturating_duration_since(asked_at), now);
    }

    fn failed(&self, fault: Fault, class: Class, asked_at: Instant, now: Instant) {
        let waited = now.saturating_duration_since(asked_at);
        if fault == Fault::Timeout {
            self.latency.record(class, waited, now);
        }
        let callers_doing = match fault {
            Fault::Timeout if waited < self.hedge_delay(class) => true,
            // What takes long or gets large because of what was asked is no fault of a node that answers others.
            Fault::Timeout => class != Class::Quick && !self.silent_since(asked_at),
            Fault::TooLarge => class != Class::Quick,
            fault => fault.is_our_shortage(),
        };
        if callers_doing {
            self.counts.count(fault);
        } else {
            self.bad(fault, now);
        }
    }

    /// Calls that are still under way wait anew: the node is there.
    fn restart_unanswered(&self, now: Instant) {
        self.unanswered_since.iter().for_each(|since| since.store(self.microseconds(now), Relaxed));
    }

    /// Whether it owes a reply for longer than is usual and has said nothing to anyone since. It may have stopped, so that others
    /// are asked first. This is seen by the next call, long before enough calls have failed to doubt the node's health.
    fn is_unresponsive(&self, now: Instant) -> bool {
        let now_us = self.microseconds(now);
        Class::ALL.iter().any(|&class| {
            let since = self.unanswered_since[index(class)].load(Relaxed);
            let patience = u64::try_from(self.silence_max(class).as_micros()).unwrap_or(u64::MAX);
            self.in_flight(class) > 0 && now_us.saturating_sub(since) > patience
        })
    }

    fn microseconds(&self, now: Instant) -> u64 {
        u64::try_from(now.saturating_duration_since(self.origin).as_micros()).unwrap_or(u64::MAX)
    }

    /// Whether it has said nothing at all since then.
    pub fn silent_since(&self, then: Instant) -> bool {
        self.replied_at.load(Relaxed) <= self.microseconds(then)
    }

    /// Whether the last that was heard of it is that it says nothing.
    pub fn has_fallen_silent(&self) -> bool {
        self.silent_at.load(Relaxed) > self.replied_at.load(Relaxed).max(self.polled_at.load(Relaxed))
    }

    /// How long a call may take on this node, while it says nothing to anyone, before it is taken for one that has stopped.
    pub(crate) fn silence_max(&self, class: Class) -> Duration {
        (self.latency.p95(class).unwrap_or(unknown(class)) * UNRESPONSIVE_FACTOR).max(UNRESPONSIVE_MIN)
    }

    /// How long an answer of this class may take before another node is asked too.
    pub fn hedge_delay(&self, class: Class) -> Duration {
        self.latency.p95(class).unwrap_or(unknown(class)).clamp(HEDGE_DELAY_MIN, HEDGE_DELAY_MAX)
    }

    /// What an answer will probably take. A node that has been idle for long is asked again sooner or later, but by one
    /// call at a time: it may have stopped, and would draw all the others in.
    fn expected(&self, class: Class, now: Instant) -> Duration {
        if self.in_flight(class) == 0 {
            self.latency.expected(class, now)
        } else {
            self.latency.last(class).unwrap_or(unknown(class))
        }
    }

    /// Asks this node after the others, for a while, which block a transaction is in.
    pub fn doubt_places(&self, now: Instant) {
        self.places_doubted_until.fetch_max(self.microseconds(now + PLACES_DOUBTED_FOR), Relaxed);
    }

    fn are_places_doubted(&self, method: &str, now: Instant) -> bool {
        PLACE_METHODS.contains(&method) && self.microseconds(now) < self.places_doubted_until.load(Relaxed)
    }

    /// This node as the choice sees it.
    pub fn candidate(&self, call: &Call, now: Instant) -> Candidate {
        let expected_us = self.expected(call.class, now).as_micros().max(1);
        let load = u128::from(self.in_flight(call.class)) + 1;
        let (grade, fails_calls) = self.health.grade_and_last_call(now);
        let is_doubted = self.is_unresponsive(now)
            || self.has_fallen_silent()
            || self.are_places_doubted(call.method, now);
        Candidate {
            grade: if is_doubted { grade.max(Grade::Doubted) } else { grade },
            fails_calls,
            cost: u64::try_from(expected_us * load).unwrap_or(u64::MAX),
            head: self.known.head_number(),
            lowest_state: self.known.lowest_state_for(call.method),
            excluded: self.known.standing() != Standing::Member
                || self.known.lacks(call.method)
                || self.known.log_range() < call.needs.log_blocks,
        }
    }

    /// Who is asked, for those who keep no account of it.
    pub fn asked(&self) -> &A {
        &self.ask
    }

    pub fn in_flight(&self, class: Class) -> u32 {
        self.in_flight[index(class)].load(Relaxed)
    }

    pub fn grade(&self, now: Instant) -> Grade {
        self.health.grade(now)
    }
}

impl<A> Node<A> {
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn health(&self) -> &Health {
        &self.health
    }

    pub fn latency(&self) -> &Latency {
        &self.latency
    }

    pub fn known(&self) -> &Known {
        &self.known
    }

    /// Whether it answers its watcher.
    pub fn answers(&self) -> bool {
        self.presence.is_there(Instant::now())
    }

    pub(crate) fn presence(&self) -> &Presence {
        &self.presence
    }

    pub fn counts(&self) -> &Counts {
        &self.counts
    }
}

/// What an answer may take, as long as there were too few to tell.
fn unknown(class: Class) -> Duration {
    match class {
        Class::Quick => Duration::from_millis(50),
        Class::Evm => Duration::from_millis(100),
        Class::Bulk => Duration::from_millis(300),
        Class::Logs => HEDGE_DELAY_MAX,
    }
}

/// What is behind the name may hold credentials.
impl<A> std::fmt::Debug for Node<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Node").field("name", &self.name).finish_non_exhaustive()
    }
}

/// One call in flight, for as long as it lives.
struct Place<'a>(&'a AtomicU32);

impl<'a> Place<'a> {
    fn take(in_flight: &'a AtomicU32) -> Self {
        in_flight.fetch_add(1, Relaxed);
        Self(in_flight)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
