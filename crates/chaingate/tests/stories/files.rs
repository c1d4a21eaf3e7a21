//! Too few file descriptors.

use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use testkit::http::post;

use crate::demo::until;
use crate::gateway_under_test::chain_id;
use crate::process::Process;

/// Where the limit of open files was reached, the log once had thirty lines a second about it.
#[test]
fn running_out_of_file_descriptors_is_said_once_and_survived() {
    let started = Instant::now();
    let process = Process::start_with_open_files(64, "", "info");
    assert_eq!(process.lines_with("the limit of open files is too low for connections_max"), 1);
    assert_eq!(post(process.public, "/v3/demo", chain_id("1")).status, 200);

    let crowd: Vec<_> = (0..200).map(|_| TcpStream::connect(process.public).unwrap()).collect();
    until("accepting fails", || process.lines_with("accept failed; pausing") > 0);
    // Not for anything to happen: for lines that must not be there.
    thread::sleep(Duration::from_secs(1));
    let lines = process.lines_with("accept failed; pausing");
    let lines_max = 1 + started.elapsed().as_secs() / 10;
    assert!(lines as u64 <= lines_max, "{lines} lines, at most {lines_max} are expected");

    // The listeners once shared one warning, and the first to fail hid the other.
    let operator_failure = ["accept failed; pausing", "\"listener\":\"operator\""];
    let mut more = Vec::new();
    until("accepting fails on the operator's listener", || {
        more.extend((0..20).map(|_| TcpStream::connect(process.public).unwrap()));
        more.push(TcpStream::connect(process.operator).unwrap());
        process.lines_with_all(&operator_failure) > 0
    });
    assert!(process.lines_with_all(&operator_failure) >= 1, "the failures of its own");

    drop((crowd, more));
    until("callers are served again", || {
        let reply = TcpStream::connect(process.public).is_ok();
        reply && post(process.public, "/v3/demo", chain_id("1")).status == 200
    });
}
