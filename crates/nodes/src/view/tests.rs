//! The view by itself: what is shown to it, and what it makes of that.

mod land;
mod mixes;

use land::{Land, SALT_A, SALT_B};
use tokio::time::{Duration, advance};

use super::*;

/// A pool of three whose nodes all have the block `height` of a plain chain.
fn agreed(height: u64) -> (Arc<NodesView>, Land, B256) {
    let view = NodesView::new(ViewSettings::default());
    let mut land = Land::new();
    view.set_nodes(&NodeId::first(3));
    let tip = land.grow(land.genesis, height, SALT_A);
    (0..3).for_each(|node| land.show(&view, node, tip));
    (view, land, tip)
}

fn id(node: usize) -> NodeId {
    NodeId::new(u32::try_from(node).expect("there are few nodes"))
}

fn head(view: &NodesView) -> BlockId {
    view.head().expect("there is a head")
}

#[tokio::test(start_paused = true)]
async fn one_of_one_is_a_quorum() {
    let view = NodesView::new(ViewSettings::default());
    let mut land = Land::new();
    view.set_nodes(&NodeId::first(1));
    assert!(view.canonical_chain().is_none() && view.is_stale());
    let tip = land.grow(land.genesis, 3, SALT_A);
    land.show(&view, 0, tip);
    assert_eq!(head(&view).hash, tip);
    assert_eq!(view.ready().await.lowest(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_first_to_answer_does_not_decide_alone() {
    let view = NodesView::new(ViewSettings::default());
    let mut land = Land::new();
    view.set_nodes(&NodeId::first(3));
    let tip = land.grow(land.genesis, 3, SALT_A);
    land.show(&view, 0, tip);
    assert_eq!(view.head(), None);
    land.show(&view, 2, tip);
    assert_eq!(head(&view).hash, tip);
}

#[tokio::test(start_paused = true)]
async fn a_node_ahead_moves_nothing_and_two_move_the_head() {
    let (view, mut land, tip) = agreed(10);
    let ahead = land.grow(tip, 5, SALT_A);
    land.show(&view, 0, ahead);
    assert_eq!(head(&view).hash, tip);
    let one_more = land.grow(tip, 1, SALT_A);
    land.show(&view, 1, one_more);
    assert_eq!(head(&view).hash, one_more, "both have it: one as its head, one below its head");
}

#[tokio::test(start_paused = true)]
async fn a_head_without_linked_parents_votes_for_nothing() {
    let (view, mut land, tip) = agreed(10);
    let far = land.grow(tip, 300, SALT_A);
    let branch = HeadBranch::new(land.block(far));
    assert!(matches!(view.report(id(0), branch.clone()), BranchLink::Missing(_)));
    assert!(matches!(view.report(id(1), branch), BranchLink::Missing(_)));
    assert_eq!(head(&view).hash, tip);
}

#[tokio::test(start_paused = true)]
async fn numbers_that_do_not_follow_each_other_break_a_branch() {
    let (view, mut land, tip) = agreed(10);
    let next = land.grow(tip, 1, SALT_A);
    let mut block = land.block(next);
    block.id.number += 7;
    assert_eq!(view.report(id(0), HeadBranch::new(block)), BranchLink::Broken);
}

#[tokio::test(start_paused = true)]
async fn another_block_0_breaks_a_branch() {
    let (view, land, _) = agreed(10);
    view.set_identity(1, Some(land.genesis));
    let mut other = Land::with_genesis(B256::repeat_byte(0xee));
    let tip = other.grow(other.genesis, 5, SALT_A);
    assert_eq!(other.bring(&view, 0, tip), BranchLink::Broken);
    assert_eq!(
        view.canonical_chain().and_then(|canonical| canonical.by_number(0)).map(|id| id.hash),
        Some(land.genesis)
    );
}

#[tokio::test(start_paused = true)]
async fn the_head_stays_when_nodes_fall_back_for_a_moment_or_die() {
    let (view, land, tip) = agreed(20);
    let below = land.ancestor(tip, 5);
    (0..3).for_each(|node| land.show(&view, node, below));
    assert_eq!(head(&view).hash, tip);
    (0..2).for_each(|node| land.show(&view, node, tip));
    advance(Duration::from_secs(100)).await;
    view.record_poll(id(2), 0);
    assert_eq!(head(&view).hash, tip, "one of three is still below");
    (0..3).for_each(|node| view.set_counted(id(node), false));
    assert_eq!(head(&view).hash, tip);
}

/// `evm_revert` removes the newest blocks. They were served for as long as no other block had their numbers.
#[tokio::test(start_paused = true)]
async fn a_quorum_that_stays_at_an_older_block_is_followed() {
    let (view, mut land, tip) = agreed(20);
    let below = land.ancestor(tip, 5);
    (0..2).for_each(|node| land.show(&view, node, below));
    advance(Duration::from_secs(23)).await;
    view.record_poll(id(0), 0);
    assert_eq!(head(&view).hash, tip, "two block times are 24 s");
    advance(Duration::from_secs(2)).await;
    view.record_poll(id(0), 0);
    assert_eq!(head(&view).hash, below);
    let chain = view.canonical_chain().unwrap();
    assert_eq!((chain.by_hash(&tip), chain.side_block(&tip).map(|block| block.hash)), (None, Some(tip)));
    assert_eq!((chain.by_number(16), view.reorganisations().0), (None, 1));
    view.record_poll(id(2), 0);
    assert_eq!(head(&view).hash, below, "the node that still has the removed blocks is alone");
    let next = land.grow(below, 1, SALT_B);
    (0..2).for_each(|node| land.show(&view, node, next));
    assert_eq!(head(&view).hash, next);
}

/// Nodes that catch up have an older block for a long time, but another one each time.
#[tokio::test(start_paused = true)]
async fn nodes_that_catch_up_are_not_taken_for_nodes_that_went_back() {
    let (view, land, tip) = agreed(20);
    for behind in (1..10).rev() {
        let below = land.ancestor(tip, behind);
        (0..3).for_each(|node| land.show(&view, node, below));
        advance(Duration::from_secs(20)).await;
        view.record_poll(id(0), 0);
        assert_eq!(head(&view).hash, tip);
    }
}

/// The quorum was one of the nodes that were up. Two liars of five moved the head to their fork once the honest ones were dead.
#[tokio::test(start_paused = true)]
async fn the_quorum_does_not_shrink_when_nodes_are_down() {
    let view = NodesView::new(ViewSettings::default());
    let mut land = Land::new();
    view.set_nodes(&NodeId::first(5));
    let tip = land.grow(land.genesis, 50, SALT_A);
    (0..5).for_each(|node| land.show(&view, node, tip));
    (0..3).for_each(|node| view.set_counted(id(node), false));
    let fork = land.grow(land.ancestor(tip, 3), 9, SALT_B);
    (3..5).for_each(|node| land.show(&view, node, fork));
    assert_eq!(head(&view).hash, tip);
    let next = land.grow(tip, 1, SALT_A);
    land.show(&view, 0, next);
    view.set_counted(id(0), true);
    (3..5).for_each(|node| land.show(&view, node, next));
    assert_eq!(head(&view).hash, next, "three are a quorum again");
}

/// With a quorum of one the operator prefers being served to being sure.
#[tokio::test(start_paused = true)]
async fn with_a_quorum_of_one_dead_nodes_delay_nothing() {
    let view = NodesView::new(ViewSettings { quorum: Some(1), ..ViewSettings::default() });
    let mut land = Land::new();
    view.set_nodes(&NodeId::first(3));
    let tip = land.grow(land.genesis, 10, SALT_A);
    (0..3).for_each(|node| land.show(&view, node, tip));
    let ahead = land.grow(tip, 5, SALT_A);
    land.show(&view, 0, ahead);
    assert_eq!(head(&view).hash, ahead);
    view.set_counted(id(0), false);
    let other = land.grow(tip, 6, SALT_B);
    land.show(&view, 1, other);
    assert_eq!(head(&view).hash, other);
}

#[tokio::test(start_paused = true)]
async fn a_block_that_was_reorganised_away_stays_known_as_a_side_block() {
    let (view, mut land, tip) = agreed(10);
    let common = land.ancestor(tip, 2);
    let lost = BlockId { number: 10, hash: tip };
    let before = view.canonical_chain().unwrap();
    let other = land.grow(common, 3, SALT_B);
    (0..3).for_each(|node| land.show(&view, node, other));
    let canonical = view.canonical_chain().unwrap();
    assert_eq!((head(&view).hash, canonical.by_hash(&tip)), (other, None));
    assert_eq!(canonical.side_block(&tip), Some(lost));
    assert_eq!(canonical.side_block(&common), None, "it is on both branches");
    assert_eq!((before.by_hash(&tip), before.side_block(&tip)), (Some(lost), None), "it was canonical then");
    let back = land.grow(tip, 9, SALT_A);
    (0..3).for_each(|node| land.show(&view, node, back));
    let canonical = view.canonical_chain().unwrap();
    assert_eq!((canonical.by_hash(&tip), canonical.side_block(&tip)), (Some(lost), None));
    assert!(canonical.side_block(&other).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_chain_at_zero_is_served() {
    let view = NodesView::new(ViewSettings::default());
    let mut land = Land::new();
    view.set_nodes(&NodeId::first(2));
    (0..2).for_each(|node| land.show(&view, node, land.genesis));
    assert_eq!(head(&view).number, 0);
    let tip = land.grow(land.genesis, 9, SALT_A);
    (0..2).for_each(|node| land.show(&view, node, tip));
    assert_eq!(head(&view).hash, tip);
}

/// A node that had stood still for long was not waited for, and the other one of two decided alone.
#[tokio::test(start_paused = true)]
async fn a_stuck_node_of_two_holds_the_head() {
    let view = NodesView::new(ViewSettings {
        stale_after: Some(Duration::from_secs(30)),
        ..ViewSettings::default()
    });
    let mut land = Land::new();
    view.set_nodes(&NodeId::first(2));
    let tip = land.grow(land.genesis, 5, SALT_A);
    (0..2).for_each(|node| land.show(&view, node, tip));
    advance(Duration::from_secs(31)).await;
    let next = land.grow(tip, 1, SALT_A);
    land.show(&view, 0, next);
    assert_eq!(head(&view).hash, tip);
    assert!(view.is_stale());
}

/// Found by the mixes: after a long rest the first honest node with the next block was left alone with those who lie.
#[tokio::test(start_paused = true)]
async fn the_first_with_a_block_after_a_rest_is_not_left_alone() {
    let view = NodesView::new(ViewSettings::default());
    let mut land = Land::new();
    view.set_nodes(&NodeId::first(5));
    let tip = land.grow(land.genesis, 50, SALT_A);
    (0..5).for_each(|node| land.show(&view, node, tip));
    let lie = land.grow(tip, 9, SALT_B);
    (3..5).for_each(|node| land.show(&view, node, lie));
    advance(Duration::from_secs(1_000)).await;
    let next = land.grow(tip, 1, SALT_A);
    land.show(&view, 0, next);
    assert_eq!(head(&view).hash, tip);
}

#[tokio::test(start_paused = true)]
async fn who_runs_ahead_of_a_resting_majority_is_doubted() {
    let (view, mut land, tip) = agreed(10);
    let mut ahead = tip;
    for _ in 0..50 {
        advance(Duration::from_secs(60)).await;
        ahead = land.grow(ahead, 1, SALT_B);
        land.show(&view, 2, ahead);
        assert_eq!(head(&view).hash, tip);
    }
}

#[tokio::test(start_paused = true)]
async fn reorganisations_of_every_depth_up_to_the_window_keep_the_epoch() {
    for depth in [1, 2, 7, 64, 200] {
        let (view, mut land, tip) = agreed(300);
        let before = view.canonical_chain().expect("there is a head");
        let fork = land.ancestor(tip, depth);
        let other = land.grow(fork, depth, SALT_B);
        land.show(&view, 0, other);
        assert_eq!(head(&view).hash, tip, "one node alone reorganises nothing");
        land.show(&view, 1, other);
        let after = view.canonical_chain().expect("there is a head");
        assert_eq!((after.head().hash, after.epoch()), (other, before.epoch()), "depth {depth}");
        assert_eq!(after.by_number(300 - depth + 1).map(|id| id.hash), Some(land.ancestor(other, depth - 1)));
        assert_eq!(after.by_hash(&tip), None, "what hung on the old branch is gone");
        assert_eq!(after.by_number(300 - depth), before.by_number(300 - depth));
        assert_eq!(before.head().hash, tip, "who holds the old picture still sees one chain");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reorganisation_deeper_than_the_window_starts_an_epoch() {
    let (view, mut land, tip) = agreed(700);
    let before = view.canonical_chain().expect("there is a head");
    before.add_linked_block(BlockId { number: 100, hash: land.ancestor(tip, 600) });
    assert!(view.canonical_chain().is_some_and(|canonical| canonical.by_number(100).is_some()));
    let other = land.grow(land.ancestor(tip, 300), 300, SALT_B);
    (0..2).for_each(|node| land.show(&view, node, other));
    let after = view.canonical_chain().expect("there is a head");
    assert_eq!((after.head().hash, after.epoch()), (other, before.epoch() + 1));
    assert_eq!((after.by_number(100), after.lowest()), (None, 700 - WINDOW_BLOCKS as u64 + 1));
    before.add_linked_block(BlockId { number: 101, hash: land.ancestor(tip, 599) });
    assert_eq!(after.by_number(101), None, "what is learned late belongs to the old epoch");
}

#[tokio::test(start_paused = true)]
async fn a_majority_that_falls_back_very_far_does_not_take_the_head_along() {
    let (view, land, tip) = agreed(700);
    (0..3).for_each(|node| land.show(&view, node, land.ancestor(tip, 600)));
    assert_eq!(head(&view).hash, tip);
}

/// `evm_revert` over more blocks than the window has was never followed.
#[tokio::test(start_paused = true)]
async fn development_nodes_are_followed_however_far_they_go_back() {
    let (view, mut land, tip) = agreed(700);
    (0..3).for_each(|node| view.set_mines_on_demand(id(node), true));
    let before = view.canonical_chain().expect("there is a head");
    let below = land.ancestor(tip, 600);
    (0..2).for_each(|node| land.show(&view, node, below));
    assert_eq!(head(&view).hash, tip);
    advance(Duration::from_secs(30)).await;
    view.record_poll(id(0), 0);
    let after = view.canonical_chain().expect("there is a head");
    assert_eq!((after.head().hash, after.epoch()), (below, before.epoch() + 1));
    assert_eq!((after.by_hash(&tip), after.by_number(101)), (None, None));
    let next = land.grow(below, 1, SALT_B);
    (0..2).for_each(|node| land.show(&view, node, next));
    assert_eq!(head(&view).hash, next);
}

#[tokio::test(start_paused = true)]
async fn the_window_moves_along_and_what_leaves_it_stays_known() {
    let (view, mut land, mut tip) = agreed(300);
    for _ in 0..2_000 {
        tip = land.grow(tip, 1, SALT_A);
        (0..3).for_each(|node| land.show(&view, node, tip));
    }
    let canonical = view.canonical_chain().expect("there is a head");
    assert_eq!(
        (canonical.head().number, canonical.lowest(), canonical.window().len()),
        (2_300, 2_045, WINDOW_BLOCKS)
    );
    let mut hash = tip;
    for number in (45..=2_300).rev() {
        assert_eq!(canonical.by_number(number), Some(BlockId { number, hash }));
        assert_eq!(canonical.by_hash(&hash), Some(BlockId { number, hash }));
        hash = land.ancestor(hash, 1);
    }
    assert_eq!((canonical.by_number(44), canonical.by_number(2_301)), (None, None));
    assert!(view.state.lock().tree.len() <= WINDOW_BLOCKS * 5);
}

#[tokio::test(start_paused = true)]
async fn transactions_of_the_window_are_known_until_they_are_reorganised_away() {
    let (view, mut land, tip) = agreed(10);
    let transaction = land.block(tip).reported.transactions()[0];
    assert_eq!(
        view.canonical_chain().unwrap().contains_transaction(&transaction).map(|id| id.hash),
        Some(tip)
    );
    let other = land.grow(land.ancestor(tip, 1), 1, SALT_B);
    (0..2).for_each(|node| land.show(&view, node, other));
    assert_eq!(view.canonical_chain().unwrap().contains_transaction(&transaction), None);
}

/// A block with another list of transactions beside its true header.
fn tampered(land: &Land, hash: B256) -> HeadBranch {
    let lists = BlockLists::new(vec![B256::repeat_byte(0xee)], Vec::new());
    HeadBranch::new(SeenBlock { reported: Arc::new(lists), ..land.block(hash) })
}

/// The header proves no list, and the list of whoever showed a block first was held against all others: true receipts of
/// that block were refused, and the nodes that sent them were blamed.
#[tokio::test(start_paused = true)]
async fn a_list_counts_once_most_nodes_report_it_whoever_was_first() {
    let (view, mut land, tip) = agreed(10);
    let next = land.grow(tip, 1, SALT_A);
    let transaction = land.block(next).reported.transactions()[0];
    assert_eq!(view.report(id(0), tampered(&land, next)), BranchLink::Linked);
    land.show(&view, 1, next);
    let canonical = view.canonical_chain().unwrap();
    assert_eq!(canonical.head().hash, next, "two have the block");
    assert!(canonical.head_block().unwrap().lists().is_none(), "and do not agree on its list");
    assert_eq!(
        view.report(id(0), tampered(&land, next)),
        BranchLink::Linked,
        "the same node has no second vote"
    );
    assert!(canonical.head_block().unwrap().lists().is_none());
    land.show(&view, 2, next);
    assert_eq!(canonical.contains_transaction(&transaction).map(|id| id.hash), Some(next));
    assert_eq!(canonical.contains_transaction(&B256::repeat_byte(0xee)), None);
}

#[tokio::test(start_paused = true)]
async fn a_quorum_may_be_set() {
    let view = NodesView::new(ViewSettings { quorum: Some(3), ..ViewSettings::default() });
    let mut land = Land::new();
    view.set_nodes(&NodeId::first(3));
    let tip = land.grow(land.genesis, 3, SALT_A);
    land.show(&view, 0, tip);
    land.show(&view, 1, tip);
    assert_eq!(view.head(), None);
    view.set_counted(id(2), false);
    assert_eq!(view.head(), None, "a set quorum does not shrink");
    view.set_counted(id(2), true);
    land.show(&view, 2, tip);
    assert_eq!(head(&view).hash, tip);
}

#[tokio::test(start_paused = true)]
async fn a_head_that_stands_still_is_stale() {
    let (view, mut land, tip) = agreed(100);
    assert_eq!(view.block_time(), Some(Duration::from_secs(12)));
    advance(Duration::from_secs(119)).await;
    assert!(!view.is_stale());
    advance(Duration::from_secs(2)).await;
    assert!(view.is_stale());
    let next = land.grow(tip, 1, SALT_A);
    (0..2).for_each(|node| land.show(&view, node, next));
    assert!(!view.is_stale());
}

/// Behind anvil, `/ready` was 503 whenever nobody had mined for 30 s.
#[tokio::test(start_paused = true)]
async fn a_chain_that_mines_on_demand_may_stand_still() {
    let (view, ..) = agreed(100);
    (0..3).for_each(|node| view.set_mines_on_demand(id(node), true));
    advance(Duration::from_secs(10_000)).await;
    assert!(!view.is_stale());
    view.set_mines_on_demand(id(1), false);
    assert!(view.is_stale(), "one of the nodes expects blocks");
}

/// The genesis block of anvil is as old as its user likes. The nodes were then polled every 4 s.
#[tokio::test(start_paused = true)]
async fn a_pause_between_two_blocks_does_not_change_the_block_time() {
    let (view, mut land, tip) = agreed(8);
    land.pause(1_000_000);
    let next = land.grow(tip, 1, SALT_A);
    (0..3).for_each(|node| land.show(&view, node, next));
    assert_eq!(view.block_time(), Some(Duration::from_secs(12)));
}

#[tokio::test(start_paused = true)]
async fn marks_are_the_highest_that_a_quorum_has_on_this_chain() {
    let (view, mut land, tip) = agreed(100);
    let at = |land: &Land, number: u64| Some(land.id(land.ancestor(tip, 100 - number)));
    view.record_marks(id(0), at(&land, 90), at(&land, 60));
    assert_eq!(
        view.canonical_chain().map(|canonical| (canonical.safe(), canonical.finalized())),
        Some((None, None))
    );
    view.record_marks(id(1), at(&land, 80), at(&land, 50));
    let canonical = view.canonical_chain().expect("there is a head");
    assert_eq!((canonical.safe(), canonical.finalized()), (at(&land, 80), at(&land, 50)));
    let fork = land.grow(land.ancestor(tip, 50), 20, SALT_B);
    view.record_marks(id(2), Some(land.id(fork)), Some(land.id(fork)));
    assert_eq!(
        view.canonical_chain().and_then(|canonical| canonical.safe()),
        at(&land, 80),
        "another branch has no say"
    );
}

/// One of two nodes forged marks, and while the other one was away it was believed.
#[tokio::test(start_paused = true)]
async fn one_liar_of_two_moves_no_mark() {
    let view = NodesView::new(ViewSettings::default());
    let mut land = Land::new();
    view.set_nodes(&NodeId::first(2));
    let tip = land.grow(land.genesis, 100, SALT_A);
    (0..2).for_each(|node| land.show(&view, node, tip));
    let at = |number: u64| Some(land.id(land.ancestor(tip, 100 - number)));
    let marks =
        |view: &NodesView| view.canonical_chain().map(|canonical| (canonical.safe(), canonical.finalized()));
    (0..2).for_each(|node| view.record_marks(id(node), at(90), at(60)));
    for lie in [at(100), at(10), Some(BlockId { number: 95, hash: B256::repeat_byte(0xee) }), None] {
        view.record_marks(id(1), lie, lie);
        assert_eq!(marks(&view), Some((at(90), at(60))), "{lie:?}");
    }
    view.set_counted(id(0), false);
    view.record_marks(id(1), at(100), at(100));
    assert_eq!(marks(&view), Some((at(90), at(60))), "the other one is away");
}

#[tokio::test(start_paused = true)]
async fn a_mark_goes_backwards_only_when_most_nodes_say_so() {
    let (view, land, tip) = agreed(100);
    let at = |number: u64| Some(land.id(land.ancestor(tip, 100 - number)));
    let marks =
        |view: &NodesView| view.canonical_chain().map(|canonical| (canonical.safe(), canonical.finalized()));
    (0..2).for_each(|node| view.record_marks(id(node), at(90), at(60)));
    view.record_marks(id(2), at(70), at(40));
    view.set_counted(id(0), false);
    assert_eq!(marks(&view), Some((at(90), at(60))), "one of those who said so is away");
    view.set_counted(id(0), true);
    // Two of three had lied, and their marks stayed when they were honest again.
    let revisions = |view: &NodesView| view.canonical_chain().map(|canonical| canonical.revisions());
    let before = revisions(&view);
    view.record_marks(id(1), at(70), at(40));
    assert_eq!(marks(&view), Some((at(70), at(40))), "the other one lies still");
    let after = revisions(&view);
    assert!(after > before, "the nodes have changed their mind");
    (0..3).for_each(|node| view.record_marks(id(node), at(91), at(61)));
    assert_eq!((marks(&view), revisions(&view)), (Some((at(91), at(61))), after));
}

#[tokio::test(start_paused = true)]
async fn finalized_below_the_window_takes_equal_reports() {
    let (view, land, tip) = agreed(700);
    let at = |number: u64| Some(land.id(land.ancestor(tip, 700 - number)));
    view.record_marks(id(0), None, at(101));
    view.record_marks(id(1), None, at(100));
    assert_eq!(view.canonical_chain().and_then(|canonical| canonical.finalized()), None);
    view.record_marks(id(1), None, at(101));
    let canonical = view.canonical_chain().expect("there is a head");
    assert_eq!((canonical.finalized(), canonical.by_number(101)), (at(101), at(101)));
}

#[tokio::test(start_paused = true)]
async fn a_reorganisation_below_finalized_voids_it_until_a_quorum_has_a_new_one() {
    let (view, mut land, tip) = agreed(100);
    let old = land.id(land.ancestor(tip, 10));
    (0..3).for_each(|node| view.record_marks(id(node), None, Some(old)));
    let other = land.grow(land.ancestor(tip, 20), 25, SALT_B);
    (0..2).for_each(|node| land.show(&view, node, other));
    assert_eq!(view.canonical_chain().and_then(|canonical| canonical.finalized()), None);
    let new = Some(land.id(land.ancestor(other, 24)));
    (0..2).for_each(|node| view.record_marks(id(node), None, new));
    assert_eq!(view.canonical_chain().and_then(|canonical| canonical.finalized()), new);
}

/// The nodes showed a chain with another block in the place of the checkpoint after they had been looked at.
#[tokio::test(start_paused = true)]
async fn a_chain_without_the_checkpoint_is_refused_by_the_view() {
    let mut land = Land::new();
    let tip = land.grow(land.genesis, 100, SALT_A);
    let checkpoint = land.id(land.ancestor(tip, 5));
    let view = NodesView::new(ViewSettings { checkpoint: Some(checkpoint), ..ViewSettings::default() });
    view.set_nodes(&NodeId::first(3));
    let forged = land.grow(land.ancestor(tip, 9), 20, SALT_B);
    (0..3).for_each(|node| land.show(&view, node, forged));
    assert_eq!((view.head(), view.refused_head()), (None, Some(land.id(forged))));
    (0..3).for_each(|node| land.show(&view, node, tip));
    assert_eq!((head(&view).hash, view.refused_head()), (tip, None));
    (0..3).for_each(|node| land.show(&view, node, forged));
    assert_eq!((head(&view).hash, view.refused_head()), (tip, Some(land.id(forged))));
    let next = land.grow(tip, 1, SALT_A);
    (0..2).for_each(|node| land.show(&view, node, next));
    assert_eq!((head(&view).hash, view.refused_head()), (next, None));
}
