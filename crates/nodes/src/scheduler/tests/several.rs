//! Calls for several answers, and for one of every node.

use std::collections::HashSet;

use super::*;

impl Pool {
    fn several<'a>(&'a self, call: &'a RpcCall, wanted: Wanted) -> SeveralAnswers<'a, Script> {
        SeveralAnswers::new(self.nodes.clone(), call, wanted, &self.rules, Instant::now() + 10 * SECOND)
    }
}

/// A look-up that needs no old state, which a vote may only come from nodes that were shown to have it.
fn lookup() -> RpcCall {
    RpcCall { needs: Needs { block: Some(90), ..Needs::default() }, ..quick() }
}

/// They were asked every 50 ms for two seconds, forty times, and no budget paid for it.
#[tokio::test(start_paused = true)]
async fn nodes_that_do_not_have_the_block_are_asked_again_after_growing_pauses() {
    let pool = Pool::of([Script::new(MS, Act::Errs(NO_BLOCK)), Script::new(MS, Act::Errs(NO_BLOCK))]);
    let (call, began) = (lookup(), Instant::now());
    let over = pool.several(&call, Wanted::Several).next(2).await;
    assert!(matches!(over, AnswersEvent::Over), "{over:?}");
    assert!(began.elapsed() < 2 * SECOND, "{:?}", began.elapsed());
    assert!((4..=6).contains(&pool.scripts[0].asked()), "{}", pool.scripts[0].asked());
    pool.spend_retries();
    let asked = pool.asked();
    pool.several(&call, Wanted::Several).next(2).await;
    assert!(pool.asked() - asked <= 2 * (1 + u64::from(policy::LATE_FREE_MAX)) + 20, "the budget pays");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_has_the_block_a_moment_later_answers() {
    let pool = Pool::of([Script::new(MS, Act::Errs(NO_BLOCK)), Script::answers(DATA)]);
    let call = lookup();
    let mut several = pool.several(&call, Wanted::Several);
    let mut nodes = HashSet::new();
    let ask = async {
        for wanted in [2, 1] {
            match several.next(wanted).await {
                AnswersEvent::Answer(answer) => assert!(nodes.insert(answer.node), "it has voted twice"),
                event => panic!("{event:?}"),
            }
        }
    };
    tokio::join!(ask, async {
        sleep(120 * MS).await;
        pool.scripts[0].plays(MS, Act::Answers(DATA));
    });
    assert_eq!(nodes.len(), 2);
}

/// The third must decide, and hangs.
#[tokio::test(start_paused = true)]
async fn the_asker_is_told_once_when_the_others_hang_and_they_are_given_up() {
    let pool = Pool::of([Script::answers(DATA), Script::hangs(), Script::hangs()]);
    let (call, began) = (lookup(), Instant::now());
    let mut several = pool.several(&call, Wanted::Several);
    let (mut answers, mut stalled) = (0, Vec::new());
    loop {
        match several.next(2 - answers).await {
            AnswersEvent::Answer(_) => answers += 1,
            AnswersEvent::Stalled => stalled.push(began.elapsed()),
            AnswersEvent::Failed { .. } => {}
            AnswersEvent::Over => break,
        }
    }
    assert_eq!((answers, stalled.len()), (1, 1));
    assert!(stalled[0] <= 2 * SECOND && began.elapsed() <= 4 * SECOND, "{stalled:?} {:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn every_node_is_asked_and_one_that_fails_once_more() {
    let pool = Pool::of([Script::answers(DATA), Script::fails(Fault::Status(503)), Script::answers(NULL)]);
    let call = lookup();
    let mut everyone = pool.several(&call, Wanted::All);
    let (mut answered, mut failures) = (HashSet::new(), 0);
    loop {
        match everyone.next(1).await {
            AnswersEvent::Answer(answer) => assert!(answered.insert(answer.node)),
            AnswersEvent::Failed { node, .. } => failures += u32::from(node == pool.nodes[1].id()),
            AnswersEvent::Stalled => panic!("everybody is waited for"),
            AnswersEvent::Over => break,
        }
    }
    assert_eq!((answered.len(), failures, pool.asked()), (2, 2, 4));
}

/// A node that is slow may know what nobody else does.
#[tokio::test(start_paused = true)]
async fn a_slow_node_is_waited_for_where_all_are_asked() {
    let pool = Pool::of([Script::answers(NULL), Script::new(8 * SECOND, Act::Answers(DATA))]);
    let call = lookup();
    let mut everyone = pool.several(&call, Wanted::All);
    for _ in 0..2 {
        let event = everyone.next(1).await;
        assert!(matches!(event, AnswersEvent::Answer(_)), "{event:?}");
    }
    assert_eq!(pool.availability(1), Availability::Up);
}
