//! The naive model.

use std::collections::BTreeSet;

use super::*;

/// An attempt, as the model knows it.
#[derive(Clone, Copy, Debug)]
struct Pending {
    asked_at: Nanoseconds,
    reply: Option<(Nanoseconds, ReplyKind)>,
    hedge_from: Option<Nanoseconds>,
    silent_after: Nanoseconds,
    overdue_from: Nanoseconds,
    is_overdue: bool,
    /// Of several: when it is given up because its node seemed to be down.
    down_until: Option<Nanoseconds>,
    /// Of several: how long its node may say nothing.
    silent_time: Nanoseconds,
}

/// The ways in which a node may still answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Fresh,
    Working,
    AgainFrom(Nanoseconds),
    HasFailed,
    HasSaid(ReplyKind),
    GivenUp,
}

struct Model<'a> {
    schedule: &'a Schedule,
    now: Nanoseconds,
    /// Every instant at which something might change.
    instants: BTreeSet<Nanoseconds>,
    pending: Vec<Option<Pending>>,
    parts: Vec<Part>,
    failures: Vec<u32>,
    times_late: Vec<u32>,
    replied_at: Vec<Nanoseconds>,
    attempts: Vec<usize>,
    purse: Purse,
    prepaid: bool,
    fallback: Option<usize>,
    end: Nanoseconds,
    ask_from: Option<Nanoseconds>,
    hopeless_from: Option<Nanoseconds>,
    first_attempts: usize,
    trace: Trace,
}

pub(super) fn run(schedule: &Schedule) -> Trace {
    let count = schedule.nodes.len();
    let mut model = Model {
        schedule,
        now: 0,
        instants: BTreeSet::from([0, schedule.deadline]),
        pending: vec![None; count],
        parts: vec![Part::Fresh; count],
        failures: vec![0; count],
        times_late: vec![0; count],
        replied_at: vec![0; count],
        attempts: vec![0; count],
        purse: Purse { retries: schedule.retries, hedges: schedule.hedges },
        prepaid: false,
        fallback: None,
        end: schedule.deadline,
        ask_from: None,
        hopeless_from: None,
        first_attempts: 0,
        trace: Trace::default(),
    };
    model.instants.extend(schedule.nodes.iter().filter_map(|node| node.speaks_at));
    while let Some(now) = model.instants.pop_first() {
        model.now = now;
        model.look();
        if model.trace.outcome.is_some() {
            break;
        }
    }
    model.trace.ended_at = model.now;
    model.trace
}

