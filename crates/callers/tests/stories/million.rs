//! What a million keys cost: `cargo test --release -p chaingate-callers a_million_keys -- --ignored --nocapture`.

use std::time::Instant;

use crate::place::{Place, account_with_key, run};

#[test]
#[ignore = "measures; takes half a minute and a gigabyte"]
#[allow(clippy::print_stdout, reason = "the result of a measurement")]
fn a_million_keys_are_loaded() {
    let place = Place::new();
    let administration = place.administration();
    run(async {
        let new = account_with_key(&administration, "acme").await;
        place
            .execute(
                "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 1000000) \
                 INSERT INTO api_keys (id, account_id, name, prefix, hash, created_at, status, settings, revision) \
                 SELECT printf('k_%012x', n), 1, 'key ' || n, 'abcdef', randomblob(32), 0, 'active', '{\"rules\":{}}', 2 \
                 FROM numbers",
            )
            .await;
        let (before, start) = (resident_bytes(), Instant::now());
        let (feed, directory) = place.follow();
        let keys = directory.feed_status().facts().keys;
        println!("{keys} keys loaded and copied in {:?}", start.elapsed());
        println!("{} bytes of memory per key", (resident_bytes() - before) / keys);
        let copy_bytes = std::fs::metadata(place.file("callers.copy")).unwrap().len();
        println!("{} bytes of the local copy per key", copy_bytes / keys);
        const LOOKUPS: u32 = 1_000_000;
        let start = Instant::now();
        let found = (0..LOOKUPS).filter(|_| directory.find(new.key.as_bytes()).is_some()).count();
        println!("{} ns per lookup of a known key", start.elapsed().as_nanos() / u128::from(LOOKUPS));
        assert_eq!(found, LOOKUPS as usize);
        let unknown: Vec<String> = (0..LOOKUPS).map(|number| format!("{number:032x}")).collect();
        let start = Instant::now();
        let found = unknown.iter().filter(|key| directory.find(key.as_bytes()).is_some()).count();
        println!("{} ns per lookup of an unknown key", start.elapsed().as_nanos() / u128::from(LOOKUPS));
        assert_eq!(found, 0);
        let start = Instant::now();
        administration.with_feed(feed.handle()).revoke_key("test", &new.summary.id).await.unwrap();
        println!("a revocation takes {:?}", start.elapsed());
        assert!(directory.find(new.key.as_bytes()).is_none());
    });
}

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = status.split_whitespace().nth(1).unwrap().parse().unwrap();
    pages * 4_096
}
