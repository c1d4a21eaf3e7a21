//! Every documented key of the configuration has an effect, and a test that shows it.

#[path = "settings/nodes.rs"]
mod nodes; // the keys of nodes, partners and the pool

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chaingate::config::Config;
use chaingate::source;
use gateway::Server;
use http_server::{HEADER_BYTES_MAX, HEADERS_MAX};
use resources::Supervisor;
use serde_json::Value;
use sources::CALL_MEMORY_BYTES_MAX;
use testkit::http::{TestConnection, get, post, request};
use testkit::http2::{Frame, FrameConnection, INITIAL_WINDOW_SIZE};

use crate::demo::{Demo, until};
use crate::gateway_under_test::{Gateway, call, chain_id};
use crate::process::Process;

/// For each key, the file of the test that shows its effect, and the name of the test.
#[rustfmt::skip]
const SHOWN_BY: &[(&str, &str, &str)] = &[
    ("data_dir", "startup", "a_chain_that_is_not_there_is_found_by_check"),
    ("core_dumps", "secrecy", "a_crash_leaves_no_core_dump"),
    ("log", "reload", "the_level_of_the_log_changes_with_a_reload"),
    ("[network] name", "calls", "a_method_of_another_network_is_told_apart"),
    ("[network] family", "calls", "a_method_of_another_network_is_told_apart"),
    ("[network] chain_id", "settings/nodes", "nodes_of_another_chain_id_are_left_out"),
    ("[network] genesis", "pool/proven_state", "a_genesis_file_that_is_no_use_is_refused"),
    ("[network] genesis_hash", "pool/identity", "the_configured_genesis_and_checkpoint_decide_who_is_used"),
    ("[network] checkpoint.number", "pool/identity", "the_configured_genesis_and_checkpoint_decide_who_is_used"),
    ("[network] checkpoint.hash", "pool/identity", "the_configured_genesis_and_checkpoint_decide_who_is_used"),
    ("[network] unsupported_tags.safe", "values", "a_network_may_refuse_the_safe_tag_for_some_methods"),
    ("[listen] public", "operator", "an_address_where_someone_listens_is_refused"),
    ("[listen] operator", "startup", "callers_and_the_operator_have_addresses_of_their_own"),
    ("[listen] operator_hosts", "operator", "only_known_host_names_reach_the_operator_pages"),
    ("[listen] console", "console", "an_address_that_is_in_use_is_named_with_what_to_do"),
    ("[listen] admin_token_file", "admin", "the_token_can_come_from_another_file"),
    ("[listen] trusted_proxies", "addresses", "callers_behind_a_trusted_proxy_have_limits_of_their_own"),
    ("[listen] proxy_protocol", "addresses", "a_proxy_that_passes_bytes_on_names_its_callers"),
    ("[listen] proxy_header", "addresses", "only_the_configured_header_of_a_proxy_is_read"),
    ("[listen] workers", "settings", "there_are_as_many_workers_as_the_configuration_says"),
    ("[listen] tls_certificate", "tls", "both_protocols_are_spoken_over_tls"),
    ("[listen] tls_key", "tls", "both_protocols_are_spoken_over_tls"),
    ("[store] url", "stored_callers", "a_change_reaches_every_gateway_of_a_store"),
    ("[store] copy_age_max_s", "stored_callers", "a_copy_is_used_for_as_long_as_the_configuration_says"),
    ("[console] url", "console", "cookies_and_host_names_follow_the_configured_address"),
    ("[console] public_url", "console", "cookies_and_host_names_follow_the_configured_address"),
    ("[console] sign_up", "console", "everybody_may_sign_up_where_the_operator_says_so"),
    ("[console] sign_up_plan", "console", "everybody_may_sign_up_where_the_operator_says_so"),
    ("[[key]] key", "keys", "a_key_without_a_secret_does_not_look_for_one"),
    ("[[key]] key_hash", "keys", "a_key_of_which_the_file_has_only_the_hash_is_accepted"),
    ("[[key]] name", "settings", "the_log_has_the_name_of_the_key"),
    ("[[key]] account", "plans", "throughput_used_up_is_429_with_how_long_to_wait"),
    ("[[key]] plan", "plans", "throughput_used_up_is_429_with_how_long_to_wait"),
    ("[[key]] secret", "keys", "a_wrong_secret_is_401_and_a_missing_one_403"),
    ("[[key]] secret_required", "keys", "a_secret_that_is_not_required_may_be_left_out_but_not_be_wrong"),
    ("[[key]] jwt_public_keys", "keys", "tokens_of_each_kind_of_key_are_accepted"),
    ("[[key]] jwt_required", "keys", "a_token_that_is_not_required_may_be_left_out_but_not_be_wrong"),
    ("[[key]] jwt_audience", "keys", "an_audience_is_checked_where_one_is_set"),
    ("[[key]] networks", "keys", "a_key_of_other_networks_is_403"),
    ("[[key]] origins", "keys", "other_origins_are_403"),
    ("[[key]] user_agents", "keys", "other_user_agents_are_403"),
    ("[[key]] addresses", "keys", "other_contracts_are_403_wherever_a_call_names_them"),
    ("[[key]] methods", "keys", "other_methods_are_403_and_in_a_batch_the_elements_error"),
    ("[[key]] show_node", "pool/traces", "only_keys_that_may_see_it_are_told_which_node_answered"),
    ("[[key]] credits_per_second", "keys", "a_key_has_limits_of_its_own_below_those_of_its_account"),
    ("[[key]] credits_per_day", "keys", "a_key_has_limits_of_its_own_below_those_of_its_account"),
    ("[plans.NAME] credits_per_second", "plans", "throughput_used_up_is_429_with_how_long_to_wait"),
    ("[plans.NAME] credits_per_day", "plans", "a_day_used_up_is_402_until_midnight"),
    ("[plans.NAME] keys_max", "settings", "a_plan_has_keys_and_failover_of_its_own"),
    ("[plans.NAME] failover", "settings", "a_plan_has_keys_and_failover_of_its_own"),
    ("[methods] failover", "pool/failover", "a_partner_answers_whatever_the_operator_lets_it"),
    ("[methods] eth_call_requires_from", "values", "from_is_required_only_where_the_operator_says_so"),
    ("[shared] redis_url", "shared_limits", "three_gateways_hold_one_limit_while_redis_comes_and_goes"),
    ("[limits] body_bytes_max", "http", "a_body_over_the_limit_is_413_whether_it_says_so_or_not"),
    ("[limits] batch_calls_max", "settings", "limits_of_calls_hold_where_they_are_set"),
    ("[limits] batch_reply_bytes_max", "calls", "what_does_not_fit_into_a_batch_is_an_error_and_the_rest_is_not"),
    ("[limits] calls_in_flight_max", "heavy", "too_many_calls_in_flight_is_503"),
    ("[limits] connections_max", "http", "over_the_limit_of_connections_is_503"),
    ("[limits] connections_per_address_max", "addresses", "one_address_cannot_take_the_places_of_others"),
    ("[limits] unauthenticated_per_second_max", "addresses", "an_address_that_guesses_keys_is_slowed_down_and_its_valid_callers_are_not"),
    ("[limits] address_limits_exempt", "addresses", "an_address_that_guesses_keys_is_slowed_down_and_its_valid_callers_are_not"),
    ("[limits] requests_per_connection_max", "http", "a_connection_ends_politely_after_its_share_of_requests"),
    ("[limits] first_byte_timeout_ms", "slow", "a_silent_connection_is_closed"),
    ("[limits] header_timeout_ms", "slow", "a_head_that_trickles_in_is_408"),
    ("[limits] body_timeout_ms", "slow", "a_body_that_trickles_in_is_408"),
    ("[limits] write_timeout_ms", "slow", "who_does_not_read_is_cut_off"),
    ("[limits] read_rate_min_bytes", "slow", "a_reader_below_the_minimum_rate_is_cut_off"),
    ("[limits] keep_alive_timeout_ms", "slow", "an_idle_connection_is_closed_without_a_word"),
    ("[limits] drain_delay_ms", "shutdown", "everything_is_still_answered_for_the_delay_and_told_to_go_elsewhere"),
    ("[limits] drain_timeout_ms", "shutdown", "what_takes_too_long_is_cut_off"),
    ("[limits] memory_bytes_max", "unread", "large_answers_that_nobody_reads_are_held_within_bounds_and_let_go"),
    ("[limits] h2_streams_max", "settings", "an_http2_connection_is_told_how_many_streams_it_may_open"),
    ("[limits] log_params_max", "settings", "limits_of_calls_hold_where_they_are_set"),
    ("[limits] log_results_max", "settings", "limits_of_answers_hold_where_they_are_set"),
    ("[limits] log_timeout_ms", "lookups", "a_log_query_beyond_its_time_is_told_so"),
    ("[limits] log_blocks_max", "values", "ranges_are_checked_against_themselves_and_the_head"),
    ("[limits] call_timeout_ms", "evm", "a_call_beyond_its_time_says_how_long_that_is"),
    ("[limits] call_gas_multiple", "settings", "limits_of_answers_hold_where_they_are_set"),
    ("[limits] pool_threads", "heavy", "a_full_pool_is_503_and_cheap_calls_go_on"),
    ("[limits] pool_queue_max", "heavy", "a_full_pool_is_503_and_cheap_calls_go_on"),
    ("[access_log] calls", "access_log", "every_call_has_a_line_that_says_how_it_ended"),
    ("[access_log] sample_ratio", "access_log", "only_errors_or_a_share_of_the_calls_are_logged_if_that_is_wanted"),
    ("[access_log] file", "access_log", "every_call_has_a_line_that_says_how_it_ended"),
    ("[access_log] file_bytes_max", "access_log", "full_files_are_rotated_and_no_line_is_lost"),
    ("[access_log] files_max", "access_log", "full_files_are_rotated_and_no_line_is_lost"),
    ("[usage] spool_bytes_max", "usage", "usage_waits_within_its_bound_while_the_store_is_down"),
    ("[usage] minutes_kept_days", "usage", "old_usage_is_deleted_when_it_is_older_than_the_configuration_says"),
    ("[usage] hours_kept_days", "usage", "old_usage_is_deleted_when_it_is_older_than_the_configuration_says"),
    ("[[node]] url", "pool/one_faulty_node", "what_comes_through_the_pool_is_what_the_node_says"),
    ("[[node]] name", "settings/nodes", "metrics_have_the_names_of_nodes_and_partners"),
    ("[[node]] ws_url", "settings/nodes", "a_node_is_connected_to_as_its_entry_says"),
    ("[[node]] headers", "settings/nodes", "a_node_is_connected_to_as_its_entry_says"),
    ("[[node]] http2", "settings/nodes", "a_node_is_connected_to_as_its_entry_says"),
    ("[[partner]] url", "pool/failover", "a_partner_answers_for_plans_that_have_failover"),
    ("[[partner]] methods", "pool/failover", "a_partner_has_a_budget_and_methods"),
    ("[[partner]] calls_per_second", "pool/failover", "every_call_to_a_partner_is_out_of_its_budget"),
    ("[[partner]] calls_per_day", "pool/failover", "a_partner_has_a_budget_and_methods"),
    ("[[partner]] name", "settings/nodes", "metrics_have_the_names_of_nodes_and_partners"),
    ("[[partner]] headers", "settings/nodes", "a_partner_is_connected_to_as_its_entry_says"),
    ("[[partner]] http2", "settings/nodes", "a_partner_is_connected_to_as_its_entry_says"),
    ("[pool] quorum", "settings/nodes", "a_head_needs_as_many_nodes_as_the_quorum_says"),
    ("[pool] call_timeout_ms", "settings/nodes", "a_call_to_nodes_has_the_time_that_the_pool_gives_it"),
    ("[pool] poll_interval_ms", "settings/nodes", "nodes_are_polled_as_often_as_the_pool_says"),
    (
        "[pool] reply_memory_bytes",
        "pool/memory",
        "large_and_inflated_replies_stay_within_their_memory_and_cost_no_answer",
    ),
    ("[pool] head_stall_ms", "settings/nodes", "a_head_that_stands_still_for_too_long_is_not_ready"),
    ("[pool] rollback_after_ms", "settings/nodes", "nodes_that_go_back_are_followed_after_the_time_that_the_pool_says"),
    ("[cache] enabled", "settings", "answers_are_kept_only_where_there_is_a_cache_with_room"),
    ("[cache] bytes_max", "settings", "answers_are_kept_only_where_there_is_a_cache_with_room"),
    ("[cache] proven_bytes_max", "pool/forged", "a_block_is_fetched_once_for_all_questions_about_it"),
    ("[cache] state_bytes_max", "pool/proven_state", "proofs_are_kept_for_further_questions"),
    ("[follow] mode", "pool/following", "nothing_is_stored_where_following_is_off"),
    ("[follow] blocks_max", "pool/following", "the_newest_blocks_are_stored_within_the_limit"),
    ("[follow] headers_max", "pool/following", "headers_for_log_queries_are_stored_within_the_limit"),
    ("[follow] from", "pool/following", "stored_blocks_are_answered_with_all_nodes_dead"),
    ("[integrity] state", "pool/confirmed", "one_node_is_believed_about_the_state_only_where_the_operator_says_so"),
    ("[integrity] confirmed_for_ms", "pool/confirmed_again", "what_all_nodes_lied_about_is_right_within_the_time"),
    ("[integrity] mode", "pool/disputed_location", "transactions_are_delivered_where_answers_are_not_refused"),
];

