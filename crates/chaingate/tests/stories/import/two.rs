//! Two at once: an archive belongs to one process at a time, from the moment at which it begins to be made.

use super::program::{Ended, Workplace};
use archive::Archive;

#[test]
fn an_archive_that_another_process_has_open_is_in_use() {
    let place = Workplace::small();
    let archive = Archive::open_or_create(&place.data_dir(), &place.truth.model.genesis_json()).unwrap();
    let second = place.import_all();
    second.assert_failed_with(&["archive.redb is in use by another process; stop that one first"]);
    drop(archive);
    place.import_all().assert_succeeded();
    place.assert_holds(place.truth.model.head());
}

/// The moment at which there is no archive yet is the one at which two processes could get in each other's way.
#[test]
fn two_imports_that_start_together_make_one_archive() {
    let mut place = Workplace::small();
    for _ in 0..15 {
        place.start_over();
        let both = [(); 2].map(|()| place.start_import_of_all());
        let both = both.map(|child| Ended::from(child.wait_with_output().unwrap()));
        let through = both.iter().filter(|ended| ended.code == Some(0)).count();
        assert!(through > 0, "nobody came through: {both:?}");
        for ended in both.iter().filter(|ended| ended.code != Some(0)) {
            ended.assert_failed_with(&["is in use by another process; stop that one first"]);
        }
        place.assert_holds(place.truth.model.head());
    }
}
