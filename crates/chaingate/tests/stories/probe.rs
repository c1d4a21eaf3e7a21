//! `chaingate check --probe` in front of nodes, partners, stores and a Redis that do not work, each in its own way.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::{fs, thread};

use store::{Store, StoreLocation};
use testkit::postgres::PostgresServer;
use testkit::proxy::{Mood, Proxy};
use testkit::redis::RedisServer;

use crate::demo::Demo;
use crate::gateway_under_test::Gateway;

/// Credentials of addresses, which nobody may see.
const SECRET: &str = "hunter2";

/// The printed result for each part, and whether the command succeeded.
struct Probed {
    lines: Vec<String>,
    said: String,
    success: bool,
}

impl Probed {
    fn with(folder: &Path, config: &str) -> Self {
        let file = folder.join("chaingate.toml");
        fs::write(&file, config).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_chaingate"))
            .args(["check", "--probe", "--config"])
            .arg(&file)
            .arg("--data-dir")
            .arg(folder.join("data"))
            .output()
            .unwrap();
        let (out, said) =
            (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert!(!out.contains(SECRET) && !said.contains(SECRET), "{out}{said}");
        Self { lines: out.lines().map(str::to_owned).collect(), said, success: output.status.success() }
    }

    /// The line of something, whose kind and name are at its beginning.
    fn line(&self, kind: &str, name: &str) -> &str {
        let is_it = |line: &&String| line.starts_with(kind) && line.split_whitespace().nth(1) == Some(name);
        self.lines
            .iter()
            .find(is_it)
            .unwrap_or_else(|| panic!("{kind} {name}: {:#?} {}", self.lines, self.said))
    }

    fn assert(&self, kind: &str, name: &str, result: &str, details: &str) {
        let line = self.line(kind, name);
        let found = line.split_whitespace().nth(2);
        assert!(found == Some(result) && line.contains(details), "{result} {details}: {line}");
    }
}

fn node(name: &str, url: &str) -> String {
    format!("[[node]]\nname = \"{name}\"\nurl = \"{url}\"\n")
}

/// A port at which nobody listens.
fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

/// The only way to find out was to start a gateway and to look into its log.
#[test]
fn each_node_is_reported_with_what_is_wrong_and_what_to_do() {
    let (chain, folder) = (Demo::with(""), tempfile::tempdir().unwrap());
    let moods = [
        ("honest", Mood::Honest),
        ("hung", Mood::Hung),
        ("closed", Mood::Dead),
        ("other", Mood::OtherChain),
        ("forbidden", Mood::Unauthorized),
        ("html", Mood::Html),
        ("syncing", Mood::Syncing),
    ];
    let proxies = moods.map(|(name, mood)| {
        let proxy = Proxy::start(chain.public, "/v3/demo");
        proxy.set(mood);
        (name, proxy)
    });
    let tls = tls_node(folder.path());
    let nodes = proxies
        .iter()
        .map(|(name, proxy)| node(name, &format!("http://user:{SECRET}@{}/{SECRET}", proxy.address)));
    let refused = node("refused", &format!("http://{}/{SECRET}", free_address()));
    let untrusted = node("untrusted", &format!("https://localhost:{}/v3/demo", tls.public.port()));
    let config = format!(
        "[network]\nname = \"demo-nodes\"\nchain_id = {}\n[[key]]\nkey = \"own\"\n{}{refused}{untrusted}",
        demo::CHAIN_ID,
        nodes.collect::<String>()
    );
    let probed = Probed::with(folder.path(), &config);
    assert!(!probed.success && probed.said.contains("needs, and cannot use"), "{}", probed.said);
    for (name, details) in [
        ("hung", "no reply in time: check whether it hangs or is overloaded"),
        ("other", "its chain id is 57005, not "),
        ("forbidden", "it refuses our credentials"),
        ("html", "check that its url is that of a JSON-RPC endpoint"),
        ("syncing", "it is syncing, and will be used when it has finished"),
        ("refused", "cannot connect: check that it runs, and the host and port of its url"),
        ("untrusted", "its certificate is not from an authority that this machine trusts"),
        ("closed", "check whether it restarts, or a proxy before it closes connections"),
    ] {
        probed.assert("node", name, "failed", details);
    }
    probed.assert("node", "honest", "ok", &format!("chain {}; ", demo::CHAIN_ID));
    probed.assert("node", "honest", "ok", "block 255, ");
    probed.assert("node", "honest", "ok", "all old data; state of all blocks; no proofs");
    let quorum = probed.lines.iter().find(|line| line.starts_with("quorum")).unwrap();
    assert!(quorum.contains("only 1 node can be used, and the quorum is 5"), "{quorum}");
}

/// A node with a certificate that nobody trusts.
fn tls_node(folder: &Path) -> Gateway {
    let issued = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (certificate, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    fs::write(&certificate, issued.cert.pem()).unwrap();
    fs::write(&key, issued.signing_key.serialize_pem()).unwrap();
    Gateway::listening(&format!("tls_certificate = {certificate:?}\ntls_key = {key:?}"))
}

/// Parts that the gateway serves without are no failure: one node of three, a partner, Redis.
#[test]
fn what_callers_do_not_miss_is_a_warning() {
    let (chain, folder) = (Demo::with(""), tempfile::tempdir().unwrap());
    let nodes = [(); 2].map(|()| Proxy::start(chain.public, "/v3/demo"));
    let partner = Proxy::start(chain.public, "/v3/demo");
    partner.set(Mood::OtherChain);
    let config = format!(
        "[network]\nname = \"demo-nodes\"\n[[key]]\nkey = \"own\"\n{}{}{}\
         [[partner]]\nname = \"provider\"\nurl = \"http://{}/{SECRET}\"\n\
         [shared]\nredis_url = \"redis://:{SECRET}@{}/0\"\n[integrity]\nstate = \"prove\"\n",
        node("a", &nodes[0].url()),
        node("b", &nodes[1].url()),
        node("c", &format!("http://{}", free_address())),
        partner.address,
        free_address(),
    );
    let probed = Probed::with(folder.path(), &config);
    assert!(probed.success, "{:#?} {}", probed.lines, probed.said);
    probed.assert("node", "a", "warning", "it proves no state, and [integrity] state is \"prove\"; chain ");
    probed.assert("node", "c", "warning", "cannot connect");
    probed.assert("partner", "provider", "warning", "its chain id is 57005, not ");
    assert!(partner.calls() <= 2, "a partner costs money: {}", partner.calls());
    assert!(probed.lines.iter().any(|line| line.starts_with("redis") && line.contains("cannot reach Redis")));
    assert!(
        probed.lines.iter().any(|line| line.starts_with("store") && line.contains("the file is made when"))
    );
    assert!(!folder.path().join("data").exists(), "a check creates nothing");
}

#[test]
fn a_redis_that_wants_a_password_and_one_that_works_are_told_apart() {
    let Some(redis) = RedisServer::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let config =
        |credentials: &str| format!("[shared]\nredis_url = \"redis://{credentials}{}/0\"\n", redis.address());
    let address = redis.address().to_string();
    Probed::with(folder.path(), &config("")).assert("redis", &address, "ok", "runs scripts");
    assert_eq!(redis.command(&format!("CONFIG SET requirepass {SECRET}")), "+OK");
    let refused = Probed::with(folder.path(), &config(""));
    refused.assert("redis", &address, "warning", "this instance keeps its part of each limit");
    Probed::with(folder.path(), &config(&format!(":{SECRET}@"))).assert(
        "redis",
        &address,
        "ok",
        "runs scripts",
    );
}

#[test]
fn a_store_that_is_no_database_is_a_failure_if_it_is_configured() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("broken.sqlite");
    fs::write(&file, "this is no database, but it is long enough to be taken for the head of one".repeat(20))
        .unwrap();
    let probed = Probed::with(folder.path(), &format!("[store]\nurl = \"sqlite:{}\"\n", file.display()));
    assert!(!probed.success, "{:?}", probed.lines);
    let name = format!("sqlite:{}", file.display());
    probed.assert("store", &name, "failed", "file is not a database");
}

/// Connects to nothing that answers, and does so in a bounded time.
#[test]
fn a_store_that_hangs_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let held: Vec<_> = listener.incoming().collect();
        drop(held);
    });
    let url = format!("postgres://chaingate:{SECRET}@{address}/chaingate");
    let probed = Probed::with(folder.path(), &format!("[store]\nurl = \"{url}\"\n"));
    assert!(!probed.success);
    probed.assert("store", &format!("postgres://{address}/chaingate"), "failed", "no connection within 2s");
}

