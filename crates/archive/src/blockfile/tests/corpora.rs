//! Real files, from the folder in `CHAINGATE_CONFORMANCE`.

use super::*;

#[test]
#[allow(clippy::print_stderr, reason = "a test that is skipped has to say so")]
fn mainnet_is_the_same_as_rlp_and_as_era1() {
    let Some(folder) = std::env::var_os("CHAINGATE_CONFORMANCE") else {
        eprintln!("skipped: CHAINGATE_CONFORMANCE names no folder of corpora");
        return;
    };
    let folder = PathBuf::from(folder).join("mainnet-0-8191");
    let rlp = BlockFile::open(folder.join("chain.rlp")).unwrap();
    let mut era1 = BlockFile::open(folder.join("mainnet-00000-5ec1ffb8.era1")).unwrap();
    assert_eq!(era1.next().unwrap().unwrap().block.header.number, 0);
    let mut blocks = 0;
    for pair in rlp.zip(era1.by_ref()) {
        assert_eq!(pair.0.unwrap().block, pair.1.unwrap().block);
        blocks += 1;
    }
    assert_eq!(blocks, 8191);
    assert!(era1.next().is_none());
    assert_eq!(era1.bytes_read(), era1.bytes_total());
}
