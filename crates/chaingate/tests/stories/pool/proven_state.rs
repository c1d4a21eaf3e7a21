//! State that is proven. Nodes deliver proofs; whatever else they say about the state counts for nothing.

use std::sync::Arc;
use std::thread;

use alloy_primitives::{U256, hex};
use alloy_sol_types::SolCall;
use chaingate::config::Config;
use chaingate::source;
use demo::HEAD_NUMBER;
use demo_builder::accounts::{ALICE, BOB};
use demo_builder::contracts::abi::{Clock, Token, Tour};
use demo_builder::contracts::{CLOCK, TOKEN, TOUR};
use demo_builder::facts;
use resources::Supervisor;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::anvil::Anvil;
use testkit::forgery::Forgery;
use testkit::proofs::{ProofLie, ProvableStates};
use testkit::proxy::{Mood, Proxy};

use super::front::Front;
use super::long;
use super::questions::outcome;
use crate::demo::{Demo, metric};
use crate::gateway_under_test::call;

/// Gateways that are tried at the same time.
const AT_ONCE: usize = 4;

/// An account without ether and code.
const NOBODY: &str = "0x00000000000000000000000000000000000000aa";

/// No machine takes so long for a call, however busy it is.
const PATIENT: &str = "[limits]\ncall_timeout_ms = 120000\n[pool]\ncall_timeout_ms = 120000\n";

/// `[cache]` without room for answers.
const NO_ANSWERS: &str = "[cache]\nbytes_max = 1\n";

/// The demo chain, its states, and its rules in a file.
struct World {
    chain: Demo,
    proofs: Arc<ProvableStates>,
    folder: TempDir,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("genesis.json"), demo::GENESIS).unwrap();
        let proofs =
            Arc::new(ProvableStates::of(&demo_builder::genesis(), &demo_builder::build().unwrap().blocks));
        Self { chain: Demo::with(""), proofs, folder }
    }

    /// The configuration with which state is proven.
    fn config(&self, rest: &str) -> String {
        let genesis = self.folder.path().join("genesis.json");
        let genesis = genesis.display();
        format!(
            "[network]\nname = \"demo\"\ngenesis = \"{genesis}\"\n[integrity]\nstate = \"prove\"\n{PATIENT}{rest}"
        )
    }

    /// A gateway in front of nodes that give proofs, each with its lie, or honest.
    fn front(&self, nodes: &[Option<ProofLie>], rest: &str) -> (Vec<Proxy>, Front) {
        let proxies: Vec<_> = nodes.iter().map(|_| Proxy::start(self.chain.public, "/v3/demo")).collect();
        for (proxy, lie) in proxies.iter().zip(nodes) {
            proxy.prove_with(&self.proofs, *lie);
        }
        let urls: Vec<_> = proxies.iter().map(Proxy::url).collect();
        let front = Front::of(&urls, &self.config(rest));
        (proxies, front)
    }

    /// A gateway in front of three nodes that give proofs, a quorum of which must confirm the state.
    fn confirming(&self, lie: Option<ProofLie>) -> (Vec<Proxy>, Front) {
        let proxies: Vec<_> = (0..3).map(|_| self.proxy()).collect();
        proxies.iter().for_each(|proxy| proxy.prove_with(&self.proofs, lie));
        let urls: Vec<_> = proxies.iter().map(Proxy::url).collect();
        let confirm = self.config("[cache]\nenabled = false\n").replace("\"prove\"", "\"confirm\"");
        (proxies, Front::of(&urls, &confirm))
    }

    fn proxy(&self) -> Proxy {
        Proxy::start(self.chain.public, "/v3/demo")
    }

    /// The reply of the embedded chain, byte for byte.
    fn truth(&self, method: &str, params: &str) -> String {
        self.chain.post(call(method, params)).text().to_owned()
    }
}

fn data(call: &impl SolCall) -> String {
    hex::encode_prefixed(call.abi_encode())
}

