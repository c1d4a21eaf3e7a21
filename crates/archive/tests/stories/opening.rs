//! Only an archive is opened, of this version, of the same chain, and of nobody else; everything else is left
//! alone, and the error says what to do.

use super::setup::{Fresh, archive_of, blocks, small_chain, write};
use archive::{ARCHIVE_FILE, Archive, OpenError};
use redb::{Database, TableDefinition};
use std::{ops::Range, path::Path};

/// Where the two copies of the file header are, and the version in each.
const FILE_HEADERS_AT: [usize; 2] = [0, 4096];
const VERSION: Range<usize> = 12..16;

#[test]
fn an_archive_that_was_closed_opens_where_it_was() {
    let truth = small_chain();
    let Fresh { directory, archive } = archive_of(&truth);
    archive.import_blocks(blocks(&truth, 1..=30), &mut archive::NoProgress).unwrap();
    drop(archive);
    let archive = Archive::open(directory.path()).unwrap();
    truth.check(&archive.snapshot()).unwrap();
    assert_eq!(archive.snapshot().head(), 30);
}

#[test]
fn no_archive_is_not_an_empty_one() {
    let directory = tempfile::tempdir().unwrap();
    assert!(matches!(Archive::open(directory.path()), Err(OpenError::Missing(_))));
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn an_open_archive_is_in_use() {
    let truth = small_chain();
    let Fresh { directory, archive } = archive_of(&truth);
    let genesis = truth.model.genesis_json();
    assert!(matches!(Archive::open(directory.path()), Err(OpenError::InUse(_))));
    assert!(matches!(Archive::open_or_create(directory.path(), &genesis), Err(OpenError::InUse(_))));
    drop(archive);
    Archive::open(directory.path()).unwrap();
}

#[test]
fn an_archive_of_another_genesis_is_refused() {
    let truth = small_chain();
    let Fresh { directory, archive } = archive_of(&truth);
    archive.import_blocks(blocks(&truth, 1..=1), &mut archive::NoProgress).unwrap();
    let stored = archive.snapshot().genesis_hash().unwrap();
    drop(archive);
    let other =
        truth.model.genesis_json().replacen("\"timestamp\":\"0xf4240\"", "\"timestamp\":\"0xf4241\"", 1);
    match Archive::open_or_create(directory.path(), &other) {
        Err(OpenError::OtherGenesis { found, given, .. }) => assert!(found == stored && given != stored),
        other => panic!("{other:?}"),
    }
}

/// Other rules could make other blocks of the same files, so that nobody could say what the archive proves.
#[test]
fn an_archive_of_the_same_genesis_with_other_forks_is_refused() {
    let truth = small_chain();
    let Fresh { directory, archive } = archive_of(&truth);
    archive.import_blocks(blocks(&truth, 1..=1), &mut archive::NoProgress).unwrap();
    drop(archive);
    let mut other: serde_json::Value = serde_json::from_str(&truth.model.genesis_json()).unwrap();
    let bpo2 = other["config"]["bpo2Time"].as_u64().unwrap();
    other["config"]["bpo2Time"] = (bpo2 + 1).into();
    let opened = Archive::open_or_create(directory.path(), &other.to_string());
    assert!(matches!(opened, Err(OpenError::OtherConfig(_))), "{opened:?}");
    Archive::open_or_create(directory.path(), &truth.model.genesis_json()).unwrap();
}

/// Whoever gave a wrong genesis file first had to find and delete the archive before the right one was taken.
#[test]
fn an_archive_without_any_block_makes_room_for_another_genesis() {
    let truth = small_chain();
    let mut other: serde_json::Value = serde_json::from_str(&truth.model.genesis_json()).unwrap();
    other["timestamp"] = "0x1".into();
    let mut other_config: serde_json::Value = serde_json::from_str(&truth.model.genesis_json()).unwrap();
    other_config["config"]["bpo2Time"] = (other_config["config"]["bpo2Time"].as_u64().unwrap() + 1).into();
    for wrong in [other, other_config] {
        let directory = tempfile::tempdir().unwrap();
        drop(Archive::open_or_create(directory.path(), &wrong.to_string()).unwrap());
        let archive = Archive::open_or_create(directory.path(), &truth.model.genesis_json()).unwrap();
        archive.import_blocks(blocks(&truth, 1..=3), &mut archive::NoProgress).unwrap();
        truth.check(&archive.snapshot()).unwrap();
        let names: Vec<_> =
            std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, [ARCHIVE_FILE]);
    }
}

