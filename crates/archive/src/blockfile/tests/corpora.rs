//! Real files, from the folder in `CHAINGATE_CONFORMANCE`.

use super::*;

#[test]
fn mainnet_is_the_same_as_rlp_and_as_era1() {
    let Some(folder) = testkit::skip::recorded_chains() else { return };
    let folder = folder.join("mainnet-0-8191");
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
