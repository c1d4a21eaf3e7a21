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

#[test]
fn a_missing_or_broken_log_row_is_an_error() {
    let logs: Vec<_> = (0..40).map(|ordinal| log(ordinal, 1 + u16::from(ordinal % 20 == 0), &[])).collect();
    for lost in [0, 20, 21, 39] {
        for row in [None, Some(&[0; 30][..])] {
            let archive = Archive::with(&logs, 100);
            let write = archive.0.begin_write().unwrap();
            match row {
                None => drop(write.open_table(LOGS).unwrap().remove(lost).unwrap()),
                Some(row) => drop(write.open_table(LOGS).unwrap().insert(lost, row).unwrap()),
            }
            write.commit().unwrap();
            let filter = filter(&[1 + u16::from(lost % 20 == 0)], &[]);
            let matches = archive.plan(0..40, &filter, 100).unwrap();
            let mut before = 0;
            let result = read(&archive.logs(), &matches, Stop::default(), |ordinal, _| {
                before += u64::from(ordinal < lost);
                ControlFlow::<()>::Continue(())
            });
            assert!(
                matches!(result, Err(QueryError::Damaged(Damaged { ordinal, .. })) if ordinal == lost),
                "log {lost}: {result:?}"
            );
            assert_eq!(before, matches.ordinals().filter(|ordinal| *ordinal < lost).count() as u64);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_a_row_panic(row in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = LogRef::decode(&row);
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