/// The keys of `docs/configuration.md`, each with its section.
fn documented_keys() -> Vec<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (mut section, mut keys) = ("", Vec::new());
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            section = title.strip_prefix('`').map_or("", |title| title.trim_end_matches('`'));
        } else if let Some((key, _)) = line.strip_prefix("| `").and_then(|rest| rest.split_once('`')) {
            keys.push(format!("{section} {key}").trim_start().to_owned());
        }
    }
    keys
}

/// Two sections were read and documented, and nothing used them.
#[test]
fn every_documented_key_has_a_test_that_shows_its_effect() {
    let documented = documented_keys();
    let shown: Vec<_> = SHOWN_BY.iter().map(|(key, ..)| (*key).to_owned()).collect();
    let (documented_set, shown_set) = (BTreeSet::from_iter(&documented), BTreeSet::from_iter(&shown));
    let missing: Vec<_> = documented_set.difference(&shown_set).collect();
    let unknown: Vec<_> = shown_set.difference(&documented_set).collect();
    assert!(missing.is_empty(), "add a test that shows the effect of {missing:?}, and a row for it above");
    assert!(unknown.is_empty(), "these keys are not documented: {unknown:?}");
    assert_eq!((documented.len(), shown.len()), (documented_set.len(), shown_set.len()), "no key twice");
    for (key, file, test) in SHOWN_BY {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/stories/{file}.rs"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{key}: {file}: {error}"));
        assert!(text.contains(&format!("fn {test}()")), "{key}: there is no {test} in {file}");
        let name = key.rsplit(' ').next().unwrap().split('.').next().unwrap();
        assert!(text.contains(name), "{key}: {file} does not set {name}");
    }
}

