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

    fn is_silent_since(&self, node: usize, then: Instant) -> bool {
        let then = (then - self.begun).as_nanos() as Nanoseconds;
        let has_spoken = self.schedule.nodes[node].speaks_at.is_some_and(|at| then < at && at <= self.now);
        !has_spoken && self.replied_at[node] <= then
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
    let mut machine = Machine {
        schedule,
        begun,
        progress: CallProgress::new(&call, count, deadline),
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
        let facts = Facts { schedule, begun: *begun, now: self.now, replied_at };
        match next_action(&self.progress, &facts, ROUNDS_MAX, 0, now) {
            Action::AskFirst { best, probe } => {
                let probe = probe.filter(|_| self.purse.hedge());
                self.progress.has_prepaid_hedge = probe.is_some();
                self.start(probe.unwrap_or(best), now);
            }
            Action::Hedge { node, beside } => {
                if std::mem::take(&mut self.progress.has_prepaid_hedge) || self.purse.hedge() {
                    self.progress.record_hedge(beside);
                    self.start(node, now);
                } else {
                    self.progress.record_hedge_refused(beside, REFUSED_PAUSE, now);
                }
            }
            Action::AskAnother(another) => self.ask_another(another, now),
            Action::ReportOverdue { node } => self.progress.record_overdue(node, now),
            Action::Abandon { node } => self.drop_attempt(node, NodeStatus::Abandoned),
            Action::BeginRound => self.progress.begin_round(REFUSED_PAUSE, now),
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
            return self.progress.record_another_refused(another.is_worth_waiting_for, REFUSED_PAUSE, now);
        }
        if let Some(oldest) = another.instead_of {
            self.drop_attempt(oldest, NodeStatus::Failed);
        }
        self.progress.record_started_another(another.fallback_wait, now);
        self.start(another.node, now);
    }

    fn start(&mut self, node: usize, now: Instant) {
        let ModelNode { usual, silence_max, replies, .. } = &self.schedule.nodes[node];
        let [hedge_delay, silence_max] = [*usual, *silence_max].map(Duration::from_nanos);
        self.progress.record_started(node, UsualDelays { hedge_delay, silence_max }, now);
        let (after, kind) = replies[self.attempts[node].min(1)];
        self.attempts[node] += 1;
        self.awaited[node] = after.map(|after| (self.now + after, kind));
        self.trace.asked.push((self.now, node));
    }

    fn drop_attempt(&mut self, node: usize, status: NodeStatus) {
        self.awaited[node] = None;
        self.progress.nodes[node] = status;
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
        let outcome = match kind {
            ReplyKind::Data => AttemptOutcome::Answer(NodeReply::Result(Bytes::from_static(b"1"))),
            ReplyKind::Null => AttemptOutcome::Doubtful(Bytes::from_static(b"null")),
            ReplyKind::Guess => AttemptOutcome::Doubtful(Bytes::from_static(b"2")),
            ReplyKind::Behind => AttemptOutcome::Behind,
            ReplyKind::Fault => AttemptOutcome::Failed,
            ReplyKind::NotHere => AttemptOutcome::Lacking,
            ReplyKind::GrantsBlocks(blocks) => AttemptOutcome::Limited(RangeLimit { blocks: Some(blocks) }),
            ReplyKind::TooManyResults => AttemptOutcome::Limited(RangeLimit { blocks: None }),
        };
        let now = self.begun + Duration::from_nanos(self.now);
        self.trace.outcome = self.progress.settle(node, outcome, now).map(|said| match said {
            NodeReply::Limit(limit) => ModelOutcome::Limit(limit.blocks),
            _ => ModelOutcome::Data { node },
        });
    }

    fn finish(&mut self, ending: Ending) {
        let fallback =
            self.progress.fallback.as_ref().map(|(node, _)| ModelOutcome::Fallback { node: *node });
        let limit = || self.progress.widest_limit().map(|(_, limit)| ModelOutcome::Limit(limit.blocks));
        let failed = match ending {
            Ending::TimeUp => ModelOutcome::Deadline,
            Ending::Exhausted if self.progress.is_lacking() => ModelOutcome::Lacking,
            Ending::Exhausted => ModelOutcome::Unavailable,
        };
        self.trace.outcome = Some(fallback.or_else(limit).unwrap_or(failed));
    }
}
