use super::*;
use alloy_primitives::U256;
use chain_builder::Era;
use schedule::{era_of, first_block};

#[test]
fn every_era_has_its_blocks() {
    let demo = Demo::new();
    let rules = [
        (Era::Frontier, "FRONTIER"),
        (Era::Homestead, "HOMESTEAD"),
        (Era::Tangerine, "TANGERINE"),
        (Era::SpuriousDragon, "SPURIOUS_DRAGON"),
        (Era::Byzantium, "BYZANTIUM"),
        (Era::Constantinople, "PETERSBURG"),
        (Era::Istanbul, "ISTANBUL"),
        (Era::MuirGlacier, "ISTANBUL"),
        (Era::Berlin, "BERLIN"),
        (Era::London, "LONDON"),
        (Era::ArrowGlacier, "LONDON"),
        (Era::GrayGlacier, "LONDON"),
        (Era::Paris, "MERGE"),
        (Era::Shanghai, "SHANGHAI"),
        (Era::Cancun, "CANCUN"),
        (Era::Prague, "PRAGUE"),
        (Era::Osaka, "OSAKA"),
        (Era::Bpo1, "OSAKA"),
        (Era::Bpo2, "OSAKA"),
    ];
    assert_eq!(rules.map(|(era, _)| era), Era::ALL);
    for (era, expected) in rules {
        let first = first_block(era);
        let last =
            Era::ALL.iter().find(|next| **next > era).map_or(HEAD_NUMBER, |next| first_block(*next) - 1);
        for number in [first, last] {
            assert_eq!(era_of(number), era);
            let header = demo.snapshot.header(number).unwrap().unwrap();
            let found = demo.snapshot.chain().rules_at(&header).spec_id(&header);
            assert_eq!(format!("{found:?}"), expected, "block {number} of {era:?}");
        }
    }
}

#[test]
fn blob_limits_grow_with_their_forks() {
    let demo = Demo::new();
    let max = |era: Era| {
        let header = demo.snapshot.header(first_block(era)).unwrap().unwrap();
        demo.snapshot.chain().blob_params_at(header.timestamp).map(|params| params.max_blob_count)
    };
    let eras = [Era::Shanghai, Era::Cancun, Era::Prague, Era::Osaka, Era::Bpo1, Era::Bpo2];
    assert_eq!(eras.map(max), [None, Some(6), Some(9), Some(9), Some(15), Some(21)]);
    let twelve = demo.snapshot.header(demo.block("twelve-blobs")).unwrap().unwrap();
    assert_eq!(twelve.blob_gas_used, Some(12 * 131_072));
}

#[test]
fn blocks_have_one_uncle_and_two() {
    let demo = Demo::new();
    for (name, expected) in [("one-uncle", 1), ("two-uncles", 2), ("late-uncle", 1)] {
        let number = demo.block(name);
        let block = demo.snapshot.block(number).unwrap().unwrap();
        assert_eq!(block.uncles.len(), expected, "{name}");
        for (index, uncle) in block.uncles.iter().enumerate() {
            assert!(uncle.number < number);
            assert_eq!(demo.snapshot.uncle(number, index).unwrap().as_ref(), Some(uncle));
        }
        assert_eq!(demo.snapshot.uncle(number, expected).unwrap(), None);
    }
}

#[test]
fn proof_of_work_ends_at_the_merge() {
    let demo = Demo::new();
    let header = |number| demo.snapshot.header(number).unwrap().unwrap();
    let merge = demo.block("merge");
    assert!(header(merge - 1).difficulty > U256::ZERO);
    assert_eq!(header(merge).difficulty, U256::ZERO);
    assert_ne!(header(merge).mix_hash, B256::ZERO);

    let london = demo.block("london");
    assert_eq!(header(london - 1).base_fee_per_gas, None);
    assert_eq!(header(london).base_fee_per_gas, Some(1_000_000_000));
    assert_eq!(header(london).gas_limit, 2 * header(london - 1).gas_limit);
    let fees: Vec<u64> =
        (london..=HEAD_NUMBER).filter_map(|number| header(number).base_fee_per_gas).collect();
    assert!(
        fees.iter().all(|fee| (500_000_000..2_000_000_000).contains(fee)),
        "fees neither vanish nor explode"
    );
}

#[test]
fn withdrawals_and_empty_blocks_are_there() {
    let demo = Demo::new();
    let withdrawals =
        |number| demo.snapshot.block(number).unwrap().unwrap().withdrawals.map(|all| all.into_inner().len());
    assert_eq!(withdrawals(first_block(Era::Shanghai) - 1), None);
    assert_eq!(withdrawals(demo.block("first-withdrawal")), Some(1));
    assert_eq!(withdrawals(demo.block("many-withdrawals")), Some(16));
    assert_eq!(withdrawals(HEAD_NUMBER), Some(0));

    for name in ["empty-block", "first-withdrawal", "raw-none"] {
        assert_eq!(demo.snapshot.summary(demo.block(name)).unwrap().unwrap().transactions, 0, "{name}");
    }
    let asked = demo.snapshot.header(demo.block("withdrawal-request")).unwrap().unwrap();
    let nothing = demo.snapshot.header(HEAD_NUMBER).unwrap().unwrap();
    assert_ne!(asked.requests_hash, nothing.requests_hash);
}
