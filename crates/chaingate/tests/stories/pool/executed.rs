//! An archive that goes on with the blocks of the nodes: everything is answered from it, whatever becomes of the nodes.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use archive::{Archive, Block};
use rand::{Rng, SeedableRng, rngs::StdRng};
use resources::Supervisor;
use tempfile::TempDir;
use testkit::chain::{LOGGER, RandomChain, Size, VESSEL, signer};
use testkit::http::{ReceivedReply, TestConnection, get};
use testkit::proxy::Proxy;

use super::front::Front;
use crate::demo::{Demo, metric, until};
use crate::gateway_under_test::call;

const SMALL: Size = Size { blocks_per_fork: 2, transactions_per_block: 4 };

pub(super) const NETWORK: &str = "[network]\nname = \"random\"\n";

/// Three nodes that all have the same chain, of which others branch off.
pub(super) struct Nodes {
    pub(super) genesis: String,
    /// The chain after each of its blocks, as far as others may branch off there.
    chain: Vec<Option<RandomChain>>,
    pub(super) nodes: Vec<Node>,
}

/// The newest blocks that others may branch off.
const BRANCHES: usize = 10;

pub(super) struct Node {
    archive: Arc<Archive>,
    pub(super) gateway: Demo,
    pub(super) proxy: Proxy,
    _folder: TempDir,
}

impl Nodes {
    pub(super) fn start(blocks: u64) -> Self {
        let mut nodes = Self::with(RandomChain::new(1, SMALL));
        nodes.grow(blocks);
        nodes
    }

    /// A chain that has only its first block or few more in common with that of [`Self::start`].
    pub(super) fn on_another_branch(common: u64, blocks: u64) -> Self {
        let mut nodes = Self::start(common);
        let last = nodes.chain.len() - 1;
        nodes.chain[last] = Some(nodes.newest().branch(4_321));
        nodes.grow(blocks);
        nodes
    }

    fn with(chain: RandomChain) -> Self {
        let genesis = chain.model().genesis_json();
        let nodes = (0..3).map(|_| {
            let folder = tempfile::tempdir().unwrap();
            let archive = Arc::new(Archive::open_or_create(folder.path(), &genesis).unwrap());
            let gateway = Demo::sharing(Arc::clone(&archive));
            let proxy = Proxy::start(gateway.public, "/v3/demo");
            Node { archive, gateway, proxy, _folder: folder }
        });
        Self { nodes: nodes.collect(), chain: vec![Some(chain)], genesis }
    }

