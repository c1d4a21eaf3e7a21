use super::*;
use archive::OpenError;
use flate2::read::GzDecoder;
use std::io::Read as _;

#[test]
fn the_chain_is_the_same_everywhere() {
    let chain = build().unwrap();
    let head = chain.blocks.last().unwrap();
    assert_eq!(head.block.header.number, HEAD_NUMBER);
    assert_eq!(head.hash, HEAD_HASH);
    assert_eq!(genesis().config.chain_id, CHAIN_ID);
    assert_eq!(contracts::TOUR.address(), demo::TOUR);
    assert_eq!(chain.raw_records, build().unwrap().raw_records);
}

// Compression may differ between versions of its library; what is compressed may not.
#[test]
fn the_files_of_the_product_are_up_to_date() {
    let folder = tempfile::tempdir().unwrap();
    build().unwrap().write(folder.path()).unwrap();
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../demo/chain");
    for name in ["genesis.json", "blocks.rlp.gz", "raw_records.jsonl.gz"] {
        let [built, committed] = [folder.path(), &committed].map(|folder| content(&folder.join(name)));
        assert!(
            built == committed,
            "{name} is out of date; write it with cargo run -p chaingate-demo-builder"
        );
    }
}

/// The content of a file, unpacked if it is compressed.
fn content(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).unwrap();
    if path.extension().is_none_or(|extension| extension != "gz") {
        return bytes;
    }
    let mut unpacked = Vec::new();
    GzDecoder::new(&bytes[..]).read_to_end(&mut unpacked).unwrap();
    unpacked
}

#[test]
fn the_first_start_imports_the_chain_and_the_second_finds_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut seen = Vec::new();
    let archive = open(folder.path(), |done, total| seen.push((done, total))).unwrap();
    let expected: Vec<_> = (1..=HEAD_NUMBER).map(|done| (done, HEAD_NUMBER)).collect();
    assert_eq!(seen, expected);
    assert_eq!(archive.snapshot().head_hash(), HEAD_HASH);
    drop(archive);

    let again = open(folder.path(), |_, _| panic!("there is nothing left to do")).unwrap();
    assert_eq!(again.snapshot().head_hash(), HEAD_HASH);
}

#[test]
fn an_interrupted_start_goes_on() {
    let chain = build().unwrap();
    let blocks = || chain.blocks.iter().map(|built| built.block.clone());
    for stored in [0, 100, chain.blocks.len()] {
        let folder = tempfile::tempdir().unwrap();
        let archive = Archive::open_or_create(folder.path(), &chain.genesis).unwrap();
        archive.import_blocks(blocks().take(stored).collect::<Vec<_>>(), &mut archive::NoProgress).unwrap();
        drop(archive);

        let mut least = None;
        let archive = open(folder.path(), |done, _| least = least.or(Some(done))).unwrap();
        assert!(least.unwrap() >= stored as u64, "what is there stays there");
        assert_eq!(archive.snapshot().head_hash(), HEAD_HASH);
        assert!(archive.snapshot().raw_records(*facts::RAW_BLOCKS.start()).unwrap().is_some());
    }
}

// Whoever named the wrong genesis, or a directory of their own, once was told for ever that it was another chain.
#[test]
fn an_archive_of_another_chain_without_a_block_makes_room() {
    let folder = tempfile::tempdir().unwrap();
    let mut other = genesis();
    other.timestamp += 1;
    let other = serde_json::to_string(&other).unwrap();
    drop(Archive::open_or_create(folder.path(), &other).unwrap());
    assert_eq!(open(folder.path(), |_, _| {}).unwrap().snapshot().head_hash(), HEAD_HASH);

    // With blocks in it, an archive stays as it is.
    let refused = Archive::open_or_create(folder.path(), &other).unwrap_err();
    assert!(matches!(refused, OpenError::OtherGenesis { .. }), "{refused}");
    assert_eq!(open(folder.path(), |_, _| {}).unwrap().snapshot().head_hash(), HEAD_HASH);
}
