//! The code under test, in simulated time.

use super::*;

struct Facts<'a> {
    schedule: &'a Schedule,
    begun: Instant,
    now: Nanoseconds,
    replied_at: &'a [Nanoseconds],
}

impl NodeFacts for Facts<'_> {
    fn needs(&self) -> Needs {
        quick().needs
    }

    fn candidate(&self, node: usize, _: Instant) -> Candidate {
        candidate(&self.schedule.nodes[node], false)
    }

    fn availability(&self, node: usize, _: Instant) -> Availability {
        self.schedule.nodes[node].availability
    }

    fn is_probe_due(&self, node: usize, _: Instant) -> bool {
        self.schedule.nodes[node].is_probe_due
    }

    fn silent_since(&self, node: usize, then: Instant) -> Instant {
        let spoken_at = self.schedule.nodes[node].speaks_at.filter(|at| *at <= self.now).unwrap_or(0);
        let replied_at = self.replied_at[node].max(spoken_at);
        then.max(self.begun + Duration::from_nanos(replied_at))
    }

    fn is_lost(&self, node: usize) -> bool {
        self.schedule.nodes[node].is_lost
    }

    fn may_know_soon(&self, _: usize, _: bool) -> bool {
        false
    }

    fn has_fallen_silent(&self, node: usize) -> bool {
        self.schedule.nodes[node].has_fallen_silent
    }

    fn hedge_delay(&self, node: usize) -> Duration {
        Duration::from_nanos(self.schedule.nodes[node].usual)
    }
}

struct Machine<'a> {
    schedule: &'a Schedule,
    begun: Instant,
    progress: CallProgress,
    purse: Purse,
    /// When the reply to each node's attempt comes.
    awaited: Vec<Option<(Nanoseconds, ReplyKind)>>,
    attempts: Vec<usize>,
    replied_at: Vec<Nanoseconds>,
    now: Nanoseconds,
    trace: Trace,
}

pub(super) fn run(schedule: &Schedule) -> Trace {
    let (begun, count) = (Instant::now(), schedule.nodes.len());
    let call = RpcCall { class: schedule.class, may_hedge: schedule.may_hedge, ..quick() };
    let deadline = begun + Duration::from_nanos(schedule.deadline);
    let terms = CallTerms::new(schedule.wanted, &call, ATTEMPTS_MAX, begun, deadline);
    let mut machine = Machine {
        schedule,
        begun,
        progress: CallProgress::new(terms, count),
        purse: Purse { retries: schedule.retries, hedges: schedule.hedges },
        awaited: vec![None; count],
        attempts: vec![0; count],
        replied_at: vec![0; count],
        now: 0,
        trace: Trace::default(),
    };
    while machine.trace.outcome.is_none() {
        machine.step();
    }
    machine.trace.ended_at = machine.now;
    machine.trace
}

