//! One honest node is enough, whatever the others do.

use proptest::prelude::*;

use super::*;

/// Everything that a node can do to a call.
fn any_script() -> impl Strategy<Value = Script> {
    let act = prop_oneof![
        Just(Act::Hangs),
        Just(Act::Answers(NULL)),
        Just(Act::Answers(LIE)),
        prop::sample::select(vec![NO_METHOD, NO_STATE, BROKEN]).prop_map(Act::Errs),
        prop::sample::select(vec![Fault::Closed, Fault::RateLimited, Fault::Wrong, Fault::Timeout])
            .prop_map(Act::Fails),
    ];
    (0_u32..2_000, act).prop_map(|(ms, act)| Script::new(ms * MS, act))
}

proptest! {
    /// With one honest and responsive node that has the block, and a budget, the answer is that node's answer.
    #[test]
    fn one_honest_node_is_enough(
        others in prop::collection::vec(any_script(), 0..7),
        place in any::<prop::sample::Index>(),
        took_ms in 0_u32..200,
        seed in any::<u64>(),
        may_hedge in any::<bool>(),
        calls in 1_usize..4,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
        runtime.block_on(async {
            let mut scripts = others;
            let place = place.index(scripts.len() + 1);
            scripts.insert(place, Script::new(took_ms * MS, Act::Answers(DATA)));
            let pool = Pool::seeded(scripts, seed);
            let call = RpcCall { may_hedge, ..quick() };
            for _ in 0..calls {
                let deadline = Instant::now() + 1_000 * SECOND;
                let answered = ask_one(pool.nodes.clone(), &call, &judge, &pool.rules, deadline).await;
                prop_assert_eq!(answered.answer.map(|answered| answered.reply), result(DATA));
            }
            Ok(())
        })?;
    }
}
