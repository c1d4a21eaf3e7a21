use proptest::prelude::*;
use roaring::RoaringBitmap;

use super::*;
use crate::logs::chunk;

/// Twenty logs of one address, then one row replaced by hand.
fn archive_with_index_row(row: &[u8]) -> Archive {
    let logs: Vec<_> = (0..20).map(|ordinal| log(ordinal, 1, &[2])).collect();
    let archive = Archive::with(&logs, 20);
    let write = archive.0.begin_write().unwrap();
    let mut key = [0; 37];
    key[1..33].copy_from_slice(address(1).into_word().as_slice());
    write.open_table(LOG_INDEX).unwrap().insert(&key, row).unwrap();
    write.commit().unwrap();
    archive
}

fn serialized(lows: &RoaringBitmap) -> Vec<u8> {
    let mut row = Vec::new();
    lows.serialize_into(&mut row).unwrap();
    row
}

#[test]
fn a_broken_bitmap_is_an_error_for_queries_and_for_flushes() {
    let good = serialized(&RoaringBitmap::from_iter([1, 5, 9]));
    let mut long = good.clone();
    long.push(0);
    let mut unsorted = good.clone();
    unsorted[16..18].copy_from_slice(&[200, 0]);
    let cases: [(&str, Vec<u8>); 6] = [
        ("nothing", Vec::new()),
        ("cut short", good[..good.len() - 1].to_vec()),
        ("bytes left over", long),
        ("no order", unsorted),
        ("an empty bitmap", serialized(&RoaringBitmap::new())),
        ("beyond its chunk", serialized(&RoaringBitmap::from_iter([1, 65_536]))),
    ];
    for (what, row) in cases {
        let archive = archive_with_index_row(&row);
        for filter in [filter(&[1], &[]), filter(&[1], &[&[2]]), filter(&[], &[&[2]])] {
            let found = archive.plan(0..20, &filter, 100);
            let asked = !filter.addresses.is_empty();
            assert_eq!(matches!(found, Err(QueryError::Damaged(_))), asked, "{what}: {found:?}");
        }
        let write = archive.0.begin_write().unwrap();
        let mut indexer = LogIndexer::default();
        indexer.add(20, &address(1), &[]).unwrap();
        let flushed = indexer.flush(&mut write.open_table(LOG_INDEX).unwrap());
        assert!(matches!(flushed, Err(IndexError::Damaged(_))), "{what}");
        assert!(!indexer.is_empty(), "{what}: what was gathered is still there");
    }
}

/// Reads all logs of address 1 after `damage` was done to the rows, and gives what was wrong, and how many were read
/// before.
fn read_damaged(
    logs: &[TestLog],
    damage: impl FnOnce(&mut redb::Table<'_, u64, &'static [u8]>),
) -> (u64, u64) {
    let archive = Archive::with(logs, logs.len());
    let write = archive.0.begin_write().unwrap();
    damage(&mut write.open_table(LOGS).unwrap());
    write.commit().unwrap();
    let matches = archive.plan(0..logs.len() as u64, &filter(&[1], &[]), 1_000).unwrap();
    let mut seen = 0;
    let result = read(&archive.logs(), &matches, StopConditions::default(), |_, _| {
        seen += 1;
        ControlFlow::<()>::Continue(())
    });
    match result {
        Err(QueryError::Damaged(DamagedLogRow { ordinal, .. })) => (ordinal, seen),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_missing_or_broken_pack_is_an_error() {
    // Address 1 has every fifth log, so that packs are walked; then every two hundredth, so that each is searched for.
    for (count, step) in [(320, 5), (3_200, 200)] {
        let logs: Vec<_> =
            (0..count).map(|ordinal| log(ordinal, u16::from(ordinal % step == 0), &[])).collect();
        for lost in [0, logs.len() as u64 / 64, logs.len() as u64 / 32 - 1] {
            let first = (lost * 32).next_multiple_of(step);
            if pack_of(first) != lost {
                continue;
            }
            let expected = (first, first / step);
            assert_eq!(read_damaged(&logs, |table| drop(table.remove(lost).unwrap())), expected);
            let broken = |table: &mut redb::Table<'_, u64, &'static [u8]>| {
                table.insert(lost, &[3; 40][..]).unwrap();
            };
            assert_eq!(read_damaged(&logs, broken), expected);
        }
    }
}

#[test]
fn missing_data_is_an_error() {
    let logs: Vec<_> = (0..40).map(|ordinal| log(ordinal, 1, &[])).collect();
    assert_eq!(read_damaged(&logs, |table| drop(table.remove(data_key(5)).unwrap().unwrap())), (5, 5));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_a_row_panic(row in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = Pack::decode(&row).map(|pack| (0..40).filter(|n| pack.log(*n).is_some()).count());
        let _ = chunk::decode(0, &row);
    }

    #[test]
    fn a_changed_bitmap_is_an_error_or_another_bitmap(
        lows in proptest::collection::btree_set(0_u32..65_536, 1..300),
        runs in any::<bool>(),
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..4),
        end in 0_usize..40,
    ) {
        let mut bitmap = RoaringBitmap::from_iter(lows);
        if runs {
            bitmap.insert_range(1000..9000);
        }
        let mut row = Vec::new();
        chunk::encode_into(&mut bitmap, &mut row).unwrap();
        prop_assert_eq!(chunk::decode(0, &row), Ok(bitmap.clone()));
        for (at, byte) in changes {
            let at = at.index(row.len());
            row[at] = byte;
        }
        row.truncate(row.len() - end.min(row.len()));
        if let Ok(decoded) = chunk::decode(0, &row) {
            prop_assert_eq!(decoded.iter().count() as u64, decoded.len());
            prop_assert!(decoded.max() <= Some(65_535));
            let _ = &decoded & &bitmap;
            let _ = decoded | bitmap;
        }
    }
}
