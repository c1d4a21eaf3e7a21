//! Recorded exchanges on recorded chains, through the gateway. They are not part of this repository: `CHAINGATE_CONFORMANCE`
//! names their folder.
//!
//! A case is a file with pairs of lines `>> request` and `<< reply`. Replies are compared by structure; the texts of
//! errors are not compared, and a case whose first comment begins with `speconly:` asks for the form only.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use archive::{Archive, BlockFile};
use methods::{MethodId, Query};
use serde_json::Value;
use tempfile::TempDir;
use testkit::http::{ReceivedReply, TestConnection, get};
use testkit::proxy::{Mood, Proxy};

use crate::demo::{Demo, metric, until};
use crate::pool::front::Front;

/// A member that some services send and others leave out.
const IGNORED: &str = "totalDifficulty";

/// The folder of a corpus, unless there is none.
fn corpus(name: &str) -> Option<PathBuf> {
    Some(testkit::skip::recorded_chains()?.join(name))
}

struct Case {
    name: String,
    by_form: bool,
    exchanges: Vec<(String, Value)>,
}

impl Case {
    /// The requests of the case.
    fn requests(&self) -> impl Iterator<Item = &str> {
        self.exchanges.iter().map(|(sent, _)| sent.as_str())
    }
}

fn cases(folder: &Path) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry);
            } else if entry.extension().is_some_and(|extension| extension == "io") {
                cases.push(case(&entry));
            }
        }
    }
    cases
}

fn case(file: &Path) -> Case {
    let text = std::fs::read_to_string(file).unwrap();
    let mut case = Case { name: file.display().to_string(), by_form: false, exchanges: Vec::new() };
    let mut request: Option<String> = None;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        match (line.split_at(2), request.take()) {
            (("//", comment), None) => {
                case.by_form |= case.exchanges.is_empty() && comment.trim().starts_with("speconly:");
            }
            ((">>", sent), None) => request = Some(sent.trim().to_owned()),
            (("<<", expected), Some(sent)) => {
                case.exchanges.push((sent, serde_json::from_str(expected).unwrap()));
            }
            _ => panic!("{}: not pairs of >> and <<: {line}", case.name),
        }
    }
    assert!(request.is_none() && !case.exchanges.is_empty(), "{}", case.name);
    case
}

/// The difference between the expected reply and the one that came, if there is one.
fn difference(case: &Case, expected: &Value, got: &Value) -> Option<String> {
    if expected["id"] != got["id"] || got["jsonrpc"] != "2.0" {
        return Some(format!("id or version: {got}"));
    }
    let (mut expected, mut got) = (expected.clone(), got.clone());
    for error in [&mut expected, &mut got].into_iter().filter_map(|reply| reply.get_mut("error")) {
        error.as_object_mut()?.remove("message").filter(Value::is_string)?;
    }
    if case.by_form && expected.get("error").is_none() {
        return form("result", expected.get("result")?, got.get("result").unwrap_or(&Value::Null));
    }
    structure("reply", &expected, &got)
}

fn structure(path: &str, expected: &Value, got: &Value) -> Option<String> {
    match (expected, got) {
        (Value::Object(expected), Value::Object(got)) => {
            let names = expected.keys().chain(got.keys()).filter(|name| *name != IGNORED);
            names.into_iter().find_map(|name| match (expected.get(name), got.get(name)) {
                (Some(expected), Some(got)) => structure(&format!("{path}.{name}"), expected, got),
                (expected, got) => Some(format!("{path}.{name}: {expected:?} became {got:?}")),
            })
        }
        (Value::Array(expected), Value::Array(got)) if expected.len() == got.len() => {
            let mut pairs = expected.iter().zip(got).enumerate();
            pairs.find_map(|(index, (expected, got))| structure(&format!("{path}[{index}]"), expected, got))
        }
        _ => (expected != got).then(|| format!("{path}: {expected:.200} became {got:.200}")),
    }
}

