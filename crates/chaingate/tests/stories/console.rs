//! The console of a running gateway: from the link on the terminal to a key that works.

use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use testkit::http::{ReceivedReply, TestConnection, post};

use crate::demo::until;
use crate::gateway_under_test::chain_id;
use crate::process::Process;

/// Runs `chaingate console` for the data directory of a gateway.
fn console_command(gateway: &Process, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_chaingate"))
        .arg("console")
        .args(arguments)
        .arg("--data-dir")
        .arg(gateway.data_dir())
        .output()
        .unwrap()
}

/// The path of a link that a command prints.
fn link(gateway: &Process, arguments: &[&str]) -> String {
    let output = console_command(gateway, arguments);
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    let (_, token) = said.split_once("/link/").expect("a link");
    format!("/link/{}", &token[..64])
}

/// A browser that keeps its cookies.
struct Visit {
    console: SocketAddr,
    host: String,
    cookies: Vec<String>,
}

impl Visit {
    fn of(gateway: &Process) -> Self {
        let console = gateway.console.expect("a console");
        Self { console, host: console.to_string(), cookies: Vec::new() }
    }

    fn send(&mut self, method: &str, path: &str, body: &str) -> ReceivedReply {
        let (host, cookies, length) = (&self.host, self.cookies.join("; "), body.len());
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\ncookie: {cookies}\r\nconnection: close\r\n\
             content-type: application/x-www-form-urlencoded\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        let reply = TestConnection::connect(self.console).send(request).reply();
        for (_, cookie) in reply.headers.iter().filter(|(name, _)| name == "set-cookie") {
            let pair = cookie.split(';').next().unwrap();
            let name = pair.split('=').next().unwrap();
            self.cookies.retain(|known| !known.starts_with(&format!("{name}=")));
            self.cookies.push(pair.to_owned());
        }
        reply
    }

    fn get(&mut self, path: &str) -> ReceivedReply {
        self.send("GET", path, "")
    }

    /// Sends a form of a page, with its token.
    fn submit(&mut self, page: &str, path: &str, fields: &str) -> ReceivedReply {
        let form = self.get(page);
        let token = form.text().split_once("name=\"csrf\" value=\"").expect("a form").1;
        let token = token.split('"').next().unwrap().to_owned();
        self.send("POST", path, &format!("csrf={token}&{fields}"))
    }

    /// Signs in as an operator with a link of the command line.
    fn operator(gateway: &Process) -> Self {
        let mut visit = Self::of(gateway);
        let link = link(gateway, &["sign-in-link"]);
        let reply = visit.submit(&link, &link, "email=root%40example.com&password=correct+horse");
        assert_eq!(reply.status, 303, "{}", reply.text());
        visit
    }
}

/// The only 32 hexadecimal digits between two other characters.
fn shown_key(page: &str) -> String {
    let is_digit = |letter: char| letter.is_ascii_digit() || ('a'..='f').contains(&letter);
    let mut words = page.split(|letter: char| !is_digit(letter));
    words.find(|word| word.len() == 32).expect("a key").to_owned()
}

#[test]
fn a_key_of_the_console_works_is_counted_and_is_refused_after_it_was_revoked() {
    let gateway = Process::start_with_console("", "info");
    let mut operator = Visit::operator(&gateway);
    let page = operator.submit("/keys", "/keys", "name=laptop");
    let key = shown_key(page.text());
    let path = format!("/v3/{key}");
    until("the key works", || post(gateway.public, &path, chain_id("1")).status == 200);
    assert!(post(gateway.public, &path, chain_id("2")).json()["result"].is_string());
    until("the calls are in the usage", || operator.get("/usage?range=15m").text().contains("eth_chainId"));
    until("the file has them, too", || {
        let csv = operator.get("/usage.csv?range=1h");
        csv.text().contains("eth_chainId") && csv.text().contains(",ok,")
    });
    let list = operator.get("/keys");
    let id = format!("k_{}", &list.text().split_once("/keys/k_").unwrap().1[..12]);
    let revoked = operator.submit(&format!("/keys/{id}"), &format!("/keys/{id}/revoke"), "confirm=revoke");
    assert_eq!(revoked.status, 303);
    let revoked_at = Instant::now();
    until("the gateway knows", || post(gateway.public, &path, chain_id("3")).status == 401);
    assert!(revoked_at.elapsed() < Duration::from_secs(20), "{:?}", revoked_at.elapsed());
    let live = operator.get("/live");
    assert_eq!(live.status, 200);
    let configuration = operator.get("/configuration");
    assert!(configuration.text().contains("log_blocks_max"), "{}", configuration.status);
    gateway.terminate();
    let (status, log) = gateway.ended();
    assert!(status.success());
    let token = operator.cookies.iter().find_map(|cookie| cookie.strip_prefix("chaingate=")).unwrap();
    for secret in [key.as_str(), token, "correct horse"] {
        assert!(!log.iter().any(|line| line.contains(secret)), "{secret} is in the log");
    }
}

