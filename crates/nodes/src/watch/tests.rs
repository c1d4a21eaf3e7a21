//! Watchers and the view together, with nodes of a small world, in stopped time.

use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::*;
use crate::call::Fault;
use crate::view::{ViewSettings, WINDOW_BLOCKS};

pub(crate) mod model;
mod old_blocks;
mod partners;

use model::{Behaviour, ModelNode, World};

const SECOND: Duration = Duration::from_secs(1);

struct Story {
    world: World,
    genesis: B256,
    tip: B256,
    nodes: Vec<Arc<ModelNode>>,
    view: Arc<NodesView>,
    settings: WatchSettings,
    supervisor: Supervisor,
}

impl Story {
    /// Nodes that all have one chain of this height.
    fn of(nodes: usize, height: u64) -> Self {
        let world = World::default();
        let genesis = world.genesis(0);
        let tip = world.grow(genesis, height, 1);
        let nodes = (0..nodes).map(|number| ModelNode::new(number, &world, tip)).collect();
        let settings = WatchSettings { poll_every: Some(SECOND), ..WatchSettings::default() };
        let (view, supervisor) = (NodesView::new(ViewSettings::default()), Supervisor::default());
        Self { world, genesis, tip, nodes, view, settings, supervisor }
    }

    fn start(&self) -> JoinHandle<()> {
        let (nodes, view, settings) = (self.nodes.clone(), Arc::clone(&self.view), self.settings.clone());
        let supervisor = self.supervisor.clone();
        let (_, nodes) = watch::channel(nodes);
        tokio::spawn(async move { run(nodes, view, settings, &supervisor).await })
    }

    /// Started, and with a head that all have.
    async fn told(nodes: usize, height: u64) -> Self {
        let story = Self::of(nodes, height);
        story.start();
        story.view.ready().await;
        sleep(3 * SECOND).await;
        story
    }

    /// Whether this task of the first node is down.
    fn is_down(&self, task: &str) -> bool {
        self.supervisor.why_down(&format!("{task} of node {}", self.nodes[0].name())).is_some()
    }

    fn grow(&mut self, blocks: u64) -> B256 {
        self.tip = self.world.grow(self.tip, blocks, 1);
        self.tip
    }

    fn all_have(&self, head: B256) {
        self.nodes.iter().for_each(|node| node.set_head(head));
    }

    fn head(&self) -> Option<B256> {
        self.view.head().map(|head| head.hash)
    }
}

#[tokio::test(start_paused = true)]
async fn the_window_is_filled_at_the_start_and_the_head_follows() {
    let mut story = Story::told(3, 1_000).await;
    let canonical = story.view.ready().await;
    assert_eq!((canonical.head().hash, canonical.lowest()), (story.tip, 1_001 - WINDOW_BLOCKS as u64));
    assert_eq!(canonical.genesis().map(|genesis| genesis.hash), Some(story.genesis));
    assert_eq!(canonical.by_number(900).map(|id| id.hash), Some(story.world.ancestor(story.tip, 100)));
    for _ in 0..10 {
        let head = story.grow(1);
        story.all_have(head);
        sleep(2 * SECOND).await;
        assert_eq!(story.head(), Some(head));
    }
    let noted = story.nodes[0].noted.lock();
    assert_eq!(noted.head.map(|head| head.hash), Some(story.tip));
    assert_eq!((noted.lowest_state, noted.faults.len()), (Some(0), 0));
}

