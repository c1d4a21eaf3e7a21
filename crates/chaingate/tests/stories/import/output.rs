//! The messages of imports that go well: plain lines, because standard error is no terminal here.

use std::io::{ErrorKind, Write};

use super::program::{Ended, Workplace};

#[test]
fn an_import_says_what_it_did_in_plain_lines() {
    let place = Workplace::small();
    let ended = place.import_all();
    ended.assert_succeeded();
    let (head, model) = (place.truth.model.head(), &place.truth.model);
    let transactions = model.transactions().count();
    let did = format!("Imported {head} blocks with {transactions} transactions in ");
    let end = format!(".\nThe head is block {head}, {}.\n", model.header(head).unwrap().hash());
    assert!(ended.stderr.starts_with(&did) && ended.stderr.ends_with(&end), "{ended:?}");
    assert!(!ended.stderr.contains(['\x1b', '\r']), "{ended:?}");
    assert_eq!(ended.stdout, "");
}

#[test]
fn blocks_that_are_there_already_are_passed_over() {
    let place = Workplace::small();
    let (first, all) = (place.write_blocks("first.rlp", 1..=10), place.write_blocks("all.rlp", 1..=15));
    place.import([&first]).assert_succeeded();
    let ended = place.import([&first, &all]);
    ended.assert_succeeded();
    assert!(ended.stderr.starts_with("Imported 5 blocks with "), "{ended:?}");
    assert!(ended.stderr.contains("; 20 were already in the archive."), "{ended:?}");
    place.assert_holds(15);
}

#[test]
fn an_import_of_several_files_is_one_import() {
    let place = Workplace::small();
    let files = [place.write_blocks("a.rlp", 1..=10), place.write_blocks("b.rlp", 11..=12)];
    let ended = place.import(&files);
    ended.assert_succeeded();
    assert!(ended.stderr.starts_with("Imported 12 blocks with "), "{ended:?}");
    place.assert_holds(12);
}

/// A reader that is stuck, such as a pager, must not keep an import from its end.
#[test]
fn an_import_whose_messages_nobody_reads_goes_on_to_its_end() {
    let place = Workplace::small();
    let (stuck_reader, mut full_pipe) = std::io::pipe().unwrap();
    rustix::io::ioctl_fionbio(&full_pipe, true).unwrap();
    let error = loop {
        if let Err(error) = full_pipe.write(&[b'x'; 4_096]) {
            break error.kind();
        }
    };
    assert_eq!(error, ErrorKind::WouldBlock, "the pipe is full");
    rustix::io::ioctl_fionbio(&full_pipe, false).unwrap();
    let status = place.command(place.files()).stderr(full_pipe).status().unwrap();
    assert_eq!(status.code(), Some(0));
    drop(stuck_reader);
    place.assert_holds(place.truth.model.head());
}

/// The blocks of a network come in thousands of files, and a process may have some hundred open.
#[test]
fn there_may_be_more_files_than_a_process_can_have_open() {
    let place = Workplace::new(2, 1);
    let command = place.command(place.files());
    let mut limited = std::process::Command::new("sh");
    limited.args(["-c", "ulimit -n 20; exec \"$@\"", "sh"]).arg(command.get_program());
    let ended = Ended::from(limited.args(command.get_args()).output().unwrap());
    ended.assert_succeeded();
    place.assert_holds(place.truth.model.head());
}
