//! Accounts and keys of a store that gateways share, and what happens while it is down.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use callers::Plans;
use callers::administration::{Administration, AdministrationError, KeyCreation, NewKey};
use serde_json::Value;
use store::{Store, StoreLocation};
use testkit::http::{get, post};
use testkit::postgres::PostgresServer;

use crate::demo::{metric, until};
use crate::gateway_under_test::chain_id;
use crate::process::Process;

/// Makes changes of the store, as a command without a running gateway does.
struct Operator {
    runtime: tokio::runtime::Runtime,
    administration: Administration,
}

impl Operator {
    fn of(location: StoreLocation) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { runtime, administration: Administration::new(Store::new(location), Plans::default()) }
    }

    fn of_server(server: &PostgresServer) -> Self {
        Self::of(StoreLocation::parse(&server.url()).unwrap())
    }

    fn create_key(&self, account: &str) -> NewKey {
        let create = async {
            // All keys after the first one find the account.
            let _exists = self.administration.create_account("test", account, "team").await;
            self.try_create_key(account).await.unwrap()
        };
        self.runtime.block_on(create)
    }

    async fn try_create_key(&self, account: &str) -> Result<NewKey, AdministrationError> {
        let creation =
            KeyCreation { account: account.to_owned(), name: "k".to_owned(), ..KeyCreation::default() };
        self.administration.create_key("test", &creation).await.map(|created| created.made)
    }

    fn revoke(&self, key: &NewKey) {
        self.runtime.block_on(self.administration.revoke_key("test", &key.summary.id)).unwrap();
    }
}

fn config(server: &PostgresServer) -> String {
    format!("[store]\nurl = \"{}\"\n", server.url())
}

fn start(server: &PostgresServer) -> Process {
    Process::start("127.0.0.1:0", &config(server), "info")
}

fn status(gateway: &Process, key: &str) -> u16 {
    post(gateway.public, &format!("/v3/{key}"), chain_id("1")).status
}

fn is_accepted(gateway: &Process, key: &NewKey) -> bool {
    match status(gateway, &key.key) {
        200 => true,
        401 => false,
        other => panic!("status {other}"),
    }
}

#[test]
fn a_key_in_the_default_store_is_used_without_a_restart() {
    let gateway = Process::start("127.0.0.1:0", "", "info");
    let operator = Operator::of(StoreLocation::in_data_dir(&gateway.data_dir()));
    let key = operator.create_key("acme");
    until("the key is accepted", || is_accepted(&gateway, &key));
    operator.revoke(&key);
    until("the key is refused", || !is_accepted(&gateway, &key));
    assert_eq!(metric(gateway.operator, "chaingate_store_connected"), 1.0);
    until("no key is counted", || metric(gateway.operator, "chaingate_store_keys") == 0.0);
    assert_eq!(gateway.lines_with(&key.key), 0);
}

#[test]
fn a_change_reaches_every_gateway_of_a_store() {
    let Some(server) = PostgresServer::start() else { return };
    let gateways = [start(&server), start(&server)];
    let operator = Operator::of_server(&server);
    let key = operator.create_key("acme");
    for gateway in &gateways {
        until("the key is accepted", || is_accepted(gateway, &key));
    }
    let revoked_at = Instant::now();
    operator.revoke(&key);
    for gateway in &gateways {
        until("the key is refused", || !is_accepted(gateway, &key));
    }
    eprintln!("revoked on two gateways after {:?}", revoked_at.elapsed());
}

#[test]
fn known_callers_are_served_while_the_store_is_down() {
    let Some(mut server) = PostgresServer::start() else { return };
    let operator = Operator::of_server(&server);
    let (key, revoked) = (operator.create_key("acme"), operator.create_key("acme"));
    let gateway = start(&server);
    assert!(is_accepted(&gateway, &key));
    server.kill();
    until("the gateway notices", || metric(gateway.operator, "chaingate_store_connected") == 0.0);
    assert!(is_accepted(&gateway, &key));
    assert_eq!(status(&gateway, "0123456789abcdef0123456789abcdef"), 401);
    assert_eq!(get(gateway.operator, "/ready").status, 200);
    let failed = operator.runtime.block_on(operator.try_create_key("acme")).unwrap_err();
    assert!(matches!(failed, AdministrationError::StoreUnavailable(_)), "{failed:?}");
    server.restart();
    // The first tries can still meet connections that the server has closed.
    until("changes are made again", || {
        operator.runtime.block_on(operator.administration.revoke_key("test", &revoked.summary.id)).is_ok()
    });
    until("the change is found", || !is_accepted(&gateway, &revoked));
    assert!(is_accepted(&gateway, &key));
    // The status is written after the change is effective.
    until("the status says so", || metric(gateway.operator, "chaingate_store_connected") == 1.0);
    until("the log says so", || {
        gateway.lines_with("the store of accounts and keys can be reached again") == 1
    });
}

#[test]
fn a_gateway_starts_without_its_store_if_it_has_a_copy() {
    let Some(mut server) = PostgresServer::start() else { return };
    let operator = Operator::of_server(&server);
    let key = operator.create_key("acme");
    let mut gateway = start(&server);
    assert!(is_accepted(&gateway, &key));
    server.kill();
    gateway.start_again("info");
    assert_eq!(get(gateway.operator, "/ready").status, 200);
    assert!(is_accepted(&gateway, &key));
    assert_eq!(metric(gateway.operator, "chaingate_store_copy_used"), 1.0);
    assert_eq!(gateway.lines_with("the local copy of accounts and keys is used"), 1);
    server.restart();
    until("the store is used", || metric(gateway.operator, "chaingate_store_copy_used") == 0.0);
    let another = operator_after_restart(&operator);
    until("a new key is accepted", || is_accepted(&gateway, &another));
}

