//! Ctrl-C and SIGTERM: the import stops after the current block, says so, exits as shells expect it, and can go on. A second
//! one ends it at once.

use super::program::{Ended, Workplace};
use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, ExitStatus},
    thread,
    time::{Duration, Instant},
};

/// Longer than anything here takes; a test that waits this long has failed.
const DEADLINE: Duration = Duration::from_secs(60);

#[test]
fn ctrl_c_stops_after_the_current_block_and_the_import_can_go_on() {
    let mut place = Workplace::new(12, 2);
    let (stopped, head) = stopped_by("INT", 130, &mut place);
    assert!(stopped.stderr.contains("Stopping after the current block …"), "{stopped:?}");
    assert!(stopped.stderr.contains(&format!("The head is block {head}, ")), "{stopped:?}");
    assert!(stopped.stderr.ends_with("Stopped. Run the same command again to continue.\n"), "{stopped:?}");
    place.assert_holds(head);
    place.import_all().assert_succeeded();
    place.assert_holds(place.truth.model.head());
}

/// An import that was stopped exited with 130 whatever the signal was, and supervisors took SIGTERM for Ctrl-C.
#[test]
fn sigterm_stops_an_import_with_its_own_status() {
    let mut place = Workplace::new(12, 2);
    let (stopped, head) = stopped_by("TERM", 143, &mut place);
    assert!(stopped.stderr.ends_with("Stopped. Run the same command again to continue.\n"), "{stopped:?}");
    place.assert_holds(head);
}

/// An import that was stopped in the middle, and where. One that was too fast is tried again.
fn stopped_by(signal: &str, status: i32, place: &mut Workplace) -> (Ended, u64) {
    for _ in 0..20 {
        let child = place.start_import_of_all();
        while !place.data_dir().join(archive::ARCHIVE_FILE).exists() {
            thread::sleep(Duration::from_millis(1));
        }
        send(signal, &child);
        let ended = Ended::from(child.wait_with_output().unwrap());
        let head = place.head();
        if ended.code == Some(status) && head < place.truth.model.head() {
            return (ended, head);
        }
        assert!(ended.code == Some(0) || ended.code == Some(status), "{ended:?}");
        place.start_over();
    }
    panic!("every import was through before it could be interrupted");
}

fn interrupt(child: &Child) {
    send("INT", child);
}

fn send(signal: &str, child: &Child) {
    let sent = Command::new("sh").args(["-c", &format!("kill -{signal} {}", child.id())]).status().unwrap();
    assert!(sent.success());
}

/// A second signal changed nothing: an import that did not get on, as on a disk that hangs, had to be killed.
#[test]
fn a_second_ctrl_c_ends_an_import_that_does_not_get_on() {
    let place = Workplace::small();
    // Nobody writes to this pipe, so opening it takes for ever.
    let stuck = place.path("stuck.rlp");
    assert!(Command::new("mkfifo").arg(&stuck).status().unwrap().success());
    let mut child = place.command([&stuck]).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    interrupt_until(&mut child, &mut stderr, "Stopping after the current block");
    assert_eq!(child.try_wait().unwrap(), None, "it waits for the current block");
    let ended = until_ended(child);
    assert_eq!(ended.code(), Some(130));
}

/// Interrupts the program once it handles signals, which it does before it opens a file, and waits for this message.
fn interrupt_until(child: &mut Child, stderr: &mut impl BufRead, message: &str) {
    let status_file = format!("/proc/{}/status", child.id());
    let handles_signals = || {
        let status = std::fs::read_to_string(&status_file).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        // SIGINT is signal 2, and so the second bit.
        u64::from_str_radix(caught.trim(), 16).unwrap() & 0b10 != 0
    };
    let deadline = Instant::now() + DEADLINE;
    while !handles_signals() {
        assert_eq!(child.try_wait().unwrap(), None, "it ended early");
        assert!(Instant::now() < deadline, "it does not handle signals");
        thread::sleep(Duration::from_millis(1));
    }
    interrupt(child);
    let mut line = String::new();
    while !line.contains(message) {
        line.clear();
        assert_ne!(stderr.read_line(&mut line).unwrap(), 0, "it ended without that message");
    }
}

/// Interrupts the program until it has ended: two signals in the same second count as one.
fn until_ended(mut child: Child) -> ExitStatus {
    let deadline = Instant::now() + DEADLINE;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            panic!("it did not end");
        }
        interrupt(&child);
        thread::sleep(Duration::from_millis(50));
    }
}
