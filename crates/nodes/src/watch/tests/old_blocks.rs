//! The old blocks and states of nodes are found out.

use serde_json::json;

use super::*;
use crate::node::{HistoryKind, HistoryReach};

#[tokio::test(start_paused = true)]
async fn the_lowest_state_is_found_and_moves_along_where_a_node_prunes() {
    let mut story = Story::of(3, 1_000);
    story.nodes[0].script.lock().lowest_state = 873;
    story.start();
    story.view.ready().await;
    sleep(10 * SECOND).await;
    assert_eq!(story.nodes[0].noted.lock().lowest_state, Some(873));
    assert_eq!(story.nodes[1].noted.lock().lowest_state, Some(0));
    let head = story.grow(10);
    story.all_have(head);
    sleep(5 * SECOND).await;
    assert_eq!(story.nodes[0].noted.lock().lowest_state, Some(883));
}

/// Besu returns zero for states that it has dropped. Where most blocks are empty, it was taken to have all of them.
#[tokio::test(start_paused = true)]
async fn the_lowest_state_is_found_where_blocks_are_empty_and_what_was_dropped_is_zero() {
    let mut story = Story::of(3, 2);
    story.tip = story.world.send(story.tip);
    let head = story.grow(997);
    story.all_have(head);
    for node in &story.nodes {
        let mut script = node.script.lock();
        (script.sent_in, script.state_error) = (Some(3), None);
    }
    story.nodes[0].script.lock().lowest_state = 873;
    story.start();
    story.view.ready().await;
    sleep(10 * SECOND).await;
    assert_eq!(story.nodes[0].noted.lock().lowest_state, Some(873));
    assert_eq!(story.nodes[1].noted.lock().lowest_state, Some(0));
}

/// Nodes were taken to have everything, and what they had dropped to exist nowhere.
#[tokio::test(start_paused = true)]
async fn what_nodes_have_of_old_blocks_is_found_out() {
    let story = Story::of(3, 100);
    story.nodes[0].set_mood(Behaviour::Forgetful);
    story.start();
    story.view.ready().await;
    sleep(10 * SECOND).await;
    let reach = |node: usize, kind| story.nodes[node].noted.lock().history.map(|history| history.of(kind));
    assert_eq!(reach(0, HistoryKind::Blocks), Some(HistoryReach::From(100)));
    assert_eq!(reach(1, HistoryKind::Blocks), Some(HistoryReach::Whole));
    assert_eq!(reach(1, HistoryKind::Transactions), Some(HistoryReach::Unknown), "there are none");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_states_its_history_is_believed() {
    let story = Story::of(3, 100);
    let stated = json!({
        "tx": {"disabled": false, "oldestBlock": "0x14"},
        "receipts": {"disabled": true},
        "blocks": {"disabled": false, "oldestBlock": "0x0"},
    });
    story.nodes[0].script.lock().capabilities = Some(stated);
    story.start();
    story.view.ready().await;
    sleep(10 * SECOND).await;
    let reach = |kind| story.nodes[0].noted.lock().history.map(|history| history.of(kind));
    assert_eq!(reach(HistoryKind::Transactions), Some(HistoryReach::From(20)));
    assert_eq!(reach(HistoryKind::Receipts), Some(HistoryReach::From(100)), "it has those of no old block");
    assert_eq!(reach(HistoryKind::Blocks), Some(HistoryReach::Whole));
}

/// A search that had failed was repeated after fifteen seconds, and until then nothing that the node did not find counted.
#[tokio::test(start_paused = true)]
async fn a_node_that_is_back_is_looked_at_at_once() {
    let story = Story::of(3, 100);
    story.start();
    story.view.ready().await;
    sleep(10 * SECOND).await;
    let known = |story: &Story| {
        let noted = story.nodes[0].noted.lock();
        (noted.history.is_some(), noted.lowest_state)
    };
    assert_eq!(known(&story), (true, Some(0)));
    story.nodes[0].set_mood(Behaviour::Dead);
    sleep(20 * SECOND).await;
    assert_eq!(known(&story), (false, None), "another node may be back");
    story.nodes[0].set_mood(Behaviour::Well);
    // Its watcher waits longer and longer before it asks a node again that is away.
    while story.nodes[0].noted.lock().is_lost {
        sleep(SECOND / 10).await;
    }
    sleep(2 * SECOND).await;
    assert_eq!(known(&story), (true, Some(0)));
}

/// A node that wanted fewer calls for a moment was believed to have no old states for ten minutes.
#[tokio::test(start_paused = true)]
async fn a_node_in_trouble_says_nothing_about_its_states() {
    let story = Story::of(3, 1_000);
    {
        let mut script = story.nodes[0].script.lock();
        (script.lowest_state, script.state_error) = (873, Some("Too many requests"));
    }
    story.start();
    story.view.ready().await;
    sleep(SECOND).await;
    assert_eq!(story.nodes[0].noted.lock().lowest_state, None, "nothing was learned");
    story.nodes[0].script.lock().lowest_state = 0;
    sleep(20 * SECOND).await;
    assert_eq!(story.nodes[0].noted.lock().lowest_state, Some(0));
}