/// A gateway that was started without its store served keys that had been revoked meanwhile, for as long as the store was down.
#[test]
fn a_copy_is_used_for_as_long_as_the_configuration_says() {
    for (copy_age_max, is_used) in [("copy_age_max_s = 1", false), ("", true)] {
        let folder = tempfile::tempdir().unwrap();
        let [store, hidden] = ["store", "hidden"].map(|name| folder.path().join(name));
        let file = store.join("callers.sqlite");
        let url = format!("sqlite:{}", file.display());
        fs::create_dir(&store).unwrap();
        let key = Operator::of(StoreLocation::parse(&url).unwrap()).create_key("acme");
        let mut gateway =
            Process::start("127.0.0.1:0", &format!("[store]\nurl = \"{url}\"\n{copy_age_max}\n"), "info");
        until("the key is accepted", || is_accepted(&gateway, &key));
        gateway.signal("STOP");
        fs::rename(&store, &hidden).unwrap();
        // A folder in the place of the file cannot be opened, and no new database takes its place.
        fs::create_dir_all(&file).unwrap();
        thread::sleep(Duration::from_millis(2_100));
        gateway.start_again("info");
        assert_eq!(is_accepted(&gateway, &key), is_used, "{copy_age_max}");
        let ready = get(gateway.operator, "/ready");
        assert_eq!((ready.status == 200, ready.text().contains("copy_age_max_s")), (is_used, !is_used));
        fs::remove_dir_all(&store).unwrap();
        fs::rename(&hidden, &store).unwrap();
        until("the store is used", || get(gateway.operator, "/ready").status == 200);
        assert!(is_accepted(&gateway, &key));
    }
}

/// A key that is created as soon as the store answers again.
fn operator_after_restart(operator: &Operator) -> NewKey {
    let mut created = None;
    until("changes are made again", || {
        created = operator.runtime.block_on(operator.try_create_key("acme")).ok();
        created.is_some()
    });
    created.unwrap()
}

#[test]
fn a_gateway_without_store_and_copy_is_not_ready_and_keeps_trying() {
    let Some(mut server) = PostgresServer::start() else { return };
    let key = Operator::of_server(&server).create_key("acme");
    server.kill();
    let gateway = start(&server);
    let reply = get(gateway.operator, "/ready");
    assert_eq!(reply.status, 503);
    assert!(reply.text().contains("the store of accounts and keys cannot be reached"), "{}", reply.text());
    let shown = get(gateway.operator, "/status");
    assert!(shown.text().contains("\"store\": \"not connected\""), "{}", shown.text());
    assert_eq!(status(&gateway, "demo"), 200);
    assert!(!is_accepted(&gateway, &key));
    server.restart();
    until("the gateway is ready", || get(gateway.operator, "/ready").status == 200);
    assert!(is_accepted(&gateway, &key));
}

/// Nobody could revoke a key while the store was down.
#[test]
fn a_key_is_revoked_with_a_command_while_the_store_is_down() {
    let Some(mut server) = PostgresServer::start() else { return };
    let operator = Operator::of_server(&server);
    let (running, stopped) = (operator.create_key("acme"), operator.create_key("acme"));
    let mut gateway = start(&server);
    server.kill();
    let revoke = |gateway: &Process, id: &str| {
        let file = gateway.data_dir().join("local.toml");
        fs::write(&file, format!("data_dir = \"{}\"\n{}", gateway.data_dir().display(), config(&server)))
            .unwrap();
        command(&file, &["keys", "revoke", id, "--local"])
    };
    assert_eq!(revoke(&gateway, &running.summary.id)["id"], running.summary.id);
    assert!(!is_accepted(&gateway, &running) && is_accepted(&gateway, &stopped));
    gateway.start_again("info");
    assert!(!is_accepted(&gateway, &running), "it holds after a restart");
    revoke(&gateway, &stopped.summary.id);
    server.restart();
    until("the store has the revocations", || {
        server.run("SELECT COUNT(*) FROM api_keys WHERE status = 'revoked'") == "2"
    });
    assert!(!is_accepted(&gateway, &running) && !is_accepted(&gateway, &stopped));
}

/// Runs `chaingate` with this configuration and prints JSON.
fn command(config: &Path, arguments: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chaingate"));
    let output = command.args(arguments).arg("--config").arg(config).arg("--json").output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A gateway on another machine shares only the store with the commands.
#[test]
fn commands_with_a_shared_store_take_effect_on_every_gateway() {
    let Some(server) = PostgresServer::start() else { return };
    let gateways = [start(&server), start(&server)];
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("chaingate.toml");
    let data_dir = folder.path().join("data");
    fs::write(&file, format!("data_dir = \"{}\"\n{}", data_dir.display(), config(&server))).unwrap();
    command(&file, &["accounts", "create", "--name", "acme", "--plan", "team"]);
    let created = command(&file, &["keys", "create", "--account", "acme", "--name", "web"]);
    let (key, id) = (created["key"].as_str().unwrap(), created["id"].as_str().unwrap());
    for gateway in &gateways {
        until("the key is accepted", || status(gateway, key) == 200);
    }
    until("all calls are counted", || {
        let usage = command(&file, &["keys", "usage", "--account", "acme"]);
        usage["calls"].as_u64().unwrap() >= 2
    });
    command(&file, &["accounts", "suspend", "acme"]);
    for gateway in &gateways {
        until("the account is suspended", || status(gateway, key) == 401);
    }
    command(&file, &["accounts", "resume", "acme"]);
    for gateway in &gateways {
        until("the account is active", || status(gateway, key) == 200);
    }
    command(&file, &["keys", "revoke", id]);
    for gateway in &gateways {
        until("the key is revoked", || status(gateway, key) == 401);
    }
}
