//! Many calls at once, in stopped time.

use super::*;

/// Makes `calls` calls, one each `every`, and gives back how each went, in the order of their beginning.
async fn offered(
    pool: &Arc<Pool>,
    calls: u32,
    every: Duration,
) -> Vec<(Result<NodeReply, CallFailure>, Duration)> {
    let mut under_way = Vec::new();
    for _ in 0..calls {
        let pool = Arc::clone(pool);
        under_way.push(tokio::spawn(async move { pool.quick().await }));
        sleep(every).await;
    }
    let mut outcomes = Vec::new();
    for call in under_way {
        outcomes.push(call.await.unwrap());
    }
    outcomes
}

fn p99(outcomes: &[(Result<NodeReply, CallFailure>, Duration)]) -> Duration {
    let mut times: Vec<Duration> = outcomes.iter().map(|outcome| outcome.1).collect();
    times.sort_unstable();
    times[times.len() * 99 / 100]
}

fn failures(outcomes: &[(Result<NodeReply, CallFailure>, Duration)]) -> usize {
    outcomes.iter().filter(|outcome| outcome.0 != result(DATA)).count()
}

fn three() -> Arc<Pool> {
    Arc::new(Pool::of([2, 3, 4].map(|ms| Script::new(ms * MS, Act::Answers(DATA)))))
}

#[tokio::test(start_paused = true)]
async fn load_is_shared_between_nodes_that_are_equal() {
    let pool = Arc::new(Pool::of([3, 3, 3].map(|ms| Script::new(ms * MS, Act::Answers(DATA)))));
    assert_eq!(failures(&offered(&pool, 3_000, MS).await), 0);
    for script in &pool.scripts {
        assert!((500..2_000).contains(&script.asked()), "{}", script.asked());
    }
}

#[tokio::test(start_paused = true)]
async fn a_killed_node_is_out_within_200_ms_and_no_call_fails() {
    let pool = three();
    offered(&pool, 500, 2 * MS).await;
    pool.scripts[0].plays(Duration::ZERO, Act::Fails(Fault::Connect));
    let mut outcomes = offered(&pool, 100, 2 * MS).await;
    let asked = pool.scripts[0].asked();
    assert_ne!(pool.availability(0), Availability::Up);
    outcomes.extend(offered(&pool, 5_000, 2 * MS).await);
    assert_eq!(failures(&outcomes), 0);
    assert!(pool.scripts[0].asked() - asked < 20, "only probes reach it");
    assert!(p99(&outcomes) < 10 * MS);
}

