//! Mistakes that keep the program from starting: `serve` refuses them, and `check` finds them without starting.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use archive::Archive;
use resources::unix_seconds;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use testkit::http::get;

use crate::demo::{metric, until};
use crate::gateway_under_test::Gateway;

/// A folder with a configuration and the files that it names.
struct Place {
    folder: TempDir,
}

/// How a command ended: whether it succeeded, and what it wrote to standard error.
#[derive(Debug)]
struct Ended {
    success: bool,
    said: String,
}

impl Place {
    fn with(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("config.toml"), config).unwrap();
        Self { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Runs a command to its end; one that does not end is killed, and counts as a success.
    fn run(&self, command: &str, more: &[&str]) -> Ended {
        self.run_in_shell("", command, more)
    }

    /// Like [`run`](Self::run), after a shell command, such as one that lowers a limit of the process.
    fn run_in_shell(&self, before: &str, command: &str, more: &[&str]) -> Ended {
        let said = self.path().join("said");
        let mut child = Command::new("sh")
            .args(["-c", &format!("{before} exec \"$@\""), "sh", env!("CARGO_BIN_EXE_chaingate"), command])
            .args(more)
            .current_dir(self.path())
            .env("RUST_LOG", "info")
            .env("CHAINGATE_CONSOLE", "off")
            .stdout(Stdio::null())
            .stderr(fs::File::create(&said).unwrap())
            .spawn()
            .unwrap();
        let mut status = None;
        until("it ends or serves", || {
            status = child.try_wait().unwrap();
            status.is_some() || fs::read_to_string(&said).unwrap().contains("\"serving\"")
        });
        let _ended_already = child.kill();
        child.wait().unwrap();
        let said = fs::read_to_string(said).unwrap();
        Ended { success: status.is_none_or(|status| status.success()), said }
    }

    /// Starts the program with this data directory.
    fn serve_in(&self, data_dir: &OsStr) -> Child {
        Command::new(env!("CARGO_BIN_EXE_chaingate"))
            .args(["serve", "--config", "config.toml", "--data-dir"])
            .arg(data_dir)
            .current_dir(self.path())
            .env("RUST_LOG", "info")
            .env("CHAINGATE_CONSOLE", "off")
            .stdout(Stdio::null())
            .stderr(fs::File::create(self.path().join("said")).unwrap())
            .spawn()
            .unwrap()
    }

    /// The standard error of the program so far.
    fn said(&self) -> String {
        fs::read_to_string(self.path().join("said")).unwrap()
    }

    /// The message of both commands about the configuration, which both must refuse.
    fn refused(&self) -> String {
        self.refused_with(&["--config", "config.toml"])
    }

    fn refused_with(&self, options: &[&str]) -> String {
        let (check, serve) = (self.run("check", options), self.run("serve", options));
        assert!(!check.success && !serve.success, "{check:?} {serve:?}");
        assert!(serve.said.contains(check.said.trim()), "both say the same: {check:?} {serve:?}");
        check.said
    }

    /// An archive of another chain in `data`: the genesis of the demo chain with another extra data.
    fn import_another_chain(&self) {
        let genesis = demo::GENESIS;
        let other = genesis.replacen("\"extraData\":\"0x", "\"extraData\":\"0xff", 1);
        assert_ne!(genesis, other);
        drop(Archive::open_or_create(&self.path().join("data"), &other).unwrap());
    }
}

const LOOPBACK: &str = "[listen]\npublic = \"127.0.0.1:0\"\noperator = \"127.0.0.1:0\"\n";

/// An imported archive that was served without a configuration had the key `demo`, without limits, for everybody.
#[test]
fn another_chain_is_not_served_with_the_key_of_the_demo_chain() {
    let place = Place::with(LOOPBACK);
    place.import_another_chain();
    let options = ["--data-dir", "data", "--listen", "127.0.0.1:0", "--operator", "127.0.0.1:0"];
    let said = place.refused_with(&options);
    for part in [
        "the archive in data is not the demo chain, so it needs a name and an API key",
        "[network]\nname = ",
        "[[key]]\nkey = ",
    ] {
        assert!(said.contains(part), "{said}");
    }

    // The message said that an API key was needed, although the file had one.
    let with_key = format!("data_dir = \"data\"\n{LOOPBACK}[[key]]\nkey = \"own\"\n");
    fs::write(place.path().join("config.toml"), &with_key).unwrap();
    let said = place.refused();
    assert!(said.contains("so it needs a name. Write") && !said.contains("[[key]]"), "{said}");

    let config = format!("data_dir = \"data\"\n{LOOPBACK}[network]\nname = \"other\"\n");
    fs::write(place.path().join("config.toml"), &config).unwrap();
    let serve = place.run("serve", &["--config", "config.toml"]);
    assert!(serve.success && serve.said.contains("there is no key yet"), "{serve:?}");

    fs::write(place.path().join("config.toml"), config + "[[key]]\nkey = \"own\"\n").unwrap();
    let check = place.run("check", &["--config", "config.toml"]);
    assert!(check.success && check.said.contains("configuration OK"), "{check:?}");
    assert!(place.run("serve", &["--config", "config.toml"]).success);
}

#[test]
fn the_demo_chain_needs_no_configuration() {
    let place = Place::with(LOOPBACK);
    let options = ["--config", "config.toml", "--data-dir", "data"];
    assert!(place.run("check", &options).success, "it is made by serve");
    assert!(!place.path().join("data").exists(), "check makes nothing");
    assert!(place.run("serve", &options).success);
    let archive = Archive::open(&place.path().join("data")).unwrap();
    let check = place.run("check", &options);
    assert!(check.success && check.said.contains("in use by another process"), "{check:?}");
    drop(archive);
    assert!(place.run("check", &options).success);
}

/// The program began to serve and then ended with a panic.
#[test]
fn a_data_directory_may_have_a_name_that_is_not_utf_8() {
    let place = Place::with(LOOPBACK);
    let mut child = place.serve_in(OsStr::from_bytes(b"data-\xff"));
    until("it serves", || {
        assert!(child.try_wait().unwrap().is_none(), "{}", place.said());
        place.said().contains("\"serving\"")
    });
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Two signals waited until the program served, for up to a minute without the store.
#[test]
fn a_signal_ends_the_program_while_it_waits_for_the_store() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let store = format!("[store]\nurl = \"postgres://u@{}/d\"\n", silent.local_addr().unwrap());
    let place = Place::with(&format!("{LOOPBACK}{store}"));
    let mut child = place.serve_in(OsStr::new("data"));
    // The feed has asked the store, so that the signal comes while the answer is waited for.
    let asked = silent.accept().unwrap();
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    drop(asked);
    assert!(!place.said().contains("\"serving\""), "{}", place.said());
}

/// Callers could reach the operator's pages where both addresses were the same.
#[test]
fn callers_and_the_operator_have_addresses_of_their_own() {
    for (public, operator) in [("127.0.0.1:4999", "127.0.0.1:4999"), ("0.0.0.0:4999", "127.0.0.1:4999")] {
        let place = Place::with(&format!("[listen]\npublic = \"{public}\"\noperator = \"{operator}\"\n"));
        assert!(place.refused().contains("must not share an address and port"));
    }
    let said = Place::with(LOOPBACK).refused_with(&["--listen", "127.0.0.1:8546"]);
    assert!(said.contains("listen.public (127.0.0.1:8546)"), "the operator's default: {said}");
}

#[test]
fn an_address_of_another_machine_is_found_by_check() {
    let place = Place::with("[listen]\npublic = \"192.0.2.1:8545\"\noperator = \"127.0.0.1:0\"\n");
    assert!(place.refused().contains("cannot listen on 192.0.2.1:8545: "));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap().to_string();
    let check = place.run("check", &["--config", "config.toml", "--listen", &taken]);
    assert!(check.success, "the gateway that is checked may be running: {check:?}");
}

#[test]
fn a_chain_that_is_not_there_is_found_by_check() {
    let place = Place::with(&format!(
        "data_dir = \"nowhere\"\n{LOOPBACK}[network]\nname = \"x\"\n[[key]]\nkey = \"k\"\n"
    ));
    assert!(place.refused().contains("there is no archive at nowhere"));
    assert!(!place.path().join("nowhere").exists());
}

/// The message was "cannot listen on Too many open files".
#[test]
fn a_worker_that_cannot_start_ends_the_program_and_is_named() {
    // Enough open files for the listeners, and too few for the event loops of the workers.
    let place = Place::with(&format!("{LOOPBACK}workers = 60\n"));
    let options = ["--config", "config.toml", "--data-dir", "data"];
    let ended = place.run_in_shell("ulimit -n 128;", "serve", &options);
    assert!(!ended.success, "{ended:?}");
    assert!(ended.said.contains("chaingate: cannot start worker "), "{ended:?}");
    assert!(ended.said.contains("Too many open files"), "{ended:?}");
}

/// `check` called a configuration right whose certificate did not exist.
#[test]
fn a_certificate_is_read_by_check_and_named_when_it_is_wrong() {
    let config = format!("{LOOPBACK}tls_certificate = \"cert.pem\"\ntls_key = \"key.pem\"\n");
    let place = Place::with(&config);
    let issue = || rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (issued, other) = (issue(), issue());
    let write = |name: &str, text: String| fs::write(place.path().join(name), text).unwrap();
    assert!(place.refused().contains("listen.tls_certificate cert.pem: "));
    write("cert.pem", "not a certificate".to_owned());
    assert!(place.refused().contains("listen.tls_certificate cert.pem: "));
    write("cert.pem", issued.cert.pem());
    assert!(place.refused().contains("listen.tls_key key.pem: "));
    write("key.pem", other.signing_key.serialize_pem());
    assert!(place.refused().contains("listen.tls_certificate cert.pem with listen.tls_key key.pem: "));
    write("key.pem", issued.signing_key.serialize_pem());
    assert!(place.run("check", &["--config", "config.toml"]).success);
}

/// `check` accepted zeros that meant a total outage, and sections that had no effect.
#[test]
fn values_that_would_refuse_every_call_are_refused_with_their_lines() {
    let place = Place::with(&format!(
        "{LOOPBACK}workers = 0\n[limits]\nbody_bytes_max = 0\ncalls_in_flight_max = 0\n[store]\nurl = \"x\"\n"
    ));
    let said = place.refused();
    for part in [
        "line 4: listen.workers: must be greater than 0",
        "line 6: limits.body_bytes_max: must be greater than 0",
        "line 7: limits.calls_in_flight_max: must be greater than 0",
        "line 9: store.url: must start with postgres:// or sqlite:",
    ] {
        assert!(said.contains(part), "{said}");
    }
}

/// A certificate for localhost that expires after this number of seconds from now.
fn write_certificate(place: &Place, expires_after_s: i64) -> i64 {
    let expires_at = unix_seconds() + expires_after_s;
    let mut parameters = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
    parameters.not_before = rcgen::date_time_ymd(2020, 1, 1);
    let seconds = Duration::from_secs(expires_at.try_into().unwrap());
    parameters.not_after = rcgen::date_time_ymd(1970, 1, 1) + seconds;
    let key = rcgen::KeyPair::generate().unwrap();
    fs::write(place.path().join("cert.pem"), parameters.self_signed(&key).unwrap().pem()).unwrap();
    fs::write(place.path().join("key.pem"), key.serialize_pem()).unwrap();
    expires_at
}

/// Nothing told that the certificate had expired but the callers who could not connect.
#[test]
fn a_certificate_that_expires_is_reported_before_callers_notice() {
    const DAY: i64 = 86_400;
    let place = Place::with(&format!("{LOOPBACK}tls_certificate = \"cert.pem\"\ntls_key = \"key.pem\"\n"));
    let run = |command: &str| place.run(command, &["--config", "config.toml"]);
    let expires = "listen.tls_certificate cert.pem expires ";
    for (days, reported) in [(13, true), (15, false)] {
        write_certificate(&place, days * DAY);
        let (check, serve) = (run("check"), run("serve"));
        assert!(check.success && check.said.contains("configuration OK"), "{check:?}");
        assert!(serve.success && serve.said.contains("\"serving\""), "{serve:?}");
        assert_eq!(
            (check.said.contains(expires), serve.said.contains(expires)),
            (reported, reported),
            "{days}"
        );
    }
    write_certificate(&place, -DAY);
    let (check, serve) = (run("check"), run("serve"));
    let expired = "listen.tls_certificate cert.pem expired ";
    assert!(!check.success && check.said.contains(expired), "{check:?}");
    assert!(serve.success && serve.said.contains(expired) && serve.said.contains("\"serving\""), "{serve:?}");
}

#[test]
fn a_metric_has_the_date_at_which_the_certificate_expires() {
    let place = Place::with("");
    let expires_at = write_certificate(&place, 1_000_000);
    let file = |name: &str| place.path().join(name);
    let tls = format!("tls_certificate = {:?}\ntls_key = {:?}", file("cert.pem"), file("key.pem"));
    let gateway = Gateway::listening(&tls);
    let name = "chaingate_tls_certificate_expires_at_seconds";
    assert_eq!(metric(gateway.operator, name), expires_at as f64);
    assert!(!get(Gateway::start().operator, "/metrics").text().contains(name), "there is no certificate");
}

/// `check` called both right: nodes under the name of the demo chain, with the methods of every family, and nodes that
/// nobody could call.
#[test]
fn nodes_need_a_name_for_their_network_and_a_key() {
    let node = "[[node]]\nurl = \"http://127.0.0.1:1\"\n";
    let check = |rest: &str, before: &dyn Fn(&Place)| {
        let place = Place::with(&format!("data_dir = \"data\"\n{LOOPBACK}{node}{rest}"));
        before(&place);
        place.run("check", &["--config", "config.toml"])
    };
    let nothing = |_: &Place| {};
    let key = "[[key]]\nkey = \"own\"\n";
    for unnamed in [key.to_owned(), format!("{key}[network]\nname = \"demo\"\n")] {
        let ended = check(&unnamed, &nothing);
        assert!(!ended.success && ended.said.contains("network.name: nodes need a name"), "{ended:?}");
    }
    let named = "[network]\nname = \"mainnet\"\n";
    let ended = check(named, &nothing);
    assert!(
        !ended.success && ended.said.contains("there is no key, so every call would be refused"),
        "{ended:?}"
    );
    assert!(check(&format!("{key}{named}"), &nothing).success);

    // A store may have keys.
    let with_store = |place: &Place| {
        fs::create_dir(place.path().join("data")).unwrap();
        fs::write(place.path().join("data/callers.sqlite"), "").unwrap();
    };
    let ended = check(named, &with_store);
    assert!(ended.success && ended.said.contains("warning: there is no [[key]]"), "{ended:?}");
}
