//! One lie, told by one mix of nodes to one gateway.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::calls::{KnownCall, TrueChain};
use super::judge::{AnswerVerdict, StateTrust, judge};
use super::lie::{Course, NodeLie, Phase};
use super::mix::NodeMix;
use crate::http::{ReceivedReply, TestConnection, get, post, request};
use crate::proxy::{Mood, Proxy};

/// How long a gateway may take to know its head. One that has only liars may never know it.
const HEAD_TIMEOUT: Duration = Duration::from_secs(4);

/// How long a gateway may take to know its head once the honest nodes are there.
const HONEST_HEAD_TIMEOUT: Duration = Duration::from_secs(20);

/// Wrong answers of one cell that are described.
const EXAMPLES_MAX: usize = 3;

/// Bytes of an answer in a description.
const EXAMPLE_BYTES_MAX: usize = 240;

/// A gateway in front of nodes.
pub trait RunningGateway: Send {
    fn public(&self) -> SocketAddr;

    fn operator(&self) -> SocketAddr;

    /// Where it takes calls.
    fn path(&self) -> &str;
}

/// Starts a gateway in front of nodes with these URLs.
pub type StartGateway<'a> = &'a (dyn Fn(&[String]) -> Box<dyn RunningGateway> + Sync);

/// Counts of the calls of one method, by outcome.
#[derive(Clone, Copy, Debug, Default)]
pub struct MethodFigures {
    pub calls: u64,
    pub wrong: u64,
    pub failed: u64,
    /// Untrue answers that the honest nodes cannot outvote: another head, or that something is not there.
    pub decided: u64,
    /// Wrong answers once the liars were honest again.
    pub wrong_after: u64,
    pub failed_after: u64,
}

/// The outcomes of the calls of one cell.
#[derive(Clone, Debug)]
pub struct CellReport {
    pub chain: &'static str,
    /// `None` where all nodes are honest.
    pub lie: Option<String>,
    pub mix: NodeMix,
    pub methods: BTreeMap<&'static str, MethodFigures>,
    /// Why the cell fails, with examples of wrong answers.
    pub crossed: Vec<String>,
    /// Wrong answers that are allowed, by example.
    pub examples: Vec<String>,
}

impl CellReport {
    fn of(chain: &TrueChain, lie: Option<&NodeLie>, mix: NodeMix) -> Self {
        let (methods, crossed, examples) = Default::default();
        Self { chain: chain.name, lie: lie.map(|lie| lie.name.clone()), mix, methods, crossed, examples }
    }

    pub fn total(&self) -> MethodFigures {
        let mut total = MethodFigures::default();
        self.methods.values().for_each(|figures| total.add(figures));
        total
    }

    fn count(&mut self, call: &KnownCall, verdict: AnswerVerdict, after: bool) {
        let figures = self.methods.entry(call.method).or_default();
        figures.calls += 1;
        match (verdict, after) {
            (AnswerVerdict::Right, _) => {}
            (AnswerVerdict::Failed, false) => figures.failed += 1,
            (AnswerVerdict::Failed, true) => figures.failed_after += 1,
            (AnswerVerdict::Decided, _) => figures.decided += 1,
            (AnswerVerdict::Wrong, false) => figures.wrong += 1,
            (AnswerVerdict::Wrong, true) => figures.wrong_after += 1,
        }
    }

    fn note(&mut self, is_crossed: bool, verdict: AnswerVerdict, text: impl Fn() -> String) {
        let list = if is_crossed { &mut self.crossed } else { &mut self.examples };
        if list.len() < EXAMPLES_MAX && (is_crossed || verdict == AnswerVerdict::Wrong) {
            list.push(text());
        }
    }
}

impl MethodFigures {
    pub fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.wrong += other.wrong;
        self.failed += other.failed;
        self.decided += other.decided;
        self.wrong_after += other.wrong_after;
        self.failed_after += other.failed_after;
    }
}

/// A mix of nodes, and the gateway in front of them.
struct Trial<'a> {
    chain: &'a TrueChain,
    lie: Option<&'a NodeLie>,
    mix: NodeMix,
    trust: StateTrust,
    gateway: Box<dyn RunningGateway>,
}

/// Asks each call while some nodes lie, and again once they are honest.
pub fn run_cell(
    chain: &TrueChain,
    lie: &NodeLie,
    mix: NodeMix,
    trust: StateTrust,
    calls: &[&KnownCall],
    start: StartGateway<'_>,
) -> CellReport {
    let proxies: Vec<Proxy> = (0..mix.nodes).map(|_| chain.proxy()).collect();
    let (liars, honest) = proxies.split_at(mix.liars);
    let set_all = |nodes: &[Proxy], mood: Mood| nodes.iter().for_each(|node| node.set(mood));
    let set_liars = |lie: Option<&NodeLie>| liars.iter().for_each(|node| chain.set(node, lie));
    set_liars(Some(lie));
    if lie.course == Course::LiarsFirst {
        set_all(honest, Mood::Dead);
    }
    let gateway = start(&proxies.iter().map(Proxy::url).collect::<Vec<_>>());
    let trial = Trial { chain, lie: Some(lie), mix, trust, gateway };
    let mut report = CellReport::of(chain, Some(lie), mix);
    let is_certain = mix.honest_decide() && lie.course != Course::LiarsFirst;
    // A liar and one honest node may agree on an older head before the other honest nodes are seen.
    let will_do = |told: &Value| !is_certain || *told == chain.head;
    trial.wait_for_head(will_do, if is_certain { HONEST_HEAD_TIMEOUT } else { HEAD_TIMEOUT });
    for phase in lie.course.phases() {
        set_all(honest, if phase.honest_are_there { Mood::Honest } else { Mood::Dead });
        set_liars(phase.liars_lie.then_some(lie));
        trial.wait_for_phase(phase, lie.course);
        if let Some(delay) = mix.honest_delay.filter(|_| phase.honest_are_there && phase.liars_lie) {
            set_all(honest, Mood::Slow(delay));
        }
        trial.ask_all(&mut report, calls, phase);
    }
    report.crossed.extend(panics(trial.gateway.operator()));
    report
}

