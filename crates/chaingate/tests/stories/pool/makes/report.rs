//! The findings about a make: faults, refusals, and the times that everything took.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::http::get;

use super::super::front::Front;
use super::chain::Chain;
use super::questions::Question;
use super::truth::{self, Comparison, Outcome};

/// Longer than anything here should take on a busy machine, and short enough to see all faults of a make in one run.
const PATIENCE: Duration = Duration::from_secs(30);

/// The number of characters of a fault that are shown.
const SHOWN: usize = 400;

/// Methods that the gateway does not have, of each kind.
const REFUSED: [&str; 10] = [
    "eth_sendRawTransaction",
    "eth_accounts",
    "eth_newFilter",
    "eth_subscribe",
    "eth_getProof",
    "eth_createAccessList",
    "debug_traceTransaction",
    "debug_getRawBlock",
    "trace_block",
    "txpool_status",
];

/// A fault of an answer to a question, or of the gateway in general.
struct Fault {
    /// The step of the story after which it was found.
    step: &'static str,
    /// Empty if the fault is about no question; so are `params`.
    method: String,
    params: String,
    text: String,
}

/// The findings about one make.
pub(super) struct Report {
    name: String,
    /// Whether answers about blocks are the node's own, and so missing where it lacks the method.
    pub(super) passes_on: bool,
    /// The present step of the story.
    pub(super) step: &'static str,
    faults: Vec<Fault>,
    pub(super) answered: usize,
    /// Differences from the node's own answers that are right, each with its reason.
    listed: BTreeSet<String>,
    /// Each reason, with the methods that were refused for it.
    refused: BTreeMap<String, BTreeSet<String>>,
    /// Events, each with the time that it took.
    pub(super) times: Vec<String>,
}

impl Report {
    pub(super) fn new(name: String) -> Self {
        Self {
            name,
            passes_on: false,
            step: "at first",
            faults: Vec::new(),
            answered: 0,
            listed: BTreeSet::new(),
            refused: BTreeMap::new(),
            times: Vec::new(),
        }
    }

    pub(super) fn fault(&mut self, text: String) {
        self.faults.push(Fault { step: self.step, method: String::new(), params: String::new(), text });
    }

    /// The answer to a question is wrong.
    pub(super) fn wrong(&mut self, method: &str, params: &Value, text: String) {
        let (method, params) = (method.to_owned(), params.to_string());
        self.faults.push(Fault { step: self.step, method, params, text });
    }

    /// Waits until `done` returns `true`. A time-out is a fault.
    pub(super) fn wait(&mut self, what: &str, mut done: impl FnMut() -> bool) -> bool {
        let started = Instant::now();
        while !done() {
            if started.elapsed() > PATIENCE {
                self.fault(format!("it does not happen in {PATIENCE:?}: {what}"));
                return false;
            }
            thread::sleep(Duration::from_millis(10));
        }
        self.times.push(format!("{what} after {} ms", started.elapsed().as_millis()));
        true
    }

    /// Waits until the gateway is ready.
    pub(super) fn wait_until_ready(&mut self, front: &Front) -> bool {
        let is_ready = self.wait("it is ready", || get(front.operator, "/ready").status == 200);
        if !is_ready {
            let ready = get(front.operator, "/ready");
            self.fault(format!("/ready: {}", ready.text().trim()));
            let status = get(front.operator, "/status").json();
            self.fault(format!("/status: {}", status["nodes"]["each"]));
        }
        is_ready
    }

