use redb::ReadableTableMetadata;
use roaring::RoaringBitmap;

use super::*;

fn key(kind: u8, value: B256, chunk: u32) -> [u8; 37] {
    let mut key = [kind; 37];
    key[1..33].copy_from_slice(value.as_slice());
    key[33..].copy_from_slice(&chunk.to_be_bytes());
    key
}

fn row(archive: &Archive, key: &[u8; 37]) -> Vec<u32> {
    let index = archive.index();
    let row = index.get(key).unwrap().unwrap();
    RoaringBitmap::deserialize_from(row.value()).unwrap().into_iter().collect()
}

#[test]
fn a_log_is_found_under_its_address_topics_and_topic_count() {
    let archive = Archive::with(&[log((2 << 16) + 5, 1, &[10, 11, 12, 13])], 1);
    let expected = [
        key(0, topic(1), 2), // An address is padded on the left, as a topic is.
        key(1, topic(10), 2),
        key(2, topic(11), 2),
        key(3, topic(12), 2),
        key(4, topic(13), 2),
        key(5, topic(4), 2),
    ];
    assert_eq!(archive.index().len().unwrap(), 6);
    for key in expected {
        assert_eq!(row(&archive, &key), [5]);
    }
}

#[test]
fn a_log_without_topics_has_a_topic_count_too() {
    let archive = Archive::with(&[log(7, 1, &[])], 1);
    assert_eq!(archive.index().len().unwrap(), 2);
    assert_eq!(row(&archive, &key(5, topic(0), 0)), [7]);
}

#[test]
fn later_groups_merge_into_the_last_chunk_and_open_the_next() {
    let logs: Vec<_> = (65_530..65_545).map(|ordinal| log(ordinal, 1, &[2])).collect();
    let archive = Archive::with(&logs, 4);
    assert_eq!(row(&archive, &key(0, topic(1), 0)), (65_530..65_536).collect::<Vec<_>>());
    assert_eq!(row(&archive, &key(0, topic(1), 1)), (0..9).collect::<Vec<_>>());
}

#[test]
fn a_full_chunk_is_a_short_row() {
    let logs: Vec<_> = (0..65_536).map(|ordinal| log(ordinal, 1, &[])).collect();
    let archive = Archive::with(&logs, 20_000);
    assert!(archive.index().get(&key(0, topic(1), 0)).unwrap().unwrap().value().len() < 32);
    assert_eq!(archive.find(0..65_536, &filter(&[1], &[])).len(), 65_536);
}

#[test]
fn an_indexer_knows_its_size_and_forgets_on_demand() {
    let mut indexer = LogIndexer::default();
    assert_eq!(indexer.memory_bytes(), 0);
    indexer.add(1, &address(1), &[topic(1)]).unwrap();
    let one = indexer.memory_bytes();
    indexer.add(2, &address(2), &[topic(2)]).unwrap();
    assert!(indexer.memory_bytes() > one);
    indexer.clear();
    assert!(indexer.is_empty());
    assert_eq!(indexer.memory_bytes(), 0);
}

#[test]
fn an_ordinal_that_the_index_cannot_count_is_refused() {
    let mut indexer = LogIndexer::default();
    indexer.add((1 << 48) - 1, &address(1), &[]).unwrap();
    let refused = indexer.add(1 << 48, &address(1), &[]);
    assert!(matches!(refused, Err(IndexError::OrdinalTooLarge(ordinal)) if ordinal == 1 << 48));
}

#[test]
fn a_query_sees_what_its_own_write_transaction_flushed() {
    let archive = Archive::new();
    let write = archive.0.begin_write().unwrap();
    let mut index = write.open_table(LOG_INDEX).unwrap();
    let mut indexer = LogIndexer::default();
    indexer.add(3, &address(1), &[]).unwrap();
    indexer.flush(&mut index).unwrap();
    let filter = filter(&[1], &[]);
    let query = LogQuery { ordinals: 0..10, filter: &filter, limit: 10, stop: StopConditions::default() };
    assert_eq!(plan(&index, &query).unwrap().ordinals().collect::<Vec<_>>(), [3]);
}
