//! The naive model.

use std::collections::BTreeSet;

use super::*;

/// What the model knows of an attempt.
#[derive(Clone, Copy, Debug)]
struct Pending {
    asked_at: Nanoseconds,
    reply: Option<(Nanoseconds, ReplyKind)>,
    hedge_from: Option<Nanoseconds>,
    overdue_if_silent_from: Nanoseconds,
    overdue_from: Nanoseconds,
    is_overdue: bool,
}

struct Model<'a> {
    schedule: &'a Schedule,
    now: Nanoseconds,
    /// Every instant at which something might change.
    instants: BTreeSet<Nanoseconds>,
    pending: Vec<Option<Pending>>,
    /// What each node has said last.
    said: Vec<Option<ReplyKind>>,
    replied_at: Vec<Nanoseconds>,
    is_used_up: Vec<bool>,
    attempts: Vec<usize>,
    purse: Purse,
    prepaid: bool,
    fallback: Option<usize>,
    end: Nanoseconds,
    ask_from: Option<Nanoseconds>,
    hopeless_from: Option<Nanoseconds>,
    rounds: u32,
    free: bool,
    trace: Trace,
}

pub(super) fn run(schedule: &Schedule) -> Trace {
    let count = schedule.nodes.len();
    let mut model = Model {
        schedule,
        now: 0,
        instants: BTreeSet::from([0, schedule.deadline]),
        pending: vec![None; count],
        said: vec![None; count],
        replied_at: vec![0; count],
        is_used_up: vec![false; count],
        attempts: vec![0; count],
        purse: Purse { retries: schedule.retries, hedges: schedule.hedges },
        prepaid: false,
        fallback: None,
        end: schedule.deadline,
        ask_from: None,
        hopeless_from: None,
        rounds: 0,
        free: false,
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
        self.said[node] = Some(kind);
        self.replied_at[node] = self.now;
        self.ask_from = Some(self.now);
        match kind {
            ReplyKind::Data => self.trace.outcome = Some(ModelOutcome::Data { node }),
            ReplyKind::Null if self.fallback.is_none() => self.set_fallback(node),
            ReplyKind::Guess => match self.fallback {
                None => self.set_fallback(node),
                Some(kept) if self.said[kept] == Some(ReplyKind::Null) => self.fallback = Some(node),
                Some(_) => {}
            },
            ReplyKind::Behind => self.free = true,
            ReplyKind::TooManyResults => {
                let opinions = self.said.iter().filter(|said| **said == Some(ReplyKind::TooManyResults));
                if opinions.count() == 2 {
                    self.trace.outcome = self.limit();
                }
            }
            ReplyKind::Null | ReplyKind::Fault | ReplyKind::NotHere | ReplyKind::GrantsBlocks(_) => {}
        }
    }

    fn set_fallback(&mut self, node: usize) {
        self.fallback = Some(node);
        self.end = self.now + (self.schedule.deadline - self.now) / 2;
        self.instants.insert(self.end);
    }

    fn limit(&self) -> Option<ModelOutcome> {
        let limits = self.said.iter().filter_map(|said| match said {
            Some(ReplyKind::GrantsBlocks(blocks)) => Some(Some(*blocks)),
            Some(ReplyKind::TooManyResults) => Some(None),
            _ => None,
        });
        limits.max().map(ModelOutcome::Limit)
    }

    /// Whether a rule applied.
    fn apply_one_rule(&mut self) -> bool {
        if self.now >= self.end {
            self.finish(ModelOutcome::Deadline);
            return true;
        }
        if self.rounds == 0 {
            self.begin();
            return true;
        }
        self.blame_overdue()
            || self.leave_silent()
            || self.ask_another()
            || self.hedge()
            || self.is_hopeless()
    }

    fn finish(&mut self, failed: ModelOutcome) {
        let fallback = self.fallback.map(|node| ModelOutcome::Fallback { node });
        self.trace.outcome = fallback.or_else(|| self.limit()).or(Some(failed));
    }

    fn begin(&mut self) {
        let Some(best) = self.best(Availability::Down) else { return self.finish(ModelOutcome::Unavailable) };
        self.rounds = 1;
        let nodes = &self.schedule.nodes;
        let may_probe = nodes[best].availability == Availability::Up
            && self.schedule.may_hedge
            && matches!(self.schedule.class, Class::Quick | Class::Bulk);
        let probe = nodes.iter().position(|node| node.availability != Availability::Up && node.is_probe_due);
        let probe = probe.filter(|_| may_probe && self.purse.hedge());
        self.prepaid = probe.is_some();
        self.ask(probe.unwrap_or(best));
    }

    fn blame_overdue(&mut self) -> bool {
        for node in 0..self.pending.len() {
            let Some(pending) = self.pending[node].filter(|pending| !pending.is_overdue) else { continue };
            let is_late = self.now >= pending.overdue_from;
            if is_late || self.now >= pending.overdue_if_silent_from && self.is_silent(node, pending.asked_at)
            {
                self.pending[node] = Some(Pending { is_overdue: true, hedge_from: None, ..pending });
                self.ask_from = Some(self.now);
                return true;
            }
        }
        false
    }

    fn is_silent(&self, node: usize, since: Nanoseconds) -> bool {
        let others = self.schedule.nodes[node].speaks_at.filter(|at| *at <= self.now).unwrap_or(0);
        self.replied_at[node].max(others) <= since
    }

    fn leave_silent(&mut self) -> bool {
        for node in 0..self.pending.len() {
            let Some(pending) = self.pending[node] else { continue };
            if self.fallback.is_some() && pending.is_overdue && self.is_silent(node, pending.asked_at) {
                self.pending[node] = None;
                return true;
            }
        }
        false
    }

    fn working(&self) -> usize {
        self.pending.iter().flatten().count()
    }

    fn ask_another(&mut self) -> bool {
        if self.ask_from.is_none_or(|from| from > self.now) {
            return false;
        }
        let is_alone = self.working() == 0;
        let are_overdue = self.pending.iter().flatten().all(|pending| pending.is_overdue);
        let Some(node) = self.best(if are_overdue { Availability::Down } else { Availability::InDoubt })
        else {
            return is_alone && self.begin_round();
        };
        let seems_down =
            matches!(self.schedule.nodes[node].availability, Availability::RateLimited | Availability::Down);
        let has_something = self.fallback.is_some() || self.limit().is_some();
        let is_paid = self.free
            || has_something && !seems_down
            || std::mem::take(&mut self.prepaid)
            || self.purse.retry(if is_alone && !has_something { 0 } else { KEPT_FOR_RETRIES });
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

    fn begin_round(&mut self) -> bool {
        let is_worth_it =
            |said: &Option<ReplyKind>| matches!(said, Some(ReplyKind::Fault | ReplyKind::Behind));
        if self.rounds > 1 || !self.said.iter().any(is_worth_it) {
            return false;
        }
        self.rounds = 2;
        for node in 0..self.said.len() {
            if is_worth_it(&self.said[node]) {
                self.said[node] = None;
                self.is_used_up[node] = false;
            }
        }
        self.ask_after_pause();
        true
    }

    fn ask_after_pause(&mut self) {
        self.ask_from = Some(self.now + 20 * MILLISECOND);
        self.instants.insert(self.now + 20 * MILLISECOND);
    }

    fn wait_for_budget(&mut self, is_useless: bool, has_something: bool) {
        self.ask_from = None;
        if is_useless && !has_something && self.hopeless_from.is_none() {
            self.hopeless_from = Some(self.now + 100 * MILLISECOND);
        }
        let is_hopeless = is_useless && self.hopeless_from.is_some_and(|from| self.now >= from);
        if !has_something && !is_hopeless {
            self.ask_after_pause();
        }
    }

    fn make_room(&mut self) {
        if self.working() <= if self.schedule.may_hedge { 2 } else { 0 } {
            return;
        }
        let working = (0..self.pending.len()).filter_map(|node| Some((self.pending[node]?.asked_at, node)));
        if let Some((_, oldest)) = working.min() {
            self.pending[oldest] = None;
            self.said[oldest] = Some(ReplyKind::Fault);
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
        let Some(slow) = slow.filter(|_| self.working() < 3) else { return false };
        let Some(node) = self.best(Availability::InDoubt) else { return false };
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

    fn is_hopeless(&mut self) -> bool {
        let may_still_ask = self.ask_from.is_some_and(|from| from > self.now);
        if self.working() > 0 || may_still_ask {
            return false;
        }
        let has_failed =
            self.said.iter().any(|said| matches!(said, Some(ReplyKind::Fault | ReplyKind::Behind)));
        let is_lacking = self.said.contains(&Some(ReplyKind::NotHere)) && !has_failed;
        self.finish(if is_lacking { ModelOutcome::Lacking } else { ModelOutcome::Unavailable });
        true
    }

    fn best(&self, worst: Availability) -> Option<usize> {
        let nodes = self.schedule.nodes.iter().zip(&self.is_used_up);
        let candidates: Vec<_> = nodes.map(|(node, is_used_up)| candidate(node, *is_used_up)).collect();
        pick(&candidates, quick().needs, worst, 0)
    }

    fn ask(&mut self, node: usize) {
        let ModelNode { usual, silence_max, replies, .. } = &self.schedule.nodes[node];
        let half = (self.end - self.now) / 2;
        let patience = (8 * usual).max(250 * MILLISECOND);
        let overdue_after = match self.schedule.class {
            _ if !self.schedule.may_hedge => half,
            Class::Quick => patience.min((500 * MILLISECOND).max(2 * usual)).min(half),
            _ => patience.min(half),
        };
        let looks_for_silence =
            self.schedule.may_hedge && matches!(self.schedule.class, Class::Evm | Class::Bulk);
        let silent_after =
            if looks_for_silence { (*silence_max).min(250 * MILLISECOND) } else { overdue_after };
        let (after, kind) = replies[self.attempts[node].min(1)];
        let pending = Pending {
            asked_at: self.now,
            reply: after.map(|after| (self.now + after, kind)),
            hedge_from: self.schedule.may_hedge.then_some(self.now + usual),
            overdue_if_silent_from: self.now + silent_after.min(overdue_after),
            overdue_from: self.now + overdue_after,
            is_overdue: false,
        };
        self.instants.extend([pending.overdue_if_silent_from, pending.overdue_from]);
        self.instants.extend(pending.hedge_from);
        self.instants.extend(pending.reply.map(|(at, _)| at));
        self.pending[node] = Some(pending);
        self.is_used_up[node] = true;
        self.attempts[node] += 1;
        self.trace.asked.push((self.now, node));
    }
}