/// Asks each call so many times of honest nodes. No node may be found to be wrong.
pub fn run_honest(chain: &TrueChain, mix: NodeMix, times: usize, start: StartGateway<'_>) -> CellReport {
    let proxies: Vec<Proxy> = (0..mix.nodes).map(|_| chain.proxy()).collect();
    let gateway = start(&proxies.iter().map(Proxy::url).collect::<Vec<_>>());
    let trial = Trial { chain, lie: None, mix, trust: StateTrust::Proven, gateway };
    trial.wait_for_head(|_| true, HONEST_HEAD_TIMEOUT);
    let mut report = CellReport::of(chain, None, mix);
    let calls: Vec<&KnownCall> = chain.calls.iter().collect();
    for _ in 0..times {
        trial.ask_all(&mut report, &calls, &Course::Beside.phases()[0]);
    }
    report.crossed.extend(false_alarms(trial.gateway.operator()));
    report.crossed.extend(panics(trial.gateway.operator()));
    report
}

/// Nodes that the gateway takes for broken, and answers that it takes for wrong.
fn false_alarms(operator: SocketAddr) -> Vec<String> {
    metrics(operator, |name, value| {
        name.starts_with("chaingate_wrong_answers_total{") && value != "0"
            || name.starts_with("chaingate_node_health{") && value != "3"
    })
}

/// Calls and tasks that have panicked.
fn panics(operator: SocketAddr) -> Vec<String> {
    metrics(operator, |name, value| {
        (name.starts_with("chaingate_task_panics_total{") || name.contains("outcome=\"internal_error\""))
            && value != "0"
    })
}

/// The lines of the metrics for whose name (with labels) and value `are_such` returns `true`.
fn metrics(operator: SocketAddr, are_such: impl Fn(&str, &str) -> bool) -> Vec<String> {
    let page = get(operator, "/metrics");
    let is_such = |line: &&str| line.rsplit_once(' ').is_some_and(|(name, value)| are_such(name, value));
    page.text().lines().filter(is_such).map(str::to_owned).collect()
}

impl Trial<'_> {
    fn ask_all(&self, report: &mut CellReport, calls: &[&KnownCall], phase: &Phase) {
        let mut wire = TestConnection::connect(self.gateway.public());
        for call in calls {
            let reply = self.ask(&mut wire, call);
            let verdict = judge(self.chain, self.lie, &self.mix, call, reply.as_ref());
            report.count(call, verdict, !phase.liars_lie);
            let is_crossed = match verdict {
                AnswerVerdict::Right | AnswerVerdict::Decided => false,
                AnswerVerdict::Failed => self.mix.honest_decide() && phase.honest_are_there,
                AnswerVerdict::Wrong => self.trust.forbids_wrong(&self.mix, call.kind),
            };
            report.note(is_crossed, verdict, || describe(call, reply.as_ref(), phase));
        }
    }

    fn ask(&self, wire: &mut TestConnection, call: &KnownCall) -> Option<ReceivedReply> {
        let reply = wire.send(request(self.gateway.path(), "", call.body().as_bytes())).next_reply();
        if reply.is_none() {
            *wire = TestConnection::connect(self.gateway.public());
        }
        reply
    }

    /// Waits until the gateway has seen the nodes of a phase, if it can.
    fn wait_for_phase(&self, phase: &Phase, course: Course) {
        if !phase.liars_lie || phase.honest_are_there && course != Course::Beside {
            self.wait_for_head(|told| *told == self.chain.head, HONEST_HEAD_TIMEOUT);
        }
    }

    /// Waits until the gateway knows a head that will do.
    fn wait_for_head(&self, will_do: impl Fn(&Value) -> bool, timeout: Duration) {
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}"#;
        let started = Instant::now();
        while started.elapsed() < timeout {
            let reply = post(self.gateway.public(), self.gateway.path(), body);
            let told: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
            if told["result"].is_string() && will_do(&told["result"]) {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

fn describe(call: &KnownCall, reply: Option<&ReceivedReply>, phase: &Phase) -> String {
    let header = |name| reply.and_then(|reply| reply.header(name)).unwrap_or("-");
    let text = reply.map_or_else(String::new, |reply| String::from_utf8_lossy(&reply.body).into_owned());
    let short = |text: String| text.chars().take(EXAMPLE_BYTES_MAX).collect::<String>();
    format!(
        "{}: {} {}: {} (verified {}, block {}) instead of {}",
        phase.name,
        call.method,
        short(call.params.to_string()),
        short(text),
        header("chaingate-verified"),
        header("chaingate-block"),
        short(call.truth.to_string())
    )
}
