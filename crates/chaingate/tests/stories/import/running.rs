//! Imports into an archive that a gateway serves: they go through the gateway, and print the same messages as without it.

use super::program::{Ended, Workplace};
use archive::Archive;
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::SocketAddr,
    os::unix::{fs::PermissionsExt, net::UnixStream},
    process::{Child, ChildStderr, Command, Stdio},
    thread,
    time::Duration,
};
use testkit::http::post;

/// A gateway over the archive of a workplace.
struct Gateway {
    child: Child,
    public: SocketAddr,
    _log: BufReader<ChildStderr>,
}

impl Gateway {
    fn start(place: &Workplace) -> Self {
        drop(Archive::open_or_create(&place.data_dir(), &place.truth.model.genesis_json()).unwrap());
        let listen = "[listen]\npublic = \"127.0.0.1:0\"\noperator = \"127.0.0.1:0\"\n";
        let network = "[network]\nname = \"random\"\n[[key]]\nkey = \"k\"\nplan = \"custom\"\n";
        let config = place.write("chaingate.toml", format!("{listen}{network}"));
        let mut child = Command::new(env!("CARGO_BIN_EXE_chaingate"))
            .args(["serve", "--config"])
            .arg(config)
            .arg("--data-dir")
            .arg(place.data_dir())
            .env("CHAINGATE_CONSOLE", "off")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let public = log.by_ref().lines().find_map(|line| {
            let record: serde_json::Value = serde_json::from_str(&line.unwrap()).ok()?;
            (record["fields"]["message"] == "serving")
                .then(|| record["fields"]["public"].as_str().unwrap().parse().unwrap())
        });
        Self { child, public: public.unwrap(), _log: log }
    }

    fn head(&self) -> u64 {
        let call = r#"{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}"#;
        let reply = post(self.public, "/v3/k", call).json();
        u64::from_str_radix(reply["result"].as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
    }
}

impl Gateway {
    /// Stops the process and lets it go on, as a debugger or a machine that is suspended does.
    fn stop_and_continue(&self) {
        for signal in ["STOP", "CONT"] {
            let kill = format!("kill -{signal} {}", self.child.id());
            assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // A process that has ended already cannot be killed, which is as good.
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

#[test]
fn blocks_are_imported_through_the_gateway_that_serves_the_archive() {
    let place = Workplace::new(3, 20);
    let gateway = Gateway::start(&place);
    let socket = place.data_dir().join("import.sock");
    assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    let imported = place.import_all();
    imported.assert_succeeded();
    let said = "A gateway serves this archive: the blocks are imported through it.";
    assert!(imported.stderr.contains(said), "{imported:?}");
    let head = place.truth.model.head();
    assert!(imported.stderr.contains(&format!("Imported {head} blocks with ")), "{imported:?}");
    assert_eq!(gateway.head(), head);
    let again = place.import_all();
    again.assert_succeeded();
    assert!(again.stderr.contains("Imported 0 blocks"), "{again:?}");
    assert!(again.stderr.contains(&format!("{head} were already in the archive")), "{again:?}");
    drop(gateway);
    place.assert_holds(head);
    place.import_all().assert_succeeded();
}

// The gateway took the interrupted read of a process that was stopped and goes on for the end of the import.
#[test]
fn a_gateway_that_was_stopped_and_goes_on_still_reads_what_the_sender_sends() {
    let place = Workplace::small();
    let gateway = Gateway::start(&place);
    let mut sender = UnixStream::connect(place.data_dir().join("import.sock")).unwrap();
    for _ in 0..10 {
        thread::sleep(Duration::from_millis(50));
        gateway.stop_and_continue();
    }
    let genesis = b"{}";
    sender.write_all(&u32::try_from(genesis.len()).unwrap().to_be_bytes()).unwrap();
    sender.write_all(genesis).unwrap();
    let mut report = String::new();
    BufReader::new(sender).read_line(&mut report).unwrap();
    assert!(report.contains("refused"), "{report:?}");
}

/// A bad block, a file that ends in the middle of a block, and another genesis: the words are those of an import without a gateway.
#[test]
fn mistakes_are_reported_in_the_same_words() {
    let mut place = Workplace::small();
    let mut bad = place.block(5);
    bad.header.state_root.0[0] ^= 1;
    let mut files = vec![("good", place.write_blocks("good.rlp", 1..=4))];
    files.push(("bad", place.write("bad.rlp", alloy_rlp::encode(&bad))));
    let whole = std::fs::read(place.write_blocks("whole.rlp", 5..=7)).unwrap();
    files.push(("cut", place.write("cut.rlp", &whole[..whole.len() - 9])));
    files.push(("gap", place.write_blocks("gap.rlp", 12..=13)));
    let outcomes = |place: &Workplace| files.iter().map(|(_, file)| place.import([file])).collect::<Vec<_>>();
    let alone = outcomes(&place);
    place.start_over();
    let gateway = Gateway::start(&place);
    for ((alone, through), (name, _)) in alone.iter().zip(outcomes(&place)).zip(&files) {
        assert_eq!(alone.code, through.code, "{name}: {through:?}");
        assert_eq!(last_words(alone), last_words(&through), "{name}");
    }
    assert_eq!(gateway.head(), 6);
}

/// The lines of standard error without those about times and about the gateway.
fn last_words(ended: &Ended) -> Vec<String> {
    let lines =
        ended.stderr.lines().filter(|line| !line.starts_with("Imported ") && !line.starts_with("A gateway "));
    lines.map(str::to_owned).collect()
}
