use super::*;

fn example(topics: &[B256], data: &[u8]) -> Vec<u8> {
    let mut row = Vec::new();
    LogRow {
        block_number: 0x0102_0304_0506_0708,
        transaction_index: 0x0a0b_0c0d,
        log_index: 7,
        transaction_hash: &B256::repeat_byte(0x11),
        address: &Address::repeat_byte(0x22),
        topics,
        data,
    }
    .encode_into(&mut row)
    .unwrap();
    row
}

#[test]
fn a_row_is_laid_out_as_documented() {
    let row = example(&[B256::repeat_byte(0x33)], b"data");
    let mut expected = vec![1, 2, 3, 4, 5, 6, 7, 8, 0x0a, 0x0b, 0x0c, 0x0d, 0, 0, 0, 7];
    expected.extend([0x11; 32]);
    expected.extend([0x22; 20]);
    expected.push(1);
    expected.extend([0x33; 32]);
    expected.extend(b"data");
    assert_eq!(row, expected);
}

#[test]
fn a_row_gives_back_what_went_in() {
    for count in 0..=TOPICS_MAX {
        let topics: Vec<_> = (0..count as u8).map(B256::repeat_byte).collect();
        for data in [&[][..], &[0], &[9; 1000]] {
            let row = example(&topics, data);
            let log = LogRef::decode(&row).unwrap();
            assert_eq!(log.block_number(), 0x0102_0304_0506_0708);
            assert_eq!(log.transaction_index(), 0x0a0b_0c0d);
            assert_eq!(log.log_index(), 7);
            assert_eq!(log.transaction_hash(), &[0x11; 32]);
            assert_eq!(log.address(), &[0x22; 20]);
            assert!(log.topics().iter().eq(topics.iter().map(|topic| &topic.0)));
            assert_eq!(log.data(), data);
        }
    }
}

#[test]
fn encoding_appends() {
    let mut row = b"before".to_vec();
    let log = LogRow {
        block_number: 1,
        transaction_index: 2,
        log_index: 3,
        transaction_hash: &topic(4),
        address: &address(5),
        topics: &[],
        data: &[],
    };
    log.encode_into(&mut row).unwrap();
    assert_eq!(&row[..6], b"before");
    assert_eq!(LogRef::decode(&row[6..]).unwrap().block_number(), 1);
}

#[test]
fn five_topics_are_refused() {
    let mut row = Vec::new();
    let topics = [topic(1); 5];
    let log = LogRow {
        block_number: 1,
        transaction_index: 2,
        log_index: 3,
        transaction_hash: &topic(4),
        address: &address(5),
        topics: &topics,
        data: &[],
    };
    assert_eq!(log.encode_into(&mut row), Err(TopicsTooMany(5)));
    assert!(row.is_empty());
    let refused = LogIndexer::default().add(0, &address(5), &topics);
    assert!(matches!(refused, Err(IndexError::TopicsTooMany(TopicsTooMany(5)))));
}

#[test]
fn a_row_that_ends_too_early_is_no_log() {
    let row = example(&[topic(1), topic(2)], &[]);
    for end in 0..row.len() {
        assert_eq!(LogRef::decode(&row[..end]), None, "{end} bytes");
    }
    assert!(LogRef::decode(&row).is_some());
}

#[test]
fn a_row_with_an_impossible_number_of_topics_is_no_log() {
    let mut row = example(&[], &[0; 32 * 255]);
    for count in 5..=255 {
        row[68] = count;
        assert_eq!(LogRef::decode(&row), None, "{count} topics");
    }
}
