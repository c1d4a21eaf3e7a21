use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tokio::time::{advance, sleep};

use super::*;
use crate::call::{Class, Fault, Needs};
use crate::dialect::Meaning as Words;
use crate::health::{Availability, BACK_OFF_MAX, BACK_OFF_MIN};
use crate::node::{Membership, MissingCapability};
use crate::view::ViewSettings;
use script::{Act, MS, Script, quick};

mod honest_node;
mod load;
mod model;
mod nulls;
pub(crate) mod script;
mod several;

const DATA: &str = r#""0x2a""#;
const LIE: &str = r#""0xbad""#;
const NULL: &str = "null";
const SECOND: Duration = Duration::from_secs(1);
/// Codes by which scripted nodes err.
const REVERTED: i64 = 3;
const NO_METHOD: i64 = -32601;
const NO_STATE: i64 = -32001;
const NO_BLOCK: i64 = -32002;
const TOO_WIDE: i64 = -32005;
const TOO_MANY: i64 = -9;
const BROKEN: i64 = -32603;
const UNCLEAR: i64 = -32000;

/// Nodes that play parts, and the rules between them.
struct Pool {
    scripts: Vec<Script>,
    nodes: Nodes<Script>,
    rules: CallRules,
}

impl Pool {
    fn of<const N: usize>(scripts: [Script; N]) -> Self {
        Self::seeded(scripts.to_vec(), 1)
    }

    fn seeded(scripts: Vec<Script>, seed: u64) -> Self {
        let nodes = scripts.iter().enumerate().map(|(n, script)| script.node(&format!("node-{n}:8545")));
        let (budgets, rng) = (Budgets::new(Instant::now()), NodeRng::seeded(seed));
        let view = NodesView::new(ViewSettings::default());
        let rules = CallRules { budgets, rng, read, view };
        Self { nodes: Arc::new(nodes.collect()), scripts, rules }
    }

    async fn ask(&self, call: &RpcCall) -> Result<PoolAnswer<Script>, CallFailure> {
        ask_one(self.nodes.clone(), call, &judge, &self.rules, Instant::now() + 10 * SECOND).await.answer
    }

    /// The result of a quick call, and how long it took.
    async fn quick(&self) -> (Result<NodeReply, CallFailure>, Duration) {
        let began = Instant::now();
        let said = self.ask(&quick()).await.map(|answered| answered.reply);
        (said, began.elapsed())
    }

    fn asked(&self) -> u64 {
        self.scripts.iter().map(Script::asked).sum()
    }

    fn availability(&self, node: usize) -> Availability {
        self.nodes[node].availability(Instant::now())
    }

    fn total(&self, count: fn(&crate::node::NodeCounts) -> &AtomicU64) -> u64 {
        self.nodes.iter().map(|node| count(node.counts()).load(Relaxed)).sum()
    }

    /// This node fails until it is down.
    fn falls(&self, node: usize) {
        while self.availability(node) != Availability::Down {
            self.nodes[node].record_fault(Fault::Closed, Instant::now());
        }
    }

    fn spend_retries(&self) {
        while self.rules.budgets.withdraw_retry(Instant::now()) {}
    }
}

fn judge(_node: NodeId, result: &Bytes) -> Judging<'static, Judgement> {
    Judging::Done(match &result[..] {
        b"null" => Judgement::Doubtful,
        result if result == LIE.as_bytes() => Judgement::Wrong(ProofFailure::Malformed),
        _ => Judgement::Believed,
    })
}

fn read(error: &RpcError, _call: &RpcCall) -> ErrorMeaning {
    match error.code {
        REVERTED => ErrorMeaning::Caller(CallerError(Words::Reverted { data: None })),
        NO_METHOD => ErrorMeaning::NotHere(MissingCapability::Method),
        NO_STATE => ErrorMeaning::NotHere(MissingCapability::State),
        NO_BLOCK => ErrorMeaning::NotHere(MissingCapability::Block),
        TOO_WIDE => ErrorMeaning::Limit(RangeLimit { blocks: Some(1_000) }),
        TOO_MANY => ErrorMeaning::Limit(RangeLimit { blocks: None }),
        UNCLEAR => ErrorMeaning::Unclear,
        _ => ErrorMeaning::Node(Fault::Garbled),
    }
}