#[tokio::test(start_paused = true)]
async fn one_node_that_is_false_in_any_way_moves_and_stops_nothing() {
    for mood in [
        Behaviour::Dead,
        Behaviour::Silent,
        Behaviour::Lying,
        Behaviour::Garbled,
        Behaviour::Syncing,
        Behaviour::Forgetful,
    ] {
        let mut story = Story::of(3, 50);
        story.nodes[1].set_mood(mood);
        story.start();
        story.view.ready().await;
        for _ in 0..5 {
            let head = story.grow(1);
            story.all_have(head);
            story.nodes[1].set_head(story.world.grow(head, 100, 9));
            sleep(10 * SECOND).await;
            assert_eq!(story.head(), Some(head), "{mood:?}");
        }
        story.nodes[1].set_mood(Behaviour::Well);
        let head = story.grow(1);
        story.all_have(head);
        sleep(20 * SECOND).await;
        assert_eq!(
            story.nodes[1].noted.lock().head.map(|head| head.hash),
            Some(head),
            "it is back after {mood:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_header_that_does_not_fit_its_hash_is_a_fault() {
    let story = Story::told(3, 50).await;
    story.nodes[2].set_mood(Behaviour::Lying);
    sleep(5 * SECOND).await;
    let noted = story.nodes[2].noted.lock();
    assert!(!noted.faults.is_empty() && noted.faults.iter().all(|fault| *fault == Fault::Wrong));
}

/// When every node had failed once, and with a single node that was its first bad header, headers were not checked any
/// more until the process ended.
#[tokio::test(start_paused = true)]
async fn bad_headers_never_switch_the_check_off() {
    for nodes in [1, 3] {
        let story = Story::of(nodes, 50);
        story.nodes.iter().for_each(|node| node.set_mood(Behaviour::Lying));
        story.start();
        sleep(60 * SECOND).await;
        assert_eq!(story.head(), None, "{nodes} nodes that send bad headers have shown no block");
        story.nodes.iter().for_each(|node| node.set_mood(Behaviour::Well));
        assert_eq!(story.view.ready().await.head().hash, story.tip);
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_of_another_chain_is_left_out_and_looked_at_again() {
    let story = Story::of(3, 50);
    story.nodes[0].script.lock().chain_id = 5;
    story.start();
    assert_eq!(story.view.ready().await.head().hash, story.tip);
    let other = ExclusionReason::OtherChain { theirs: 5, ours: 1 };
    assert_eq!(story.nodes[0].noted.lock().exclusion, Some(other));
    story.nodes[0].script.lock().chain_id = 1;
    sleep(10 * SECOND).await;
    assert_eq!(story.nodes[0].noted.lock().exclusion, None);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_becomes_one_of_another_chain_is_found_out() {
    let story = Story::told(3, 50).await;
    let foreign = story.world.grow(story.world.genesis(7), 60, 1);
    story.nodes[2].set_head(foreign);
    sleep(70 * SECOND).await;
    assert!(matches!(story.nodes[2].noted.lock().exclusion, Some(ExclusionReason::OtherGenesis { .. })));
    assert_eq!(story.head(), Some(story.tip));
}

/// A node that showed a long chain of another genesis was used until it was asked for its identity again, a minute later.
#[tokio::test(start_paused = true)]
async fn a_node_whose_head_is_not_linked_to_the_others_is_asked_for_its_chain_at_once() {
    let story = Story::told(3, 50).await;
    let foreign = story.world.grow(story.world.genesis(7), 1_000, 1);
    story.nodes[2].set_head(foreign);
    sleep(10 * SECOND).await;
    assert!(matches!(story.nodes[2].noted.lock().exclusion, Some(ExclusionReason::OtherGenesis { .. })));
    assert_eq!(story.head(), Some(story.tip));
}

#[tokio::test(start_paused = true)]
async fn nodes_that_do_not_agree_on_a_chain_serve_nothing() {
    let story = Story::of(2, 50);
    story.nodes[0].script.lock().chain_id = 5;
    story.start();
    sleep(12 * SECOND).await;
    assert_eq!(story.head(), None);
    let exclusion = story.nodes[1].noted.lock().exclusion.clone();
    assert!(
        matches!(exclusion, Some(ExclusionReason::Undecided { nodes }) if nodes.contains("5") && nodes.contains("1"))
    );
    // As soon as they agree.
    story.nodes[0].script.lock().chain_id = 1;
    sleep(12 * SECOND).await;
    assert_eq!(story.head(), Some(story.tip));
}

/// Liars that were up first settled the chain for good, and the honest nodes were left out when they came.
/// One liar of three kept all nodes out for as long as one honest node did not say what its block 0 is.
#[tokio::test(start_paused = true)]
async fn a_false_block_0_beside_a_node_without_one_is_no_outage() {
    for (errors, is_known) in [(1, true), (u32::MAX, false)] {
        let mut story = Story::of(3, 20);
        let false_tip = story.world.grow(story.world.genesis(9), 20, 9);
        story.nodes[0] = ModelNode::new(0, &story.world, false_tip);
        story.nodes[1].script.lock().genesis_errors = errors;
        story.start();
        sleep(20 * SECOND).await;
        let canonical = story.view.ready().await;
        assert_eq!(canonical.head().hash, story.tip);
        let genesis = canonical.genesis().map(|genesis| genesis.hash);
        assert_eq!(genesis, is_known.then_some(story.genesis), "{errors} errors");
    }
}

#[tokio::test(start_paused = true)]
async fn liars_that_are_up_first_settle_nothing() {
    for (nodes, liars) in [(3, 1), (5, 2)] {
        let story = Story::of(nodes, 50);
        let foreign = story.world.grow(story.world.genesis(7), 60, 1);
        let (lying, honest) = story.nodes.split_at(liars);
        lying.iter().for_each(|node| node.set_head(foreign));
        honest.iter().for_each(|node| node.set_mood(Behaviour::Dead));
        story.start();
        sleep(75 * SECOND).await;
        assert_eq!(story.head(), None);
        let exclusion = lying[0].noted.lock().exclusion.clone();
        assert_eq!(exclusion, Some(ExclusionReason::TooFew { answered: liars, quorum: nodes / 2 + 1 }));
        honest.iter().for_each(|node| node.set_mood(Behaviour::Well));
        sleep(30 * SECOND).await;
        assert_eq!(story.head(), Some(story.tip));
        assert!(matches!(lying[0].noted.lock().exclusion, Some(ExclusionReason::OtherGenesis { .. })));
    }
}

/// All nodes of a test network began anew. What was settled before stayed, and nothing was served until a restart.
#[tokio::test(start_paused = true)]
async fn a_majority_that_is_of_another_chain_now_is_followed() {
    let story = Story::told(3, 50).await;
    let before = story.view.ready().await;
    let other = story.world.grow(story.world.genesis(7), 20, 1);
    story.nodes[0].set_head(other);
    sleep(90 * SECOND).await;
    assert_eq!(story.head(), Some(story.tip), "one node alone is left out");
    story.nodes[1].set_head(other);
    sleep(90 * SECOND).await;
    let after = story.view.ready().await;
    assert_eq!((after.head().hash, after.by_hash(&story.tip)), (other, None));
    assert!(after.epoch() > before.epoch(), "what is cached of the other chain is out of reach");
    assert!(matches!(story.nodes[2].noted.lock().exclusion, Some(ExclusionReason::OtherGenesis { .. })));
}

/// A quorum of liars has a chain of its own. Nothing but the checkpoint tells that it is not the true one.
#[tokio::test(start_paused = true)]
async fn nodes_without_the_checkpoint_are_left_out_however_many_they_are() {
    for height in [50, 1_000] {
        let mut story = Story::of(3, height);
        let forged = story.world.grow(story.world.ancestor(story.tip, height - 10), height, 9);
        let checkpoint = story.world.id(story.world.ancestor(story.tip, height - 20));
        story.settings.checkpoint = Some(checkpoint);
        story.nodes[1..].iter().for_each(|node| node.set_head(forged));
        story.start();
        sleep(60 * SECOND).await;
        assert_eq!(story.head(), None, "one node is no quorum");
        for node in &story.nodes[1..] {
            assert!(matches!(node.noted.lock().exclusion, Some(ExclusionReason::OtherCheckpoint { .. })));
        }
        story.all_have(story.tip);
        sleep(30 * SECOND).await;
        assert_eq!(story.head(), Some(story.tip));
    }
}

#[tokio::test(start_paused = true)]
async fn the_configured_chain_decides() {
    let mut story = Story::of(3, 50);
    story.view = NodesView::new(ViewSettings { quorum: Some(1), ..ViewSettings::default() });
    story.settings.chain_id = Some(5);
    story.nodes[0].script.lock().chain_id = 5;
    story.start();
    story.view.ready().await;
    sleep(SECOND).await;
    let other = ExclusionReason::OtherChain { theirs: 1, ours: 5 };
    let exclusion: Vec<_> = story.nodes.iter().map(|node| node.noted.lock().exclusion.clone()).collect();
    assert_eq!(exclusion, [None, Some(other.clone()), Some(other)]);
}

#[tokio::test(start_paused = true)]
async fn reorganisations_are_followed_with_the_parents_fetched() {
    for depth in [1, 2, 7, 64, 300] {
        let story = Story::told(3, 600).await;
        let epoch = story.view.ready().await.epoch();
        let other = story.world.grow(story.world.ancestor(story.tip, depth), depth, 2);
        story.all_have(other);
        sleep(5 * SECOND).await;
        let canonical = story.view.ready().await;
        assert_eq!(canonical.head().hash, other, "depth {depth}");
        assert_eq!(canonical.epoch() - epoch, u64::from(depth == 300), "depth {depth}");
    }
}

#[tokio::test(start_paused = true)]
async fn nodes_die_one_by_one_and_the_head_goes_on_while_a_quorum_is_left() {
    let mut story = Story::told(3, 50).await;
    let (mut last, quorum) = (story.tip, story.view.quorum());
    for dead in 0..3 {
        let head = story.grow(1);
        story.all_have(head);
        sleep(20 * SECOND).await;
        if 3 - dead >= quorum {
            last = head;
        }
        assert_eq!(story.head(), Some(last), "{dead} dead");
        story.nodes[dead].set_mood(Behaviour::Dead);
    }
    let next = story.grow(1);
    story.all_have(next);
    sleep(20 * SECOND).await;
    assert_eq!(story.head(), Some(last));
    story.nodes.iter().for_each(|node| node.set_mood(Behaviour::Well));
    sleep(5 * SECOND).await;
    assert_eq!(story.head(), Some(next), "they are found again within seconds");
}

/// Who sets a quorum of one is served while one node is left.
#[tokio::test(start_paused = true)]
async fn with_a_quorum_of_one_the_head_goes_on_until_the_last_node_dies() {
    let mut story = Story::of(3, 50);
    story.view = NodesView::new(ViewSettings { quorum: Some(1), ..ViewSettings::default() });
    story.start();
    story.view.ready().await;
    for dead in 0..3 {
        let head = story.grow(1);
        story.all_have(head);
        sleep(20 * SECOND).await;
        assert_eq!(story.head(), Some(head), "{dead} dead");
        story.nodes[dead].set_mood(Behaviour::Dead);
    }
}

#[tokio::test(start_paused = true)]
async fn safe_and_finalized_follow_and_some_nodes_have_none() {
    let mut story = Story::told(3, 50).await;
    story.nodes[0].script.lock().marks_below = None;
    for _ in 0..8 {
        let head = story.grow(1);
        story.all_have(head);
        sleep(2 * SECOND).await;
    }
    let canonical = story.view.ready().await;
    let marks =
        (canonical.safe().map(|safe| safe.number), canonical.finalized().map(|finalized| finalized.number));
    assert!(matches!(marks, (Some(52..=56), Some(50..=54))), "{marks:?}");
}

/// The marks were asked for after the first head was told of. Whoever asked for the safe block in that moment heard that
/// there is none; and where the node died in it, so did everybody for as long as it was away.
#[tokio::test(start_paused = true)]
async fn the_first_head_comes_with_its_marks() {
    let story = Story::of(3, 50);
    story.start();
    let canonical = story.view.ready().await;
    let number = |mark: Option<BlockId>| mark.map(|block| block.number);
    assert_eq!((number(canonical.safe()), number(canonical.finalized())), (Some(48), Some(46)));
}

#[tokio::test(start_paused = true)]
async fn a_hint_wakes_the_poll_at_once() {
    let mut story = Story::of(1, 50);
    story.settings.poll_every = Some(100 * SECOND);
    story.settings.identify_every = 1_000 * SECOND;
    let (sender, receiver) = watch::channel(None);
    story.nodes[0].script.lock().hints = Some(receiver);
    story.start();
    story.view.ready().await;
    let head = story.grow(1);
    story.all_have(head);
    let (mut changes, before) = (story.view.changes(), Instant::now());
    sender.send_replace(Some(story.world.id(head)));
    while story.head() != Some(head) {
        changes.changed().await.expect("the view is there");
    }
    assert!(before.elapsed() < SECOND);
}

/// Between two polls of a slow chain nobody noticed that a node was gone.
#[tokio::test(start_paused = true)]
async fn a_node_that_nobody_asks_is_asked_whether_it_is_there() {
    let mut story = Story::of(1, 50);
    story.settings.poll_every = Some(100 * SECOND);
    story.settings.identify_every = 1_000 * SECOND;
    story.start();
    story.view.ready().await;
    let asked = |story: &Story| story.nodes[0].noted.lock().calls["eth_chainId"];
    let before = asked(&story);
    sleep(30 * SECOND).await;
    let asked = asked(&story) - before;
    assert!((30..=40).contains(&asked), "{asked} times in 30 seconds");
    story.nodes[0].set_mood(Behaviour::Dead);
    sleep(2 * SECOND).await;
    assert!(
        !story.nodes[0].noted.lock().faults.is_empty(),
        "that it is gone is seen long before the next poll"
    );
}

/// A chain id that is configured and that no node has was told as nodes that disagree.
#[tokio::test(start_paused = true)]
async fn a_node_of_another_chain_than_the_configured_one_is_told_so_at_once() {
    let mut story = Story::of(2, 50);
    story.settings.chain_id = Some(5);
    story.start();
    sleep(SECOND).await;
    for node in &story.nodes {
        assert_eq!(node.noted.lock().exclusion, Some(ExclusionReason::OtherChain { theirs: 1, ours: 5 }));
    }
}

/// Each head that a node pushed was a reason to poll it at once. One that pushed made-up heads was polled 5,000 times a
/// second.
#[tokio::test(start_paused = true)]
async fn pushed_heads_do_not_make_polls_without_limit() {
    let mut story = Story::of(1, 50);
    story.settings.poll_every = Some(100 * SECOND);
    story.settings.identify_every = 1_000 * SECOND;
    let (sender, receiver) = watch::channel(None);
    story.nodes[0].script.lock().hints = Some(receiver);
    story.start();
    story.view.ready().await;
    // The search for old blocks is over by then.
    sleep(5 * SECOND).await;
    let polls = |story: &Story| story.nodes[0].noted.lock().calls["eth_getBlockByNumber"];
    let before = polls(&story);
    for number in 0..1_000 {
        sender.send_replace(Some(BlockId { number, hash: B256::left_padding_from(&number.to_be_bytes()) }));
        sleep(SECOND / 100).await;
    }
    let polled = polls(&story) - before;
    assert!((50..=120).contains(&polled), "{polled} polls in ten seconds");
}

#[tokio::test(start_paused = true)]
async fn polling_adapts_to_the_block_time() {
    let mut story = Story::of(1, 50);
    story.settings.poll_every = None;
    story.start();
    story.view.ready().await;
    // The search for old blocks is over by then.
    sleep(5 * SECOND).await;
    let polls = |story: &Story| story.nodes[0].noted.lock().calls["eth_getBlockByNumber"];
    let before = polls(&story);
    sleep(40 * SECOND).await;
    assert!((9..=12).contains(&(polls(&story) - before)), "four seconds at most");
}

#[tokio::test(start_paused = true)]
async fn the_watchers_stop_when_told() {
    let story = Story::of(2, 50);
    let task = story.start();
    story.view.ready().await;
    task.abort();
    assert!(task.await.is_err_and(|ended| ended.is_cancelled()));
    assert!(story.supervisor.report().is_empty(), "tasks that have ended are forgotten");
    let calls = |story: &Story| story.nodes[0].noted.lock().calls.values().sum::<usize>();
    let before = calls(&story);
    sleep(60 * SECOND).await;
    assert_eq!(calls(&story), before);
}

/// A watcher that had panicked was gone for good. Its node kept the vote for the head that it had then, so two of three nodes
/// could not move the head when the third one failed.
#[tokio::test(start_paused = true)]
async fn a_watcher_that_panics_once_watches_again() {
    let mut story = Story::told(3, 50).await;
    let watcher = format!("watcher of node {}", story.nodes[0].name());
    story.nodes[2].set_mood(Behaviour::Dead);
    story.supervisor.inject_panics(&watcher, 1);
    sleep(20 * SECOND).await;
    let head = story.grow(1);
    story.all_have(head);
    sleep(10 * SECOND).await;
    assert_eq!(story.head(), Some(head), "the quorum of two needs the node whose watcher has panicked");
    assert!(!story.is_down("watcher"));
    let tasks = story.supervisor.report();
    assert_eq!(tasks.iter().find(|task| task.name == watcher).map(|task| task.panics), Some(1));
}

#[tokio::test(start_paused = true)]
async fn a_node_has_no_vote_while_its_watcher_does_not_run() {
    let mut story = Story::told(2, 50).await;
    let before = story.tip;
    story.supervisor.inject_panics(&format!("watcher of node {}", story.nodes[0].name()), u32::MAX);
    sleep(5 * SECOND).await;
    assert!(story.is_down("watcher"));
    let head = story.grow(1);
    story.all_have(head);
    sleep(60 * SECOND).await;
    assert_eq!(story.head(), Some(before), "one vote is no quorum of two");
    assert_eq!(
        (story.view.is_counted(story.nodes[0].id()), story.view.is_counted(story.nodes[1].id())),
        (false, true)
    );
}

/// With each restart the task begins with what has changed meanwhile.
#[tokio::test(start_paused = true)]
async fn the_other_tasks_of_watching_start_again() {
    let mut story = Story::of(1, 50);
    story.nodes[0].script.lock().lowest_state = 7;
    let name = story.nodes[0].name().to_owned();
    for task in ["blocks of nodes", "check for a stale head", &format!("state probe of node {name}")] {
        story.supervisor.inject_panics(task, 1);
    }
    story.start();
    sleep(60 * SECOND).await;
    assert_eq!(story.nodes[0].noted.lock().lowest_state, Some(7), "the probe works");
    let head = story.grow(1);
    story.all_have(head);
    sleep(2 * SECOND).await;
    assert_eq!(story.nodes[0].noted.lock().head.map(|head| head.hash), Some(head), "its blocks are recorded");
    let panics = |report: &resources::TaskReport| (report.panics, report.is_down);
    let tasks = story.supervisor.report();
    assert_eq!(tasks.len(), 4, "{tasks:?}");
    let others = tasks.iter().filter(|task| !task.name.starts_with("watcher"));
    assert!(others.clone().all(|task| panics(task) == (1, false)), "{tasks:?}");
}

#[tokio::test(start_paused = true)]
async fn the_other_tasks_of_watching_are_down_when_they_panic_for_ever() {
    let mut story = Story::told(1, 50).await;
    let name = story.nodes[0].name().to_owned();
    let tasks = ["blocks of nodes", "check for a stale head", &format!("state probe of node {name}")];
    for task in tasks {
        story.supervisor.inject_panics(task, u32::MAX);
    }
    let head = story.grow(1);
    story.all_have(head);
    sleep(60 * SECOND).await;
    for task in tasks {
        assert!(story.supervisor.why_down(task).is_some_and(|why| why.contains("injected panic")), "{task}");
    }
    assert!(!story.is_down("watcher"));
    assert_eq!(story.head(), Some(head), "the head is known all the same");
}