/// Messages of every kind: reads, writes, failures, creations that look at their surroundings.
fn messages() -> Vec<Value> {
    let to_tour = |call: String| json!({"from": ALICE.address, "to": TOUR.address(), "data": call});
    let transfer = Token::transferCall { to: BOB.address, value: U256::from(7) };
    vec![
        json!({"to": TOKEN.address(), "data": data(&Token::balanceOfCall { owner: ALICE.address })}),
        json!({"from": ALICE.address, "to": TOKEN.address(), "data": data(&transfer)}),
        json!({"from": BOB.address, "to": TOKEN.address(), "data": data(&transfer), "gas": "0x7530"}),
        to_tour(data(&Tour::bumpCall {})),
        to_tour(data(&Tour::announceCall { value: U256::from(3) })),
        to_tour(data(&Tour::failWithReasonCall {})),
        to_tour(data(&Tour::failWithErrorCall { wanted: U256::from(9) })),
        to_tour(data(&Tour::failWithInvalidCall {})),
        json!({"from": ALICE.address, "to": CLOCK.address(), "data": data(&Clock::lookCall {})}),
        json!({"from": ALICE.address, "to": BOB.address, "value": "0x1"}),
        json!({"from": NOBODY, "to": BOB.address, "value": "0x1"}),
        // The hash of the block before.
        json!({"data": "0x600143034060005260206000f3"}),
        // The balance of the miner.
        json!({"data": "0x413160005260206000f3"}),
    ]
}

