//! `chaingate verify`: what it says about damaged files, and how it ends.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use rand::{Rng, SeedableRng, rngs::StdRng};

use super::{ImportingGateway, back_up};
use crate::process::Process;

fn verify(data_dir: &Path) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chaingate"));
    let Output { status, stderr, .. } =
        command.arg("verify").arg("--data-dir").arg(data_dir).output().unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}

#[test]
fn verify_says_what_a_damaged_archive_cannot_answer() {
    let place = ImportingGateway::new(4);
    let data_dir = place.path("data");
    place.prepare(&data_dir, place.truth.model.head());
    let file = data_dir.join("archive.redb");
    let (code, said) = verify(&data_dir);
    assert_eq!((code, said.contains("the archive is not damaged")), (Some(0), true), "{said}");
    let intact = fs::read(&file).unwrap();
    let (mut rng, mut named) = (StdRng::seed_from_u64(3), 0);
    for _ in 0..12 {
        let mut damaged = intact.clone();
        damaged[rng.random_range(3..intact.len() / 4096) * 4096 + 9] ^= 1;
        fs::write(&file, damaged).unwrap();
        let (code, said) = verify(&data_dir);
        assert!(matches!(code, Some(0 | 2)), "{said}");
        if code == Some(2) && said.contains("It cannot answer about:") {
            assert!(said.contains("(table ") && said.contains("Restore a backup"), "{said}");
            named += 1;
        }
    }
    assert!(named > 0, "no flip was in a row");
}

#[test]
fn verify_has_its_own_status_for_what_it_cannot_say() {
    let place = ImportingGateway::new(2);
    let (code, said) = verify(&place.path("missing"));
    assert_eq!((code, said.contains("there is no archive")), (Some(1), true), "{said}");
    let gateway = Process::start("127.0.0.1:0", "", "info");
    let (code, said) = verify(&gateway.data_dir());
    assert_eq!((code, said.contains("in use by another process")), (Some(1), true), "{said}");
    // A backup stays as it is.
    let backup = place.path("backup");
    back_up(&gateway.data_dir(), &backup);
    for _ in 0..2 {
        assert_eq!(verify(&backup).0, Some(0));
    }
    let file = backup.join("archive.redb");
    let mut damaged = fs::read(&file).unwrap();
    damaged[100_000] ^= 1;
    fs::write(&file, damaged).unwrap();
    let (code, said) = verify(&backup);
    assert_eq!((code, said.contains("archive.redb is damaged")), (Some(2), true), "{said}");
}
