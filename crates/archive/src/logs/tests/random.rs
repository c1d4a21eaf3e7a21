use proptest::{collection::vec, prelude::*, sample::select};
use rand::{Rng, SeedableRng, rngs::SmallRng};

use super::*;

const VALUES: Range<u16> = 1..4;

/// Logs with so few different values that filters hit often. They begin near the border of a chunk and lie
/// close together, some chunks apart, or further apart than the stretches of a search are long.
fn some_logs() -> impl Strategy<Value = Vec<TestLog>> {
    let start = select(vec![0, 65_536 - 60, (16 << 16) - 60]);
    let step = select(vec![1, 3, 700, 70_000, 20 << 16]);
    let values = vec((VALUES, vec(VALUES, 0..=TOPICS_MAX)), 0..200);
    (start, step, values).prop_map(|(start, step, values)| {
        let numbered = values.iter().zip(0..);
        numbered.map(|((address, topics), n)| log(start + n * step, *address, topics)).collect()
    })
}

fn some_filter() -> impl Strategy<Value = LogFilter> {
    let any_of = || vec(VALUES.start..VALUES.end + 1, 0..3);
    (any_of(), vec(any_of(), 0..=TOPICS_MAX)).prop_map(|(addresses, topics)| {
        let topics: Vec<_> = topics.iter().map(Vec::as_slice).collect();
        filter(&addresses, &topics)
    })
}

/// A part of the ordinals of the logs, or a little more than all of them.
fn part(logs: &[TestLog], from: f64, to: f64) -> Range<u64> {
    let span = logs.last().map_or(0, |log| log.ordinal + 3) as f64;
    (span * from.min(to)) as u64..(span * from.max(to)) as u64
}

fn check(archive: &Archive, logs: &[TestLog], ordinals: Range<u64>, filter: &LogFilter, limit: usize) {
    let mut logs_inside = logs.iter().filter(|log| ordinals.contains(&log.ordinal));
    let everything = filter.addresses.is_empty() && filter.topics.is_empty();
    if everything && logs_inside.by_ref().count() as u64 != ordinals.end - ordinals.start {
        return; // Without a filter the range is the answer, and here it has ordinals without a log.
    }
    let expected = brute_force(logs, &ordinals, filter);
    assert_eq!(archive.find(ordinals.clone(), filter), expected);
    match archive.plan(ordinals, filter, limit) {
        Ok(matches) => {
            assert!(expected.len() <= limit);
            assert_eq!(matches.len(), expected.len() as u64);
            assert_eq!(archive.read(&matches, logs), expected);
        }
        Err(QueryError::TooMany { count, first_beyond }) => {
            assert_eq!(first_beyond, expected[limit]);
            assert!(count > limit as u64 && count <= expected.len() as u64);
        }
        Err(error) => panic!("{error}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_index_finds_what_brute_force_finds(
        logs in some_logs(),
        group in 1_usize..80,
        queries in vec((some_filter(), 0.0..=1.0, 0.0..=1.0, 0_usize..60), 1..30),
    ) {
        let archive = Archive::with(&logs, group);
        for (filter, from, to, limit) in queries {
            check(&archive, &logs, part(&logs, from, to), &filter, limit);
            check(&archive, &logs, part(&logs, 0.0, 1.0), &filter, limit);
        }
    }
}

/// 150,000 logs of 3,000 addresses over three chunks. One address has half of all logs, so that its chunks are
/// bitmaps while those of the others are short arrays.
fn many_logs() -> Vec<TestLog> {
    let mut random = SmallRng::seed_from_u64(1);
    let mut one = |ordinal| {
        let address = if random.random_bool(0.5) { 0 } else { random.random_range(1..3000) };
        let topics: Vec<_> = (0..random.random_range(0..=4)).map(|_| random.random_range(0..20)).collect();
        log(ordinal, address, &topics)
    };
    (0..150_000).map(&mut one).collect()
}

#[test]
fn a_chain_of_several_chunks_and_a_filter_of_thousands_of_addresses() {
    let logs = many_logs();
    let archive = Archive::with(&logs, 40_000);
    let thousands: Vec<u16> = (500..2500).collect();
    let filters = [
        filter(&[0], &[]),
        filter(&[7], &[]),
        filter(&[0], &[&[3]]),
        filter(&[0], &[&[3], &[], &[]]),
        filter(&[7, 0], &[&[3, 4, 5]]),
        filter(&[], &[&[], &[], &[], &[1]]),
        filter(&[], &[&[], &[]]),
        filter(&thousands, &[]),
        filter(&thousands, &[&[3, 4]]),
        filter(&thousands, &[&[], &[3, 4, 5], &[]]),
        filter(&[thousands, vec![0]].concat(), &[&[3]]),
    ];
    for filter in filters {
        for ordinals in [0..150_000, 0..1, 65_535..65_537, 65_536..131_072, 100..140_000] {
            check(&archive, &logs, ordinals, &filter, 10_000);
        }
    }
}

#[test]
fn logs_far_apart_up_to_the_last_ordinal() {
    let chunks = [0, 1, 15, 16, 47, 48, 111, 112, 2000, 5000, u32::MAX];
    let ordinals =
        chunks.iter().flat_map(|chunk| [u64::from(*chunk) << 16, (u64::from(*chunk) << 16) + 65_535]);
    let logs: Vec<_> = ordinals.enumerate().map(|(n, at)| log(at, 1, &[n as u16 % 3])).collect();
    let archive = Archive::with(&logs, 5);
    // The last chunk is left out of the wide search: four thousand million chunks lie before it.
    check(&archive, &logs, 0..6000 << 16, &filter(&[1], &[&[0, 2]]), 100);
    check(&archive, &logs, 0..6000 << 16, &filter(&[1], &[]), 9);
    check(&archive, &logs, (1 << 48) - 70_000..u64::MAX, &filter(&[1], &[]), 100);
}
