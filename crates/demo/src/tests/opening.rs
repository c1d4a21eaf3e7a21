use super::*;

#[test]
fn the_chain_is_the_same_everywhere() {
    let chain = build().unwrap();
    let head = chain.blocks.last().unwrap();
    assert_eq!(head.block.header.number, HEAD_NUMBER);
    assert_eq!(head.hash, HEAD_HASH);
    assert_eq!(chain.raw_records, build().unwrap().raw_records);
}

#[test]
fn the_first_start_makes_the_chain_and_the_second_finds_it() {
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