/// The example for nodes had no key, so nobody could call.
#[test]
fn the_examples_of_the_documents_are_valid() {
    for document in ["README.md", "docs/nodes.md", "docs/operation.md"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(document);
        let text = std::fs::read_to_string(path).unwrap();
        let examples: Vec<_> =
            text.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
        assert!(!examples.is_empty(), "{document}");
        for example in examples {
            // An ellipsis stands for a secret.
            let parsed = Config::parse(&example.replace('…', "x"));
            assert!(parsed.is_ok(), "{document}: {}\n{example}", parsed.unwrap_err());
        }
    }
}

/// A gateway with a whole configuration of its own but for the addresses.
struct Configured {
    server: Option<Server>,
    public: SocketAddr,
    operator: SocketAddr,
}

impl Configured {
    /// `listen` are lines of `[listen]`. There are the keys `own` (no limits) and `growth` (with failover).
    fn with(listen: &str, rest: &str) -> Self {
        let text = format!(
            "[listen]\npublic = \"127.0.0.1:0\"\noperator = \"127.0.0.1:0\"\n{listen}\n\
             [[key]]\nkey = \"own\"\n[[key]]\nkey = \"growth\"\nplan = \"growth\"\n\
             [follow]\nmode = \"off\"\n{rest}"
        );
        let config = Config::parse(&text).unwrap_or_else(|errors| panic!("{errors}"));
        let supervisor = Supervisor::default();
        let sources = source::open(&config, &supervisor, |_, _| {}).unwrap();
        let state = Arc::new(config.gateway(sources, &supervisor).unwrap());
        let server = Server::start(&config.listen, state).unwrap();
        Self { public: server.public(), operator: server.operator(), server: Some(server) }
    }