/// Questions about the state of some block.
fn questions(block: &str) -> Vec<(&'static str, String)> {
    let mut questions = Vec::new();
    for address in [ALICE.address.to_string(), TOUR.address().to_string(), NOBODY.to_owned()] {
        for method in ["eth_getBalance", "eth_getTransactionCount", "eth_getCode"] {
            questions.push((method, format!(r#"["{address}","{block}"]"#)));
        }
        questions.push(("eth_getStorageAt", format!(r#"["{address}","0x2","{block}"]"#)));
    }
    for slot in facts::slots() {
        let (contract, position) = (slot.contract.address(), slot.position);
        questions.push(("eth_getStorageAt", format!(r#"["{contract}","{position}","{block}"]"#)));
    }
    for message in messages() {
        questions.push(("eth_call", json!([message, block]).to_string()));
        questions.push(("eth_estimateGas", json!([message, block]).to_string()));
    }
    questions
}

/// Asks all questions, and compares the replies with those of the embedded chain, byte for byte.
fn assert_all_true(world: &World, front: &Front, block: &str) {
    assert_true(world, front, questions(block));
}

/// Asks some questions of each kind about the newest block, and compares the replies.
fn assert_some_true(world: &World, front: &Front) {
    assert_true(world, front, questions("latest").into_iter().step_by(3));
}

fn assert_true(world: &World, front: &Front, questions: impl IntoIterator<Item = (&'static str, String)>) {
    for (method, params) in questions {
        let reply = front.ask_as("custom", "", method, &params);
        assert_eq!(reply.text(), world.truth(method, &params), "{method} {params}");
        if reply.json().get("result").is_some() {
            assert_eq!(reply.header("chaingate-verified"), Some("proven"), "{method} {params}");
        }
    }
}

/// Two of three nodes were silent. Every read of the state waited two seconds for them, and failed.
#[test]
fn where_a_quorum_must_confirm_one_node_that_gives_proofs_is_enough() {
    let world = World::new();
    for mood in [Mood::Hung, Mood::HungOnData, Mood::Dead] {
        let (proxies, front) = world.confirming(None);
        proxies[..2].iter().for_each(|proxy| proxy.set(mood));
        assert_true(&world, &front, questions("latest").into_iter().step_by(7));
        assert!(metric(front.operator, "chaingate_confirmations_total{outcome=\"proven\"}") >= 1.0);
        assert_eq!(metric(front.operator, "chaingate_confirmations_total{outcome=\"failed\"}"), 0.0);
    }
}

#[test]
fn a_node_that_is_left_alone_is_not_believed_about_the_state_without_a_true_proof() {
    let world = World::new();
    for lie in [ProofLie::OtherState, ProofLie::NoNodes] {
        let (proxies, front) = world.confirming(Some(lie));
        proxies[..2].iter().for_each(|proxy| proxy.set(Mood::Dead));
        proxies[2].set(Mood::Forging(Forgery::Balance));
        let params = format!(r#"["{}","latest"]"#, ALICE.address);
        let reply = front.ask_as("custom", "", "eth_getBalance", &params);
        assert_eq!(reply.error(), "-32002 resource unavailable", "{lie:?}");
    }
}

#[test]
fn proven_answers_are_those_of_the_embedded_chain_at_every_fork() {
    let world = World::new();
    let (_proxies, front) = world.front(&[None], "");
    for number in (4..HEAD_NUMBER).step_by(8) {
        assert_all_true(&world, &front, &format!("{number:#x}"));
    }
    assert_all_true(&world, &front, "earliest");
    assert_all_true(&world, &front, "latest");
}

#[test]
fn overrides_work_on_proven_state_as_on_the_embedded_chain() {
    let world = World::new();
    let (_proxies, front) = world.front(&[None], "");
    let (tour, answer) = (TOUR.address().to_string(), "0x85bb7d69");
    let poor = json!({"from": NOBODY, "to": BOB.address, "value": "0x1"});
    let call_answer = json!({"to": tour, "data": answer});
    let word = |value: u64| format!("0x{value:064x}");
    let returns_number = json!({"to": NOBODY, "data": "0x"});
    for params in [
        json!([call_answer, "latest", {tour.clone(): {"stateDiff": {word(0): word(7)}}}]),
        json!([call_answer, "latest", {tour.clone(): {"state": {word(1): word(7)}}}]),
        json!([poor, "latest", {NOBODY: {"balance": "0xde0b6b3a7640000"}}]),
        json!([returns_number, "latest", {NOBODY: {"code": "0x435f5260205ff3"}}, {"number": "0x1234"}]),
        json!([call_answer, "latest", {tour: {"state": {}, "stateDiff": {}}}]),
    ] {
        for method in ["eth_call", "eth_estimateGas"] {
            let (params, reply) =
                (params.to_string(), front.ask_as("custom", "", method, &params.to_string()));
            assert_eq!(reply.text(), world.truth(method, &params), "{method} {params}");
        }
    }
}

/// One of three lied about storage, balances, calls and estimates, and every third answer was its own.
#[test]
fn one_liar_of_three_changes_no_proven_state() {
    let world = World::new();
    for lies in ProofLie::ALL.chunks(AT_ONCE) {
        thread::scope(|scope| {
            for lie in lies {
                let world = &world;
                scope.spawn(move || {
                    let (proxies, front) = world.front(&[Some(*lie), None, None], "");
                    assert_some_true(world, &front);
                    // Answers that were kept are as true once the liar has gone.
                    proxies[0].prove_with(&world.proofs, None);
                    assert_some_true(world, &front);
                });
            }
        });
    }
}

/// The only node lies. Its answers are proven, or are not passed on.
#[test]
fn a_liar_alone_changes_no_proven_state() {
    let world = World::new();
    for lie in ProofLie::ALL {
        let (_proxies, front) = world.front(&[Some(lie)], "");
        for (method, params) in questions("latest").into_iter().step_by(3) {
            let told = front.ask(method, &params);
            let truth = outcome(&world.chain.call(method, &params));
            let told = outcome(&told);
            let is_withheld = told["code"] == -32002
                || told["message"].as_str().is_some_and(|text| text.contains("timeout"));
            assert!(told == truth || is_withheld, "{lie:?}: {method} {params}: {told}");
        }
    }
}

/// Each question was asked of a node, although the proofs at hand answer it.
#[test]
fn proofs_are_kept_for_further_questions() {
    let world = World::new();
    let token = TOKEN.address();
    let balance_of = data(&Token::balanceOfCall { owner: ALICE.address });
    for (state_bytes_max, is_kept) in [(64 << 20, true), (1, false)] {
        let rest = format!("{NO_ANSWERS}state_bytes_max = {state_bytes_max}\n");
        let (proxies, front) = world.front(&[None], &rest);
        let ask = || {
            front.ask("eth_getBalance", &format!(r#"["{token}","latest"]"#));
            front.ask("eth_getStorageAt", &format!(r#"["{token}","0x2","latest"]"#));
            front.ask("eth_call", &json!([{"to": token, "data": balance_of}, "latest"]).to_string());
            proxies[0].asked_method("eth_getProof") + proxies[0].asked_method("eth_getCode")
        };
        let (first, second) = (ask(), ask());
        assert!(first >= 4, "{first}");
        assert_eq!(second == first, is_kept, "{first} {second}");
    }
}

/// Accounts and slots that a call read are fetched at once when the same function is called at another block.
#[test]
fn accounts_and_slots_that_a_function_read_before_are_fetched_beforehand() {
    let world = World::new();
    let (proxies, front) = world.front(&[None], "");
    let message =
        json!({"to": TOKEN.address(), "data": data(&Token::balanceOfCall { owner: ALICE.address })});
    let proofs_at = |block: u64| {
        let before = proxies[0].asked_method("eth_getProof");
        let params = json!([message, format!("{block:#x}")]).to_string();
        assert_eq!(front.ask_as("custom", "", "eth_call", &params).text(), world.truth("eth_call", &params));
        proxies[0].asked_method("eth_getProof") - before
    };
    // Sender, contract and miner, and then a slot of the contract.
    assert_eq!(proofs_at(HEAD_NUMBER - 1), 4);
    assert_eq!(proofs_at(HEAD_NUMBER), 3);
}

/// A node without proofs cannot be told from one that hides them.
#[test]
fn one_node_without_proofs_is_not_believed() {
    let world = World::new();
    let proxy = Proxy::start(world.chain.public, "/v3/demo");
    let front = Front::of(&[proxy.url()], &world.config(""));
    let told = front.ask("eth_getBalance", &format!(r#"["{}","latest"]"#, ALICE.address));
    assert_eq!(outcome(&told)["message"], "state cannot be proven: no node gives proofs", "{told}");
}

/// A call that reads one account after another took a round of proofs for each of them.
#[test]
fn a_node_may_suggest_what_a_call_reads_and_is_not_believed() {
    let world = World::new();
    let hinting =
        ProvableStates::of(&demo_builder::genesis(), &demo_builder::build().unwrap().blocks).with_hints();
    let hinting = Arc::new(hinting);
    // The balances of eight accounts that nobody has heard of, added up.
    let balances: String = (0xb0..0xb8).map(|byte| format!("60{byte:02x}3101")).collect();
    let params = json!([{"data": format!("0x6000{balances}60005260206000f3")}, "latest"]).to_string();
    let runs = |proofs: &Arc<ProvableStates>, lie: Option<ProofLie>| {
        let (proxies, front) = world.front(&[None], "");
        proxies[0].prove_with(proofs, lie);
        let jobs = || metric(front.operator, "chaingate_pool_jobs_total");
        let before = jobs();
        let reply = front.ask_as("custom", "", "eth_call", &params);
        assert_eq!(reply.text(), world.truth("eth_call", &params));
        jobs() - before
    };
    let without = runs(&world.proofs, None);
    let with = runs(&hinting, None);
    assert!(without >= 9.0 && with <= without - 6.0, "{without} {with}");
    // Values beside the proofs are false here, too, and not read either.
    runs(&hinting, Some(ProofLie::Values));
}

/// A real node gives proofs of its newest block.
#[test]
fn the_state_of_anvil_is_proven() {
    let Some(anvil) = Anvil::start(&[]) else { return };
    let alice = anvil.ask("eth_accounts", json!([]))[0].clone();
    let create = json!({"from": alice, "data": "0x602a60075560016000f3", "gas": "0x30000"});
    anvil.ask("eth_sendTransaction", json!([create]));
    anvil.mine(1);
    let contract = anvil.ask("eth_getBlockReceipts", json!(["latest"]))[0]["contractAddress"].clone();
    let url = format!("http://{}", anvil.address);
    let front = Front::of(&[url], "[network]\nname = \"dev\"\n[integrity]\nstate = \"prove\"\n");
    for (method, params) in [
        ("eth_getBalance", json!([alice, "latest"])),
        ("eth_getBalance", json!([NOBODY, "latest"])),
        ("eth_getTransactionCount", json!([alice, "latest"])),
        ("eth_getCode", json!([contract, "latest"])),
        ("eth_getCode", json!([alice, "latest"])),
        ("eth_getStorageAt", json!([contract, "0x7", "latest"])),
        ("eth_getStorageAt", json!([contract, "0x8", "latest"])),
    ] {
        let reply = front.ask_as("custom", "", method, &params.to_string());
        assert_eq!(reply.json()["result"], anvil.ask(method, params.clone()), "{method} {params}");
        assert_eq!(reply.header("chaingate-verified"), Some("proven"), "{method} {params}");
    }
}

/// A message that says that it is in block 1 asked for the hash of block 0, and so for every header of the chain.
#[test]
fn a_message_in_another_block_costs_no_more_than_the_hashes_that_a_block_can_ask_for() {
    let chain = long::chain(1);
    let node = long::node(&chain);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("genesis.json"), chain.genesis_json()).unwrap();
    let proxy = Proxy::start(node.public, "/v3/demo");
    proxy.prove_with(&Arc::new(ProvableStates::of_newest(&chain.genesis, &chain.blocks, 1)), None);
    let genesis = folder.path().join("genesis.json");
    let config = format!(
        "[network]\nname = \"long\"\ngenesis = {genesis:?}\n[integrity]\nstate = \"prove\"\n[follow]\nmode = \"off\"\n{PATIENT}"
    );
    let front = Front::of(&[proxy.url()], &config);
    let hash_of_block = |number: &str| json!({"data": format!("0x61{number}4060005260206000f3")});
    let known = json!([hash_of_block("00c8"), "latest"]).to_string();
    assert_eq!(front.ask("eth_call", &known)["result"], json!(chain.blocks[199].hash));
    // Some old blocks are asked for to find out what the node has.
    front.wait_for_histories();
    let asked = |number: u64| proxy.asked("eth_getBlockByNumber", &format!(r#"["{number:#x}",false]"#));
    let before = (1..40).map(asked).sum::<u64>();
    let far = json!([hash_of_block("0000"), "latest", {}, {"number": "0x1"}]).to_string();
    front.ask("eth_call", &far);
    assert_eq!((1..40).map(asked).sum::<u64>(), before, "headers that no block can ask for");
}

/// State that no node proves is asked of a quorum.
#[test]
fn state_that_no_node_proves_is_confirmed() {
    let world = World::new();
    let proxies: Vec<_> = (0..3).map(|_| Proxy::start(world.chain.public, "/v3/demo")).collect();
    let urls: Vec<_> = proxies.iter().map(Proxy::url).collect();
    let front = Front::of(&urls, &world.config(""));
    let message = messages().swap_remove(0);
    for (method, params) in [
        ("eth_getBalance", json!([ALICE.address, "latest"])),
        ("eth_getStorageAt", json!([TOUR.address(), "0x0", "latest"])),
        ("eth_call", json!([message, "latest"])),
    ] {
        let (params, reply) = (params.to_string(), front.ask_as("custom", "", method, &params.to_string()));
        assert_eq!(reply.text(), world.truth(method, &params), "{method} {params}");
        assert_eq!(reply.header("chaingate-verified"), Some("confirmed"), "{method} {params}");
    }
    // The nodes were asked for proofs until they had said that they have none.
    let proofs: u64 = proxies.iter().map(|proxy| proxy.asked_method("eth_getProof")).sum();
    assert!((1..=6).contains(&proofs), "{proofs}");
}

/// Without a genesis file nobody knows by which rules a call runs; reads need no rules.
#[test]
fn calls_on_a_chain_of_unknown_rules_are_confirmed() {
    let world = World::new();
    let proxies: Vec<_> = (0..3).map(|_| Proxy::start(world.chain.public, "/v3/demo")).collect();
    proxies.iter().for_each(|proxy| proxy.prove_with(&world.proofs, None));
    let urls: Vec<_> = proxies.iter().map(Proxy::url).collect();
    let front = Front::of(&urls, "[network]\nname = \"demo\"\n[integrity]\nstate = \"prove\"\n");
    let call = json!([messages().swap_remove(0), "latest"]).to_string();
    let reply = front.ask_as("custom", "", "eth_call", &call);
    assert_eq!(reply.text(), world.truth("eth_call", &call));
    assert_eq!(reply.header("chaingate-verified"), Some("confirmed"));
    let read = json!([TOUR.address(), "0x0", "latest"]).to_string();
    let reply = front.ask_as("custom", "", "eth_getStorageAt", &read);
    assert_eq!(reply.header("chaingate-verified"), Some("proven"));
}

/// One node of two lied, and nothing could be said: neither is a quorum.
#[test]
fn a_difference_between_nodes_is_decided_by_proof() {
    let world = World::new();
    let rest = "[network]\nname = \"demo\"\n[integrity]\nstate = \"confirm\"\n";
    let proxies: Vec<_> = (0..2).map(|_| Proxy::start(world.chain.public, "/v3/demo")).collect();
    proxies[0].prove_with(&world.proofs, Some(ProofLie::OtherState));
    proxies[1].prove_with(&world.proofs, None);
    let urls: Vec<_> = proxies.iter().map(Proxy::url).collect();
    let front = Front::of(&urls, rest);
    for (method, params) in
        questions("latest").into_iter().filter(|(method, _)| method.starts_with("eth_get"))
    {
        let reply = front.ask_as("custom", "", method, &params);
        assert_eq!(reply.text(), world.truth(method, &params), "{method} {params}");
    }
}

#[test]
fn a_genesis_file_that_is_no_use_is_refused() {
    let world = World::new();
    let node = "[[node]]\nurl = \"http://127.0.0.1:9\"\n[[key]]\nkey = \"k\"\n[follow]\nmode = \"off\"\n";
    let open = |config: &str| {
        let config = Config::parse(&format!("{node}{config}")).unwrap();
        source::open(&config, &Supervisor::default(), |_, _| {}).map(|_| ()).unwrap_err()
    };
    let other = world.config("").replace("genesis = ", "chain_id = 1\ngenesis = ");
    assert!(open(&other).contains("is of the chain 1337255, but chain_id is 1"), "{}", open(&other));
    let missing = "[network]\nname = \"x\"\ngenesis = \"/nowhere/genesis.json\"\n";
    assert!(open(missing).starts_with("[network] genesis: cannot read /nowhere/genesis.json"));
}

/// State from a partner was passed on without proofs, whatever `[integrity] state` said.
#[test]
fn state_that_a_partner_proves_is_proven() {
    let world = World::new();
    let node = world.proxy();
    let methods = "[methods]\nfailover = [\"eth_getBalance\", \"eth_call\"]\n";
    let balance = ("eth_getBalance", format!(r#"["{}","latest"]"#, ALICE.address));
    let call = ("eth_call", json!([messages()[0], "latest"]).to_string());
    for (proofs, verified) in [(true, "proven"), (false, "none")] {
        let partner = world.proxy();
        if proofs {
            partner.prove_with(&world.proofs, None);
        }
        let entry = format!("{methods}[[partner]]\nurl = \"{}\"\ncalls_per_second = 100000\n", partner.url());
        node.set(Mood::Honest);
        let front = Front::of(&[node.url()], &world.config(&entry));
        front.wait_for_partner();
        node.set(Mood::Dead);
        for (method, params) in [&balance, &call] {
            let reply = front.ask_as("growth", "", method, params);
            assert_eq!(reply.text(), world.truth(method, params), "{method}");
            assert_eq!(reply.header("chaingate-source"), Some("partner"), "{method}");
            assert_eq!(reply.header("chaingate-verified"), Some(verified), "{method}");
        }
    }
}

/// A partner whose proofs are forged is found out.
#[test]
fn a_partner_that_forges_proofs_is_not_believed() {
    let world = World::new();
    let (node, partner) = (world.proxy(), world.proxy());
    partner.prove_with(&world.proofs, Some(ProofLie::ALL[0]));
    let entry = format!(
        "[methods]\nfailover = [\"eth_getBalance\"]\n[[partner]]\nurl = \"{}\"\ncalls_per_second = 100000\n",
        partner.url()
    );
    let front = Front::of(&[node.url()], &world.config(&entry));
    front.wait_for_partner();
    node.set(Mood::Dead);
    let params = format!(r#"["{}","latest"]"#, ALICE.address);
    let reply = front.ask_as("growth", "", "eth_getBalance", &params);
    assert_ne!(reply.header("chaingate-verified"), Some("proven"), "{}", reply.text());
    assert_eq!(reply.error(), "-32002 resource unavailable");
}
