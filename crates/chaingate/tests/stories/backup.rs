//! Backups of gateways that run and of those that do not, and what is restored from them.
//!
//! `CHAINGATE_BACKUP_KILLS` says how often a backup and its gateway are killed.

#[path = "backup/attacks.rs"]
mod attacks; // kills, flipped bits, full disks, two at once
#[path = "backup/damage.rs"]
mod damage; // chaingate verify

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use archive::{Archive, NoProgress};
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::chain::{Size, random_chain};
use testkit::http::{TestConnection, get, post, request};
use testkit::truth::Truth;

use crate::accounts::{account_with_key, json as command_json, status};
use crate::demo::{Demo, metric, until};
use crate::documented::samples;
use crate::gateway_under_test::{call, chain_id};
use crate::process::Process;

fn backup_command(data_dir: &Path, to: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chaingate"));
    command.arg("backup").arg("--data-dir").arg(data_dir).arg("--to").arg(to);
    command
}

/// A backup that succeeds, and what it says about itself.
pub(crate) fn back_up(data_dir: &Path, to: &Path) -> Value {
    let output = backup_command(data_dir, to).arg("--json").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn restore(from: &Path, data_dir: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chaingate"));
    command.arg("restore").arg("--from").arg(from).arg("--data-dir").arg(data_dir).output().unwrap()
}

/// Why a command failed.
fn failure(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// A gateway with what was backed up.
pub(crate) fn restored(from: &Path, rest: &str) -> Process {
    Process::start_with_data(rest, "info", "", |data_dir| {
        let output = restore(from, data_dir);
        assert!(output.status.success(), "{output:?}");
    })
}

/// The answer to a call.
fn answer(gateway: &Process, key: &str, method: &str, params: &Value) -> Value {
    post(gateway.public, &format!("/v3/{key}"), call(method, &params.to_string())).json()
}

/// Calls until the end, none of which may fail; the longest time that one has taken.
fn load(gateway: &Process, is_over: &AtomicBool) -> Duration {
    let mut connection = TestConnection::connect(gateway.public);
    let mut longest = Duration::ZERO;
    while !is_over.load(SeqCst) {
        let begun = Instant::now();
        connection.send(request(
            "/v3/demo",
            "",
            call("eth_getBalance", r#"["0x00000000000000000000000000000000000000aa","latest"]"#).as_bytes(),
        ));
        assert_eq!(connection.reply().status, 200);
        longest = longest.max(begun.elapsed());
    }
    longest
}

#[test]
fn a_restored_gateway_answers_every_method_and_every_key_like_the_one_that_was_backed_up() {
    let gateway = Process::start("127.0.0.1:0", "", "info");
    let folder = tempfile::tempdir().unwrap();
    let (data_dir, backup) = (gateway.data_dir(), folder.path().join("backup"));
    let mut keys: Vec<String> =
        (0..3).map(|n| account_with_key(&data_dir, &format!("account-{n}")).0).collect();
    let revoked = account_with_key(&data_dir, "former");
    command_json(&data_dir, &["keys", "revoke", &revoked.1]);
    until("the keys are in effect", || {
        status(&gateway, &keys[2]) == 200 && status(&gateway, &revoked.0) == 401
    });
    assert!(!get(gateway.operator, "/metrics").text().contains("\nchaingate_last_backup_at_seconds "));

    let is_over = AtomicBool::new(false);
    let made = thread::scope(|scope| {
        let load = scope.spawn(|| load(&gateway, &is_over));
        let made = back_up(&data_dir, &backup);
        is_over.store(true, SeqCst);
        let longest = load.join().unwrap();
        let (bytes, seconds) = (&made["bytes"], &made["seconds"]);
        eprintln!("backup of {bytes} bytes in {seconds} s, longest call meanwhile {longest:?}");
        made
    });
    assert_eq!(made["manifest"]["archive"]["head"], 255);
    assert_eq!(made["manifest"]["store"], "sqlite");
    let names: Vec<_> =
        made["manifest"]["files"].as_array().unwrap().iter().map(|file| &file["name"]).collect();
    assert_eq!(names, [&json!("archive.redb"), &json!("callers.sqlite")]);
    assert!(metric(gateway.operator, "chaingate_last_backup_at_seconds") > 1.7e9);

    let again = restored(&backup, "");
    for (method, params) in samples() {
        assert_eq!(
            answer(&gateway, "demo", method, &params),
            answer(&again, "demo", method, &params),
            "{method}"
        );
    }
    keys.push("demo".to_owned());
    until("the store is followed", || status(&again, &keys[0]) == 200);
    assert!(keys.iter().all(|key| status(&again, key) == 200));
    assert_eq!(status(&again, &revoked.0), 401);
    let keys_of = |account| vec!["keys", "list", "--account", account];
    for list in [vec!["accounts", "list"], keys_of("account-0"), keys_of("former")] {
        let lists = [&gateway, &again].map(|gateway| without_uses(command_json(&gateway.data_dir(), &list)));
        assert_eq!(lists[0], lists[1], "{list:?}");
    }
}

/// When a key was used last is written now and then.
fn without_uses(mut list: Value) -> Value {
    for entry in list.as_object_mut().unwrap().values_mut().filter_map(Value::as_array_mut).flatten() {
        entry.as_object_mut().unwrap().remove("last_used_at");
    }
    list
}

/// A chain in files, and a gateway over an archive of its begin.
struct ImportingGateway {
    truth: Truth,
    folder: TempDir,
}

const RANDOM: &str = "[network]\nname = \"random\"\n[[key]]\nkey = \"demo\"\nplan = \"custom\"\n";

impl ImportingGateway {
    fn new(blocks_per_fork: u64) -> Self {
        let truth = Truth::new(random_chain(4, Size { blocks_per_fork, transactions_per_block: 8 }));
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("genesis.json"), truth.model.genesis_json()).unwrap();
        for (number, block) in truth.model.blocks().iter().enumerate() {
            std::fs::write(folder.path().join(format!("{number:05}.rlp")), block.rlp()).unwrap();
        }
        Self { truth, folder }
    }

    /// An archive with the first blocks.
    fn prepare(&self, data_dir: &Path, head: u64) {
        let archive = Archive::open_or_create(data_dir, &self.truth.model.genesis_json()).unwrap();
        let blocks = (1..=head).map(|number| self.truth.model.block(number).unwrap().block.clone());
        archive.import_blocks(blocks.collect::<Vec<_>>(), &mut NoProgress).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `chaingate import` of all blocks after the first ones, a file for each.
    fn import(&self, data_dir: &Path) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_chaingate"));
        command.arg("import").arg("--data-dir").arg(data_dir);
        command.arg("--genesis").arg(self.path("genesis.json"));
        let files = 0..self.truth.model.blocks().len();
        command.args(files.map(|number| self.path(&format!("{number:05}.rlp"))));
        command
    }
}

#[test]
fn imports_go_on_during_a_backup_which_has_a_whole_block() {
    let place = ImportingGateway::new(6);
    let head = place.truth.model.head();
    let gateway = Process::start_with_data(RANDOM, "info", "", |data_dir| place.prepare(data_dir, 10));
    let data_dir = gateway.data_dir();
    let mut import = place.import(&data_dir).spawn().unwrap();
    let mut heads = Vec::new();
    for number in 0.. {
        let backup = place.path(&format!("backup-{number}"));
        let made = back_up(&data_dir, &backup);
        let head = made["manifest"]["archive"]["head"].as_u64().unwrap();
        let target = tempfile::tempdir().unwrap();
        assert!(restore(&backup, target.path()).status.success());
        let archive = Archive::open(target.path()).unwrap();
        assert_eq!(archive.snapshot().head(), head);
        place.truth.check_sample(&archive.snapshot(), [head / 2]).unwrap();
        heads.push(head);
        if import.try_wait().unwrap().is_some() {
            break;
        }
    }
    assert!(import.wait().unwrap().success());
    eprintln!("backups during an import have the heads {heads:?}");
    assert!(heads.is_sorted() && heads[0] >= 10);
    // The last one goes on elsewhere.
    let last = place.path(&format!("backup-{}", heads.len() - 1));
    let again = restored(&last, RANDOM);
    assert!(place.import(&again.data_dir()).status().unwrap().success());
    let newest = answer(&again, "demo", "eth_blockNumber", &json!([]));
    assert_eq!(newest["result"], format!("{head:#x}"));
}

#[test]
fn a_gateway_that_does_not_run_is_backed_up_too_and_postgresql_is_left_to_its_own_backups() {
    let place = ImportingGateway::new(2);
    let data_dir = place.path("data");
    place.prepare(&data_dir, 12);
    let backup = place.path("backup");
    let config = place.path("chaingate.toml");
    std::fs::write(&config, "[store]\nurl = \"postgres://u:hunter2@127.0.0.1:1/chaingate\"\n").unwrap();
    let output = backup_command(&data_dir, &backup).arg("--config").arg(&config).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.contains("back them up with pg_dump"), "{text}");
    assert!(text.contains("The head of the archive is block 12.") && !text.contains("hunter2"), "{text}");
    let manifest = std::fs::read_to_string(backup.join("manifest.json")).unwrap();
    assert!(manifest.contains("\"postgresql\"") && !manifest.contains("hunter2"), "{manifest}");
    let target = place.path("restored");
    let output = restore(&backup, &target);
    assert!(String::from_utf8(output.stdout).unwrap().contains("restore them with pg_restore"));
    place.truth.check_sample(&Archive::open(&target).unwrap().snapshot(), [3]).unwrap();
}

/// Usage that waits for the store is added by the gateway that has counted it. A restored one would add it once more.
#[test]
fn usage_is_not_counted_twice_after_a_restore() {
    let mut gateway = Process::start("127.0.0.1:0", "", "info");
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..7 {
        post(gateway.public, "/v3/demo", chain_id("1"));
    }
    // Its spool may have the calls, and the store has them later.
    let backup = folder.path().join("backup");
    back_up(&gateway.data_dir(), &backup);
    assert!(!backup.join("usage").exists());
    gateway.terminate();
    until("it has ended", || gateway.has_ended());
    let calls = |data_dir: &Path| {
        command_json(data_dir, &["keys", "usage", "--account", "demo"])["calls"].as_u64().unwrap()
    };
    let target = folder.path().join("restored");
    assert!(restore(&backup, &target).status.success());
    let before = calls(&target);
    assert!(before <= 7);
    let again = restored(&backup, "");
    post(again.public, "/v3/demo", chain_id("1"));
    until("it is counted", || calls(&again.data_dir()) == before + 1);
}

#[test]
fn stored_blocks_of_nodes_are_in_a_backup() {
    let node = Demo::with("");
    let rest = format!(
        "[network]\nname = \"nodes\"\n[[key]]\nkey = \"demo\"\nplan = \"custom\"\n\
         [follow]\nfrom = \"earliest\"\n[[node]]\nurl = \"http://{}/v3/demo\"\n",
        node.public
    );
    let gateway = Process::start("127.0.0.1:0", &rest, "info");
    let stored = |gateway: &Process| metric(gateway.operator, "chaingate_follow_blocks") as u64;
    until("blocks are stored", || stored(&gateway) > 50);
    let folder = tempfile::tempdir().unwrap();
    let backup = folder.path().join("backup");
    let made = back_up(&gateway.data_dir(), &backup);
    let blocks = made["manifest"]["blocks"]["blocks"].as_u64().unwrap();
    assert!(blocks > 50 && blocks <= stored(&gateway), "{made}");
    drop(gateway);
    let again = restored(&backup, &rest);
    assert!(stored(&again) >= blocks);
}