    fn is_ready(&self) -> bool {
        get(self.operator, "/ready").status == 200
    }

    fn ask(&self, method: &str, params: &str) -> Value {
        post(self.public, "/v3/own", call(method, params)).json()
    }
}

impl Drop for Configured {
    fn drop(&mut self) {
        // A drain would wait for calls to nodes that never answer.
        drop(self.server.take());
    }
}

fn node(url: &str) -> String {
    format!("[[node]]\nurl = \"{url}\"\n")
}

#[test]
fn heads_are_limited() {
    let gateway = Gateway::start();
    let headers = |count: usize, bytes: usize| format!("x: {}\r\n", "y".repeat(bytes)).repeat(count);
    for (headers, status) in [
        (headers(90, 1), 200),
        (headers(HEADERS_MAX, 1), 431),
        (headers(1, HEADER_BYTES_MAX - 1_000), 200),
        (headers(1, HEADER_BYTES_MAX), 431),
    ] {
        let asked = request("/v3/demo", &headers, chain_id("1").as_bytes());
        let reply = TestConnection::connect(gateway.public).send(asked).reply();
        assert_eq!(reply.status, status, "{} bytes", headers.len());
    }
}

/// A header with name and value of one letter, as HPACK encodes it literally.
const SMALL_HEADER: [u8; 5] = [0, 1, b'a', 1, b'x'];