fn result(text: &'static str) -> Result<NodeReply, CallFailure> {
    Ok(NodeReply::Result(Bytes::from_static(text.as_bytes())))
}

#[tokio::test(start_paused = true)]
async fn a_call_is_answered_by_one_node_and_no_other_is_asked() {
    let pool = Pool::of([Script::answers(DATA), Script::answers(DATA), Script::answers(DATA)]);
    let answered = pool.ask(&quick()).await.unwrap();
    assert_eq!((Ok(answered.reply), answered.is_confirmed), (result(DATA), true));
    assert_eq!(pool.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn another_node_answers_when_one_fails() {
    let faults = [Fault::Connect, Fault::Closed, Fault::Garbled, Fault::WrongId, Fault::Status(503)];
    for (seed, fault) in (0..).zip(faults) {
        let pool = Pool::seeded(vec![Script::fails(fault), Script::answers(DATA)], seed);
        for _ in 0..20 {
            assert_eq!(pool.quick().await.0, result(DATA));
        }
        assert!(pool.scripts[0].asked() <= 3, "it is doubted with the second fault");
    }
}

#[tokio::test(start_paused = true)]
async fn a_liar_is_found_out_and_another_is_believed() {
    let pool = Pool::of([Script::answers(LIE), Script::answers(DATA)]);
    for _ in 0..20 {
        assert_eq!(pool.quick().await.0, result(DATA));
    }
    assert_ne!(pool.availability(0), Availability::Up);
    assert!(pool.scripts[0].asked() <= 2);
}

#[tokio::test(start_paused = true)]
async fn a_lie_is_never_the_answer_though_nobody_else_is_there() {
    let pool = Pool::of([Script::answers(LIE), Script::fails(Fault::Connect)]);
    for _ in 0..5 {
        assert_eq!(pool.quick().await.0, Err(CallFailure::Unavailable));
    }
}

/// A node lied, and told the truth again before the others had all failed. It was not asked a second time.
#[tokio::test(start_paused = true)]
async fn whoever_lied_is_asked_once_more_when_nobody_else_is_left() {
    for seed in 0..20 {
        let pool = Pool::seeded(vec![Script::answers(LIE), Script::fails(Fault::Closed)], seed);
        let (said, ()) = tokio::join!(pool.quick(), async {
            sleep(10 * MS).await;
            pool.scripts[0].plays(MS, Act::Answers(DATA));
        });
        assert_eq!(said.0, result(DATA));
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_caller_ends_the_call_and_blames_nobody() {
    let pool = Pool::of([Script::new(MS, Act::Errs(REVERTED)), Script::new(MS, Act::Errs(REVERTED))]);
    for _ in 0..50 {
        let said = pool.ask(&quick()).await.unwrap().reply;
        assert!(matches!(said, NodeReply::Error(CallerError(Words::Reverted { .. }))));
    }
    assert_eq!(pool.asked(), 50);
    assert_eq!((pool.availability(0), pool.availability(1)), (Availability::Up, Availability::Up));
}

/// A dozen simulations with too little gas, in a dialect that was not known, once took a whole pool down.
#[tokio::test(start_paused = true)]
async fn words_that_are_not_known_about_a_simulation_blame_nobody() {
    let mut pool = Pool::of([Script::new(MS, Act::Errs(-32603)), Script::new(MS, Act::Errs(-32602))]);
    pool.rules.read = super::read;
    let simulation = RpcCall { class: Class::Evm, ..quick() };
    for _ in 0..20 {
        assert!(pool.ask(&simulation).await.is_err());
    }
    assert_eq!((pool.availability(0), pool.availability(1)), (Availability::Up, Availability::Up));
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_node_is_its_fault() {
    let pool = Pool::of([Script::new(MS, Act::Errs(BROKEN)), Script::answers(DATA)]);
    for _ in 0..20 {
        assert_eq!(pool.quick().await.0, result(DATA));
    }
    assert_ne!(pool.availability(0), Availability::Up);
}

#[tokio::test(start_paused = true)]
async fn what_a_node_lacks_is_learned_and_asked_of_others() {
    for code in [NO_METHOD, NO_STATE] {
        let pool = Pool::of([Script::new(MS, Act::Errs(code)), Script::answers(DATA)]);
        for _ in 0..20 {
            assert_eq!(pool.quick().await.0, result(DATA));
        }
        assert!(pool.scripts[0].asked() <= 1);
        assert_eq!(pool.availability(0), Availability::Up);
    }
}

#[tokio::test(start_paused = true)]
async fn what_no_node_has_is_said_now_and_later() {
    for code in [NO_METHOD, NO_STATE] {
        let pool = Pool::of([Script::new(MS, Act::Errs(code)), Script::new(MS, Act::Errs(code))]);
        assert_eq!((pool.quick().await.0, pool.asked()), (Err(CallFailure::Lacking), 2));
        assert_eq!((pool.quick().await.0, pool.asked()), (Err(CallFailure::Lacking), 2));
    }
}

/// Large answers were checked on the thread of a connection, which kept all others of that thread waiting.
#[tokio::test(start_paused = true)]
async fn an_answer_may_be_checked_elsewhere_within_the_time_of_the_call() {
    let pool = Pool::of([Script::answers(DATA)]);
    let slowly = |_: NodeId, _: &Bytes| {
        Judging::Elsewhere(Box::pin(async {
            sleep(SECOND).await;
            Some(Judgement::Believed)
        }))
    };
    let in_time =
        ask_one(pool.nodes.clone(), &quick(), &slowly, &pool.rules, Instant::now() + 2 * SECOND).await;
    assert_eq!(in_time.findings, [(pool.nodes[0].id(), Some(Judgement::Believed))]);
    assert_eq!(in_time.answer.map(|answered| answered.reply), result(DATA));
    let too_late =
        ask_one(pool.nodes.clone(), &quick(), &slowly, &pool.rules, Instant::now() + SECOND / 2).await;
    assert_eq!(too_late.findings, [(pool.nodes[0].id(), None)]);
    assert_eq!(too_late.answer.err(), Some(CallFailure::Unchecked));
    assert_eq!(pool.availability(0), Availability::Up, "it is not the node's fault");
}

/// One node that searched one block at a time made the whole pool search block by block: 1,900 calls for one query.
#[tokio::test(start_paused = true)]
async fn a_node_that_grants_less_than_others_is_not_asked_for_more() {
    let wide = RpcCall { needs: Needs { log_blocks: 5_000, ..quick().needs }, ..quick() };
    for seed in 0..20 {
        let pool = Pool::seeded(vec![Script::new(MS, Act::Errs(TOO_WIDE)), Script::answers(DATA)], seed);
        for _ in 0..5 {
            assert_eq!(pool.ask(&wide).await.map(|answered| answered.reply), result(DATA));
        }
        assert!(pool.scripts[0].asked() <= 1, "once it has said so");
    }
    let pool = Pool::of([Script::new(MS, Act::Errs(TOO_WIDE)), Script::fails(Fault::Connect)]);
    for _ in 0..3 {
        let said = pool.ask(&wide).await.map(|answered| answered.reply);
        assert_eq!(said, Ok(NodeReply::Limit(RangeLimit { blocks: Some(1_000) })), "when nobody grants more");
    }
}

/// Of nodes with different limits, a call with much gas goes to those that grant it.
#[tokio::test(start_paused = true)]
async fn a_node_that_grants_less_gas_is_not_asked_for_more() {
    let wants = |gas| RpcCall { needs: Needs { gas, ..quick().needs }, ..quick() };
    for seed in 0..20 {
        let pool =
            Pool::seeded(vec![Script::answers(LIE), Script::answers(DATA), Script::answers(DATA)], seed);
        pool.nodes[0].capabilities().record_gas_refused(600_000_000, Some(1 << 24));
        pool.nodes[1].capabilities().record_gas_refused(600_000_000, Some(30_000_000));
        assert_eq!(pool.ask(&wants(20_000_000)).await.map(|answered| answered.reply), result(DATA));
        assert_eq!(pool.ask(&wants(40_000_000)).await.map(|answered| answered.reply), result(DATA));
        assert_eq!(pool.scripts[0].asked(), 0);
        assert!(pool.scripts[1].asked() <= 1, "for the smaller one");
        assert!(pool.scripts[2].asked() >= 1);
    }
}

/// That there are too many results was believed when a single node said so.
#[tokio::test(start_paused = true)]
async fn too_many_results_are_believed_when_a_second_node_says_so() {
    let too_many = || Script::new(MS, Act::Errs(TOO_MANY));
    for seed in 0..20 {
        let pool = Pool::seeded(vec![too_many(), Script::answers(DATA), Script::answers(DATA)], seed);
        assert_eq!(pool.quick().await.0, result(DATA));
        let pool = Pool::seeded(vec![too_many(), too_many(), too_many()], seed);
        assert_eq!(pool.quick().await.0, Ok(NodeReply::Limit(RangeLimit { blocks: None })));
        assert_eq!(pool.asked(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_narrower_range_is_given_back_and_remembered() {
    let pool = Pool::of([Script::new(MS, Act::Errs(TOO_WIDE))]);
    assert_eq!(pool.quick().await.0, Ok(NodeReply::Limit(RangeLimit { blocks: Some(1_000) })));
    assert_eq!(pool.nodes[0].capabilities().log_range_max(), 1_000);
    assert_eq!(pool.availability(0), Availability::Up);
}

#[tokio::test(start_paused = true)]
async fn strangers_and_nodes_below_the_block_are_not_asked() {
    let pool = Pool::of([Script::answers(LIE), Script::answers(LIE), Script::answers(LIE)]);
    pool.nodes[0].capabilities().set_membership(Membership::Excluded);
    pool.nodes[1].capabilities().set_membership(Membership::Unchecked);
    pool.nodes[2].capabilities().set_lowest_state(91);
    assert_eq!(pool.quick().await.0, Err(CallFailure::Lacking));
    assert_eq!(pool.asked(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_node_with_too_much_to_do_is_spared_for_a_moment() {
    let pool = Pool::of([Script::fails(Fault::RateLimited), Script::answers(DATA)]);
    for _ in 0..20 {
        assert_eq!(pool.quick().await.0, result(DATA));
    }
    assert_eq!((pool.scripts[0].asked(), pool.availability(0)), (1, Availability::RateLimited));
    advance(SECOND).await;
    assert_eq!(pool.availability(0), Availability::Up);
}

#[tokio::test(start_paused = true)]
async fn a_single_node_is_asked_again_after_a_failure() {
    let pool = Pool::of([Script::fails(Fault::Closed)]);
    let (said, ()) = tokio::join!(pool.quick(), async {
        sleep(10 * MS).await;
        pool.scripts[0].plays(MS, Act::Answers(DATA));
    });
    assert_eq!(said.0, result(DATA));
    assert!(said.1 < 50 * MS);
}

/// A busy machine had made all nodes look slow and had used up the hedges. Callers that waited for a stopped node made no
/// further calls, so there was no hedge for them either, and eight times the usual delay was more than a second.
#[tokio::test(start_paused = true)]
async fn a_look_up_does_not_wait_long_for_a_stopped_node_that_was_slow_before() {
    let slow = || Script::new(180 * MS, Act::Answers(DATA));
    let pool = Pool::of([slow(), slow()]);
    for _ in 0..80 {
        assert_eq!(pool.quick().await.0, result(DATA));
    }
    while pool.rules.budgets.withdraw_hedge(true, Instant::now()) {}
    pool.scripts[0].plays(Duration::ZERO, Act::Hangs);
    for _ in 0..20 {
        let (said, took) = pool.quick().await;
        assert_eq!(said, result(DATA));
        assert!(took <= 700 * MS, "{took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_deadline_is_kept_when_everybody_hangs() {
    let pool = Pool::of([Script::hangs(), Script::hangs(), Script::hangs(), Script::hangs()]);
    let (said, took) = pool.quick().await;
    assert_eq!((said, took), (Err(CallFailure::Deadline), 10 * SECOND));
    assert_eq!(pool.asked(), 4);
}

#[tokio::test(start_paused = true)]
async fn the_only_node_has_all_the_time_there_is() {
    let pool = Pool::of([Script::new(9 * SECOND, Act::Answers(DATA))]);
    assert_eq!(pool.quick().await, (result(DATA), 9 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn a_slow_query_is_not_cut_off_to_be_begun_again_elsewhere() {
    let slow = || Script::new(8 * SECOND, Act::Answers(DATA));
    let pool = Pool::of([slow(), slow()]);
    let logs = RpcCall { class: Class::Logs, ..quick() };
    assert!(pool.ask(&logs).await.is_ok());
    assert_eq!((pool.availability(0), pool.availability(1)), (Availability::Up, Availability::Up));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_one_at_a_time_may_be_at_goes_on_alone() {
    let pool = Pool::of([Script::hangs(), Script::hangs()]);
    let alone = RpcCall { may_hedge: false, ..quick() };
    let most_at_once = async {
        let mut most = 0;
        for _ in 0..9_000 {
            most = most.max(pool.nodes.iter().map(|node| node.in_flight(Class::Quick)).sum::<u32>());
            sleep(MS).await;
        }
        most
    };
    let (said, most) = tokio::join!(pool.ask(&alone), most_at_once);
    assert_eq!((said.err(), pool.asked(), most), (Some(CallFailure::Deadline), 2, 1));
}

#[tokio::test(start_paused = true)]
async fn without_a_budget_a_dead_pool_is_asked_once() {
    let pool = Pool::of([Script::fails(Fault::Closed), Script::fails(Fault::Closed)]);
    (0..2).for_each(|node| pool.falls(node));
    pool.spend_retries();
    let (said, took) = pool.quick().await;
    assert_eq!(said, Err(CallFailure::Unavailable));
    assert!((1..=2).contains(&pool.asked()), "{}", pool.asked());
    assert!(took < 200 * MS, "{took:?}");
}

/// Two of three were in trouble, which had used up the budget, and the third seemed to be down.
#[tokio::test(start_paused = true)]
async fn without_a_budget_a_node_that_is_just_back_is_found_by_one_call_and_used_by_all() {
    let pool = Arc::new(Pool::of([Script::fails(Fault::Closed), Script::answers(DATA)]));
    pool.falls(1);
    pool.spend_retries();
    let calls: Vec<_> = (0..50).map(|_| Arc::clone(&pool)).collect();
    let calls = calls.into_iter().map(|pool| tokio::spawn(async move { pool.quick().await }));
    for call in calls.collect::<Vec<_>>() {
        assert_eq!(call.await.unwrap().0, result(DATA));
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_budget_a_call_waits_for_it_while_a_good_node_is_there() {
    let pool = Pool::of([Script::fails(Fault::Closed), Script::answers(DATA)]);
    pool.spend_retries();
    for _ in 0..10 {
        let (said, took) = pool.quick().await;
        assert_eq!(said, result(DATA));
        assert!(took < 200 * MS, "{took:?}");
    }
}

/// The queue of one account was full. Its calls, none of which was sent, used up the retries of all accounts.
#[tokio::test(start_paused = true)]
async fn calls_that_were_never_sent_cost_no_retries() {
    let full = || Script::fails(Fault::QueueFull);
    let pool = Pool::of([full(), full(), full()]);
    for _ in 0..200 {
        assert_eq!(pool.quick().await.0, Err(CallFailure::Unavailable));
    }
    let retries_left = (0..200).take_while(|_| pool.rules.budgets.withdraw_retry(Instant::now())).count();
    assert_eq!(retries_left, 100);
}

/// A node that was down got a call to try it, and failed. The call that was made instead, with the hedge that had been paid for,
/// was never sent, and the hedge was lost.
#[tokio::test(start_paused = true)]
async fn calls_that_were_never_sent_cost_no_hedges() {
    let hedges_left = |pool: &Pool| {
        (0..200).take_while(|_| pool.rules.budgets.withdraw_hedge(true, Instant::now())).count()
    };
    let pool = || Pool::of([Script::fails(Fault::Closed), Script::fails(Fault::QueueFull)]);
    let (unused, used) = (pool(), pool());
    for budgets in [&unused, &used].map(|pool| &pool.rules.budgets) {
        (0..200).for_each(|_| budgets.deposit());
    }
    used.falls(0);
    sleep(SECOND).await;
    assert_eq!(used.quick().await.0, Err(CallFailure::Unavailable));
    assert!(used.scripts[0].asked() > 0, "it was tried");
    assert_eq!((hedges_left(&used), hedges_left(&unused)), (10, 10));
}

/// With calls that every node refuses, which cost nothing, one account used up the retries and hedges of all.
#[tokio::test(start_paused = true)]
async fn calls_that_every_node_refuses_cost_no_retries() {
    let refuses = || Script::new(MS, Act::Errs(UNCLEAR));
    let pool = Pool::of([refuses(), refuses(), refuses()]);
    for _ in 0..200 {
        assert_eq!(pool.quick().await.0, Err(CallFailure::Unavailable));
    }
    let retries_left = (0..200).take_while(|_| pool.rules.budgets.withdraw_retry(Instant::now())).count();
    assert_eq!(retries_left, 100);
}

/// The hedge that was paid for when a node that was down got a call to try it was lost when the caller went.
#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_takes_no_hedge_with_it() {
    let pool = Pool::of([Script::fails(Fault::Closed), Script::answers(DATA)]);
    (0..200).for_each(|_| pool.rules.budgets.deposit());
    pool.falls(0);
    pool.scripts[0].plays(Duration::ZERO, Act::Hangs);
    sleep(SECOND).await;
    assert!(tokio::time::timeout(MS, pool.quick()).await.is_err());
    assert_eq!(pool.scripts[0].asked(), 1, "it was tried");
    let hedges_left =
        (0..200).take_while(|_| pool.rules.budgets.withdraw_hedge(true, Instant::now())).count();
    assert_eq!(hedges_left, 10);
}

#[tokio::test(start_paused = true)]
async fn all_are_down_and_the_first_that_returns_is_used_at_once() {
    let dead = || Script::fails(Fault::Connect);
    let pool = Pool::of([dead(), dead(), dead()]);
    for _ in 0..50 {
        assert!(pool.quick().await.0.is_err());
        sleep(100 * MS).await;
    }
    assert_eq!([0, 1, 2].map(|node| pool.availability(node)), [Availability::Down; 3]);
    pool.scripts[1].plays(MS, Act::Answers(DATA));
    let returned = Instant::now();
    while pool.quick().await.0 != result(DATA) {
        sleep(10 * MS).await;
    }
    assert!(returned.elapsed() < BACK_OFF_MAX);
    for _ in 0..20 {
        assert_eq!(pool.quick().await.0, result(DATA), "it is now the best there is");
    }
}

/// They were all proven wrong once, which leaves them out for minutes. Meanwhile one of them answers, and the others hang.
#[tokio::test(start_paused = true)]
async fn while_all_are_down_those_that_hang_do_not_keep_the_one_that_answers_from_being_asked() {
    for seed in 0..20 {
        let pool = Pool::seeded(
            vec![Script::hangs(), Script::new(300 * MS, Act::Answers(DATA)), Script::hangs()],
            seed,
        );
        pool.nodes.iter().for_each(|node| node.record_fault(Fault::Wrong, Instant::now()));
        for _ in 0..5 {
            let (said, took) = pool.quick().await;
            assert_eq!(said, result(DATA));
            assert!(took < 3 * SECOND, "{took:?}");
        }
        assert!(
            pool.scripts[0].asked() + pool.scripts[2].asked() <= 4,
            "the one that answers is asked first"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_fell_comes_back_under_load() {
    let pool = Pool::of([Script::fails(Fault::Connect), Script::answers(DATA)]);
    for _ in 0..2_000 {
        assert_eq!(pool.quick().await.0, result(DATA));
    }
    pool.scripts[0].plays(MS, Act::Answers(DATA));
    let returned = Instant::now();
    while pool.availability(0) != Availability::Up {
        assert_eq!(pool.quick().await.0, result(DATA));
    }
    assert!(returned.elapsed() < BACK_OFF_MAX + 10 * BACK_OFF_MIN, "{:?}", returned.elapsed());
}

#[tokio::test(start_paused = true)]
async fn slow_log_queries_leave_the_estimate_of_look_ups_alone() {
    let pool = Pool::of([Script::answers(DATA)]);
    for _ in 0..50 {
        assert_eq!(pool.quick().await.0, result(DATA));
    }
    let before = pool.nodes[0].hedge_delay(Class::Quick);
    pool.scripts[0].plays(5 * SECOND, Act::Answers(DATA));
    for _ in 0..10 {
        assert!(pool.ask(&RpcCall { class: Class::Logs, ..quick() }).await.is_ok());
    }
    let node = &pool.nodes[0];
    assert_eq!(node.hedge_delay(Class::Quick), before);
    assert!(node.expected_latency(Class::Quick, Instant::now()) <= MS);
    assert_eq!(pool.availability(0), Availability::Up);
}