impl Machine<'_> {
    fn step(&mut self) {
        let now = self.begun + Duration::from_nanos(self.now);
        let Self { schedule, begun, replied_at, .. } = self;
        if schedule.wanted == Wanted::Several {
            self.progress.missing = schedule.quorum - self.progress.answers;
        }
        let facts = Facts { schedule, begun: *begun, now: self.now, replied_at };
        match next_action(&self.progress, &facts, 0, now) {
            Action::AskFirst { best, probe } => {
                let probe = probe.filter(|_| self.purse.hedge());
                self.progress.has_prepaid_hedge = probe.is_some();
                self.progress.first_attempts += 1;
                self.start(probe.unwrap_or(best), now);
            }
            Action::Hedge { node, beside } => {
                if std::mem::take(&mut self.progress.has_prepaid_hedge) || self.purse.hedge() {
                    self.progress.record_hedge(beside);
                    self.start(node, now);
                } else {
                    self.progress.record_hedge_refused(beside, AGAIN_PAUSE, now);
                }
            }
            Action::AskAnother(another) => self.ask_another(another, now),
            Action::ReportOverdue { node } => self.progress.record_overdue(node, now),
            Action::Abandon { node } => {
                self.awaited[node] = None;
                self.progress.record_abandoned(node, now);
            }
            Action::ReportStalled => {
                self.progress.has_stalled = true;
                self.trace.stalled_at = Some(self.now);
            }
            Action::WaitUntil(until) => self.wait((until - self.begun).as_nanos() as Nanoseconds),
            Action::Finish(ending) => self.finish(ending),
        }
    }

    fn ask_another(&mut self, another: AnotherAttempt, now: Instant) {
        let is_paid = match another.payment {
            Payment::Free => true,
            Payment::PrepaidHedge => std::mem::take(&mut self.progress.has_prepaid_hedge),
            Payment::Retry => self.purse.retry(0),
            Payment::Replacement => self.purse.retry(KEPT_FOR_RETRIES),
        };
        if !is_paid {
            return self.progress.record_another_refused(another.is_worth_waiting_for, AGAIN_PAUSE, now);
        }
        if let Some(oldest) = another.instead_of {
            self.awaited[oldest] = None;
            self.progress.settle(oldest, AttemptOutcome::FailedForGood, AGAIN_PAUSE, now);
        }
        self.progress.record_started_another(another.fallback_wait, now);
        self.start(another.node, now);
    }

    fn start(&mut self, node: usize, now: Instant) {
        let ModelNode { usual, silence_max, replies, .. } = &self.schedule.nodes[node];
        let [hedge_delay, silence_max] = [*usual, *silence_max].map(Duration::from_nanos);
        let seems_down = seems_down(&self.schedule.nodes[node]);
        self.progress.record_started(node, UsualDelays { hedge_delay, silence_max }, seems_down, now);
        let (after, kind) = replies[self.attempts[node].min(2)];
        self.attempts[node] += 1;
        self.awaited[node] = after.map(|after| (self.now + after, kind));
        self.trace.asked.push((self.now, node));
    }

    /// Waits for the first reply, at most until then.
    fn wait(&mut self, until: Nanoseconds) {
        let awaited = self.awaited.iter().enumerate();
        let replies = awaited.filter_map(|(node, reply)| reply.map(|(at, kind)| (at, node, kind)));
        let first = replies.min_by_key(|(at, node, _)| (*at, *node)).filter(|(at, ..)| *at <= until);
        let Some((at, node, kind)) = first else {
            assert!(until > self.now, "it would wait for ever");
            self.now = until;
            return;
        };
        self.now = at;
        self.awaited[node] = None;
        self.replied_at[node] = at;
        let is_for_one = self.schedule.wanted == Wanted::One;
        let outcome = match kind {
            ReplyKind::Data => AttemptOutcome::Answered,
            ReplyKind::Behind => AttemptOutcome::Late,
            ReplyKind::Fault => AttemptOutcome::Failed,
            ReplyKind::NotHere => AttemptOutcome::Lacking,
            _ if !is_for_one => AttemptOutcome::Answered,
            ReplyKind::Null => AttemptOutcome::Doubtful { is_empty: true },
            ReplyKind::Guess => AttemptOutcome::Doubtful { is_empty: false },
            ReplyKind::GrantsBlocks(blocks) => AttemptOutcome::Limited(RangeLimit { blocks: Some(blocks) }),
            ReplyKind::TooManyResults => AttemptOutcome::Limited(RangeLimit { blocks: None }),
        };
        let now = self.begun + Duration::from_nanos(self.now);
        self.progress.settle(node, outcome, AGAIN_PAUSE, now);
        if self.progress.nodes[node].status == NodeStatus::Answered {
            self.trace.answered.push((self.now, node));
            match self.schedule.wanted {
                Wanted::One => self.trace.outcome = Some(ModelOutcome::Data { node }),
                Wanted::Several if self.progress.answers == self.schedule.quorum => {
                    self.trace.outcome = Some(ModelOutcome::Answers(self.schedule.quorum));
                }
                Wanted::Several | Wanted::All => {}
            }
        } else if let Some(limit) = self.progress.agreed_limit() {
            self.trace.outcome = Some(ModelOutcome::Limit(limit.blocks));
        }
    }

    fn finish(&mut self, ending: Ending) {
        if self.schedule.wanted != Wanted::One {
            self.trace.outcome = Some(ModelOutcome::Answers(self.progress.answers));
            return;
        }
        let fallback = self.progress.fallback.map(|fallback| ModelOutcome::Fallback { node: fallback.node });
        let limit = || self.progress.widest_limit().map(|(_, limit)| ModelOutcome::Limit(limit.blocks));
        let failed = match ending {
            Ending::TimeUp => ModelOutcome::Deadline,
            Ending::Exhausted if self.progress.is_lacking() => ModelOutcome::Lacking,
            Ending::Exhausted => ModelOutcome::Unavailable,
        };
        self.trace.outcome = Some(fallback.or_else(limit).unwrap_or(failed));
    }
}

pub(super) fn seems_down(node: &ModelNode) -> bool {
    node.availability == Availability::Down || node.has_fallen_silent
}
