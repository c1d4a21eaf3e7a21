use super::*;

const NONE: [u64; 0] = [];

/// One block's worth of logs, so small that the expected ordinals can be read off.
fn logs() -> Vec<TestLog> {
    vec![
        log(0, 1, &[]),
        log(1, 1, &[10]),
        log(2, 1, &[10, 20]),
        log(3, 2, &[10, 20, 30]),
        log(4, 2, &[11, 20, 30, 40]),
        log(5, 3, &[20, 10]),
        log(6, 3, &[11, 11, 11, 11]),
    ]
}

#[test]
fn each_rule_of_a_filter() {
    let any: &[u16] = &[];
    let cases: &[(&str, LogFilter, &[u64])] = &[
        ("no filter is every log", filter(&[], &[]), &[0, 1, 2, 3, 4, 5, 6]),
        ("one address", filter(&[1], &[]), &[0, 1, 2]),
        ("several addresses are an or", filter(&[1, 3], &[]), &[0, 1, 2, 5, 6]),
        ("an address twice counts once", filter(&[1, 1], &[]), &[0, 1, 2]),
        ("an address nobody has", filter(&[9], &[]), &[]),
        ("a known and an unknown address", filter(&[9, 2], &[]), &[3, 4]),
        ("a topic counts at its position only", filter(&[], &[&[10]]), &[1, 2, 3]),
        ("the same topic one position later", filter(&[], &[any, &[10]]), &[5]),
        ("several topics at a position are an or", filter(&[], &[&[10, 20]]), &[1, 2, 3, 5]),
        ("positions are an and", filter(&[], &[&[10], &[20]]), &[2, 3]),
        ("or within, and between", filter(&[], &[&[10, 11], &[20, 11]]), &[2, 3, 4, 6]),
        ("address and topic are an and", filter(&[2], &[&[10]]), &[3]),
        ("address and topic of different logs", filter(&[3], &[&[10]]), &[]),
        ("a wildcard before a topic", filter(&[], &[any, &[20]]), &[2, 3, 4]),
        ("a wildcard between topics", filter(&[], &[&[11], any, &[30]]), &[4]),
        ("a wildcard wants a topic to be there", filter(&[], &[any]), &[1, 2, 3, 4, 5, 6]),
        ("two wildcards want two", filter(&[], &[any, any]), &[2, 3, 4, 5, 6]),
        ("three wildcards want three", filter(&[], &[any, any, any]), &[3, 4, 6]),
        ("four wildcards want four", filter(&[], &[any, any, any, any]), &[4, 6]),
        ("a trailing wildcard after a topic", filter(&[], &[&[10], any]), &[2, 3]),
        ("two trailing wildcards after a topic", filter(&[], &[&[10], any, any]), &[3]),
        ("an address and a trailing wildcard", filter(&[1], &[any]), &[1, 2]),
        ("an address and four wildcards", filter(&[2], &[any, any, any, any]), &[4]),
        ("all four positions", filter(&[], &[&[11], &[20], &[30], &[40]]), &[4]),
        ("everything at once", filter(&[1, 2], &[&[10, 11], any, &[30], any]), &[4]),
        ("five positions match nothing", filter(&[], &[any, any, any, any, any]), &[]),
        ("a topic at the fifth position", filter(&[], &[any, any, any, any, &[40]]), &[]),
    ];
    let logs = logs();
    for group in [1, 3, 100] {
        let archive = Archive::with(&logs, group);
        for (rule, filter, expected) in cases {
            let matches = archive.plan(0..7, filter, 7).unwrap();
            assert_eq!(matches.ordinals().collect::<Vec<_>>(), *expected, "{rule}, groups of {group}");
            assert_eq!(matches.len(), expected.len() as u64, "{rule}");
            assert_eq!(matches.is_empty(), expected.is_empty(), "{rule}");
            assert_eq!(archive.read(&matches, &logs), *expected, "{rule}");
            assert_eq!(brute_force(&logs, &(0..7), filter), *expected, "{rule}");
        }
    }
}

#[test]
fn only_the_range_is_searched() {
    let archive = Archive::with(&logs(), 100);
    for filter in [filter(&[], &[]), filter(&[1, 2, 3], &[])] {
        assert_eq!(archive.find(2..5, &filter), [2, 3, 4]);
        assert_eq!(archive.find(0..1, &filter), [0]);
        assert_eq!(archive.find(6..7, &filter), [6]);
        assert_eq!(archive.find(3..3, &filter), NONE);
        let (start, end) = (5, 3);
        assert_eq!(archive.find(start..end, &filter), NONE, "a range that ends before it starts");
    }
    assert_eq!(archive.find(0..1 << 24, &filter(&[1], &[])), [0, 1, 2], "beyond the last log");
    assert_eq!(archive.find(u64::MAX - 1..u64::MAX, &filter(&[1], &[])), NONE);
}

#[test]
fn more_matches_than_the_limit_say_where_the_limit_is_reached() {
    let archive = Archive::with(&logs(), 100);
    for (rule, filter) in [("no filter", filter(&[], &[])), ("all addresses", filter(&[1, 2, 3], &[]))] {
        for limit in 0..5 {
            let error = archive.plan(2..7, &filter, limit).unwrap_err();
            let QueryError::TooMany { count, first_beyond } = error else { panic!("{rule}: {error}") };
            assert_eq!((count, first_beyond), (5, 2 + limit as u64), "{rule}, limit {limit}");
            // The blocks before it are the widest start of the range that fits.
            assert_eq!(archive.plan(2..first_beyond, &filter, limit).unwrap().len(), limit as u64);
        }
        assert_eq!(archive.plan(2..7, &filter, 5).unwrap().len(), 5, "{rule}: exactly the limit fits");
    }
    let gaps = archive.plan(0..7, &filter(&[], &[&[11]]), 1);
    assert!(matches!(gaps, Err(QueryError::TooMany { count: 2, first_beyond: 6 })));
}

#[test]
fn an_empty_archive_has_no_matches() {
    let archive = Archive::new();
    assert_eq!(archive.find(0..0, &filter(&[], &[])), NONE);
    assert_eq!(archive.find(0..0, &filter(&[1], &[])), NONE);
    assert_eq!(archive.find(0..100, &filter(&[1], &[&[2], &[]])), NONE);
}
