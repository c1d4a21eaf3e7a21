//! Real chains, from the folder in `CHAINGATE_CONFORMANCE`: every block passes.

use crate::{
    blockfile::BlockFile,
    chain::ChainSpec,
    check::{Ancestry, check_block},
};
use alloy_consensus::Sealable;
use std::{fs, path::Path};

#[test]
fn every_block_of_every_corpus_passes() {
    let Some(folder) = testkit::skip::recorded_chains() else { return };
    let mut corpora = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let folder = entry.unwrap().path();
        if !folder.join("genesis.json").is_file() {
            continue;
        }
        corpora += 1;
        for file in fs::read_dir(&folder).unwrap() {
            let file = file.unwrap().path();
            if file.extension().is_some_and(|extension| extension == "rlp" || extension == "era1") {
                follow(&folder, &file);
            }
        }
    }
    assert!(corpora >= 5, "found {corpora} corpora");
}

/// Checks the blocks of one file in their order, from the genesis to the head that the corpus states.
fn follow(folder: &Path, file: &Path) {
    let genesis = fs::read_to_string(folder.join("genesis.json")).unwrap();
    let chain = ChainSpec::from_json(&genesis).unwrap();
    let genesis = chain.genesis_header().seal_slow();
    let mut ancestry = Ancestry::at_genesis(genesis.clone());
    for at in BlockFile::open(file).unwrap() {
        let block = at.unwrap().block;
        let number = block.header.number;
        if number == 0 {
            assert_eq!(block.header.hash_slow(), genesis.hash(), "{}", file.display());
            continue;
        }
        let checked = check_block(&chain, &ancestry, &block)
            .unwrap_or_else(|fault| panic!("{}: block {number}: {fault}", file.display()));
        ancestry.push(block.header.seal_unchecked(checked.hash), checked.uncle_hashes);
    }
    let readme = fs::read_to_string(folder.join("README.txt")).unwrap();
    let head = ancestry.parent();
    let stated = format!("head is block {}, {}", head.number, head.hash());
    assert!(readme.contains(&stated), "{}: {stated}", file.display());
}
