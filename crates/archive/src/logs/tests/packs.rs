use proptest::prelude::*;
use redb::ReadableTableMetadata;

use super::*;

/// A log without topics and data, of transaction 0x11 in block 7.
fn plain() -> (LogBlock, B256, Address) {
    let block = LogBlock { number: 7, hash: B256::repeat_byte(0x77), timestamp: 0x0102 };
    (block, B256::repeat_byte(0x11), Address::repeat_byte(0x22))
}

/// The row of a pack that begins an archive.
fn packed(rows: &[LogRow<'_>]) -> Vec<u8> {
    let archive = Archive::new();
    let write = archive.0.begin_write().unwrap();
    let mut table = write.open_table(LOGS).unwrap();
    let mut packer = LogPacker::resume(&mut table, 0).unwrap();
    for row in rows {
        packer.push(row).unwrap();
    }
    packer.finish().unwrap();
    drop(table);
    write.commit().unwrap();
    archive.logs().get(0).unwrap().unwrap().value().to_vec()
}

#[test]
fn a_pack_is_laid_out_as_documented() {
    let (block, hash, address) = plain();
    let topics = [B256::repeat_byte(0x33)];
    let long = vec![9; PACKED_DATA_MAX + 1];
    let first = LogRow {
        block: &block,
        transaction_index: 0x0a0b_0c0d,
        transaction_hash: &hash,
        log_index: 5,
        address: &address,
        topics: &topics,
        data: b"data",
    };
    let second = LogRow { log_index: 6, topics: &[], data: &long, ..first };
    let mut expected = vec![2, 1, 1];
    expected.extend([0, 0, 0, 0, 0, 0, 0, 7]);
    expected.extend([0x77; 32]);
    expected.extend([0, 0, 0, 0, 0, 0, 1, 2]);
    expected.extend([0, 0x0a, 0x0b, 0x0c, 0x0d]);
    expected.extend([0x11; 32]);
    expected.extend([0, 0, 0, 0, 61, 0, 0, 0, 0, 86]);
    expected.extend([0, 0, 0, 5]);
    expected.extend([0x22; 20]);
    expected.push(1);
    expected.extend([0x33; 32]);
    expected.extend(b"data");
    expected.extend([0, 0, 0, 6]);
    expected.extend([0x22; 20]);
    expected.push(0x80);
    assert_eq!(packed(&[first, second]), expected);
}

#[test]
fn packs_begin_at_multiples_of_32() {
    for logs in [1, 31, 32, 33, 64, 65] {
        let logs: Vec<_> = (0..logs).map(|ordinal| log(ordinal, 1, &[])).collect();
        let archive = Archive::with(&logs, 7);
        let large = logs.iter().filter(|log| data_of(log.ordinal).len() > PACKED_DATA_MAX).count() as u64;
        assert_eq!(archive.logs().len().unwrap(), (logs.len() as u64).div_ceil(32) + large);
        for (number, logs) in logs.chunks(32).enumerate() {
            let row = archive.logs().get(number as u64).unwrap().unwrap();
            assert_eq!(Pack::decode(row.value()).unwrap().len(), logs.len() as u64);
        }
    }
}

#[test]
fn a_pack_is_the_same_in_whatever_portions_it_was_written() {
    let logs: Vec<_> = (0..70).map(|ordinal| log(ordinal, 1, &[2])).collect();
    let rows = |group| {
        let archive = Archive::with(&logs, group);
        let rows = archive.logs().range::<u64>(..).unwrap().map(|row| row.unwrap().1.value().to_vec());
        rows.collect::<Vec<_>>()
    };
    for group in [1, 2, 31, 32, 33] {
        assert_eq!(rows(group), rows(70), "{group}");
    }
}

#[test]
fn five_topics_are_refused() {
    let (block, hash, address) = plain();
    let topics = [topic(1); 5];
    let row = LogRow {
        block: &block,
        transaction_index: 0,
        transaction_hash: &hash,
        log_index: 0,
        address: &address,
        topics: &topics,
        data: &[],
    };
    let archive = Archive::new();
    let write = archive.0.begin_write().unwrap();
    let mut table = write.open_table(LOGS).unwrap();
    let refused = LogPacker::resume(&mut table, 0).unwrap().push(&row);
    assert!(matches!(refused, Err(IndexError::TopicsTooMany(TopicsTooMany(5)))));
    let refused = LogIndexer::default().add(0, &address, &topics);
    assert!(matches!(refused, Err(IndexError::TopicsTooMany(TopicsTooMany(5)))));
}

#[test]
fn a_pack_that_ends_too_early_lacks_its_last_log() {
    let logs: Vec<_> = (0..3).map(|ordinal| log(ordinal, 1, &[2, 3])).collect();
    let archive = Archive::with(&logs, 3);
    let row = archive.logs().get(0).unwrap().unwrap().value().to_vec();
    for end in 0..row.len() {
        assert_eq!(Pack::decode(&row[..end]).and_then(|pack| pack.log(2)), None, "{end} bytes");
    }
    let pack = Pack::decode(&row).unwrap();
    assert!((0..3).all(|ordinal| pack.log(ordinal).is_some()));
    assert_eq!(pack.log(3), None);
}

#[test]
fn an_impossible_number_of_topics_is_no_log() {
    let (block, hash, address) = plain();
    let data = vec![0; 1_000];
    let row = LogRow {
        block: &block,
        transaction_index: 0,
        transaction_hash: &hash,
        log_index: 0,
        address: &address,
        topics: &[],
        data: &data,
    };
    let mut row = packed(&[row]);
    let at = row.len() - 1_001;
    for count in 5..=255 {
        row[at] = count;
        assert_eq!(Pack::decode(&row).unwrap().log(0), None, "{count} topics");
    }
}

#[test]
fn a_pack_of_another_length_than_the_chain_says_is_not_continued() {
    let logs: Vec<_> = (0..5).map(|ordinal| log(ordinal, 1, &[])).collect();
    let archive = Archive::with(&logs, 5);
    let write = archive.0.begin_write().unwrap();
    let mut table = write.open_table(LOGS).unwrap();
    for next in [4, 6, 33] {
        let resumed = LogPacker::resume(&mut table, next).map(|_| ());
        assert!(matches!(resumed, Err(IndexError::Damaged(_))), "{next}");
    }
    assert!(LogPacker::resume(&mut table, 5).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_changed_pack_is_an_error_or_another_log(
        count in 1_u64..40,
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..6),
        end in 0_usize..80,
    ) {
        let logs: Vec<_> = (0..count.min(32)).map(|ordinal| log(ordinal, 1, &[2])).collect();
        let archive = Archive::with(&logs, 32);
        let mut row = archive.logs().get(0).unwrap().unwrap().value().to_vec();
        for (at, byte) in changes {
            let at = at.index(row.len());
            row[at] = byte;
        }
        row.truncate(row.len() - end.min(row.len()));
        if let Some(pack) = Pack::decode(&row) {
            for ordinal in 0..40 {
                if let Some(PackedLog::Whole(log) | PackedLog::WithoutData(log)) = pack.log(ordinal) {
                    prop_assert!(log.topics().len() <= TOPICS_MAX);
                }
            }
        }
    }
}
