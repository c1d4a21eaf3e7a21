//! The program is killed again and again, at random moments, without a chance to clean up. Each time the archive is
//! at a whole block, everything that it answers is true, and the next import goes on from there.
//!
//! `CHAINGATE_KILLS` says how many times; 50 by default.

use super::program::Workplace;
use rand::{Rng, SeedableRng, rngs::StdRng};
use std::{
    os::unix::process::ExitStatusExt,
    process::Child,
    thread,
    time::{Duration, Instant},
};

/// SIGKILL.
const KILL: i32 = 9;

/// An import is killed about this often before it is through, and less often where it starts slowly.
const KILLS_PER_IMPORT: u32 = 8;

#[test]
fn an_import_killed_at_any_moment_goes_on_from_a_whole_block() {
    let mut place = Workplace::new(20, 2);
    let mut rng = StdRng::seed_from_u64(rand::rng().random());
    let mut seen = Seen::default();
    let whole = duration_of_whole_import(&place);
    while seen.kills < wanted_kills() {
        place.start_over();
        kill_until_through(&place, whole, &mut rng, &mut seen);
    }
    eprintln!("{seen:?}, a whole import takes {whole:?}");
    assert!(seen.in_the_middle * 2 > seen.kills, "most kills must hit in the middle: {seen:?}");
    assert!(seen.after_progress * 4 > seen.kills, "imports must get on between the kills: {seen:?}");
    assert!(seen.finished > 0, "an import must come through in the end: {seen:?}");
}

/// Counts of the states in which kills met imports.
#[derive(Debug, Default)]
struct Seen {
    /// Imports that were alive when they were killed.
    kills: u32,
    /// Of these, how many left an archive between its genesis and its last block.
    in_the_middle: u32,
    /// Of these, how many had committed blocks since the kill before.
    after_progress: u32,
    /// Imports that ran to their end.
    finished: u32,
}

fn wanted_kills() -> u32 {
    std::env::var("CHAINGATE_KILLS").map_or(50, |kills| kills.parse().unwrap())
}

fn duration_of_whole_import(place: &Workplace) -> Duration {
    let start = Instant::now();
    place.import_all().assert_succeeded();
    place.assert_holds(place.truth.model.head());
    start.elapsed()
}

/// Imports a chain from its beginning to its end, with kills in between.
fn kill_until_through(place: &Workplace, whole: Duration, rng: &mut StdRng, seen: &mut Seen) {
    let end = place.truth.model.head();
    let (mut longest, mut head_before) = (whole * 2 / KILLS_PER_IMPORT, 0);
    while seen.kills < wanted_kills() {
        let child = place.start_import_of_all();
        thread::sleep(rng.random_range(Duration::ZERO..longest));
        if !killed(child) {
            break;
        }
        let head = head_after_kill(place, rng);
        assert!(head >= head_before, "{head} after {head_before}: committed blocks are gone");
        seen.kills += 1;
        seen.in_the_middle += u32::from(head > 0 && head < end);
        seen.after_progress += u32::from(head > head_before);
        // On a busy machine an import may need longer than `longest` to commit its first block.
        if head == head_before {
            longest *= 2;
        }
        head_before = head;
    }
    place.import_all().assert_succeeded();
    place.assert_holds(end);
    seen.finished += 1;
}

/// Kills the child. Returns whether it was still alive; otherwise it must have succeeded.
fn killed(mut child: Child) -> bool {
    child.kill().unwrap();
    let status = child.wait().unwrap();
    if status.signal() == Some(KILL) {
        return true;
    }
    assert!(status.success(), "{status}");
    false
}

/// Checks the archive that a kill left, and returns its head: a whole block with all its data, or 0 without an archive.
fn head_after_kill(place: &Workplace, rng: &mut StdRng) -> u64 {
    if !place.data_dir().join(archive::ARCHIVE_FILE).exists() {
        return 0;
    }
    let (_archive, snapshot) = place.open();
    let some_block = rng.random_range(0..=snapshot.head());
    place.truth.check_sample(&snapshot, [some_block]).unwrap();
    snapshot.head()
}