#[test]
fn commands_invite_people_and_reset_their_passwords() {
    let gateway = Process::start_with_console("", "info");
    let invitation = link(&gateway, &["invite", "--plan", "developer", "--email", "Ada@example.com"]);
    let mut ada = Visit::of(&gateway);
    let page = ada.get(&invitation);
    assert!(page.text().contains("ada@example.com"));
    let joined = ada.submit(&invitation, &invitation, "account=acme&password=correct+horse");
    assert_eq!((joined.status, ada.get("/keys").status), (303, 200));
    let reset = link(&gateway, &["reset", "--email", "ada@example.com", "--json"]);
    let mut elsewhere = Visit::of(&gateway);
    assert_eq!(elsewhere.submit(&reset, &reset, "password=battery+staple").status, 303);
    assert_eq!(ada.get("/keys").status, 303, "the old session has ended");
    for (command, status) in [("block", 422), ("unblock", 303)] {
        let output = console_command(&gateway, &[command, "--email", "ada@example.com"]);
        assert!(output.status.success() && !output.stdout.is_empty(), "{command}: {output:?}");
        assert_eq!(elsewhere.get("/keys").status, 303, "the session has ended");
        let fields = "email=ada%40example.com&password=battery+staple";
        assert_eq!(Visit::of(&gateway).submit("/sign-in", "/sign-in", fields).status, status, "{command}");
    }
    for refused in [
        &["block", "--email", "nobody@example.com"][..],
        &["reset", "--email", "nobody@example.com"],
        &["invite", "--account", "nobody"],
        &["invite", "--plan", "golden"],
        &["invite"],
    ] {
        let output = console_command(&gateway, refused);
        assert!(!output.status.success() && output.stdout.is_empty(), "{refused:?}: {output:?}");
    }
}

#[test]
fn an_address_that_is_in_use_is_named_with_what_to_do() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let config =
        format!("[listen]\npublic = \"127.0.0.1:0\"\noperator = \"127.0.0.1:0\"\nconsole = \"{address}\"\n");
    std::fs::write(folder.path().join("config.toml"), config).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_chaingate"))
        .args(["serve", "--config", "config.toml", "--data-dir", "data"])
        .current_dir(folder.path())
        .env_remove("CHAINGATE_CONSOLE")
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    assert!(said.contains(&address.to_string()) && said.contains("--console off"), "{said}");
    let gateway = Process::start("127.0.0.1:0", "", "info");
    assert_eq!(gateway.console, None, "it can be switched off");
}

#[test]
fn cookies_and_host_names_follow_the_configured_address() {
    let settings = "[console]\nurl = \"https://console.example\"\npublic_url = \"https://rpc.example\"\n";
    let gateway = Process::start_with_console(settings, "info");
    let mut visit = Visit::of(&gateway);
    visit.host = "console.example".to_owned();
    let form = visit.get("/sign-in");
    assert_eq!(form.status, 200);
    let cookie = form.header("set-cookie").unwrap();
    assert!(cookie.starts_with("__Host-") && cookie.contains("; Secure"), "{cookie}");
    assert!(
        form.header("content-security-policy").unwrap().contains("connect-src 'self' https://rpc.example;")
    );
    visit.host = "other.example".to_owned();
    assert_eq!(visit.get("/sign-in").status, 403);
}

#[test]
fn everybody_may_sign_up_where_the_operator_says_so() {
    let fields = "email=ada%40example.com&account=acme&password=correct+horse";
    let gateway = Process::start_with_console("", "info");
    let mut visit = Visit::of(&gateway);
    assert!(!visit.get("/sign-up").text().contains("type=\"password\""));
    assert_eq!(visit.submit("/sign-in", "/sign-up", fields).status, 422);
    let settings = "[console]\nsign_up = \"open\"\nsign_up_plan = \"team\"\n";
    let gateway = Process::start_with_console(settings, "info");
    let mut visit = Visit::of(&gateway);
    assert_eq!(visit.submit("/sign-up", "/sign-up", fields).status, 303);
    assert!(visit.get("/").text().contains("team"));
}