#[test]
fn a_postgresql_is_asked_for_its_version_and_for_rights() {
    let Some(postgres) = PostgresServer::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let probed = |url: &str| Probed::with(folder.path(), &format!("[store]\nurl = \"{url}\"\n"));
    let store = |probed: &Probed, result: &str, details: &str| {
        let line = probed.lines.iter().find(|line| line.starts_with("store")).unwrap();
        assert!(line.contains(result) && line.contains(details), "{line}");
        assert_eq!(probed.success, result == "ok", "{line}");
    };
    store(&probed(&postgres.url()), "ok", "no tables, which the gateway makes when it starts");
    postgres.run(&format!("CREATE ROLE guest LOGIN PASSWORD '{SECRET}'"));
    let guest = postgres.url().replace("user=chaingate", &format!("user=guest&password={SECRET}"));
    store(&probed(&guest), "failed", "its user may not create tables");

    let location = StoreLocation::parse(&postgres.url()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let made = Store::new(location);
        made.prepare().await.unwrap();
        made.close().await;
    });
    store(&probed(&postgres.url()), "ok", "may be read and written");
    postgres.run("GRANT SELECT ON ALL TABLES IN SCHEMA public TO guest");
    let refused = probed(&guest);
    store(&refused, "failed", "its user may not read and write these tables: accounts, api_keys, ");
    postgres.run("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO guest");
    store(&probed(&guest), "ok", "may be read and written");
    postgres.run("UPDATE store_version SET version = 1000");
    store(&probed(&postgres.url()), "failed", "use a newer version of this program");
}