/// Only look-ups were probes, and a probe needed hundreds of calls before it. A node that had fallen was never used again for
/// callers who asked only for blocks.
#[tokio::test(start_paused = true)]
async fn a_node_that_fell_is_used_again_for_blocks() {
    let pool = Pool::of([3, 3].map(|ms| Script::new(ms * MS, Act::Answers(DATA))));
    pool.falls(0);
    let block = RpcCall { class: Class::Bulk, ..quick() };
    let mut calls = 0;
    while pool.availability(0) != Availability::Up {
        assert!(pool.ask(&block).await.is_ok());
        sleep(100 * MS).await;
        calls += 1;
        assert!(calls < 200, "it is {:?}", pool.availability(0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_stopped_node_costs_no_more_than_the_hedge_delay() {
    let pool = three();
    offered(&pool, 1_500, 2 * MS).await;
    let delay = pool.nodes.iter().map(|node| node.hedge_delay(Class::Quick)).max().unwrap();
    pool.scripts[1].plays(Duration::ZERO, Act::Hangs);
    let outcomes = offered(&pool, 5_000, 2 * MS).await;
    assert_eq!(failures(&outcomes), 0);
    let slowest = outcomes.iter().map(|outcome| outcome.1).max().unwrap();
    assert!(slowest <= delay + 20 * MS, "{slowest:?} with a delay of {delay:?}");
    assert!(pool.total(|counts| &counts.hedges) * 20 <= pool.asked());
}

#[tokio::test(start_paused = true)]
async fn a_node_that_stops_at_the_first_call_fails_no_call() {
    let pool = Arc::new(Pool::of([Script::hangs(), Script::answers(DATA), Script::answers(DATA)]));
    let outcomes = offered(&pool, 1_000, 2 * MS).await;
    assert_eq!(failures(&outcomes), 0);
    // Nothing was saved for hedges yet, so the very first calls pay with more patience.
    assert!(p99(&outcomes[100..]) <= 70 * MS, "{:?}", p99(&outcomes[100..]));
    assert!(p99(&outcomes) <= 500 * MS, "{:?}", p99(&outcomes));
}

#[tokio::test(start_paused = true)]
async fn no_more_than_one_call_in_twenty_is_asked_twice() {
    let pool = three();
    let mut slow = 0;
    for n in 0..20_000_u32 {
        // One call in eight takes long, far more than the budget has hedges for.
        let ms = if n % 8 == 0 { 60 } else { 2 };
        pool.scripts.iter().for_each(|script| script.plays(ms * MS, Act::Answers(DATA)));
        slow += u32::from(pool.quick().await.1 >= 50 * MS);
    }
    let hedges = pool.total(|counts| &counts.hedges);
    assert!(hedges > 0 && hedges <= 1_000, "{hedges} hedges");
    assert_eq!(
        [0, 1, 2].map(|node| pool.availability(node)),
        [Availability::Up; 3],
        "{slow} slow calls are no fault"
    );
}

#[tokio::test(start_paused = true)]
async fn calls_to_a_dead_pool_are_limited() {
    for fault in [Fault::Status(503), Fault::Connect] {
        let pool = Arc::new(Pool::of([0, 1, 2].map(|_| Script::new(MS, Act::Fails(fault)))));
        let outcomes = offered(&pool, 20_000, MS / 2).await;
        assert_eq!(failures(&outcomes), 20_000);
        assert!(pool.asked() * 4 <= 20_000 * 5, "asked {} times for 20000 calls", pool.asked());
        assert!(p99(&outcomes) < 200 * MS, "failing is quick too");
    }
}

#[tokio::test(start_paused = true)]
async fn calls_to_a_hanging_pool_are_limited() {
    let pool = Arc::new(Pool::of([Script::hangs(), Script::hangs(), Script::hangs()]));
    offered(&pool, 5_000, 2 * MS).await;
    assert!(pool.asked() * 4 <= 5_000 * 5, "asked {} times for 5000 calls", pool.asked());
}

#[tokio::test(start_paused = true)]
async fn two_of_three_killed_with_hundreds_of_calls_in_flight_fail_no_call() {
    let slow = || Script::new(500 * MS, Act::Answers(DATA));
    let pool = Arc::new(Pool::of([slow(), slow(), slow()]));
    offered(&pool, 1_000, MS).await;
    let killer = async {
        sleep(600 * MS).await;
        pool.scripts[0].is_killed();
        pool.scripts[1].is_killed();
    };
    let (outcomes, ()) = tokio::join!(offered(&pool, 3_000, MS), killer);
    assert_eq!(failures(&outcomes), 0);
}

/// Calls that had lost their node waited for a budget which only new calls would have filled.
#[tokio::test(start_paused = true)]
async fn a_thousand_calls_of_a_killed_node_are_answered_by_another_though_no_further_call_is_made() {
    let slow = || Script::new(500 * MS, Act::Answers(DATA));
    let pool = Arc::new(Pool::of([slow(), slow()]));
    let killer = async {
        sleep(300 * MS).await;
        pool.scripts[0].is_killed();
        pool.scripts[1].plays(10 * MS, Act::Answers(DATA));
    };
    let (outcomes, ()) = tokio::join!(offered(&pool, 2_000, Duration::ZERO), killer);
    assert_eq!(failures(&outcomes), 0);
    assert!(p99(&outcomes) < 2 * SECOND, "{:?}", p99(&outcomes));
}

#[tokio::test(start_paused = true)]
async fn calls_in_flight_on_a_node_that_stops_all_hedge_and_it_is_doubted() {
    let pool = Arc::new(Pool::of([20, 20, 20].map(|ms| Script::new(ms * MS, Act::Answers(DATA)))));
    offered(&pool, 2_000, MS).await;
    let delay = pool.nodes.iter().map(|node| node.hedge_delay(Class::Quick)).max().unwrap();
    pool.scripts[1].plays(Duration::ZERO, Act::Hangs);
    let mut outcomes = offered(&pool, 200, MS).await;
    assert_ne!(pool.availability(1), Availability::Up, "it is doubted within 200 ms");
    outcomes.extend(offered(&pool, 5_000, MS).await);
    assert_eq!(failures(&outcomes), 0);
    let slowest = outcomes.iter().map(|outcome| outcome.1).max().unwrap();
    assert!(slowest <= delay + 40 * MS && p99(&outcomes) <= 20 * MS, "{slowest:?}, delay {delay:?}");
}

#[tokio::test(start_paused = true)]
async fn nodes_that_are_killed_and_return_all_the_time_fail_no_call() {
    let pool = three();
    offered(&pool, 2_000, MS / 2).await;
    let killer = async {
        for n in 0..100 {
            let script = &pool.scripts[n * 7 % 3];
            script.is_killed();
            sleep(300 * MS).await;
            script.plays(3 * MS, Act::Answers(DATA));
        }
    };
    let (outcomes, ()) = tokio::join!(offered(&pool, 60_000, MS / 2), killer);
    assert_eq!(failures(&outcomes), 0);
    assert!(p99(&outcomes) < 25 * MS, "{:?}", p99(&outcomes));
    assert!(pool.asked() * 20 <= 62_000 * 21, "asked {} times", pool.asked());
}

#[tokio::test(start_paused = true)]
async fn a_node_that_becomes_slow_is_avoided() {
    let pool = three();
    offered(&pool, 2_000, 2 * MS).await;
    let delay = pool.nodes.iter().map(|node| node.hedge_delay(Class::Quick)).max().unwrap();
    pool.scripts[0].plays(300 * MS, Act::Answers(DATA));
    let outcomes = offered(&pool, 5_000, 2 * MS).await;
    assert_eq!(failures(&outcomes), 0);
    assert!(p99(&outcomes) <= delay + 20 * MS, "{:?}", p99(&outcomes));
}

#[tokio::test(start_paused = true)]
async fn a_call_after_its_deadline_asks_no_node() {
    let pool = three();
    let answered = ask_one(pool.nodes.clone(), &quick(), &judge, &pool.rules, Instant::now()).await;
    assert_eq!(answered.answer.map(|answered| answered.reply), Err(CallFailure::Deadline));
    assert_eq!(pool.asked(), 0);
}

/// Calls went to stopped nodes until enough of them had failed, and then took two seconds.
#[tokio::test(start_paused = true)]
async fn two_stopped_nodes_of_three_cost_less_than_300_ms_from_the_first_call_on() {
    for every in [2 * MS, 20 * MS] {
        let pool = three();
        offered(&pool, 500, every).await;
        (0..2).for_each(|stopped| pool.scripts[stopped].plays(Duration::ZERO, Act::Hangs));
        let first_second = offered(&pool, 1_000 / every.as_millis() as u32, every).await;
        assert_eq!(failures(&first_second), 0);
        assert!(p99(&first_second) <= 300 * MS, "{:?} with a call each {every:?}", p99(&first_second));
    }
}