/// The limit on the number of headers had no effect on HTTP/2.
#[test]
fn an_http2_request_with_too_many_headers_is_refused() {
    let gateway = Gateway::start();
    let mut wire = FrameConnection::connect(gateway.public);
    wire.greet(&Frame::setting(INITIAL_WINDOW_SIZE, 1 << 16));
    let mut ask = |stream: u32, more: usize| {
        let mut head = Frame::post(stream, "/v3/demo");
        // `content-type` is the first header.
        (0..more).for_each(|_| head.payload.extend(SMALL_HEADER));
        wire.send(&head).send(&Frame::data(stream, chain_id("1")));
        String::from_utf8(wire.body(stream).unwrap()).unwrap()
    };
    assert!(ask(1, HEADERS_MAX - 1).contains("0x539"));
    let refused = ask(3, HEADERS_MAX);
    assert!(refused.contains("the head of the request is too large"), "{refused}");
    assert!(ask(5, 0).contains("0x539"), "the connection goes on");
}

/// Requests without a key were refused over HTTP/2 as often as somebody liked, if they had too many headers.
#[test]
fn http2_requests_with_too_many_headers_count_as_requests_without_a_valid_key() {
    let limits = "address_limits_exempt = []\nunauthenticated_per_second_max = 1";
    let gateway = Gateway::with(limits, "");
    let mut wire = FrameConnection::connect(gateway.public);
    wire.greet(&Frame::setting(INITIAL_WINDOW_SIZE, 1 << 16));
    let mut stream = 1;
    until("the connection is closed", || {
        let mut head = Frame::post(stream, "/v3/demo");
        (0..HEADERS_MAX).for_each(|_| head.payload.extend(SMALL_HEADER));
        stream += 2;
        let is_sent = wire.try_send_bytes(&head.bytes());
        let is_sent = is_sent && wire.try_send_bytes(&Frame::data(stream - 2, chain_id("1")).bytes());
        !is_sent || wire.body(stream - 2).is_none()
    });
}

#[test]
fn limits_of_calls_hold_where_they_are_set() {
    let gateway = Gateway::with("batch_calls_max = 2\nlog_params_max = 1", "");
    let batch = format!("[{0},{0},{0}]", chain_id("1"));
    assert_eq!(gateway.post(batch).error(), "-32600 batch too large");
    let address = "\"0x00000000000000000000000000000000000000aa\"";
    let error = gateway.error("eth_getLogs", &format!("[{{\"address\":[{address},{address}]}}]"));
    assert_eq!(error, "-32005 query contains 2 parameters, the limit is 1");
}

