//! Observations of a request and its calls beside counts: when each step ended, who asked, and who answered.
//!
//! Nothing is kept and no clock is read for a request of which nobody wants to be told.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use answers::Answers;
use callers::usage::Outcome;
use http::header;
use http_server::{Connection, Headers, RequestId};
use methods::MethodId;
use resources::{Clock, MonoTime, unix_time};
use sources::{Origin, Provenance};

use crate::access_log::{AccessLog, JsonLine};
use crate::authenticate::Caller;
use crate::errors::ErrorReply;
use crate::policy::LOGGED_AGENT_BYTES_MAX;

/// A step whose time is told.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CallStep {
    Authenticate,
    /// Reading the body.
    Read,
    Admit,
    Resolve,
    Answer,
    /// Writing what the caller gets into the reply, before it is sent.
    Write,
}

impl CallStep {
    const ALL: [(Self, &'static str); 6] = [
        (Self::Authenticate, "authenticate_us"),
        (Self::Read, "read_us"),
        (Self::Admit, "admit_us"),
        (Self::Resolve, "resolve_us"),
        (Self::Answer, "answer_us"),
        (Self::Write, "write_us"),
    ];
}

/// How long each step took, as far as it was reached.
#[derive(Clone, Copy, Debug)]
struct StepTimes {
    times: [Option<Duration>; CallStep::ALL.len()],
    /// When the last step ended.
    last: MonoTime,
}

impl StepTimes {
    fn begin(now: MonoTime) -> Self {
        Self { times: [None; CallStep::ALL.len()], last: now }
    }

    /// Ends a step. One that is repeated takes as long as all of its times together.
    fn end(&mut self, step: CallStep, now: MonoTime) {
        let time = &mut self.times[step as usize];
        *time = Some(time.unwrap_or_default() + now.since(self.last));
        self.last = now;
    }

    fn write(&self, line: &mut JsonLine) {
        for (step, name) in CallStep::ALL {
            line.number(name, self.times[step as usize].map(|time| time.as_micros()));
        }
    }
}

/// A request of which somebody is told.
#[derive(Debug)]
pub(crate) struct RequestObservation<'a> {
    log: &'a AccessLog,
    answers: &'a Answers,
    clock: &'a Clock,
    id: RequestId,
    peer: IpAddr,
    /// A part of the header, in which each byte is one character.
    user_agent: Option<String>,
    began: MonoTime,
    /// The same as time since 1970.
    began_at: Duration,
    steps: StepTimes,
    /// Whether a call tells how it ended, so that the request need not.
    has_calls: AtomicBool,
}

impl<'a> RequestObservation<'a> {
    /// Begins when the head of a request was read.
    pub(crate) fn begin(
        log: &'a AccessLog,
        answers: &'a Answers,
        clock: &'a Clock,
        connection: &Connection,
        id: RequestId,
        headers: Headers<'_>,
    ) -> Self {
        let agent = headers.get(&header::USER_AGENT);
        let user_agent = agent.map(|agent| {
            let bytes = agent.iter().take(LOGGED_AGENT_BYTES_MAX);
            bytes.map(|&byte| char::from(byte)).collect()
        });
        let (peer, began) = (connection.caller_address(headers), clock.now());
        let (steps, began_at) = (StepTimes::begin(began), unix_time());
        let has_calls = AtomicBool::new(false);
        Self { log, answers, clock, id, peer, user_agent, began, began_at, steps, has_calls }
    }

    pub(crate) fn end_step(&mut self, step: CallStep) {
        self.steps.end(step, self.clock.now());
    }

    /// Tells that a request was refused, unless calls of it were made, which tell that by themselves.
    pub(crate) fn refuse(&self, caller: Option<&Caller>, error: &ErrorReply) {
        if self.has_calls.load(Relaxed) || !self.log.takes(error.outcome) {
            return;
        }
        let now = self.clock.now();
        let mut line = self.begin_line(caller, now);
        let ending = CallEnding {
            outcome: error.outcome,
            status: Some(error.status.as_u16()),
            code: Some(error.code),
        };
        write_ending(&mut line, None, 1, &ending);
        self.end_line(line, None, &self.steps, now);
    }

    /// Tells that calls of a batch were never begun, because their caller had gone.
    pub(crate) fn abandon(&self, caller: &Caller, calls: u64, outcome: Outcome) {
        if !self.log.takes(outcome) {
            return;
        }
        let now = self.clock.now();
        let mut line = self.begin_line(Some(caller), now);
        write_ending(&mut line, None, calls, &CallEnding { outcome, status: None, code: None });
        self.end_line(line, None, &self.steps, now);
    }

    fn begin_line(&self, caller: Option<&Caller>, now: MonoTime) -> JsonLine {
        let mut line = JsonLine::begin(self.began_at + now.since(self.began));
        self.id.with_text(|id| line.text("request", Some(id)));
        let key = caller.map(Caller::key);
        line.text("account", key.map(|key| key.account.name.as_str()));
        line.text("key", key.map(|key| &*key.name));
        line.text("key_id", key.map(|key| &*key.id));
        line
    }

