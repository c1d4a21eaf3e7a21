use std::{
    borrow::Borrow,
    cell::Cell,
    ops::RangeBounds,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use redb::{AccessGuard, Key, ReadableTable, ReadableTableMetadata, StorageError, TableStats, Value};

use super::*;

/// A table that counts how often it is searched, and cancels the query that searches too long.
struct Watched<'c, T> {
    table: T,
    searches: Cell<usize>,
    cancel_after: usize,
    cancel: &'c AtomicBool,
}

impl<'c, T> Watched<'c, T> {
    fn new(table: T, cancel_after: usize, cancel: &'c AtomicBool) -> Self {
        Self { table, searches: Cell::new(0), cancel_after, cancel }
    }

    fn count(&self) {
        self.searches.set(self.searches.get() + 1);
        if self.searches.get() == self.cancel_after {
            self.cancel.store(true, Ordering::Relaxed);
        }
    }
}

impl<T: ReadableTableMetadata> ReadableTableMetadata for Watched<'_, T> {
    fn stats(&self) -> Result<TableStats, StorageError> {
        self.table.stats()
    }

    fn len(&self) -> Result<u64, StorageError> {
        self.table.len()
    }
}

type Entry<'t, K, V> = Option<(AccessGuard<'t, K>, AccessGuard<'t, V>)>;

impl<K: Key + 'static, V: Value + 'static, T: ReadableTable<K, V>> ReadableTable<K, V> for Watched<'_, T> {
    fn get<'a>(&self, key: impl Borrow<K::SelfType<'a>>) -> Result<Option<AccessGuard<'_, V>>, StorageError> {
        self.count();
        self.table.get(key)
    }

    fn range<'a, KR>(&self, range: impl RangeBounds<KR> + 'a) -> Result<redb::Range<'_, K, V>, StorageError>
    where
        KR: Borrow<K::SelfType<'a>> + 'a,
    {
        self.count();
        self.table.range(range)
    }

    fn first(&self) -> Result<Entry<'_, K, V>, StorageError> {
        self.count();
        self.table.first()
    }

    fn last(&self) -> Result<Entry<'_, K, V>, StorageError> {
        self.count();
        self.table.last()
    }
}

/// One log in each of 2,000 chunks, all of one address; only one of them has topic 7.
fn long_chain() -> Archive {
    let logs: Vec<_> = (0..2000).map(|n| log(n << 16, 1, &[if n == 1234 { 7 } else { 8 }])).collect();
    Archive::with(&logs, 2000)
}

const NEVER: usize = usize::MAX;

fn searches(archive: &Archive, ordinals: Range<u64>, filter: &LogFilter) -> usize {
    let cancel = AtomicBool::new(false);
    let index = Watched::new(archive.index(), NEVER, &cancel);
    let _ =
        plan(&index, &LogQuery { ordinals, filter, limit: NEVER, stop: StopConditions::default() }).unwrap();
    index.searches.get()
}

#[test]
fn without_a_filter_the_index_is_not_touched() {
    assert_eq!(searches(&long_chain(), 0..2000 << 16, &filter(&[], &[])), 0);
}

#[test]
fn a_rare_topic_spares_the_chunks_of_a_common_address() {
    // Seven stretches, in each the address and the topic are weighed and the topic is loaded.
    let searches = searches(&long_chain(), 0..2000 << 16, &filter(&[1], &[&[7]]));
    assert!(searches <= 7 * 3 + 1, "{searches} searches");
}

#[test]
fn common_values_are_walked_and_not_searched_chunk_by_chunk() {
    let searches = searches(&long_chain(), 0..2000 << 16, &filter(&[1], &[&[8]]));
    assert!(searches <= 7 * 4, "{searches} searches");
}

#[test]
fn a_search_beyond_the_limit_ends_early() {
    let cancel = AtomicBool::new(false);
    let archive = long_chain();
    let index = Watched::new(archive.index(), NEVER, &cancel);
    let filter = filter(&[1], &[]);
    let query =
        LogQuery { ordinals: 0..2000 << 16, filter: &filter, limit: 5, stop: StopConditions::default() };
    let error = plan(&index, &query).unwrap_err();
    assert!(matches!(error, QueryError::TooMany { count: 16, first_beyond } if first_beyond == 5 << 16));
    assert_eq!(index.searches.get(), 1);
}

