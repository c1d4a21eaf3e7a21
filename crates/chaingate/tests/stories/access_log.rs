//! The access log: one line for each call, whatever happens to the call or to the log.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;
use testkit::http::{TestConnection, post, request};

use crate::demo::{metric, until};
use crate::gateway_under_test::{Gateway, HANG, call, chain_id};

const LINES: &str = "chaingate_access_log_lines_total";
const DROPPED: &str = "chaingate_access_log_lines_dropped_total";

/// A gateway that logs calls to a file of its own.
struct Logging {
    gateway: Gateway,
    folder: TempDir,
}

impl Logging {
    /// `settings` are lines of `[access_log]`.
    fn with(settings: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let gateway = to_file(&folder.path().join("log"), settings);
        Self { gateway, folder }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// The lines, once there are so many.
    fn lines(&self, count: usize) -> Vec<Value> {
        let text = || fs::read_to_string(self.path()).unwrap_or_default();
        until("the lines are written", || text().lines().count() >= count);
        assert_eq!(metric(self.gateway.operator, LINES), count as f64, "{}", text());
        text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn only_line(&self) -> Value {
        self.lines(1).remove(0)
    }
}

fn to_file(path: &Path, settings: &str) -> Gateway {
    Gateway::with("body_bytes_max = 100000", &format!("[access_log]\nfile = {path:?}\n{settings}"))
}

/// Some members of a line.
fn members<const N: usize>(line: &Value, names: [&str; N]) -> Value {
    names.map(|name| line[name].clone()).to_vec().into()
}

#[test]
fn every_call_has_a_line_that_says_how_it_ended() {
    let log = Logging::with("calls = \"all\"");
    let gateway = &log.gateway;
    gateway.post(call("eth_getBalance", r#"["0x00000000000000000000000000000000000000ff","0x3"]"#));
    gateway.post(call("eth_call", r#"[{"data":"0x01"},"latest"]"#));
    gateway.post(call("eth_nonsense", "[]"));
    gateway.post(r#"{"jsonrpc":"2.0","method":"eth_chainId"}"#);
    gateway.post(format!("[{},{}]", chain_id("1"), call("eth_call", r#"[{"data":"0x05"}]"#)));
    let lines = log.lines(6);
    let told: Vec<_> = lines
        .iter()
        .map(|line| members(line, ["method", "outcome", "code", "status", "source", "block", "verified"]))
        .collect();
    let expected = serde_json::json!([
        ["eth_getBalance", "ok", null, 200, "archive", "0x3", "proven"],
        ["eth_call", "reverted", 3, 200, null, null, null],
        [null, "invalid", -32601, 200, null, null, null],
        ["eth_chainId", "ok", null, 204, null, null, null],
        ["eth_chainId", "ok", null, 200, "archive", null, "proven"],
        ["eth_call", "unavailable", -32002, 200, null, null, null],
    ]);
    assert_eq!(Value::from(told), expected);
    for line in &lines {
        let who = members(line, ["account", "key", "key_id", "peer", "calls"]);
        assert_eq!(who, serde_json::json!(["demo", "demo", "static:demo", "127.0.0.1", 1]));
        let time = line["time"].as_str().unwrap();
        assert!(
            time.starts_with("20")
                && time.ends_with('Z')
                && time.len() == "2026-11-19T14:25:43.123456Z".len()
        );
        assert!(line["bytes_in"].as_u64().unwrap() > 30);
    }
    assert_eq!(lines[0]["bytes_out"], 5);
    assert_eq!(lines[4]["request"], lines[5]["request"], "calls of one request");
}

#[test]
fn a_line_has_the_time_of_each_step_that_was_reached() {
    let log = Logging::with("calls = \"all\"");
    log.gateway.post(call("eth_getBalance", r#"["0x00000000000000000000000000000000000000ff","0x3"]"#));
    log.gateway.post(call("eth_getBalance", "[]"));
    let lines = log.lines(2);
    const STEPS: [&str; 6] =
        ["authenticate_us", "read_us", "admit_us", "resolve_us", "answer_us", "write_us"];
    let reached: Vec<_> = lines.iter().map(|line| STEPS.map(|step| line[step].is_u64())).collect();
    assert_eq!(reached, [[true; 6], [true, true, true, false, false, true]]);
    for line in lines {
        let sum: u64 = STEPS.iter().filter_map(|step| line[step].as_u64()).sum();
        assert!(line["total_us"].as_u64().unwrap() + 6 >= sum, "{line}");
    }
}

#[test]
fn a_request_that_is_refused_before_its_calls_has_a_line_too() {
    let log = Logging::with("calls = \"all\"");
    let public = log.gateway.public;
    post(public, "/v3/nobody", chain_id("1"));
    post(public, "/nowhere", chain_id("1"));
    log.gateway.post("nonsense");
    TestConnection::connect(public).send("nonsense\r\n\r\n").reply();
    let told: Vec<_> = log
        .lines(4)
        .iter()
        .map(|line| members(line, ["account", "method", "outcome", "code", "status"]))
        .collect();
    let expected = serde_json::json!([
        [null, null, "denied", -32002, 401],
        [null, null, "refused", -32600, 404],
        ["demo", null, "invalid", -32700, 400],
        [null, null, "refused", -32600, 400],
    ]);
    assert_eq!(Value::from(told), expected);
}

#[test]
fn a_call_whose_caller_has_gone_has_a_line_without_a_status() {
    let log = Logging::with("calls = \"all\"");
    let mut wire = TestConnection::connect(log.gateway.public);
    wire.send(request(
        "/v3/demo",
        "",
        call("eth_call", &format!(r#"[{{"data":"0x{HANG:02x}"}}]"#)).as_bytes(),
    ));
    until("the call runs", || metric(log.gateway.operator, "chaingate_calls_in_flight") == 1.0);
    drop(wire);
    let line = log.only_line();
    assert_eq!(
        members(&line, ["outcome", "status", "answer_us"]),
        serde_json::json!(["abandoned", null, null])
    );
}

#[test]
fn only_errors_or_a_share_of_the_calls_are_logged_if_that_is_wanted() {
    let errors = Logging::with("calls = \"errors\"");
    let calls = |log: &Logging| {
        (0..20).for_each(|_| _ = log.gateway.post(chain_id("1")));
        log.gateway.post(call("eth_nonsense", "[]"));
    };
    calls(&errors);
    assert_eq!(errors.only_line()["code"], -32601);
    let none = Logging::with("calls = \"sampled\"\nsample_ratio = 0.0");
    calls(&none);
    assert_eq!(metric(none.gateway.operator, LINES), 0.0);
    let all = Logging::with("calls = \"sampled\"\nsample_ratio = 1");
    calls(&all);
    assert_eq!(all.lines(21).len(), 21);
}

#[test]
fn the_line_has_the_id_that_the_caller_has_chosen() {
    let log = Logging::with("calls = \"all\"");
    let chosen = "chaingate-request-id: order-4711/\"x\"\r\n";
    let reply = TestConnection::connect(log.gateway.public)
        .send(request("/v3/demo", chosen, chain_id("1").as_bytes()))
        .reply();
    assert_eq!(reply.header("chaingate-request-id"), Some("order-4711/\"x\""));
    assert_eq!(log.only_line()["request"], "order-4711/\"x\"");
}

/// A header of a caller is the way to write into a log what did not happen.
#[test]
fn hostile_headers_stay_within_their_line() {
    let log = Logging::with("calls = \"all\"");
    let public = log.gateway.public;
    let sent = |agent: &[u8]| {
        let head = [b"user-agent: ", agent, b"\r\n"].concat();
        // The helper takes text, and the point is what is none.
        let body = chain_id("1");
        let length = format!("host: x\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        let bytes = [b"POST /v3/demo HTTP/1.1\r\n", &head[..], length.as_bytes()].concat();
        TestConnection::connect(public).send(bytes).reply().status
    };
    let forged = b"x\r\n {\"outcome\":\"ok\",\"account\":\"somebody\"}";
    let mut statuses = vec![sent(b"\"},{\"outcome\":\"forged\"\\"), sent(b"caf\xc3\xa9\x9b31m \xff")];
    statuses.extend([
        sent(&[b'a'; 8 << 10]),
        sent(forged),
        sent(b"x\ny"),
        sent(b"\x1b[2J"),
        sent(&[b'a'; 64 << 10]),
    ]);
    assert_eq!(statuses[..3], [200; 3]);
    assert!(statuses[3..].iter().all(|status| [400, 431].contains(status)), "{statuses:?}");
    let lines = log.lines(statuses.len());
    let agents: Vec<_> = lines.iter().map(|line| line["user_agent"].as_str()).collect();
    assert_eq!(agents[..2], [Some("\"},{\"outcome\":\"forged\"\\"), Some("cafÃ©\u{9b}31m ÿ")]);
    assert_eq!(agents[2], Some("a".repeat(256).as_str()));
    assert!(agents[3..].iter().all(Option::is_none), "{agents:?}");
    let text = fs::read_to_string(log.path()).unwrap();
    assert!(text.bytes().all(|byte| byte == b'\n' || (b' '..=b'~').contains(&byte)), "{text}");
    assert!(text.lines().all(|line| line.len() < 2_000));
}

#[test]
fn full_files_are_rotated_and_no_line_is_lost() {
    let files = |log: &Logging| {
        let files =
            fs::read_dir(log.folder.path()).unwrap().map(|file| fs::read_to_string(file.unwrap().path()));
        files.map(Result::unwrap).collect::<Vec<_>>()
    };
    let log = Logging::with("calls = \"all\"\nfile_bytes_max = 2000\nfiles_max = 1000");
    let few = Logging::with("calls = \"all\"\nfile_bytes_max = 2000\nfiles_max = 3");
    for log in [&log, &few] {
        (0..100).for_each(|_| _ = log.gateway.post(chain_id("1")));
    }
    until("all lines are written", || {
        files(&log).iter().map(|file| file.lines().count()).sum::<usize>() == 100
    });
    for file in files(&log) {
        assert!(file.len() <= 2_000 && file.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
    }
    until("old files are removed", || files(&few).len() == 3);
    assert_eq!(metric(few.gateway.operator, DROPPED), 0.0);
}

#[test]
fn a_file_that_is_moved_or_removed_is_made_again() {
    let log = Logging::with("calls = \"all\"");
    log.gateway.post(chain_id("1"));
    log.lines(1);
    fs::rename(log.path(), log.folder.path().join("moved")).unwrap();
    log.gateway.post(chain_id("1"));
    until("the file is back", || log.path().exists());
    fs::remove_file(log.path()).unwrap();
    log.gateway.post(chain_id("1"));
    until("the file is back", || fs::read_to_string(log.path()).is_ok_and(|text| text.lines().count() == 1));
    assert_eq!(metric(log.gateway.operator, DROPPED), 0.0);
}

#[test]
fn a_full_disk_costs_lines_and_no_call() {
    let gateway = to_file(Path::new("/dev/full"), "calls = \"all\"");
    until("lines are dropped", || {
        assert_eq!(gateway.post(chain_id("1")).status, 200);
        metric(gateway.operator, DROPPED) > 0.0
    });
    assert_eq!(metric(gateway.operator, "chaingate_ready"), 1.0);
}

#[test]
fn a_reader_that_does_not_read_costs_lines_and_no_call() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // Without a reader, it cannot even be opened.
    let gateway = to_file(&pipe, "calls = \"all\"");
    let mut wire = TestConnection::connect(gateway.public);
    until("lines are dropped", || {
        const TOGETHER: usize = 500;
        wire.send(request("/v3/demo", "", chain_id("1").as_bytes()).repeat(TOGETHER));
        assert!((0..TOGETHER).all(|_| wire.reply().status == 200));
        metric(gateway.operator, DROPPED) > 0.0
    });
    let is_down = || gateway.supervisor.why_down("writer of the access log").is_some();
    until("it is reported", is_down);
    assert_eq!(metric(gateway.operator, "chaingate_ready"), 1.0);
    // The lines in the queue are whole.
    let mut text = vec![0; 1 << 20];
    let mut reader = File::open(&pipe).unwrap();
    reader.read_exact(&mut text).unwrap();
    let (last, whole) = text.split_last().map(|(last, _)| (last, &text[..])).unwrap();
    assert!(*last > 0);
    let whole = &whole[..whole.iter().rposition(|&byte| byte == b'\n').unwrap()];
    for line in whole.split(|&byte| byte == b'\n') {
        serde_json::from_slice::<Value>(line).unwrap();
    }
    until("it writes again", || !is_down());
}

#[test]
fn a_file_that_cannot_be_opened_is_an_error_at_the_start() {
    let config = crate::gateway_under_test::config(
        "",
        "",
        "[access_log]\ncalls = \"all\"\nfile = \"/nonexistent/log\"",
    );
    let supervisor = resources::Supervisor::default();
    let chain = std::sync::Arc::new(crate::gateway_under_test::Chain::default());
    let error = config.gateway(chain, &supervisor).unwrap_err().to_string();
    assert!(error.starts_with("cannot open /nonexistent/log: "), "{error}");
}