#[test]
fn limits_of_answers_hold_where_they_are_set() {
    let usual = Demo::with("");
    let small = Demo::with("log_results_max = 2\ncall_gas_multiple = 1");
    let logs = r#"[{"fromBlock":"0x0","toBlock":"0x20"}]"#;
    assert!(usual.call("eth_getLogs", logs)["result"].as_array().unwrap().len() > 2);
    let message = &small.call("eth_getLogs", logs)["error"]["message"];
    assert_eq!(*message, "query returned more than 2 results");
    // A creation whose code reads the word at 64 MiB, with gas for that much memory.
    let large = Demo::with("call_gas_multiple = 10000");
    let message = &large.call("eth_call", r#"[{"data":"0x630400000051"}]"#)["error"]["message"];
    assert_eq!(*message, format!("execution aborted (memory limit = {CALL_MEMORY_BYTES_MAX} bytes)"));
    // A creation whose code returns the gas that it has.
    let gas = r#"[{"data":"0x5a5f5260205ff3"}]"#;
    let gas_of = |demo: &Demo| {
        let result = demo.call("eth_call", gas)["result"].as_str().unwrap().to_owned();
        u64::from_str_radix(result.trim_start_matches("0x").trim_start_matches('0'), 16).unwrap()
    };
    assert!(gas_of(&usual) > 5 * gas_of(&small));
}

#[test]
fn an_http2_connection_is_told_how_many_streams_it_may_open() {
    let gateway = Gateway::with("h2_streams_max = 7", "");
    let mut stream = TcpStream::connect(gateway.public).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00").unwrap();
    let mut head = [0; 9];
    stream.read_exact(&mut head).unwrap();
    const SETTINGS: u8 = 4;
    assert_eq!(head[3], SETTINGS);
    let mut settings = vec![0; usize::from(u16::from_be_bytes([head[1], head[2]]))];
    stream.read_exact(&mut settings).unwrap();
    const MAX_CONCURRENT_STREAMS: [u8; 2] = [0, 3];
    let value = settings.chunks(6).find_map(|setting| setting.strip_prefix(&MAX_CONCURRENT_STREAMS));
    assert_eq!(value, Some(&[0, 0, 0, 7][..]));
}

#[test]
fn there_are_as_many_workers_as_the_configuration_says() {
    let chain = Demo::with("");
    let _gateway = Configured::with("workers = 5", &node(&format!("http://{}/v3/demo", chain.public)));
    // A thread gives itself its name after it has started.
    until("all workers run", || {
        let threads = std::fs::read_dir("/proc/self/task").unwrap();
        let mut names =
            threads.filter_map(|thread| std::fs::read_to_string(thread.unwrap().path().join("comm")).ok());
        names.any(|name| name.trim() == "worker-4")
    });
}

/// The name of a key was read and documented, and nothing used it.
#[test]
fn the_log_has_the_name_of_the_key() {
    let process = Process::start("127.0.0.1:0", "[[key]]\nkey = \"k\"\nname = \"shop-front\"\n", "debug");
    assert_eq!(post(process.public, "/v3/k", chain_id("1")).status, 200);
    process.terminate();
    let (_, log) = process.ended();
    let is_named = |line: &String| line.contains("answered") && line.contains(r#""key":"shop-front""#);
    assert!(log.iter().any(is_named), "{log:#?}");
}

#[test]
fn a_plan_has_keys_and_failover_of_its_own() {
    let plan = |plan: &str, keys: usize| {
        let key = |number| format!("[[key]]\nkey = \"k{number}\"\naccount = \"a\"\nplan = \"own\"\n");
        Config::parse(&format!("[plans.own]\n{plan}\n{}", (0..keys).map(key).collect::<String>()))
    };
    assert!(plan("keys_max = 1", 1).is_ok());
    assert!(plan("keys_max = 1", 2).unwrap_err().to_string().contains("too many keys for this account"));
    assert!(plan("keys_max = 0", 2).is_ok());
    let fails_over = |text: &str| plan(text, 1).unwrap().keys[0].plan.failover;
    assert!(fails_over("failover = true") && !fails_over("failover = false"));
}

#[test]
fn answers_are_kept_only_where_there_is_a_cache_with_room() {
    let chain = Demo::with("");
    let is_kept = |cache: &str| {
        let url = format!("http://{}/v3/demo", chain.public);
        let gateway = Configured::with("", &format!("{}[cache]\n{cache}\n", node(&url)));
        until("it is ready", || gateway.is_ready());
        let body = call("eth_getBlockReceipts", r#"["0x5"]"#);
        let replies: Vec<_> = (0..4).map(|_| post(gateway.public, "/v3/own", &body)).collect();
        replies[3].header("chaingate-source") == Some("cache")
    };
    assert!(is_kept(""));
    assert!(!is_kept("enabled = false"));
    assert!(!is_kept("bytes_max = 10"));
}
