//! The cost of a million keys: `cargo test --release -p chaingate-callers a_million_keys -- --ignored --nocapture`.

use std::time::{Duration, Instant};

use callers::Directory;

use crate::place::{Place, account_with_key, run, wait_until};

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
        wait_until("the copy is written", || place.file("callers.copy").exists());
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
        compare_guesses(&directory, &new.key);
        // The copy cannot be written, and then the store is loaded again, as after a restored backup.
        drop((feed, directory));
        std::fs::create_dir(place.file("callers.copy.new")).unwrap();
        let second = account_with_key(&administration, "beta").await;
        let (feed, directory) = place.follow();
        wait_until("the copy has failed", || directory.feed_status().facts().copy_failures > 0);
        let administration = administration.with_feed(feed.handle());
        for (key, is_loaded_again) in [(&new, false), (&second, true)] {
            wait_until("the key is known", || directory.find(key.key.as_bytes()).is_some());
            if is_loaded_again {
                place.execute("UPDATE store_state SET revision = revision - 1").await;
                wait_until("the load has begun", || directory.feed_status().facts().lost_histories == 1);
            }
            let start = Instant::now();
            let revoked = administration.revoke_key("test", &key.summary.id).await.unwrap();
            assert!(directory.find(key.key.as_bytes()).is_none());
            assert!(start.elapsed() < Duration::from_secs(1), "it took {:?}", start.elapsed());
            println!(
                "a revocation takes {:?}, {:?}; during a load: {is_loaded_again}",
                start.elapsed(),
                revoked.effect
            );
        }
    });
}

/// Whether the time of a lookup tells how much of a guess is right: guesses that differ from a key only at their end, and others.
#[allow(clippy::print_stdout, reason = "the result of a measurement")]
fn compare_guesses(directory: &Directory, key: &str) {
    const ROUNDS: usize = 2_000;
    const GUESSES: usize = 100;
    let ending = |number: usize| format!("{number:02x}");
    let near: Vec<String> = (0..GUESSES).map(|number| format!("{}{}", &key[..30], ending(number))).collect();
    let far: Vec<String> = near.iter().map(|guess| guess.chars().rev().collect()).collect();
    let time = |guesses: &[String]| {
        let start = Instant::now();
        let found = guesses.iter().filter(|guess| directory.find(guess.as_bytes()).is_some()).count();
        (start.elapsed().as_nanos() / GUESSES as u128, found)
    };
    let (mut near_ns, mut far_ns) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        near_ns.push(time(&near).0);
        far_ns.push(time(&far).0);
    }
    let median = |times: &mut Vec<u128>| {
        times.sort_unstable();
        times[ROUNDS / 2]
    };
    println!(
        "{} ns per guess that shares 30 of 32 characters with a key, {} ns per other guess (medians)",
        median(&mut near_ns),
        median(&mut far_ns)
    );
}

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = status.split_whitespace().nth(1).unwrap().parse().unwrap();
    pages * 4_096
}