    fn end_line(&self, mut line: JsonLine, provenance: Option<Provenance>, steps: &StepTimes, now: MonoTime) {
        let node = provenance.and_then(|provenance| self.answers.node_name(provenance.node?));
        line.text("source", provenance.map(|provenance| source(provenance.origin)));
        line.text("node", node.as_deref());
        let block = provenance.and_then(|provenance| provenance.block);
        line.text("block", block.map(|block| format!("{:#x}", block.number)).as_deref());
        line.text("verified", provenance.map(|provenance| provenance.verified.name()));
        steps.write(&mut line);
        line.number("total_us", Some(now.since(self.began).as_micros()));
        line.text("peer", Some(&self.peer.to_string()));
        line.text("user_agent", self.user_agent.as_deref());
        self.log.write(line);
    }
}

/// How a call or a request ended.
struct CallEnding {
    outcome: Outcome,
    /// `None` if nobody waits for the reply.
    status: Option<u16>,
    /// The code of the error.
    code: Option<i32>,
}

fn write_ending(line: &mut JsonLine, method: Option<MethodId>, calls: u64, ending: &CallEnding) {
    line.text("method", method.map(|method| method.row().name));
    line.number("calls", Some(calls));
    line.text("outcome", Some(ending.outcome.label()));
    line.number("code", ending.code);
    line.number("status", ending.status);
}

fn source(origin: Origin) -> &'static str {
    match origin {
        Origin::Cache => "cache",
        Origin::Stored => "stored",
        Origin::Archive => "archive",
        Origin::Node => "node",
        Origin::Partner => "partner",
    }
}

/// A call of such a request.
#[derive(Debug)]
pub(crate) struct CallObservation<'a> {
    request: &'a RequestObservation<'a>,
    steps: StepTimes,
    provenance: Option<Provenance>,
    /// `None` if the call was abandoned.
    status: Option<u16>,
    code: Option<i32>,
}

/// The facts about a call that has ended which are counted, too.
#[derive(Debug)]
pub(crate) struct EndedCall<'a> {
    pub(crate) caller: &'a Caller,
    pub(crate) method: Option<MethodId>,
    pub(crate) outcome: Outcome,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    pub(crate) now: MonoTime,
}

impl<'a> CallObservation<'a> {
    pub(crate) fn begin(request: &'a RequestObservation<'a>) -> Self {
        request.has_calls.store(true, Relaxed);
        let mut steps = request.steps;
        steps.last = request.clock.now();
        Self { request, steps, provenance: None, status: None, code: None }
    }

    pub(crate) fn end_step(&mut self, step: CallStep) {
        self.end_step_at(step, self.request.clock.now());
    }

    pub(crate) fn end_step_at(&mut self, step: CallStep, now: MonoTime) {
        self.steps.end(step, now);
    }

    /// Who has answered; `None` for a notification.
    pub(crate) fn answered(&mut self, provenance: Option<Provenance>) {
        let status = if provenance.is_some() { http::StatusCode::OK } else { http::StatusCode::NO_CONTENT };
        (self.provenance, self.status) = (provenance, Some(status.as_u16()));
    }

    pub(crate) fn failed(&mut self, error: &ErrorReply) {
        (self.status, self.code) = (Some(error.status.as_u16()), Some(error.code));
    }

    pub(crate) fn end(mut self, ended: &EndedCall<'_>) {
        let EndedCall { caller, method, outcome, bytes_in, bytes_out, now } = *ended;
        if !self.request.log.takes(outcome) {
            return;
        }
        if self.status.is_some() {
            self.steps.end(CallStep::Write, now);
        }
        let mut line = self.request.begin_line(Some(caller), now);
        let ending = CallEnding { outcome, status: self.status, code: self.code };
        write_ending(&mut line, method, 1, &ending);
        line.number("bytes_in", Some(bytes_in));
        line.number("bytes_out", Some(bytes_out));
        self.request.end_line(line, self.provenance, &self.steps, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_add_up_and_those_that_were_not_reached_have_no_time() {
        let at = |ms: u64| MonoTime(ms * 1_000_000);
        let mut steps = StepTimes::begin(at(5));
        for (step, ms) in [
            (CallStep::Authenticate, 6),
            (CallStep::Resolve, 8),
            (CallStep::Answer, 9),
            (CallStep::Resolve, 20),
        ] {
            steps.end(step, at(ms));
        }
        let mut line = JsonLine::begin(Duration::ZERO);
        steps.write(&mut line);
        let line = String::from_utf8(line.end()).unwrap();
        let times = r#""authenticate_us":1000,"read_us":null,"admit_us":null,"resolve_us":13000,"answer_us":1000,"write_us":null}"#;
        assert!(line.trim_end().ends_with(times), "{line}");
    }
}
