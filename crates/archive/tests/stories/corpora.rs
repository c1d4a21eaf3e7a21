//! Real chains with known heads. They are not part of this repository: `CHAINGATE_CONFORMANCE` names their
//! folder.

use archive::{Archive, BlockFile};
use std::path::{Path, PathBuf};

/// The folder of a corpus, unless there is none.
fn corpus(name: &str) -> Option<PathBuf> {
    Some(testkit::skip::recorded_chains()?.join(name))
}

/// "…; head is block 54, 0x…" in the corpus's README.
fn stated_head(corpus: &Path) -> (u64, String) {
    let readme = std::fs::read_to_string(corpus.join("README.txt")).unwrap();
    let (_, head) = readme.trim().rsplit_once("head is block ").unwrap();
    let (number, hash) = head.split_once(", ").unwrap();
    (number.parse().unwrap(), hash.to_owned())
}

fn imports_to_its_stated_head(name: &str, file: &str) {
    let Some(corpus) = corpus(name) else { return };
    let genesis = std::fs::read_to_string(corpus.join("genesis.json")).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let archive = Archive::open_or_create(directory.path(), &genesis).unwrap();

    archive.import(BlockFile::open(corpus.join(file)).unwrap(), &mut archive::NoProgress).unwrap();

    let snapshot = archive.snapshot();
    let head = snapshot.summary(snapshot.head()).unwrap().unwrap();
    assert_eq!((snapshot.head(), head.hash.to_string()), stated_head(&corpus));
}

#[test]
fn execution_apis_imports_to_its_stated_head() {
    imports_to_its_stated_head("execution-apis", "chain.rlp");
}

#[test]
fn mainnet_imports_from_rlp_to_its_stated_head() {
    imports_to_its_stated_head("mainnet-0-8191", "chain.rlp");
}

#[test]
fn mainnet_imports_from_era1_to_its_stated_head() {
    imports_to_its_stated_head("mainnet-0-8191", "mainnet-00000-5ec1ffb8.era1");
}

#[test]
fn two_uncles_import_to_their_stated_head() {
    imports_to_its_stated_head("twoUncle_London", "chain.rlp");
}

#[test]
fn uncles_across_homestead_import_to_their_stated_head() {
    imports_to_its_stated_head("UncleFromFrontierInHomestead", "chain.rlp");
}

#[test]
fn uncles_across_london_import_to_their_stated_head() {
    imports_to_its_stated_head("londonUncles_BerlinToLondonAt5", "chain.rlp");
}