    /// Compares the gateway's answer with the node's own.
    pub(super) fn compare(&mut self, chain: &Chain, front: &Front, (method, params): &Question) {
        let reply = front.ask(method, &params.to_string());
        let truth = truth::truth(chain.node(), method, params);
        let told = Outcome::of(&reply);
        if matches!(told, Outcome::Error(_) | Outcome::Unsupported) {
            let has_reason = self.refusal(method, params, &reply);
            let is_justified = match truth {
                Outcome::Unsupported => true,
                Outcome::GasCap => reply["error"].to_string().contains("cap"),
                _ if self.passes_on => truth::lacks(chain.node(), method, params),
                _ => chain.is_unprovable(params),
            };
            if has_reason && !is_justified {
                self.wrong(method, params, format!("{}, but the node says {truth:?}", reply["error"]));
            }
            return;
        }
        self.answered += 1;
        // The gateway can answer some calls that the node itself cannot.
        if truth != Outcome::Unsupported {
            let Comparison { faults, listed } = truth::comparison(chain.make, method, &told, &truth);
            self.listed.extend(listed);
            faults.into_iter().for_each(|fault| self.wrong(method, params, fault));
        }
    }

    /// Notes a refusal. Returns whether it has a reason, without which it is a fault.
    pub(super) fn refusal(&mut self, method: &str, params: &Value, reply: &Value) -> bool {
        let error = &reply["error"];
        let reason = error["data"]["reason"].as_str().unwrap_or_default();
        if reason.is_empty() {
            self.wrong(method, params, format!("refused without a reason: {error}"));
        } else {
            self.refused.entry(reason.to_owned()).or_default().insert(method.to_owned());
        }
        !reason.is_empty()
    }

    /// Checks that refused methods give their reason in the message, too, because some clients show nothing else.
    pub(super) fn check_refused_methods(&mut self, front: &Front) {
        for method in REFUSED {
            let reply = front.ask(method, "[]");
            self.refusal(method, &json!([]), &reply);
            let message = reply["error"]["message"].as_str().unwrap_or_default();
            let reason = reply["error"]["data"]["reason"].as_str().unwrap_or_default();
            if !message.ends_with(&format!("is not available: {reason}")) {
                self.wrong(method, &json!([]), format!("the message lacks the reason: {}", reply["error"]));
            }
            if method.contains("Raw") && reason.contains("trace") {
                self.wrong(method, &json!([]), format!("it is no trace: {reason}"));
            }
        }
    }

    /// Fees of blocks that do not exist were refused as a header that was not found.
    pub(super) fn check_fees_beyond_the_head(&mut self, front: &Front) {
        let reply = front.ask("eth_feeHistory", r#"["0x2","0xffff",[]]"#);
        let message = reply["error"]["message"].as_str().unwrap_or_default();
        if !message.contains("beyond head") {
            self.fault(format!("eth_feeHistory beyond the head: {reply}"));
        }
    }

    /// Prints the findings, and fails if there was a fault.
    pub(super) fn finish(self) {
        eprintln!("{}: {} answered; {}", self.name, self.answered, self.times.join(", "));
        self.listed.iter().for_each(|listed| eprintln!("    differs: {listed}"));
        for (reason, methods) in &self.refused {
            eprintln!("    refused: {reason}: {}", methods.iter().cloned().collect::<Vec<_>>().join(" "));
        }
        let faults = folded(&self.faults);
        assert!(faults.is_empty(), "{}: faults:\n{}", self.name, faults.join("\n"));
    }
}

/// Each kind of fault once, with its first question and the number of times. Faults of one kind are about one method and differ
/// only in quantities.
fn folded(faults: &[Fault]) -> Vec<String> {
    let is_quantity = |part: &&str| part.starts_with("0x") || part.parse::<u64>().is_ok();
    let kind = |fault: &Fault| {
        let parts = fault.text.split(|letter: char| !letter.is_alphanumeric());
        (fault.method.clone(), parts.filter(|part| !is_quantity(part)).collect::<String>())
    };
    let mut kinds: BTreeMap<_, (usize, usize)> = BTreeMap::new();
    for (place, fault) in faults.iter().enumerate() {
        kinds.entry(kind(fault)).or_insert((place, 0)).1 += 1;
    }
    let mut kinds: Vec<_> = kinds.into_values().collect();
    kinds.sort_unstable();
    let shown = |(place, times): (usize, usize)| {
        let Fault { step, method, params, text } = &faults[place];
        format!("{times} × {step}: {method} {params} {text}").chars().take(SHOWN).collect()
    };
    kinds.into_iter().map(shown).collect()
}
