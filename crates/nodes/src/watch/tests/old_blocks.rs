//! What is found out about the old blocks and states of nodes.

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
        (script.lowest_state, script.state_error) = (873, "Too many requests");
    }
    story.start();
    story.view.ready().await;
    sleep(SECOND).await;
    assert_eq!(story.nodes[0].noted.lock().lowest_state, None, "nothing was learned");
    story.nodes[0].script.lock().lowest_state = 0;
    sleep(20 * SECOND).await;
    assert_eq!(story.nodes[0].noted.lock().lowest_state, Some(0));
}