    pub(super) fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(|node| node.proxy.url()).collect()
    }

    pub(super) fn head(&self) -> u64 {
        self.chain.len() as u64 - 1
    }

    pub(super) fn newest(&self) -> &RandomChain {
        self.chain[self.chain.len() - 1].as_ref().unwrap()
    }

    fn blocks_after(&self, number: u64) -> Vec<Block> {
        let model = self.newest().model();
        (number + 1..=self.head()).map(|number| model.block(number).unwrap().block.clone()).collect()
    }

    fn lengthen(&mut self, blocks: u64) {
        for _ in 0..blocks {
            let mut next = self.newest().clone();
            next.grow();
            self.chain.push(Some(next));
            if let Some(old) = self.chain.len().checked_sub(BRANCHES + 1) {
                self.chain[old] = None;
            }
        }
    }

    pub(super) fn grow(&mut self, blocks: u64) {
        self.grow_until_quorum(blocks);
        let behind = self.nodes[2].archive.snapshot().head();
        self.nodes[2].archive.follow_blocks(self.blocks_after(behind), &mut archive::NoProgress).unwrap();
    }

    /// Adds blocks that only two of the three nodes have.
    fn grow_until_quorum(&mut self, blocks: u64) {
        let head = self.head();
        self.lengthen(blocks);
        for node in &self.nodes[..2] {
            node.archive.follow_blocks(self.blocks_after(head), &mut archive::NoProgress).unwrap();
        }
    }

    /// Replaces the newest blocks of all nodes by others, one more of them.
    pub(super) fn reorganise(&mut self, depth: u64, seed: u64) {
        let ancestor = self.head() - depth;
        self.chain.truncate(ancestor as usize + 1);
        let last = self.chain.len() - 1;
        self.chain[last] = Some(self.newest().branch(seed));
        self.lengthen(depth + 1);
        for node in &self.nodes {
            node.archive.reorganise(ancestor, self.blocks_after(ancestor)).unwrap();
        }
    }

    /// The archive of the first node.
    pub(super) fn archive(&self) -> &Arc<Archive> {
        &self.nodes[0].archive
    }

    /// Removes the newest blocks of all nodes.
    pub(super) fn roll_back(&mut self, depth: u64) {
        let ancestor = self.head() - depth;
        self.chain.truncate(ancestor as usize + 1);
        for node in &self.nodes {
            node.archive.reorganise(ancestor, []).unwrap();
        }
    }

    /// A data directory with an archive that has only the genesis.
    pub(super) fn genesis_in(&self, data_dir: &Path) {
        drop(Archive::open_or_create(data_dir, &self.genesis).unwrap());
    }

    /// Waits until the gateway has executed all that the nodes have.
    pub(super) fn wait_for(&self, front: &Front) {
        let head = call("eth_getBlockByNumber", r#"["latest",false]"#);
        // Nodes would be asked for this, and nothing of theirs is proven.
        let balance = call("eth_getBalance", &format!(r#"["{VESSEL}","latest"]"#));
        let truth = self.nodes[0].gateway.post(&head).json();
        until("the newest block is executed", || {
            post(front, &head).json()["result"]["hash"] == truth["result"]["hash"]
                && is_local(&post(front, &balance))
        });
    }

    /// Questions of every kind about the newest blocks and some older ones.
    fn questions(&self) -> String {
        let model = self.newest().model();
        let mut calls = vec![
            call("eth_blockNumber", "[]"),
            call("eth_chainId", "[]"),
            call("eth_gasPrice", "[]"),
            call("eth_maxPriorityFeePerGas", "[]"),
            call("eth_feeHistory", r#"["0x5","latest",[25,75.5]]"#),
            call("eth_getLogs", r#"[{"fromBlock":"earliest","toBlock":"latest"}]"#),
            call("eth_getTransactionReceipt", &format!(r#"["0x{}"]"#, "ab".repeat(32))),
        ];
        let numbers = (0..=3.min(self.head())).chain(self.head().saturating_sub(8)..=self.head());
        for number in numbers {
            let (tag, hash) = (format!("{number:#x}"), model.header(number).unwrap().hash());
            calls.push(call("eth_getBlockByNumber", &format!(r#"["{tag}",true]"#)));
            calls.push(call("eth_getBlockByHash", &format!(r#"["{hash}",false]"#)));
            calls.push(call("eth_getBlockReceipts", &format!(r#"["{tag}"]"#)));
            calls.push(call("eth_getUncleCountByBlockNumber", &format!(r#"["{tag}"]"#)));
            calls.push(call("eth_getUncleByBlockHashAndIndex", &format!(r#"["{hash}","0x0"]"#)));
            calls.push(call("eth_getLogs", &format!(r#"[{{"blockHash":"{hash}"}}]"#)));
            calls.push(call("eth_getBalance", &format!(r#"["{}","{tag}"]"#, signer(0).address())));
            calls.push(call("eth_getTransactionCount", &format!(r#"["{}","{tag}"]"#, signer(1).address())));
            calls.push(call("eth_getCode", &format!(r#"["{LOGGER}","{tag}"]"#)));
            calls.push(call("eth_getStorageAt", &format!(r#"["{VESSEL}","0x1",{{"blockHash":"{hash}"}}]"#)));
            calls.push(call("eth_call", &format!(r#"[{{"to":"{VESSEL}"}},"{tag}"]"#)));
            calls.push(call("eth_estimateGas", &format!(r#"[{{"to":"{LOGGER}","data":"0x00"}},"{tag}"]"#)));
            let block = model.block(number);
            for transaction in block.iter().flat_map(|block| &block.block.body.transactions) {
                let hash = transaction.tx_hash();
                calls.push(call("eth_getTransactionByHash", &format!(r#"["{hash}"]"#)));
                calls.push(call("eth_getTransactionReceipt", &format!(r#"["{hash}"]"#)));
            }
        }
        calls.join("\n")
    }

    /// Everything is answered by the archive, as a gateway over an archive with the same blocks answers it.
    pub(super) fn answers_are_equal(&self, front: &Front) {
        self.compare(front, |told, expected| {
            let is_ours = told.json().get("result").is_none() || is_local(told);
            told.body == expected.body && is_ours
        });
    }

    /// All results are those of the nodes, but for the total difficulty, which nobody can prove.
    pub(super) fn results_are_equal(&self, front: &Front) {
        let result = |reply: &ReceivedReply| {
            let mut result = reply.json()["result"].take();
            result.as_object_mut().map(|members| members.remove("totalDifficulty"));
            result
        };
        self.compare(front, |told, expected| result(told) == result(expected));
    }

    fn compare(&self, front: &Front, is_right: impl Fn(&ReceivedReply, &ReceivedReply) -> bool) {
        let (mut wire, mut truth) =
            (TestConnection::connect(front.public), TestConnection::connect(self.nodes[0].gateway.public));
        let mut differences = String::new();
        for question in self.questions().lines() {
            let (told, expected) = (wire.post("/v3/custom", question), truth.post("/v3/demo", question));
            if !is_right(&told, &expected) {
                let source = told.header("chaingate-source");
                let _ok = writeln!(
                    differences,
                    "{question} from {source:?}\n  {:.300}\n  {:.300}",
                    told.text(),
                    expected.text()
                );
            }
        }
        assert!(differences.is_empty(), "{differences}");
    }
}

fn post(front: &Front, body: &str) -> ReceivedReply {
    front.wire().post("/v3/custom", body)
}

/// Whether no node was asked.
fn is_local(reply: &ReceivedReply) -> bool {
    matches!(reply.header("chaingate-source"), Some("archive" | "cache"))
        && reply.header("chaingate-verified") == Some("proven")
}

pub(super) fn executing(data_dir: &Path, nodes: &[String]) -> Front {
    Front::following(data_dir, nodes, "mode = \"full\"", NETWORK)
}

/// Ends a gateway; the archive is free afterwards.
pub(super) fn stop(front: Front, data_dir: &Path) {
    drop(front);
    until("the archive is free", || Archive::open(data_dir).is_ok());
}

pub(super) fn executed(front: &Front, name: &str) -> f64 {
    metric(front.operator, &format!("chaingate_executed_{name}"))
}

#[test]
fn new_blocks_are_executed_and_answered_without_nodes() {
    let mut nodes = Nodes::start(12);
    let data_dir = tempfile::tempdir().unwrap();
    nodes.genesis_in(data_dir.path());
    let front = executing(data_dir.path(), &nodes.urls());
    nodes.wait_for(&front);
    nodes.answers_are_equal(&front);
    for _ in 0..3 {
        nodes.grow(2);
        nodes.wait_for(&front);
        nodes.answers_are_equal(&front);
    }
    // Which blocks are safe and finalized is what the nodes say, now and then.
    for tag in ["finalized", "safe"] {
        let told = post(&front, &call("eth_getBlockByNumber", &format!(r#"["{tag}",true]"#)));
        let number = &told.json()["result"]["number"];
        let same = call("eth_getBlockByNumber", &format!("[{number},true]"));
        assert_eq!(told.text(), nodes.nodes[0].gateway.post(&same).text());
        assert!(is_local(&told), "{told:?}");
    }
    assert_eq!(executed(&front, "blocks_total"), 18.0);
    assert_eq!(executed(&front, "block"), 18.0);
    assert_eq!(executed(&front, "behind_blocks"), 0.0);
}

#[test]
fn reorganisations_are_followed_and_survive_the_nodes_and_a_restart() {
    let mut nodes = Nodes::start(20);
    let data_dir = tempfile::tempdir().unwrap();
    nodes.genesis_in(data_dir.path());
    let front = executing(data_dir.path(), &nodes.urls());
    nodes.wait_for(&front);
    for depth in 1..=7 {
        nodes.reorganise(depth, depth + 50);
        nodes.wait_for(&front);
        nodes.answers_are_equal(&front);
    }
    assert!(executed(&front, "reorganisations_total") >= 7.0);
    nodes.nodes.iter().for_each(|node| node.proxy.set(testkit::proxy::Mood::Dead));
    until("the nodes are seen to be down", || get(front.operator, "/ready").status == 503);
    nodes.answers_are_equal(&front);
    stop(front, data_dir.path());
    // Nobody says what is safe or finalized when no node has ever answered.
    let again = Front::following_unready(data_dir.path(), &nodes.urls(), "mode = \"full\"", NETWORK);
    let head = post(&again, &call("eth_blockNumber", "[]"));
    assert_eq!(head.json()["result"], format!("{:#x}", nodes.head()));
    nodes.nodes.iter().for_each(|node| node.proxy.set(testkit::proxy::Mood::Honest));
    nodes.grow(1);
    nodes.wait_for(&again);
    nodes.answers_are_equal(&again);
}

/// The archive's newest blocks were replaced while nobody followed, and so many came after them that the view does not show them.
#[test]
fn an_archive_on_a_branch_that_is_gone_catches_up() {
    let mut nodes = Nodes::start(10);
    let data_dir = tempfile::tempdir().unwrap();
    nodes.genesis_in(data_dir.path());
    let front = executing(data_dir.path(), &nodes.urls());
    nodes.wait_for(&front);
    stop(front, data_dir.path());
    nodes.reorganise(3, 77);
    nodes.grow(300);
    let front = executing(data_dir.path(), &nodes.urls());
    nodes.wait_for(&front);
    nodes.answers_are_equal(&front);
    assert_eq!(executed(&front, "reorganisations_total"), 1.0);
}

/// The archive kept the blocks that the nodes had removed, and nodes answered, until there were new blocks.
#[test]
fn blocks_that_the_nodes_remove_are_removed_from_the_archive() {
    let mut nodes = Nodes::start(20);
    let data_dir = tempfile::tempdir().unwrap();
    nodes.genesis_in(data_dir.path());
    let urls = nodes.urls();
    let follow = || {
        let pool = format!("{NETWORK}[pool]\nrollback_after_ms = 20\n");
        Front::following(data_dir.path(), &urls, "mode = \"full\"", &pool)
    };
    let front = follow();
    nodes.wait_for(&front);
    for depth in [1, 5] {
        nodes.roll_back(depth);
        nodes.wait_for(&front);
        nodes.answers_are_equal(&front);
        assert_eq!(executed(&front, "block"), nodes.head() as f64);
    }
    let last = nodes.chain.len() - 1;
    nodes.chain[last] = Some(nodes.newest().branch(99));
    nodes.grow(2);
    nodes.wait_for(&front);
    nodes.answers_are_equal(&front);
    // While nobody follows.
    stop(front, data_dir.path());
    nodes.roll_back(3);
    let front = follow();
    nodes.wait_for(&front);
    nodes.answers_are_equal(&front);
    assert_eq!(executed(&front, "stopped"), 0.0);
}

/// Requests that come while blocks are executed are answered, and each from one chain.
#[test]
fn every_batch_sees_one_chain_while_blocks_are_executed() {
    let mut nodes = Nodes::start(8);
    let data_dir = tempfile::tempdir().unwrap();
    nodes.genesis_in(data_dir.path());
    let front = executing(data_dir.path(), &nodes.urls());
    let batch = format!(
        "[{},{},{}]",
        call("eth_getBlockByNumber", r#"["latest",false]"#),
        call("eth_blockNumber", "[]"),
        call("eth_getBlockByNumber", r#"["latest",true]"#)
    );
    let mut rng = StdRng::seed_from_u64(3);
    let mut answered = 0;
    for step in 0..20 {
        match rng.random_bool(0.5) {
            true => nodes.grow(1),
            false => nodes.reorganise(rng.random_range(1..=4), 200 + step),
        }
        for _ in 0..10 {
            let replies = post(&front, &batch).json();
            // The calls of a batch whose chain is gone before they were answered fail.
            if replies.as_array().unwrap().iter().any(|reply| reply["error"]["code"] == -32002) {
                continue;
            }
            answered += 1;
            let result = |index: usize| replies[index]["result"].clone();
            assert!(result(0)["hash"].is_string(), "{replies}");
            assert_eq!(result(0)["hash"], result(2)["hash"], "{replies}");
            assert_eq!(result(0)["number"], result(1), "{replies}");
        }
    }
    assert!(answered >= 100, "{answered} of 200 batches were answered");
    nodes.wait_for(&front);
    nodes.answers_are_equal(&front);
}

/// The state of blocks that were reorganised away is not served, nor anything of them to callers who want canonical blocks.
#[test]
fn blocks_of_a_replaced_branch_have_no_state() {
    let mut nodes = Nodes::start(12);
    let data_dir = tempfile::tempdir().unwrap();
    nodes.genesis_in(data_dir.path());
    let front = executing(data_dir.path(), &nodes.urls());
    nodes.wait_for(&front);
    let hash = nodes.newest().model().header(11).unwrap().hash();
    let state = [
        call("eth_getBalance", &format!(r#"["{VESSEL}",{{"blockHash":"{hash}"}}]"#)),
        call("eth_call", &format!(r#"[{{"to":"{VESSEL}"}},{{"blockHash":"{hash}"}}]"#)),
    ];
    state.iter().for_each(|question| assert!(post(&front, question).json()["result"].is_string()));
    for (depth, seed) in [(3, 1), (5, 2)] {
        nodes.reorganise(depth, seed);
        nodes.wait_for(&front);
        nodes.answers_are_equal(&front);
        for question in &state {
            let refused = post(&front, question).json();
            assert_eq!(refused["error"]["message"], "header for hash not found", "{refused}");
        }
        let canonical = format!(r#"["{VESSEL}",{{"blockHash":"{hash}","requireCanonical":true}}]"#);
        let refused = post(&front, &call("eth_getBalance", &canonical)).json();
        assert_eq!(refused["error"]["message"], "hash is not currently canonical", "{refused}");
        let block = post(&front, &call("eth_getBlockByHash", &format!(r#"["{hash}",true]"#))).json();
        let told = &block["result"]["hash"];
        assert!(block["result"].is_null() || *told == format!("{hash}"), "{block}");
    }
}

/// The data of a side block is answered by its hash while it is in memory: by a gateway that keeps recent blocks, and by one that
/// was asked for it before.
#[test]
fn side_blocks_are_answered_by_hash_while_they_are_in_memory() {
    let mut nodes = Nodes::start(12);
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    nodes.genesis_in(folders[0].path());
    let node = executing(folders[0].path(), &nodes.urls());
    nodes.wait_for(&node);
    let proxies: Vec<_> = (0..3).map(|_| Proxy::start(node.public, "/v3/custom")).collect();
    let urls: Vec<_> = proxies.iter().map(Proxy::url).collect();
    let fronts = [Front::of(&urls, NETWORK), Front::following(folders[1].path(), &urls, "from = 0", NETWORK)];
    let hash = nodes.newest().model().header(11).unwrap().hash();
    let transaction = *nodes.newest().model().block(11).unwrap().block.body.transactions[0].tx_hash();
    let by_hash = |method: &str, rest: &str| call(method, &format!(r#"["{hash}"{rest}]"#));
    let at_hash = format!(r#"{{"blockHash":"{hash}"}}"#);
    let questions = [
        by_hash("eth_getBlockByHash", ",true"),
        by_hash("eth_getBlockReceipts", ""),
        by_hash("eth_getBlockTransactionCountByHash", ""),
        by_hash("eth_getUncleCountByBlockHash", ""),
        by_hash("eth_getTransactionByBlockHashAndIndex", ",\"0x0\""),
        call("eth_getLogs", &format!("[{at_hash}]")),
    ];
    let state = [
        call("eth_getBalance", &format!(r#"["{}",{at_hash}]"#, signer(0).address())),
        call("eth_call", &format!(r#"[{{"to":"{VESSEL}"}},{at_hash}]"#)),
    ];
    let newest = call("eth_getBlockByNumber", r#"["latest",false]"#);
    let told = |front: &Front, question: &String| {
        let mut reply = post(front, question).json();
        // Only who has all headers knows it.
        reply["result"].as_object_mut().map(|block| block.remove("totalDifficulty"));
        reply
    };
    let before = questions.each_ref().map(|question| told(&node, question));
    let has = |front: &Front| post(front, &newest).json()["result"]["hash"].clone();
    for front in &fronts {
        until("it has the newest block", || has(front) == has(&node));
    }
    until("it is kept", || metric(fronts[1].operator, "chaingate_follow_memory_blocks") >= 13.0);
    questions.iter().for_each(|question| drop(told(&fronts[0], question)));
    nodes.reorganise(3, 1);
    nodes.wait_for(&node);
    for front in &fronts {
        until("it follows", || has(front) == has(&node));
        for (question, before) in questions.iter().zip(&before) {
            assert_eq!(told(front, question), *before, "{question}");
        }
        for question in &state {
            let refused = told(front, question);
            assert_eq!(refused["error"]["message"], "header for hash not found", "{refused}");
        }
        let canonical = format!(r#"["{VESSEL}",{{"blockHash":"{hash}","requireCanonical":true}}]"#);
        let refused = post(front, &call("eth_getBalance", &canonical)).json();
        assert_eq!(refused["error"]["message"], "hash is not currently canonical", "{refused}");
        let receipt = call("eth_getTransactionReceipt", &format!(r#"["{transaction}"]"#));
        assert_eq!(post(front, &receipt).json()["result"], post(&node, &receipt).json()["result"]);
    }
    drop(proxies);
    for front in &fronts {
        for (question, before) in questions.iter().zip(&before) {
            assert_eq!(told(front, question), *before, "it is in memory: {question}");
        }
    }
}

#[test]
fn a_gateway_without_an_archive_says_how_to_make_one() {
    let nodes = Nodes::start(1);
    let data_dir = tempfile::tempdir().unwrap();
    let open = |network: &str| {
        let urls = nodes.urls().iter().map(|url| format!("[[node]]\nurl = \"{url}\"\n")).collect::<String>();
        let text = format!(
            "data_dir = {:?}\n[[key]]\nkey = \"own\"\n[follow]\nmode = \"full\"\n[network]\nname = \"random\"\n{network}{urls}",
            data_dir.path()
        );
        let config = chaingate::config::Config::parse(&text).unwrap();
        chaingate::source::open(&config, &Supervisor::default(), |_, _| {}).map(drop).unwrap_err()
    };
    let missing = open("");
    assert!(missing.starts_with("[follow] mode = \"full\": there is no archive at "), "{missing}");
    assert!(missing.contains("; create one with `chaingate import --data-dir "), "{missing}");
    nodes.genesis_in(data_dir.path());
    let other = open("chain_id = 5\n");
    assert!(other.ends_with(" the archive has chain id 1337, but chain_id in [network] is 5"), "{other}");
}

/// `check` had the archive open twice, and said that another process used it.
#[test]
fn a_configuration_with_an_archive_behind_nodes_passes_the_check() {
    let nodes = Nodes::start(1);
    let data_dir = tempfile::tempdir().unwrap();
    nodes.genesis_in(data_dir.path());
    let text = format!(
        "data_dir = {:?}\n[[key]]\nkey = \"own\"\n[follow]\nmode = \"full\"\n[network]\nname = \"random\"\n\
         [[node]]\nurl = \"http://127.0.0.1:1\"\n",
        data_dir.path()
    );
    let config = chaingate::config::Config::parse(&text).unwrap();
    assert_eq!(chaingate::source::check(&config), Ok(chaingate::source::ArchiveCheck::Ok));
}

/// How long after a quorum of the nodes has a block it is answered without them, polling included.
#[test]
#[ignore = "a measurement"]
fn how_soon_a_new_block_is_answered_locally() {
    for mode in ["full", "blocks"] {
        let mut nodes = Nodes::start(20);
        let data_dir = tempfile::tempdir().unwrap();
        nodes.genesis_in(data_dir.path());
        let follow = format!("mode = \"{mode}\"");
        let front = Front::following(data_dir.path(), &nodes.urls(), &follow, NETWORK);
        // Of the executed chain a balance is asked: nodes would only confirm it.
        let question = match mode {
            "full" => call("eth_getBalance", &format!(r#"["{VESSEL}","latest"]"#)),
            _ => call("eth_getBlockByNumber", r#"["latest",true]"#),
        };
        let mut wire = front.wire();
        let mut times = Vec::new();
        for _ in 0..60 {
            nodes.grow_until_quorum(1);
            let (begun, number) = (std::time::Instant::now(), format!("{:#x} ", nodes.head()));
            loop {
                let told = wire.post("/v3/custom", &question);
                let is_newest =
                    told.header("chaingate-block").is_some_and(|block| block.starts_with(&number));
                if is_newest && told.header("chaingate-verified") == Some("proven") {
                    break times.push(begun.elapsed());
                }
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            nodes.grow(0);
        }
        times.sort();
        eprintln!("{mode}: median {:?}, 9 of 10 within {:?}, at most {:?}", times[30], times[53], times[59]);
    }
}