#[test]
fn a_sound_archive_is_verified_and_says_where_it_is() {
    let truth = small_chain();
    let Fresh { directory, archive } = archive_of(&truth);
    archive.import_blocks(blocks(&truth, 1..=5), &mut archive::NoProgress).unwrap();
    assert!(matches!(Archive::verify(directory.path()), Err(OpenError::InUse(_))));
    drop(archive);
    assert_eq!(Archive::verify(directory.path()).unwrap(), 5);
}

#[test]
fn an_archive_of_another_format_version_is_refused_and_left_alone() {
    let truth = small_chain();
    let Fresh { directory, archive } = archive_of(&truth);
    drop(archive);
    let path = directory.path().join(ARCHIVE_FILE);
    let ours = std::fs::read(&path).unwrap();
    for version in [0_u32, 1, 3, u32::MAX] {
        let mut other = ours.clone();
        for header in FILE_HEADERS_AT {
            other[header..][VERSION].copy_from_slice(&version.to_be_bytes());
        }
        std::fs::write(&path, &other).unwrap();
        for opened in [
            Archive::open(directory.path()),
            Archive::open_or_create(directory.path(), &truth.model.genesis_json()),
        ] {
            let error = opened.unwrap_err();
            assert!(matches!(error, OpenError::Format { found, .. } if found == version), "{error}");
            assert!(error.to_string().contains(&format!("has format version {version}, this program reads")));
        }
        assert_eq!(std::fs::read(&path).unwrap(), other);
    }
    std::fs::write(&path, ours).unwrap();
    truth.check(&Archive::open(directory.path()).unwrap().snapshot()).unwrap();
}

#[test]
fn an_archive_without_its_header_or_its_end_is_damaged() {
    let Fresh { directory, archive } = archive_of(&small_chain());
    drop(archive);
    let path = directory.path().join(ARCHIVE_FILE);
    let whole = std::fs::read(&path).unwrap();
    let mut no_header = whole.clone();
    for header in FILE_HEADERS_AT {
        no_header[header + VERSION.end] ^= 1;
    }
    let no_end = whole[..whole.len() - 1000].to_vec();
    for damaged in [no_header, no_end] {
        std::fs::write(&path, damaged).unwrap();
        let error = Archive::open(directory.path()).unwrap_err();
        assert!(matches!(error, OpenError::Damaged(_)), "{error:?}");
    }
}

#[test]
fn a_file_that_is_something_else_is_refused_and_left_alone() {
    let files: [&[u8]; 4] = [b"", b"redb", b"something else altogether", &[0; 100_000]];
    for bytes in files {
        let directory = tempfile::tempdir().unwrap();
        let path = write(directory.path(), ARCHIVE_FILE, bytes);
        assert_foreign(directory.path());
        assert!(Archive::open_or_create(directory.path(), &small_chain().model.genesis_json()).is_err());
        assert_eq!(std::fs::read(path).unwrap(), bytes);
    }
}

#[test]
fn a_database_of_another_program_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let database = Database::create(directory.path().join(ARCHIVE_FILE)).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(TableDefinition::<u64, u64>::new("numbers")).unwrap();
    transaction.commit().unwrap();
    drop(database);
    assert_foreign(directory.path());
}

/// A process that was killed while it made the archive leaves what it had made under another name.
#[test]
fn a_half_made_archive_is_made_anew() {
    let truth = small_chain();
    let directory = tempfile::tempdir().unwrap();
    for name in ["archive.new", "archive.lock"] {
        write(directory.path(), name, b"half an archive");
    }
    let archive = Archive::open_or_create(directory.path(), &truth.model.genesis_json()).unwrap();
    truth.check(&archive.snapshot()).unwrap();
    let names: Vec<_> =
        std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, [ARCHIVE_FILE]);
}

fn assert_foreign(directory: &Path) {
    let error = Archive::open(directory).unwrap_err();
    assert!(matches!(error, OpenError::Foreign(_)), "{error:?}");
    assert!(error.to_string().ends_with("is not an archive of this program"));
}