impl Model<'_> {
    /// Everything that happens at this instant: replies in the order of the nodes, and after each what follows from it.
    fn look(&mut self) {
        loop {
            let due = (0..self.pending.len()).find(|&node| {
                let reply = self.pending[node].and_then(|pending| pending.reply);
                reply.is_some_and(|(at, _)| at == self.now)
            });
            if let Some(node) = due {
                self.hear(node);
            }
            while self.trace.outcome.is_none() && self.apply_one_rule() {}
            if due.is_none() || self.trace.outcome.is_some() {
                return;
            }
        }
    }

    fn hear(&mut self, node: usize) {
        let Some((_, kind)) = self.pending[node].take().and_then(|pending| pending.reply) else { return };
        self.replied_at[node] = self.now;
        self.ask_from = Some(self.now);
        self.parts[node] = Part::HasSaid(kind);
        match kind {
            ReplyKind::Fault => self.fail(node),
            ReplyKind::Behind => self.be_late(node),
            ReplyKind::NotHere => {}
            _ if self.schedule.wanted != Wanted::One => self.count_answer(node),
            ReplyKind::Data => {
                self.trace.answered.push((self.now, node));
                self.trace.outcome = Some(ModelOutcome::Data { node });
            }
            ReplyKind::Null if self.fallback.is_none() => self.set_fallback(node),
            ReplyKind::Guess => match self.fallback {
                None => self.set_fallback(node),
                Some(kept) if self.parts[kept] == Part::HasSaid(ReplyKind::Null) => {
                    self.fallback = Some(node);
                }
                Some(_) => {}
            },
            ReplyKind::TooManyResults => {
                let opinions = self.parts.iter().filter(|part| **part == Part::HasSaid(kind));
                if opinions.count() == 2 {
                    self.trace.outcome = self.limit();
                }
            }
            ReplyKind::Null | ReplyKind::GrantsBlocks(_) => {}
        }
    }

    fn count_answer(&mut self, node: usize) {
        self.trace.answered.push((self.now, node));
        if self.missing() == 0 {
            self.trace.outcome = Some(ModelOutcome::Answers(self.schedule.quorum));
        }
    }

    fn missing(&self) -> usize {
        match self.schedule.wanted {
            Wanted::One => 1,
            Wanted::Several => self.schedule.quorum - self.trace.answered.len(),
            Wanted::All => usize::MAX,
        }
    }

    fn may_hedge(&self) -> bool {
        match self.schedule.wanted {
            Wanted::One => self.schedule.may_hedge,
            Wanted::Several => true,
            Wanted::All => false,
        }
    }

    fn fail(&mut self, node: usize) {
        self.failures[node] += 1;
        self.parts[node] = match self.failures[node] {
            1 => Part::AgainFrom(self.now + 20 * MILLISECOND),
            _ => Part::HasFailed,
        };
        self.instants.insert(self.now + 20 * MILLISECOND);
    }

    fn be_late(&mut self, node: usize) {
        self.times_late[node] += 1;
        if self.schedule.wanted != Wanted::Several {
            return self.fail(node);
        }
        let again_from = self.now + 50 * MILLISECOND * 2_u64.pow(self.times_late[node] - 1);
        self.parts[node] = Part::HasFailed;
        if again_from < 2_000 * MILLISECOND {
            self.parts[node] = Part::AgainFrom(again_from);
            self.instants.insert(again_from);
        }
    }

    fn set_fallback(&mut self, node: usize) {
        self.fallback = Some(node);
        self.end = self.now + (self.schedule.deadline - self.now) / 2;
        self.instants.insert(self.end);
    }

    fn limit(&self) -> Option<ModelOutcome> {
        let limits = self.parts.iter().filter_map(|part| match part {
            Part::HasSaid(ReplyKind::GrantsBlocks(blocks)) => Some(Some(*blocks)),
            Part::HasSaid(ReplyKind::TooManyResults) => Some(None),
            _ => None,
        });
        limits.max().filter(|_| self.schedule.wanted == Wanted::One).map(ModelOutcome::Limit)
    }

    /// Whether a rule applied.
    fn apply_one_rule(&mut self) -> bool {
        if self.now >= self.end {
            self.finish(ModelOutcome::Deadline);
            return true;
        }
        self.ask_first()
            || self.blame_overdue()
            || self.give_up()
            || self.ask_another()
            || self.hedge()
            || self.stall()
            || self.is_hopeless()
    }

    fn finish(&mut self, failed: ModelOutcome) {
        if self.schedule.wanted != Wanted::One {
            self.trace.outcome = Some(ModelOutcome::Answers(self.trace.answered.len()));
            return;
        }
        let fallback = self.fallback.map(|node| ModelOutcome::Fallback { node });
        self.trace.outcome = fallback.or_else(|| self.limit()).or(Some(failed));
    }

    fn ask_first(&mut self) -> bool {
        if self.first_attempts >= self.trace.answered.len().saturating_add(self.missing()) {
            return false;
        }
        let Some(best) = self.best(Availability::Down, |part| part == Part::Fresh) else { return false };
        self.first_attempts += 1;
        let nodes = &self.schedule.nodes;
        let may_probe = self.schedule.wanted == Wanted::One
            && nodes[best].availability == Availability::Up
            && self.schedule.may_hedge
            && matches!(self.schedule.class, Class::Quick | Class::Bulk);
        let probe = nodes.iter().position(|node| node.availability != Availability::Up && node.is_probe_due);
        let probe = probe.filter(|_| may_probe && self.purse.hedge());
        self.prepaid = probe.is_some();
        self.ask(probe.unwrap_or(best));
        true
    }

    fn blame_overdue(&mut self) -> bool {
        for node in 0..self.pending.len() {
            let Some(pending) = self.pending[node].filter(|pending| !pending.is_overdue) else { continue };
            let is_late = self.now >= pending.overdue_from;
            let is_silent = self.spoke_last(node) <= pending.asked_at;
            if is_late || self.now >= pending.asked_at + pending.silent_after && is_silent {
                self.pending[node] = Some(Pending { is_overdue: true, hedge_from: None, ..pending });
                self.ask_from = Some(self.now);
                return true;
            }
        }
        false
    }

    fn spoke_last(&self, node: usize) -> Nanoseconds {
        let others = self.schedule.nodes[node].speaks_at.filter(|at| *at <= self.now).unwrap_or(0);
        self.replied_at[node].max(others)
    }

    fn give_up(&mut self) -> bool {
        for node in 0..self.pending.len() {
            let Some(pending) = self.pending[node] else { continue };
            let spoke_last = self.spoke_last(node);
            let is_over = match self.schedule.wanted {
                Wanted::One => {
                    self.fallback.is_some() && pending.is_overdue && spoke_last <= pending.asked_at
                }
                Wanted::Several => {
                    let silent_from = spoke_last.max(pending.asked_at);
                    self.now >= silent_from + pending.silent_time
                        || pending.down_until.is_some_and(|until| self.now >= until)
                }
                Wanted::All => {
                    self.schedule.nodes[node].is_lost && self.now >= pending.asked_at + 2_000 * MILLISECOND
                }
            };
            if is_over {
                self.pending[node] = None;
                self.parts[node] = Part::GivenUp;
                if !pending.is_overdue {
                    self.ask_from = Some(self.now);
                }
                return true;
            }
        }
        false
    }

    fn working(&self) -> usize {
        self.pending.iter().flatten().count()
    }

    fn working_in_time(&self) -> usize {
        self.pending.iter().flatten().filter(|pending| !pending.is_overdue).count()
    }

    /// Those in time beside which nobody else was asked.
    fn working_alone(&self) -> usize {
        let in_time = self.pending.iter().flatten().filter(|pending| !pending.is_overdue);
        in_time.filter(|pending| pending.hedge_from.is_some() || !self.may_hedge()).count()
    }

    fn ask_another(&mut self) -> bool {
        if self.ask_from.is_none_or(|from| from > self.now) {
            return false;
        }
        if self.schedule.wanted != Wanted::One && self.working_alone() >= self.missing() {
            return false;
        }
        let are_too_few = self.working_in_time() < self.missing();
        let worst = if are_too_few { Availability::Down } else { Availability::InDoubt };
        let now = self.now;
        let is_due = |part| matches!(part, Part::AgainFrom(from) if from <= now);
        let again = || self.best(Availability::Down, is_due).filter(|_| are_too_few);
        let Some(node) = self.best(worst, |part| part == Part::Fresh).or_else(again) else { return false };
        let seems_down =
            matches!(self.schedule.nodes[node].availability, Availability::RateLimited | Availability::Down);
        let has_something = self.fallback.is_some() || self.limit().is_some();
        let someone_was_late = self.times_late.iter().any(|times| *times > 0);
        let kept = if self.working() < self.missing() && !has_something { 0 } else { KEPT_FOR_RETRIES };
        let is_paid = someone_was_late && self.times_late[node] <= LATE_FREE_MAX
            || has_something && !seems_down
            || std::mem::take(&mut self.prepaid)
            || self.purse.retry(kept);
        if is_paid {
            self.make_room();
            self.shorten_fallback(node);
            self.ask_from = None;
            self.ask(node);
        } else {
            self.wait_for_budget(seems_down && fails_calls(&self.schedule.nodes[node]), has_something);
        }
        true
    }

    fn wait_for_budget(&mut self, is_useless: bool, has_something: bool) {
        self.ask_from = None;
        if is_useless && !has_something && self.hopeless_from.is_none() {
            self.hopeless_from = Some(self.now + 100 * MILLISECOND);
        }
        let is_hopeless = is_useless && self.hopeless_from.is_some_and(|from| self.now >= from);
        if !has_something && !is_hopeless {
            self.ask_from = Some(self.now + 20 * MILLISECOND);
            self.instants.insert(self.now + 20 * MILLISECOND);
        }
    }

    fn working_max(&self) -> usize {
        let beside_one = if self.may_hedge() { 3_usize } else { 1 };
        beside_one.saturating_add(self.missing() - 1)
    }

    fn make_room(&mut self) {
        if self.working() < self.working_max() {
            return;
        }
        let working = (0..self.pending.len()).filter_map(|node| Some((self.pending[node]?.asked_at, node)));
        if let Some((_, oldest)) = working.min() {
            self.pending[oldest] = None;
            self.parts[oldest] = Part::HasFailed;
        }
    }

    fn shorten_fallback(&mut self, node: usize) {
        let ModelNode { availability, usual, has_fallen_silent, .. } = self.schedule.nodes[node];
        let wait = match availability {
            Availability::Up => return,
            Availability::InDoubt if !has_fallen_silent => usual.max(500 * MILLISECOND),
            _ => usual.min(100 * MILLISECOND),
        };
        if self.fallback.is_some() {
            self.end = self.end.min(self.now + wait);
            self.instants.insert(self.end);
        }
    }

    fn hedge(&mut self) -> bool {
        let slow = (0..self.pending.len()).find(|&node| {
            let from = self.pending[node].and_then(|pending| pending.hedge_from);
            from.is_some_and(|from| from <= self.now)
        });
        let Some(slow) = slow.filter(|_| self.working() < self.working_max()) else { return false };
        let Some(node) = self.best(Availability::InDoubt, |part| part == Part::Fresh) else { return false };
        let is_paid = std::mem::take(&mut self.prepaid) || self.purse.hedge();
        let again_from = (!is_paid).then_some(self.now + 20 * MILLISECOND);
        if let Some(pending) = &mut self.pending[slow] {
            pending.hedge_from = again_from;
        }
        self.instants.extend(again_from);
        if is_paid {
            self.ask(node);
        }
        true
    }

    fn stall(&mut self) -> bool {
        let has_some = !self.trace.answered.is_empty() && self.working() > 0;
        if self.schedule.wanted != Wanted::Several || self.trace.stalled_at.is_some() || !has_some {
            return false;
        }
        let is_stuck = (0..self.pending.len()).all(|node| {
            let Some(pending) = self.pending[node] else { return true };
            let silent_from = self.spoke_last(node).max(pending.asked_at);
            pending.down_until.is_some() || self.now >= silent_from + pending.silent_after
        });
        if !is_stuck || self.best(Availability::Up, |part| part == Part::Fresh).is_some() {
            return false;
        }
        self.trace.stalled_at = Some(self.now);
        true
    }

    fn is_hopeless(&mut self) -> bool {
        let asks_later = self.ask_from.is_some_and(|from| from > self.now);
        let is_awaited = |part: &Part| matches!(part, Part::AgainFrom(from) if *from > self.now);
        let waits_for_some = self.ask_from.is_some() && self.parts.iter().any(is_awaited);
        if self.working() > 0 || asks_later || waits_for_some {
            return false;
        }
        let has_failed = self.parts.iter().any(|part| matches!(part, Part::AgainFrom(_) | Part::HasFailed));
        let is_lacking = self.parts.contains(&Part::HasSaid(ReplyKind::NotHere)) && !has_failed;
        self.finish(if is_lacking { ModelOutcome::Lacking } else { ModelOutcome::Unavailable });
        true
    }

    fn best(&self, worst: Availability, may_be_asked: impl Fn(Part) -> bool) -> Option<usize> {
        let nodes = self.schedule.nodes.iter().zip(&self.parts);
        let candidates: Vec<_> = nodes.map(|(node, part)| candidate(node, !may_be_asked(*part))).collect();
        pick(&candidates, quick().needs, worst, 0)
    }

    fn ask(&mut self, node: usize) {
        let ModelNode { usual, silence_max, replies, .. } = &self.schedule.nodes[node];
        let (rest, class) = (self.end - self.now, self.schedule.class);
        let patience = (8 * usual).max(250 * MILLISECOND);
        let overdue_after = match class {
            _ if self.schedule.wanted == Wanted::All => rest,
            _ if !self.may_hedge() => rest / 2,
            Class::Quick => patience.min((500 * MILLISECOND).max(2 * usual)).min(rest / 2),
            _ => patience.min(rest / 2),
        };
        let looks_for_silence = self.may_hedge() && matches!(class, Class::Evm | Class::Bulk);
        let silent_after =
            if looks_for_silence { (*silence_max).min(250 * MILLISECOND) } else { overdue_after };
        let (after, kind) = replies[self.attempts[node].min(2)];
        let is_given_up =
            self.schedule.wanted == Wanted::Several && machine::seems_down(&self.schedule.nodes[node]);
        let down_until = self.now + (*usual).max(1_000 * MILLISECOND);
        let pending = Pending {
            asked_at: self.now,
            reply: after.map(|after| (self.now + after, kind)),
            hedge_from: self.may_hedge().then_some(self.now + usual),
            silent_after: silent_after.min(overdue_after),
            overdue_from: self.now + overdue_after,
            is_overdue: false,
            down_until: is_given_up.then_some(down_until.min(self.schedule.deadline)),
            silent_time: (4 * usual).max(2_000 * MILLISECOND),
        };
        let spoken_at = self.schedule.nodes[node].speaks_at.unwrap_or(0).max(self.now);
        for silent_from in [self.now, spoken_at] {
            self.instants.extend([silent_from + pending.silent_after, silent_from + pending.silent_time]);
        }
        self.instants.extend([pending.overdue_from, down_until, self.now + 2_000 * MILLISECOND]);
        self.instants.extend(pending.hedge_from);
        self.instants.extend(pending.reply.map(|(at, _)| at));
        self.pending[node] = Some(pending);
        self.parts[node] = Part::Working;
        self.attempts[node] += 1;
        self.trace.asked.push((self.now, node));
    }
}