/// The first difference between the forms of two values, whatever their texts and numbers.
fn form(path: &str, expected: &Value, got: &Value) -> Option<String> {
    match (expected, got) {
        (Value::Object(expected), Value::Object(got)) => {
            let names = expected.keys().chain(got.keys()).filter(|name| *name != IGNORED);
            names.into_iter().find_map(|name| match (expected.get(name), got.get(name)) {
                (Some(expected), Some(got)) => form(&format!("{path}.{name}"), expected, got),
                _ => Some(format!("{path}.{name} is missing, or should be")),
            })
        }
        (Value::Array(expected), Value::Array(got)) => {
            let first = expected.first()?;
            got.iter().find_map(|got| form(&format!("{path}[]"), first, got))
        }
        (Value::String(expected), Value::String(got)) => {
            (is_hex(expected) && !is_hex(got)).then(|| format!("{path}: {got} is not hexadecimal"))
        }
        _ => (std::mem::discriminant(expected) != std::mem::discriminant(got))
            .then(|| format!("{path}: {got} is of another kind")),
    }
}

fn is_hex(text: &str) -> bool {
    text.strip_prefix("0x").is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

/// Imports the chain of a corpus, and compares all of its `count` cases.
fn all_cases_pass(name: &str, count: usize) {
    let Some(corpus) = corpus(name) else { return };
    let genesis = std::fs::read_to_string(corpus.join("genesis.json")).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let archive = Archive::open_or_create(directory.path(), &genesis).unwrap();
    archive.import(BlockFile::open(corpus.join("chain.rlp")).unwrap(), &mut archive::NoProgress).unwrap();
    let gateway = Demo::over(archive, directory, "");
    let cases = cases(&corpus.join("io"));
    // All cases once more, through a second gateway that has the first one as each of its three nodes.
    let (_nodes, front) = Front::behind(gateway.public, "/v3/demo", 3, "[network]\nname = \"demo\"\n");
    let (mut wire, mut through) =
        (TestConnection::connect(gateway.public), TestConnection::connect(front.public));
    let mut faults = Vec::new();
    for case in &cases {
        for (sent, expected) in &case.exchanges {
            let got = wire.post("/v3/demo", sent);
            let fault = difference(case, expected, &got.json());
            faults.extend(fault.map(|fault| format!("{}: {fault}", case.name)));
            let passed_on = through.post("/v3/custom", sent);
            faults.extend(
                change(&got, &passed_on).map(|fault| format!("through a node, {}: {fault}", case.name)),
            );
        }
    }
    assert!(faults.is_empty(), "{} of {}: {faults:#?}", faults.len(), cases.len());
    assert_eq!(cases.len(), count, "cases of {name}");
}

/// The change of a reply on its way through a second gateway, if there is one. Results must be the same to the byte, errors
/// but for the details in their texts.
fn change(direct: &ReceivedReply, passed_on: &ReceivedReply) -> Option<String> {
    let (mut before, mut after) = (direct.json(), passed_on.json());
    if before.get("result").is_some() {
        let is_same = without_total_difficulty(direct) == without_total_difficulty(passed_on);
        return (!is_same).then(|| format!("{before:.300} became {after:.300}"));
    }
    for reply in [&mut before, &mut after] {
        reply["error"]["message"].take();
    }
    (before != after).then(|| format!("{} became {}", direct.text(), passed_on.text()))
}

/// The body without the total difficulty of a block, which no header commits to: it is known only from all headers.
fn without_total_difficulty(reply: &ReceivedReply) -> String {
    let text = reply.text();
    let Some((before, rest)) = text.split_once(r#""totalDifficulty":"0x"#) else { return text.to_owned() };
    let after = rest.split_once(',').map_or("", |(_, after)| after);
    format!("{before}{after}")
}

/// Blocks that come one by one; the blocks below them are filled in.
const ONE_BY_ONE: usize = 100;

/// Whether blocks alone answer a method.
fn is_answered_from_blocks(method: &str) -> bool {
    let row = MethodId::named(method).map(MethodId::row);
    row.is_none_or(|row| match row.example_query().unwrap() {
        Query::Gateway(_) | Query::Block(_) | Query::Transaction(_) | Query::Logs(_) => true,
        Query::Fees(_) | Query::State(_) | Query::Simulation(_) | Query::RawTransactions(_) => false,
    })
}

/// The rest of the configuration of a gateway that follows.
const FOLLOWING: &str = "[network]\nname = \"demo\"\n[cache]\nenabled = false\n";

/// The chain of a corpus, growing in front of a gateway that follows it.
struct Followed {
    cases: Vec<Case>,
    head: u64,
    node: Demo,
    nodes: Vec<Proxy>,
    front: Front,
    data_dir: TempDir,
    _directory: TempDir,
}

impl Followed {
    /// `follow` are lines of `[follow]`; `prepare` is given the data directory and the genesis.
    fn start(name: &str, follow: &str, prepare: impl Fn(&Path, &str)) -> Option<Self> {
        let corpus = corpus(name)?;
        let genesis = std::fs::read_to_string(corpus.join("genesis.json")).unwrap();
        let (directory, data_dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        prepare(data_dir.path(), &genesis);
        let archive = Arc::new(Archive::open_or_create(directory.path(), &genesis).unwrap());
        let blocks = BlockFile::open(corpus.join("chain.rlp")).unwrap().map(|found| found.unwrap().block);
        let mut blocks: Vec<_> = blocks.collect();
        let newest = blocks.split_off(blocks.len().saturating_sub(ONE_BY_ONE));
        let head = newest.last().unwrap().header.number;
        archive.import_blocks(blocks, &mut archive::NoProgress).unwrap();
        let node = Demo::sharing(Arc::clone(&archive));
        let nodes: Vec<_> = (0..3).map(|_| Proxy::start(node.public, "/v3/demo")).collect();
        let urls: Vec<_> = nodes.iter().map(Proxy::url).collect();
        let front = Front::following(data_dir.path(), &urls, follow, FOLLOWING);
        for block in newest {
            let number = format!("{:#x}", block.header.number);
            archive.import_blocks([block], &mut archive::NoProgress).unwrap();
            until("the gateway has the block", || front.ask("eth_blockNumber", "[]")["result"] == *number);
        }
        let cases = cases(&corpus.join("io"));
        Some(Self { cases, head, node, nodes, front, data_dir, _directory: directory })
    }

    fn metric(&self, name: &str) -> u64 {
        metric(self.front.operator, &format!("chaingate_{name}")) as u64
    }

    fn kill_nodes(&self) {
        self.nodes.iter().for_each(|node| node.set(Mood::Dead));
    }

    /// Sends the requests that `is_wanted` to a node and to the gateway. `change` returns the fault in the second reply.
    fn compare(
        &self,
        is_wanted: impl Fn(&str, &ReceivedReply) -> bool,
        change: impl Fn(&ReceivedReply, &ReceivedReply) -> Option<String>,
    ) {
        let (mut wire, mut through) =
            (TestConnection::connect(self.node.public), TestConnection::connect(self.front.public));
        let mut faults = Vec::new();
        let requests = self.cases.iter().flat_map(|case| case.requests().map(move |sent| (case, sent)));
        for (case, sent) in requests {
            let direct = wire.post("/v3/demo", sent);
            if is_wanted(sent, &direct) {
                let fault = change(&direct, &through.post("/v3/custom", sent));
                faults.extend(fault.map(|fault| format!("{}: {fault}", case.name)));
            }
        }
        assert!(faults.is_empty(), "{} of {}: {faults:#?}", faults.len(), self.cases.len());
    }
}

/// Keeps the blocks of a corpus. All cases must be answered as by the nodes, and those about blocks also with all nodes dead.
fn all_cases_pass_followed(name: &str) {
    let follow = "from = \"earliest\"\nblocks_max = 0";
    let Some(followed) = Followed::start(name, follow, |_, _| {}) else { return };
    until("all blocks are stored", || {
        followed.metric("follow_blocks") + followed.metric("follow_memory_blocks") == followed.head + 1
    });
    followed.compare(|_, _| true, change);
    followed.kill_nodes();
    // No block can prove that a thing does not exist: nodes must say so.
    let is_from_blocks = |sent: &str, direct: &ReceivedReply| {
        let is_there = !matches!(direct.json().get("result"), Some(result) if result.is_null());
        let call: Value = serde_json::from_str(sent).unwrap_or_default();
        is_there && call["method"].as_str().is_none_or(is_answered_from_blocks)
    };
    followed.compare(is_from_blocks, change);
}

/// Executes the blocks of a corpus. All cases must be as the embedded chain answers them, to the byte, with the nodes, without them,
/// and without them after a restart.
fn all_cases_pass_executed(name: &str) {
    let only_genesis = |data_dir: &Path, genesis: &str| {
        drop(Archive::open_or_create(data_dir, genesis).unwrap());
    };
    let Some(mut followed) = Followed::start(name, "mode = \"full\"", only_genesis) else { return };
    until("all blocks are executed", || followed.metric("executed_block") == followed.head);
    let difference = |direct: &ReceivedReply, told: &ReceivedReply| {
        (direct.body != told.body).then(|| format!("{:.300} became {:.300}", direct.text(), told.text()))
    };
    // Only nodes say which blocks are safe and finalized; the embedded chain takes the newest one.
    let has_no_mark =
        |sent: &str, _: &ReceivedReply| !sent.contains("\"safe\"") && !sent.contains("\"finalized\"");
    followed.compare(has_no_mark, difference);
    followed.kill_nodes();
    until("the nodes are seen to be down", || get(followed.front.operator, "/ready").status == 503);
    followed.compare(has_no_mark, difference);
    let urls: Vec<_> = followed.nodes.iter().map(Proxy::url).collect();
    let nobody = Front::unready(&urls, FOLLOWING);
    drop(std::mem::replace(&mut followed.front, nobody));
    followed.front = Front::following_unready(followed.data_dir.path(), &urls, "mode = \"full\"", FOLLOWING);
    followed.compare(has_no_mark, difference);
}

#[test]
fn execution_apis_followed_block_by_block() {
    all_cases_pass_followed("execution-apis");
}

#[test]
fn execution_apis_executed_block_by_block() {
    all_cases_pass_executed("execution-apis");
}

#[test]
fn uncles_executed_block_by_block() {
    all_cases_pass_executed("UncleFromFrontierInHomestead");
}

#[test]
fn uncles_followed_block_by_block() {
    all_cases_pass_followed("UncleFromFrontierInHomestead");
}

/// Every recorded chain, which takes minutes.
#[test]
fn all_recorded_chains_followed_block_by_block() {
    if std::env::var_os("CHAINGATE_FOLLOW_ALL").is_none() {
        return testkit::skip::report("CHAINGATE_FOLLOW_ALL is not set");
    }
    for name in ["mainnet-0-8191", "twoUncle_London", "londonUncles_BerlinToLondonAt5"] {
        all_cases_pass_followed(name);
        all_cases_pass_executed(name);
    }
}

#[test]
fn execution_apis() {
    all_cases_pass("execution-apis", 68);
}

#[test]
fn the_first_blocks_of_mainnet() {
    all_cases_pass("mainnet-0-8191", 118);
}

#[test]
fn two_uncles_after_london() {
    all_cases_pass("twoUncle_London", 22);
}

#[test]
fn uncles_across_homestead() {
    all_cases_pass("UncleFromFrontierInHomestead", 22);
}

#[test]
fn uncles_across_london() {
    all_cases_pass("londonUncles_BerlinToLondonAt5", 32);
}
