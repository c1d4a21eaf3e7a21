//! Ctrl-C: the import stops after the block in hand, says so, exits as shells expect it, and can go on.

use super::program::{Ended, Workplace};
use std::{
    process::{Child, Command},
    thread,
    time::Duration,
};

#[test]
fn ctrl_c_stops_after_the_block_in_hand_and_the_import_can_go_on() {
    let mut place = Workplace::new(12, 2);
    let (stopped, head) = interrupted(&mut place);
    assert!(stopped.stderr.contains("Stopping after the block in hand …"), "{stopped:?}");
    assert!(stopped.stderr.contains(&format!("The head is block {head}, ")), "{stopped:?}");
    assert!(stopped.stderr.ends_with("Stopped. Run the same command again to go on.\n"), "{stopped:?}");
    place.assert_holds(head);
    place.import_all().assert_succeeded();
    place.assert_holds(place.truth.model.head());
}

/// An import that was interrupted in the middle, and where it stopped. One that was too fast is tried again.
fn interrupted(place: &mut Workplace) -> (Ended, u64) {
    for _ in 0..20 {
        let child = place.start_import_of_all();
        while !place.data_dir().join(archive::ARCHIVE_FILE).exists() {
            thread::sleep(Duration::from_millis(1));
        }
        interrupt(&child);
        let ended = Ended::from(child.wait_with_output().unwrap());
        let head = place.head();
        if ended.code == Some(130) && head < place.truth.model.head() {
            return (ended, head);
        }
        assert!(matches!(ended.code, Some(0 | 130)), "{ended:?}");
        place.start_over();
    }
    panic!("every import was through before it could be interrupted");
}

fn interrupt(child: &Child) {
    let sent = Command::new("sh").args(["-c", &format!("kill -INT {}", child.id())]).status().unwrap();
    assert!(sent.success());
}
