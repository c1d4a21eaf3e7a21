//! The command line.

use std::process::Command;

fn exit_code(arguments: &[&str]) -> Option<i32> {
    let program = env!("CARGO_BIN_EXE_chaingate-attack");
    Command::new(program).args(arguments).output().ok()?.status.code()
}

#[test]
fn attacks_and_lies_are_told_apart() {
    assert_eq!(exit_code(&["--help"]), Some(0));
    assert_eq!(exit_code(&["lies", "--help"]), Some(0));
    for wrong in [&[][..], &["no-such-attack"], &["lies", "--state", "guess"], &["lies", "all"]] {
        assert_eq!(exit_code(wrong), Some(2), "{wrong:?}");
    }
}
