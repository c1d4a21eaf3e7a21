//! Backups that are killed, damaged, made twice at once, or have no place.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rand::{Rng, SeedableRng, rngs::StdRng};

use super::{ImportingGateway, RANDOM, answer, back_up, backup_command, failure, restore};
use crate::process::Process;

fn kills() -> u32 {
    std::env::var("CHAINGATE_BACKUP_KILLS").map_or(6, |kills| kills.parse().unwrap())
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    entries.filter(|name| name.starts_with("backup")).collect()
}

/// A backup that was cut off has another name. The one that its place is given to is whole.
#[test]
fn whatever_is_killed_a_backup_is_whole_or_not_there() {
    let place = ImportingGateway::new(4);
    let mut gateway = Process::start_with_data(RANDOM, "info", "", |data_dir| place.prepare(data_dir, 10));
    let mut rng = StdRng::seed_from_u64(1);
    let (mut cut, mut whole) = (0, 0);
    for round in 0..2 * kills() {
        let backup = place.path(&format!("backup-{round}"));
        let mut command = backup_command(&gateway.data_dir(), &backup);
        let mut running = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        thread::sleep(Duration::from_millis(rng.random_range(0..120)));
        match round % 2 {
            0 => {
                let _ended_already = running.kill();
                running.wait().unwrap();
            }
            // One that has not asked the gateway yet reads the files itself, and nobody else can open them meanwhile.
            _ => {
                gateway.signal("KILL");
                running.wait().unwrap();
                gateway.start_again("info");
            }
        }
        match backup.exists() {
            true => {
                whole += 1;
                let target = tempfile::tempdir().unwrap();
                let output = restore(&backup, target.path());
                assert!(output.status.success(), "{output:?}");
            }
            false => cut += 1,
        }
        assert_eq!(answer(&gateway, "demo", "eth_blockNumber", &serde_json::json!([]))["result"], "0xa");
    }
    eprintln!("of {} backups that were killed, or whose gateway was, {whole} were whole", whole + cut);
    // The next one removes what the others have left.
    back_up(&gateway.data_dir(), &place.path("backup-last"));
    assert!(names(place.folder.path()).iter().all(|name| !name.ends_with(".unfinished")));
}

#[test]
fn a_flipped_bit_in_any_file_is_found_and_named_and_nothing_is_written() {
    let place = ImportingGateway::new(2);
    let gateway = Process::start_with_data(RANDOM, "info", "", |data_dir| place.prepare(data_dir, 10));
    fs::write(gateway.data_dir().join("revoked-keys.json"), "{}").unwrap();
    let (backup, target) = (place.path("backup"), place.path("restored"));
    back_up(&gateway.data_dir(), &backup);
    let mut rng = StdRng::seed_from_u64(2);
    let files: Vec<_> = fs::read_dir(&backup).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 4, "{files:?}");
    for file in &files {
        let intact = fs::read(file).unwrap();
        for _ in 0..8 {
            let mut damaged = intact.clone();
            damaged[rng.random_range(0..intact.len())] ^= 1 << rng.random_range(0..8);
            fs::write(file, damaged).unwrap();
            let error = failure(&restore(&backup, &target));
            assert!(error.contains(file.to_str().unwrap()), "{error}");
            assert!(!target.exists());
        }
        fs::write(file, &intact[..intact.len() - 1]).unwrap();
        assert!(failure(&restore(&backup, &target)).contains(file.to_str().unwrap()));
        fs::remove_file(file).unwrap();
        assert!(failure(&restore(&backup, &target)).contains(file.to_str().unwrap()));
        fs::write(file, intact).unwrap();
    }
    assert!(restore(&backup, &target).status.success());
    let error = failure(&restore(&backup, &target));
    assert!(error.contains("is not empty: it has "), "{error}");
    let error = failure(&restore(&backup, &gateway.data_dir()));
    assert!(error.contains("stop the gateway that uses it"), "{error}");
}

#[test]
fn a_place_that_cannot_be_used_is_refused_and_nothing_changes() {
    let place = ImportingGateway::new(2);
    let gateway = Process::start_with_data(RANDOM, "info", "", |data_dir| place.prepare(data_dir, 10));
    let data_dir = gateway.data_dir();
    fs::create_dir(place.path("backup-there")).unwrap();
    fs::write(place.path("backup-file"), "").unwrap();
    let before = names(place.folder.path());
    for (to, reason) in [
        (place.path("backup-there"), "exists; give a name that does not exist yet"),
        (data_dir.join("backup"), "is in the data directory"),
        (place.path("no/such/folder"), "No such file or directory"),
        (place.path("backup-file/in-a-file"), "Not a directory"),
        ("/proc/backup".into(), "/proc/backup"),
        ("/".into(), "give the name of a folder"),
    ] {
        let error = failure(&backup_command(&data_dir, &to).output().unwrap());
        assert!(error.contains(reason), "{}: {error}", to.display());
    }
    let error = failure(&backup_command(&place.path("no-data"), &place.path("backup")).output().unwrap());
    assert!(error.contains("no-data: No such file or directory"), "{error}");
    fs::create_dir(place.path("empty")).unwrap();
    let error = failure(&backup_command(&place.path("empty"), &place.path("backup")).output().unwrap());
    assert!(error.contains("there is nothing to back up"), "{error}");
    assert_eq!(names(place.folder.path()), before);

    // A disk with too little room for the archive: files may have 64 KiB.
    let mut full = Command::new("sh");
    full.args([
        "-c",
        "trap '' XFSZ; ulimit -f 128; exec \"$@\"",
        "sh",
        env!("CARGO_BIN_EXE_chaingate"),
        "backup",
    ]);
    full.arg("--data-dir").arg(&data_dir).arg("--to").arg(place.path("backup"));
    let error = failure(&full.output().unwrap());
    assert!(error.contains("cannot ") && error.contains("backup.unfinished"), "{error}");
    assert_eq!(names(place.folder.path()), before);
    back_up(&data_dir, &place.path("backup"));
}

#[test]
fn of_two_backups_at_once_each_is_whole_or_refused() {
    let place = ImportingGateway::new(4);
    let gateway = Process::start_with_data(RANDOM, "info", "", |data_dir| place.prepare(data_dir, 20));
    for same_name in [true, false] {
        let targets =
            [0, 1].map(|n| place.path(&format!("backup-{same_name}-{}", if same_name { 0 } else { n })));
        let running = targets.clone().map(|to| {
            let mut command = backup_command(&gateway.data_dir(), &to);
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
        });
        let ended = running.map(|running| running.wait_with_output().unwrap());
        let succeeded = ended.iter().filter(|output| output.status.success()).count();
        assert!(succeeded == 1 || !same_name && succeeded == 2, "{ended:?}");
        for (output, to) in ended.iter().zip(&targets) {
            if output.status.success() {
                assert!(restore(to, tempfile::tempdir().unwrap().path()).status.success());
            } else {
                let error = failure(output);
                let is_clear = error.contains("exists") || error.contains("serves one backup at a time");
                assert!(is_clear, "{error}");
            }
        }
    }
}
