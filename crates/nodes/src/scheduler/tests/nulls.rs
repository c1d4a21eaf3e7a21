//! The worth of a null: never as much as data, and not the wait for a node that says nothing.

use super::*;

#[tokio::test(start_paused = true)]
async fn data_wins_over_null_whoever_is_asked_first() {
    for seed in 0..20 {
        let pool =
            Pool::seeded(vec![Script::answers(NULL), Script::answers(NULL), Script::answers(DATA)], seed);
        pool.scripts[2].plays(400 * MS, Act::Answers(DATA));
        let answered = pool.ask(&quick()).await.unwrap();
        assert_eq!((Ok(answered.reply), answered.is_confirmed), (result(DATA), true));
    }
}

#[tokio::test(start_paused = true)]
async fn null_is_the_answer_when_nobody_has_more() {
    let pool = Pool::of([Script::answers(NULL), Script::answers(NULL), Script::fails(Fault::Closed)]);
    let answered = pool.ask(&quick()).await.unwrap();
    assert_eq!((Ok(answered.reply), pool.asked(), answered.is_confirmed), (result(NULL), 4, false));
    assert!(!answered.is_absent_everywhere, "the one that failed may have it");
    assert_eq!(
        (pool.availability(0), pool.availability(1)),
        (Availability::Up, Availability::Up),
        "a null is no fault"
    );
}

#[tokio::test(start_paused = true)]
async fn what_all_members_have_not_is_nowhere() {
    let pool = Pool::of([Script::answers(NULL), Script::answers(NULL), Script::answers(DATA)]);
    pool.nodes[2].capabilities().set_membership(Membership::Excluded);
    let answered = pool.ask(&quick()).await.unwrap();
    assert_eq!((pool.asked(), answered.is_confirmed, answered.is_absent_everywhere), (2, false, true));
}

#[tokio::test(start_paused = true)]
async fn null_is_not_kept_back_for_a_node_that_is_down_or_hangs_for_ever() {
    let pool = Pool::of([Script::answers(NULL), Script::hangs()]);
    let (said, took) = pool.quick().await;
    assert_eq!(said, result(NULL));
    assert!(took <= 600 * MS, "{took:?}");
    while pool.availability(1) == Availability::Up {
        pool.nodes[1].record_fault(Fault::Timeout, Instant::now());
    }
    let (said, took) = pool.quick().await;
    assert_eq!(said, result(NULL));
    assert!(took <= 200 * MS, "it has fallen silent: {took:?}");
    pool.falls(1);
    let (said, took) = pool.quick().await;
    assert_eq!(said, result(NULL));
    assert!(took <= 200 * MS, "{took:?}");
    pool.spend_retries();
    assert_eq!(pool.quick().await, (result(NULL), MS), "nor is it asked when the pool is in trouble");
}

/// The one node that had a transaction was a little late, or failed once, and another one's null was the answer.
#[tokio::test(start_paused = true)]
async fn null_is_no_answer_while_a_node_that_failed_or_is_doubted_knows_better() {
    for seed in 0..20 {
        let pool = Pool::seeded(vec![Script::answers(NULL), Script::answers(DATA)], seed);
        pool.scripts[1].plays(MS, Act::Fails(Fault::Status(502)));
        let ((said, _), ()) = tokio::join!(pool.quick(), async {
            sleep(10 * MS).await;
            pool.scripts[1].plays(MS, Act::Answers(DATA));
        });
        assert_eq!(said, result(DATA));

        while pool.availability(1) == Availability::Up {
            pool.nodes[1].record_fault(Fault::Timeout, Instant::now());
        }
        pool.scripts[1].plays(200 * MS, Act::Answers(DATA));
        assert_eq!(pool.quick().await.0, result(DATA));
    }
}

/// A node was stopped, and every null waited for it for half of the time that a call has.
#[tokio::test(start_paused = true)]
async fn null_is_kept_back_for_a_slow_node_and_not_for_a_silent_one() {
    for seed in 0..20 {
        let pool = Pool::seeded(vec![Script::answers(NULL), Script::answers(NULL), Script::hangs()], seed);
        let (said, took) = pool.quick().await;
        assert_eq!(said, result(NULL));
        assert!(took <= 600 * MS, "{took:?}");
        pool.scripts[2].plays(900 * MS, Act::Answers(DATA));
        let ((said, _), _) = tokio::join!(pool.quick(), async {
            // It answers somebody else meanwhile.
            sleep(100 * MS).await;
            pool.scripts[2].plays(MS, Act::Answers(DATA));
            pool.nodes[2].ask(&quick(), Instant::now() + SECOND).await
        });
        assert_eq!(said, result(DATA));
    }
}

/// The only node that had a transaction seemed to be down, and another one's null was the answer.
#[tokio::test(start_paused = true)]
async fn null_is_no_answer_while_a_node_that_seems_to_be_down_knows_better() {
    let pool = Pool::of([Script::answers(NULL), Script::answers(DATA), Script::fails(Fault::Closed)]);
    for _ in 0..20 {
        pool.falls(1);
        pool.falls(2);
        assert_eq!(pool.quick().await.0, result(DATA));
    }
}
