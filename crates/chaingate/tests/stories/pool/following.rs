//! Blocks that are kept as the chain grows: they are answered without a node, after a restart, and after reorganisations.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use archive::Archive;
use chaingate::config::Config;
use parking_lot::Mutex;
use resources::Supervisor;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::forgery::Forgery;
use testkit::heavy::HeavyChain;
use testkit::http::get;
use testkit::proxy::{Mood, Proxy};

use super::front::Front;
use super::long;
use super::questions::outcome;
use crate::demo::{Demo, metric, until};
use crate::gateway_under_test::call;

const NETWORK: &str = "[network]\nname = \"long\"\n[cache]\nenabled = false\n";
const UNAVAILABLE: i64 = -32002;

/// Blocks of the chain that are deep enough to be on the disk.
const STORED: u64 = long::BLOCKS - 64;

/// Questions about one block of a chain.
fn about(chain: &HeavyChain, number: u64) -> Vec<(&'static str, String)> {
    let built = &chain.blocks[number as usize - 1];
    let (hash, transaction) = (built.hash, built.block.body.transactions[0].tx_hash());
    vec![
        ("eth_getBlockByNumber", format!(r#"["{number:#x}",true]"#)),
        ("eth_getBlockByHash", format!(r#"["{hash}",false]"#)),
        ("eth_getHeaderByNumber", format!(r#"["{number:#x}"]"#)),
        ("eth_getHeaderByHash", format!(r#"["{hash}"]"#)),
        ("eth_getBlockTransactionCountByNumber", format!(r#"["{number:#x}"]"#)),
        ("eth_getBlockTransactionCountByHash", format!(r#"["{hash}"]"#)),
        ("eth_getBlockReceipts", format!(r#"["{number:#x}"]"#)),
        ("eth_getUncleCountByBlockHash", format!(r#"["{hash}"]"#)),
        ("eth_getUncleByBlockNumberAndIndex", format!(r#"["{number:#x}","0x0"]"#)),
        ("eth_getTransactionByHash", format!(r#"["{transaction}"]"#)),
        ("eth_getTransactionReceipt", format!(r#"["{transaction}"]"#)),
        ("eth_getTransactionByBlockNumberAndIndex", format!(r#"["{number:#x}","0x1"]"#)),
        ("eth_getLogs", format!(r#"[{{"blockHash":"{hash}"}}]"#)),
    ]
}

/// Questions about blocks on the disk and in memory, and about the logs of all of them.
fn questions(chain: &HeavyChain) -> Vec<(&'static str, String)> {
    let mut questions: Vec<_> = [1, 2, 7, 44, 45, 100, STORED, STORED + 1, long::BLOCKS]
        .iter()
        .flat_map(|&number| about(chain, number))
        .collect();
    for (from, to) in [(1, long::BLOCKS), (3, 40), (30, 60), (200, 290)] {
        questions.push(("eth_getLogs", token_logs(from, to)));
    }
    for (count, newest) in [(3, 2), (60, 100), (300, long::BLOCKS)] {
        questions.push(("eth_feeHistory", format!(r#"["{count:#x}","{newest:#x}",[]]"#)));
    }
    questions.push(("eth_feeHistory", r#"["0x5","0x2d",[20,80]]"#.to_owned()));
    questions
}

fn answers(front: &Front, questions: &[(&'static str, String)]) -> Vec<Value> {
    questions.iter().map(|(method, params)| outcome(&front.ask(method, params))).collect()
}

fn truths(node: &Demo, questions: &[(&'static str, String)]) -> Vec<Value> {
    questions.iter().map(|(method, params)| outcome(&node.call(method, params))).collect()
}

fn compare(questions: &[(&'static str, String)], told: &[Value], truth: &[Value]) {
    for ((question, told), truth) in questions.iter().zip(told).zip(truth) {
        assert_eq!(told, truth, "{question:?}");
    }
}

fn proxies(node: &Demo, count: usize) -> (Vec<Proxy>, Vec<String>) {
    let proxies: Vec<_> = (0..count).map(|_| Proxy::start(node.public, "/v3/demo")).collect();
    let urls = proxies.iter().map(Proxy::url).collect();
    (proxies, urls)
}

fn follow_metric(front: &Front, name: &str) -> u64 {
    metric(front.operator, &format!("chaingate_follow_{name}")) as u64
}

/// Waits until so many blocks are on the disk and in memory.
fn until_stored(front: &Front, stored: u64, in_memory: u64) {
    until("all blocks are stored", || {
        (follow_metric(front, "blocks"), follow_metric(front, "memory_blocks")) == (stored, in_memory)
    });
}

#[test]
fn stored_blocks_are_answered_with_all_nodes_dead() {
    let chain = long::chain(2);
    let node = long::node(&chain);
    let (proxies, urls) = proxies(&node, 3);
    let folder = tempfile::tempdir().unwrap();
    let front = Front::following(folder.path(), &urls, "from = \"earliest\"", NETWORK);
    until_stored(&front, STORED + 1, 64);
    let questions = questions(&chain);
    let truth = truths(&node, &questions);
    proxies.iter().for_each(|proxy| proxy.set(Mood::Dead));
    compare(&questions, &answers(&front, &questions), &truth);
    let reply = front.ask_as("custom", "", "eth_getBlockByNumber", r#"["0x7",false]"#);
    assert_eq!(reply.header("chaingate-verified"), Some("proven"));
    let state = front.ask("eth_getStorageAt", &long::storage_at(r#""0x7""#));
    assert_eq!(state["error"]["code"], UNAVAILABLE, "only blocks are stored: {state}");
}

/// Blocks that were stored before a restart are used again, and no node is asked for them.
#[test]
fn stored_blocks_survive_a_restart() {
    let chain = long::chain(2);
    let node = long::node(&chain);
    let (proxies, urls) = proxies(&node, 2);
    let folder = tempfile::tempdir().unwrap();
    let front = Front::following(folder.path(), &urls, "from = 3", NETWORK);
    until_stored(&front, STORED - 2, 64);
    drop(front);
    let front = Front::following(folder.path(), &urls, "from = 3", NETWORK);
    until_stored(&front, STORED - 2, 64);
    assert_eq!(follow_metric(&front, "filled_blocks_total"), 0);
    let questions: Vec<_> = about(&chain, 7).into_iter().chain(about(&chain, 50)).collect();
    let truth = truths(&node, &questions);
    proxies.iter().for_each(|proxy| proxy.set(Mood::Dead));
    compare(&questions, &answers(&front, &questions), &truth);
}

/// Nobody can say what the head is now: the newest stored block is, and `/ready` says that no node answers.
#[test]
fn stored_blocks_are_answered_after_a_restart_with_all_nodes_dead() {
    let chain = long::chain(2);
    let node = long::node(&chain);
    let (proxies, urls) = proxies(&node, 2);
    let folder = tempfile::tempdir().unwrap();
    let front = Front::following(folder.path(), &urls, "from = 3", NETWORK);
    until_stored(&front, STORED - 2, 64);
    drop(front);
    proxies.iter().for_each(|proxy| proxy.set(Mood::Dead));
    let front = Front::following_unready(folder.path(), &urls, "from = 3", NETWORK);
    until("the stored blocks are served", || {
        front.ask("eth_blockNumber", "[]")["result"] == format!("{STORED:#x}")
    });
    let ready = get(front.operator, "/ready");
    assert_eq!(ready.status, 503, "{}", ready.text());
    let numbers = [3, 7, 50, STORED];
    let mut questions: Vec<_> = numbers.iter().flat_map(|&number| about(&chain, number)).collect();
    questions.push(("eth_getLogs", token_logs(3, STORED)));
    questions.push(("eth_chainId", "[]".to_owned()));
    compare(&questions, &answers(&front, &questions), &truths(&node, &questions));
    proxies.iter().for_each(|proxy| proxy.set(Mood::Honest));
    until("it is ready", || get(front.operator, "/ready").status == 200);
    assert_eq!(front.ask("eth_blockNumber", "[]")["result"], format!("{:#x}", long::BLOCKS));
    until_stored(&front, STORED - 2, 64);
}

#[test]
fn the_newest_blocks_are_stored_within_the_limit() {
    let chain = long::chain(2);
    let node = long::node(&chain);
    let (_proxies, urls) = proxies(&node, 1);
    let folder = tempfile::tempdir().unwrap();
    let front = Front::following(folder.path(), &urls, "from = \"earliest\"\nblocks_max = 210", NETWORK);
    until_stored(&front, 210, 64);
    assert_eq!(follow_metric(&front, "lowest_block"), STORED - 209);
    drop(front);
    let front = Front::following(folder.path(), &urls, "blocks_max = 0\nfrom = 10", NETWORK);
    until_stored(&front, STORED - 9, 64);
}

/// Without `from`, no block is fetched that was there before the first start.
#[test]
fn blocks_are_stored_from_the_first_start_on() {
    let chain = long::chain(2);
    let node = long::node(&chain);
    let (proxies, urls) = proxies(&node, 1);
    let folder = tempfile::tempdir().unwrap();
    let front = Front::following(folder.path(), &urls, "", NETWORK);
    until_stored(&front, 0, 1);
    let whole = |number: usize| format!(r#"["{}",true]"#, chain.blocks[number - 1].hash);
    assert_eq!(proxies[0].asked("eth_getBlockByHash", &whole(300)), 1);
    assert_eq!(proxies[0].asked("eth_getBlockByHash", &whole(299)), 0);
}

#[test]
fn nothing_is_stored_where_following_is_off() {
    let node = long::node(&long::chain(1));
    let (_proxies, urls) = proxies(&node, 1);
    let folder = tempfile::tempdir().unwrap();
    let front = Front::following(folder.path(), &urls, "mode = \"off\"", NETWORK);
    assert!(front.ask("eth_getBlockByNumber", r#"["0x7",true]"#)["result"].is_object());
    assert!(!get(front.operator, "/metrics").text().contains("chaingate_follow"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// How fast older blocks are stored, what they take on the disk, and how long a restart takes.
#[test]
#[ignore = "a measurement"]
fn how_fast_older_blocks_are_stored() {
    for (blocks, transactions) in [(6_000, 1), (1_000, 50)] {
        let chain = long::chain_of(blocks, transactions);
        let node = long::node(&chain);
        let urls = [format!("http://{}/v3/demo", node.public)];
        let folder = tempfile::tempdir().unwrap();
        let front = Front::following(folder.path(), &urls, "from = \"earliest\"", NETWORK);
        let begun = Instant::now();
        let before = follow_metric(&front, "blocks");
        until("all blocks are stored", || follow_metric(&front, "blocks") == blocks - 63);
        let (time, bytes) = (begun.elapsed(), follow_metric(&front, "file_bytes"));
        drop(front);
        let begun = Instant::now();
        let front = Front::following(folder.path(), &urls, "from = \"earliest\"", NETWORK);
        let restart = begun.elapsed();
        let kept = (blocks - 63 - before) as f64 / time.as_secs_f64();
        let encoded: usize = chain.blocks.iter().map(|built| built.rlp().len()).sum();
        eprintln!(
            "{blocks} blocks of {transactions}: {kept:.0} blocks/s, {} bytes each (RLP {}), ready {restart:?} after a restart",
            bytes / (blocks - 63),
            encoded as u64 / blocks
        );
        drop(front);
    }
}

/// Stored blocks of another chain than that of the nodes are not used, and nodes answer.
#[test]
fn stored_blocks_of_another_chain_are_not_used() {
    let (chain, other) = (long::chain(2), long::chain(3));
    let (node, other_node) = (long::node(&chain), long::node(&other));
    let folder = tempfile::tempdir().unwrap();
    let (_proxies, urls) = proxies(&node, 1);
    let front = Front::following(folder.path(), &urls, "from = \"earliest\"", NETWORK);
    until_stored(&front, STORED + 1, 64);
    drop(front);
    let (_proxies, urls) = proxies(&other_node, 1);
    let front = Front::following(folder.path(), &urls, "", NETWORK);
    let questions: Vec<_> = about(&other, 7).into_iter().chain(about(&other, 290)).collect();
    compare(&questions, &answers(&front, &questions), &truths(&other_node, &questions));
    until("following has stopped", || follow_metric(&front, "running") == 0);
    compare(&questions, &answers(&front, &questions), &truths(&other_node, &questions));
}

/// The blocks of another network were served as those of the configured one while no node answered.
#[test]
fn stored_blocks_of_another_chain_than_the_configured_one_are_refused() {
    let node = long::node(&long::chain(2));
    let folder = tempfile::tempdir().unwrap();
    let (_proxies, urls) = proxies(&node, 1);
    let front = Front::following(folder.path(), &urls, "from = \"earliest\"", NETWORK);
    until_stored(&front, STORED + 1, 64);
    drop(front);
    let open = |network: &str| {
        let text = format!(
            "data_dir = {:?}\n[[node]]\nurl = \"http://127.0.0.1:9\"\n[[key]]\nkey = \"k\"\n[network]\nname = \"x\"\n{network}",
            folder.path()
        );
        let config = Config::parse(&text).unwrap();
        let open =
            || chaingate::source::open(&config, &Supervisor::default(), |_, _| {}).map(|_| ()).unwrap_err();
        until("the file is closed", || !open().contains("in use"));
        open()
    };
    let other_id = open("chain_id = 1\n");
    let expected = "the stored blocks have chain id 1338, but chain_id in [network] is 1;";
    assert!(other_id.starts_with(expected), "{other_id}");
    let other_genesis = open(&format!("genesis_hash = \"0x{}\"\n", "ab".repeat(32)));
    assert!(
        other_genesis.starts_with("the stored blocks belong to the chain with block 0"),
        "{other_genesis}"
    );
}

/// A node that lies about old blocks, and one whose blocks of old numbers are others: what is kept is true all the same.
#[test]
fn only_proven_blocks_are_stored() {
    use testkit::forgery::Forgery;
    let (chain, other) = (long::chain(2), long::chain(3));
    let (node, other_node) = (long::node(&chain), long::node(&other));
    let (proxies, urls) = proxies(&node, 3);
    proxies[0].set(Mood::OtherDepths { node: other_node.public, below: 250 });
    proxies[1].set(Mood::Forging(Forgery::ALL[0]));
    let folder = tempfile::tempdir().unwrap();
    let front = Front::following(folder.path(), &urls, "from = \"earliest\"", NETWORK);
    until_stored(&front, STORED + 1, 64);
    let questions = questions(&chain);
    proxies.iter().for_each(|proxy| proxy.set(Mood::Dead));
    compare(&questions, &answers(&front, &questions), &truths(&node, &questions));
}

/// A directory that cannot be written is found at the start.
#[test]
fn a_data_directory_that_cannot_be_written_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a-file");
    std::fs::write(&file, "").unwrap();
    let text = format!(
        "data_dir = {:?}\n[[key]]\nkey = \"k\"\n[[node]]\nurl = \"http://127.0.0.1:1\"\n[network]\nname = \"x\"\n",
        file.join("below")
    );
    let config = Config::parse(&text).unwrap();
    let refused = chaingate::source::open(&config, &Supervisor::default(), |_, _| {}).unwrap_err();
    assert!(refused.contains("[follow] cannot write"), "{refused}");
}

/// A chain that grows while it is followed.
pub(super) struct Growing {
    archive: Arc<Archive>,
    _folder: TempDir,
    chain: HeavyChain,
    next: Mutex<usize>,
}

impl Growing {
    /// Starts with the first `blocks` of the chain.
    pub(super) fn start(chain: HeavyChain, blocks: usize) -> (Self, Demo) {
        let folder = tempfile::tempdir().unwrap();
        let archive = Arc::new(Archive::open_or_create(folder.path(), &chain.genesis_json()).unwrap());
        let node = Demo::sharing(Arc::clone(&archive));
        let growing = Self { archive, _folder: folder, chain, next: Mutex::new(0) };
        growing.grow(blocks);
        (growing, node)
    }

    pub(super) fn head(&self) -> u64 {
        self.archive.snapshot().head()
    }

    pub(super) fn grow(&self, blocks: usize) {
        let mut next = self.next.lock();
        let new: Vec<_> =
            self.chain.blocks[*next..*next + blocks].iter().map(|built| built.block.clone()).collect();
        self.archive.import_blocks(new, &mut archive::NoProgress).unwrap();
        *next += blocks;
    }
}

/// New blocks are in memory at first, and on the disk when they are 64 deep.
#[test]
fn new_blocks_are_followed_and_written_when_they_are_deep() {
    let (growing, node) = Growing::start(long::chain(2), 10);
    let (proxies, urls) = proxies(&node, 2);
    let folder = tempfile::tempdir().unwrap();
    let front = Front::following(folder.path(), &urls, "", NETWORK);
    until_stored(&front, 0, 1);
    for _ in 0..20 {
        growing.grow(5);
        let head = format!("{:#x}", growing.archive.snapshot().head());
        until("the head is seen", || front.ask("eth_blockNumber", "[]")["result"] == head);
    }
    // Blocks 10 to 110, of which 46 and those below are deep.
    until_stored(&front, 37, 64);
    proxies.iter().for_each(|proxy| proxy.set(Mood::Dead));
    let questions: Vec<_> =
        [10, 46, 47, 110].iter().flat_map(|&number| about(&growing.chain, number)).collect();
    compare(&questions, &answers(&front, &questions), &truths(&node, &questions));
}

/// While the gateway was away the chain grew by more than the view's window: the gap is filled.
#[test]
fn blocks_that_came_during_an_outage_are_fetched() {
    let (growing, node) = Growing::start(long::chain_of(700, 1), 200);
    let (proxies, urls) = proxies(&node, 2);
    let folder = tempfile::tempdir().unwrap();
    let front = Front::following(folder.path(), &urls, "from = 100", NETWORK);
    until_stored(&front, 37, 64);
    drop(front);
    growing.grow(500);
    let front = Front::following(folder.path(), &urls, "from = 100", NETWORK);
    until_stored(&front, 537, 64);
    proxies.iter().for_each(|proxy| proxy.set(Mood::Dead));
    let questions: Vec<_> =
        [100, 136, 137, 300, 636, 637].iter().flat_map(|&number| short(&growing.chain, number)).collect();
    compare(&questions, &answers(&front, &questions), &truths(&node, &questions));
}

fn token_logs(from: u64, to: u64) -> String {
    let address = testkit::heavy::TOKEN;
    json!([{"fromBlock": format!("{from:#x}"), "toBlock": format!("{to:#x}"), "address": address}])
        .to_string()
}

#[test]
fn headers_for_log_queries_are_stored_within_the_limit() {
    let chain = long::chain(2);
    let node = long::node(&chain);
    let (proxies, urls) = proxies(&node, 2);
    let folder = tempfile::tempdir().unwrap();
    let front = Front::following(folder.path(), &urls, "headers_max = 20", NETWORK);
    let logs = token_logs(2, 40);
    assert_eq!(outcome(&front.ask("eth_getLogs", &logs)), outcome(&node.call("eth_getLogs", &logs)));
    assert_eq!(follow_metric(&front, "headers"), 20);
    let asked = |number: u64| -> u64 {
        let params = format!(r#"["{number:#x}",false]"#);
        proxies.iter().map(|proxy| proxy.asked("eth_getBlockByNumber", &params)).sum()
    };
    let before = (asked(10), asked(35));
    let logs = token_logs(5, 40);
    assert_eq!(outcome(&front.ask("eth_getLogs", &logs)), outcome(&node.call("eth_getLogs", &logs)));
    assert_eq!((asked(10) > before.0, asked(35) > before.1), (true, false), "the newest ones are kept");
}

/// Of a range with more than 2,048 old blocks, the old part was the word of one node. Now it is proven, however wide it is, and
/// the headers that it took are kept. When there is no time for them, the error says so, and the next query gets further.
#[test]
fn logs_of_wide_old_ranges_are_proven() {
    let chain = long::chain_of(2_500, 1);
    let node = long::node(&chain);
    let (proxies, urls) = proxies(&node, 2);
    let folder = tempfile::tempdir().unwrap();
    let rest = format!("{NETWORK}[limits]\nlog_timeout_ms = 4000\n");
    let front = Front::following(folder.path(), &urls, "", &rest);
    let logs = token_logs(1, 2_500);
    // The blocks at the ends of the range are known before the nodes fall silent.
    assert!(front.ask("eth_getBlockByNumber", r#"["0x1",false]"#)["result"].is_object());
    proxies.iter().for_each(|proxy| proxy.script("eth_getBlockByNumber", Vec::new()));
    let reply = front.ask("eth_getLogs", &logs);
    assert_eq!(reply["error"]["message"], "query timeout exceeded", "{reply}");
    assert!(reply["error"]["data"]["reason"].as_str().unwrap().contains("not fetched yet"), "{reply}");
    proxies.iter().for_each(|proxy| proxy.forget_script("eth_getBlockByNumber"));
    proxies[0].set(Mood::NoLogs);
    let truth = outcome(&node.call("eth_getLogs", &logs));
    let mut verified = None;
    until("the headers are there", || {
        let reply = front.ask_as("custom", "", "eth_getLogs", &logs);
        verified = reply.header("chaingate-verified").map(str::to_owned);
        let reply = reply.json();
        reply.get("result").is_some() && outcome(&reply) == truth
    });
    assert_eq!(verified.as_deref(), Some("proven"));
    assert_eq!(follow_metric(&front, "headers"), 2_500 - 256);
}

fn short(chain: &HeavyChain, number: u64) -> Vec<(&'static str, String)> {
    let mut questions = about(chain, number);
    questions.truncate(4);
    questions
}

/// Many callers while blocks are fetched and written.
#[test]
fn callers_are_answered_rightly_while_blocks_are_being_stored() {
    let chain = long::chain(2);
    let node = long::node(&chain);
    let (_proxies, urls) = proxies(&node, 2);
    let folder = tempfile::tempdir().unwrap();
    let front = Front::following(folder.path(), &urls, "from = \"earliest\"", NETWORK);
    let questions = questions(&chain);
    let truth = truths(&node, &questions);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| compare(&questions, &answers(&front, &questions), &truth));
        }
    });
    until_stored(&front, STORED + 1, 64);
    assert_eq!(get(front.operator, "/ready").status, 200);
    let batch = format!(
        "[{}]",
        questions.iter().map(|(method, params)| call(method, params)).collect::<Vec<_>>().join(",")
    );
    let reply = testkit::http::post(front.public, "/v3/custom", batch).json();
    assert_eq!(reply.as_array().map(Vec::len), Some(questions.len()));
}

/// The receipts of a block could not be proven, and the block was fetched again once a second without end, silently.
#[test]
fn a_block_that_cannot_be_proven_is_fetched_ever_more_rarely() {
    let (chain, folder) = (long::chain(2), tempfile::tempdir().unwrap());
    let node = long::node(&chain);
    let proxy = Proxy::start(node.public, "/v3/demo");
    proxy.set(Mood::Forging(Forgery::ReceiptStatus));
    let front = Front::following(folder.path(), &[proxy.url()], "", NETWORK);
    let asked = || proxy.asked_method("eth_getBlockReceipts");
    until("it was fetched some times", || asked() >= 6);
    let before = asked();
    thread::sleep(Duration::from_secs(10));
    assert!(asked() - before <= 8, "{} calls in 10 s", asked() - before);
    let awaited = || get(front.operator, "/status").json()["follow"]["blocks_not_fetched"].clone();
    let told = awaited()[0].clone();
    let because = told["because"].as_str().unwrap();
    assert_eq!(
        (&told["number"], because.contains(&proxy.address.to_string())),
        (&json!(long::BLOCKS), true),
        "{told}"
    );
    assert!(
        because.contains("eth_getBlockReceipts") && because.contains("the receipts are not those"),
        "{told}"
    );
    proxy.set(Mood::Honest);
    until("it is fetched", || awaited() == json!([]));
}