#[test]
fn a_late_query_does_nothing() {
    let archive = long_chain();
    let cancel = AtomicBool::new(false);
    let index = Watched::new(archive.index(), NEVER, &cancel);
    let logs = Watched::new(archive.logs(), NEVER, &cancel);
    let stop = StopConditions { deadline: Some(Instant::now()), cancel: None };
    for filter in [filter(&[], &[]), filter(&[1], &[])] {
        let query = LogQuery { ordinals: 0..1, filter: &filter, limit: 10, stop };
        assert!(matches!(plan(&index, &query), Err(QueryError::Timeout)));
    }
    let result = read(&logs, &Matches::all(0..1), stop, |_, _| ControlFlow::Break(()));
    assert!(matches!(result, Err(QueryError::Timeout)));
    assert_eq!(index.searches.get() + logs.searches.get(), 0);
}

#[test]
fn a_cancelled_search_stops_at_once() {
    let archive = long_chain();
    let thousands: Vec<u16> = (0..5000).collect();
    for addresses in [&thousands[..], &[1]] {
        let filter = filter(addresses, &[&[7, 8], &[]]);
        let cancel = AtomicBool::new(false);
        let index = Watched::new(archive.index(), 3, &cancel);
        let later = Instant::now() + Duration::from_secs(3600);
        let stop = StopConditions { deadline: Some(later), cancel: Some(&cancel) };
        let query = LogQuery { ordinals: 0..2000 << 16, filter: &filter, limit: NEVER, stop };
        assert!(matches!(plan(&index, &query), Err(QueryError::Cancelled)));
        assert!(index.searches.get() < 3 + 40, "{} searches", index.searches.get());
    }
}

#[test]
fn reading_stops_when_it_is_cancelled() {
    let logs: Vec<_> = (0..5000).map(|ordinal| log(ordinal, 1, &[])).collect();
    let archive = Archive::with(&logs, 5000);
    let cancel = AtomicBool::new(false);
    let stop = StopConditions { deadline: None, cancel: Some(&cancel) };
    let mut seen = 0;
    let result = read(&archive.logs(), &Matches::all(0..5000), stop, |_, _| {
        seen += 1;
        cancel.store(seen >= 100, Ordering::Relaxed);
        ControlFlow::<()>::Continue(())
    });
    assert!(matches!(result, Err(QueryError::Cancelled)));
    assert!((100..600).contains(&seen), "{seen} logs");
}

#[test]
fn reading_stops_when_the_reader_has_enough() {
    let logs: Vec<_> = (0..1000).map(|n| log(n * 3, 1, &[])).collect();
    let archive = Archive::with(&logs, 1000);
    let matches = archive.plan(0..3000, &filter(&[1], &[]), 1000).unwrap();
    for enough in [1, 2, 300, 1000] {
        let mut seen = 0;
        let flow = read(&archive.logs(), &matches, StopConditions::default(), |ordinal, _| {
            seen += 1;
            if seen == enough { ControlFlow::Break(ordinal) } else { ControlFlow::Continue(()) }
        });
        assert_eq!(flow.unwrap(), ControlFlow::Break((enough - 1) * 3));
        assert_eq!(seen, enough);
    }
}

#[test]
fn logs_close_together_are_read_with_few_searches() {
    let logs: Vec<_> = (0..8_000).map(|n| log(n, (n % 2) as u16, &[u16::from(n % 1_000 == 0)])).collect();
    let archive = Archive::with(&logs, 8_000);
    let cancel = AtomicBool::new(false);
    let large = |odd| logs.iter().filter(|log| log.ordinal % 2 == odd && log.ordinal % 97 == 5).count();
    // One walk for every 256 logs, and a search for what is too large for its pack.
    for (filter, found, searches) in [(filter(&[1], &[]), 4_000, 16 + large(1)), (filter(&[], &[&[1]]), 8, 8)]
    {
        let table = Watched::new(archive.logs(), NEVER, &cancel);
        let matches = archive.plan(0..8_000, &filter, 10_000).unwrap();
        let _ = read(&table, &matches, StopConditions::default(), |_, _| ControlFlow::<()>::Continue(()))
            .unwrap();
        assert_eq!((matches.len(), table.searches.get()), (found, searches));
    }
}
