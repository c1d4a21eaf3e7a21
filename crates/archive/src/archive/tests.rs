//! The contents of a new archive file.

use super::*;
use redb::TableHandle;

/// `docs/storage-format.md` lists them; a test beside their definitions compares the two.
#[test]
fn a_new_archive_has_all_tables() {
    let directory = tempfile::tempdir().unwrap();
    let genesis = r#"{"config":{"chainId":1},"difficulty":"0x1","gasLimit":"0x1388","alloc":{}}"#;
    let archive = Archive::open_or_create(directory.path(), genesis).unwrap();
    let transaction = archive.disk.opened().database.begin_read().unwrap();
    let mut found: Vec<String> =
        transaction.list_tables().unwrap().map(|table| table.name().to_owned()).collect();
    found.sort();
    let document = include_str!("../../../../docs/storage-format.md");
    let listed = document.lines().filter_map(|line| line.strip_prefix("### `")?.strip_suffix('`'));
    let mut listed: Vec<&str> = listed.collect();
    listed.sort_unstable();
    assert_eq!(found, listed);
}
