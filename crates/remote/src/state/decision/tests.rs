use alloy_primitives::Bytes as Data;
use proptest::prelude::*;

use super::*;

fn result(text: &'static str) -> Statement {
    Statement::Result(bytes::Bytes::from_static(text.as_bytes()))
}

fn reverted(data: &'static [u8]) -> Statement {
    Statement::Reverted(Data::from_static(data))
}

const THREE: Voters = Voters { nodes: 3, quorum: 2 };
const FIVE: Voters = Voters { nodes: 5, quorum: 3 };

/// The votes of nodes 0, 1, 2 …
fn votes(statements: &[Statement]) -> Vec<Vote> {
    (0..).map(id).zip(statements.iter().cloned()).collect()
}

fn id(node: usize) -> NodeId {
    NodeId::new(u32::try_from(node).expect("there are few nodes"))
}

/// Whether all of these nodes lie.
fn all_lie(nodes: &[NodeId], lying: &[bool]) -> bool {
    nodes.iter().all(|node| lying.iter().enumerate().any(|(liar, lies)| *lies && id(liar) == *node))
}

fn agreed(statement: Statement, contradicted: &[usize]) -> QuorumDecision {
    QuorumDecision::Agreed { statement, contradicted: contradicted.iter().copied().map(id).collect() }
}

fn decided(voters: Voters, statements: &[Statement]) -> QuorumDecision {
    decide(voters, &votes(statements), false)
}

#[test]
fn a_quorum_of_the_configured_nodes_decides_whoever_is_first() {
    let (truth, lie) = (result("1"), result("2"));
    let undecided = |missing| QuorumDecision::Undecided { missing };
    assert_eq!(decided(THREE, &[]), undecided(2));
    assert_eq!(decided(THREE, std::slice::from_ref(&lie)), undecided(1));
    assert_eq!(decided(THREE, &[lie.clone(), truth.clone()]), undecided(1));
    assert_eq!(decided(THREE, &[lie.clone(), truth.clone(), truth.clone()]), agreed(truth.clone(), &[0]));
    assert_eq!(
        decided(FIVE, &[lie.clone(), lie.clone(), truth.clone()]),
        undecided(1),
        "two are no quorum of five"
    );
    let all = [lie.clone(), lie, truth.clone(), truth.clone(), truth.clone()];
    assert_eq!(decided(FIVE, &all), agreed(truth, &[0, 1]));
}

#[test]
fn errors_are_answers_like_any_other() {
    let funds = Statement::Stopped(Execution::InsufficientFunds);
    let (value, revert, other_revert) = (result("\"0x1\""), reverted(b"abcd"), reverted(b"efgh"));
    assert_eq!(decided(THREE, &[revert.clone(), revert.clone()]), agreed(revert.clone(), &[]));
    assert_eq!(decided(THREE, &[revert.clone(), value.clone(), value.clone()]), agreed(value.clone(), &[0]));
    assert_eq!(decided(THREE, &[funds, value.clone(), value.clone()]), agreed(value, &[0]));
    assert_eq!(decided(THREE, &[other_revert, revert.clone()]), QuorumDecision::Undecided { missing: 1 });
    let silent = reverted(b"");
    assert_eq!(
        decided(THREE, &[silent, revert.clone(), revert.clone()]),
        agreed(revert, &[]),
        "some nodes do not tell the data of a revert"
    );
}

/// How much gas or time a node grants is its own affair.
#[test]
fn a_limit_of_a_node_is_outvoted_and_not_held_against_it() {
    let value = result("\"0x1\"");
    for limit in [Execution::OutOfGas, Execution::Timeout, Execution::GasAllowance { most: Some(7) }] {
        let limit = Statement::Stopped(limit);
        assert_eq!(
            decided(THREE, &[limit.clone(), value.clone(), value.clone()]),
            agreed(value.clone(), &[])
        );
        assert_eq!(decided(THREE, &[value.clone(), limit.clone(), limit.clone()]), agreed(limit, &[]));
    }
}

#[test]
fn how_much_gas_there_may_be_is_told_only_if_a_quorum_says_so() {
    let allowance = |most| Statement::Stopped(Execution::GasAllowance { most });
    assert_eq!(decided(THREE, &[allowance(Some(7)), allowance(Some(7))]), agreed(allowance(Some(7)), &[]));
    assert_eq!(decided(THREE, &[allowance(Some(7)), allowance(None)]), agreed(allowance(None), &[]));
    assert_eq!(decided(THREE, &[allowance(Some(7)), allowance(Some(9))]), agreed(allowance(None), &[]));
}

#[test]
fn estimates_that_differ_are_settled_by_their_median() {
    let numbers = |values: &[u128]| values.iter().copied().map(Statement::Estimate).collect::<Vec<_>>();
    let estimate = |value| agreed(Statement::Estimate(value), &[]);
    assert_eq!(decided(THREE, &numbers(&[100, 100])), estimate(100));
    assert_eq!(decided(THREE, &numbers(&[100, 101])), QuorumDecision::Undecided { missing: 1 });
    assert_eq!(decided(THREE, &numbers(&[100, 101, 1])), estimate(100));
    assert_eq!(decided(THREE, &numbers(&[100, 1_000_000, 101])), estimate(101));
    assert_eq!(decided(FIVE, &numbers(&[1, 1, 100, 101])), QuorumDecision::Undecided { missing: 1 });
    assert_eq!(decided(FIVE, &numbers(&[1, 1, 100, 101, 102])), estimate(100));
    let with_an_error = [vec![reverted(b"")], numbers(&[100, 101])].concat();
    assert_eq!(decided(THREE, &with_an_error), agreed(Statement::Estimate(101), &[0]));
}

/// With one node of three down there is no median, and clients differ by their tolerance.
#[test]
fn the_last_estimates_may_differ_by_the_tolerance_of_clients() {
    let last = |values: [u128; 2]| decide(THREE, &votes(&values.map(Statement::Estimate)), true);
    assert_eq!(last([100_000, 101_000]), agreed(Statement::Estimate(101_000), &[]));
    assert_eq!(last([101_000, 100_000]), agreed(Statement::Estimate(101_000), &[]));
    assert_eq!(last([100_000, 110_000]), QuorumDecision::Undecided { missing: 1 });
}

#[test]
fn a_configured_quorum_counts() {
    let (one, all) = (Voters { nodes: 3, quorum: 1 }, Voters { nodes: 3, quorum: 3 });
    assert_eq!(decided(one, &[result("1")]), agreed(result("1"), &[]));
    assert_eq!(decided(one, &[Statement::Estimate(7)]), agreed(Statement::Estimate(7), &[]));
    assert_eq!(decided(all, &[result("1"), result("1")]), QuorumDecision::Undecided { missing: 1 });
    assert_eq!(
        decided(all, &[result("1"), result("2"), result("1")]),
        QuorumDecision::Undecided { missing: 1 }
    );
}

/// The statements that nodes may make about one call: few enough that liars agree with each other, and with the truth, now and then.
fn statement() -> impl Strategy<Value = Statement> {
    prop_oneof![
        Just(result("\"0x1\"")),
        Just(result("\"0x2\"")),
        Just(reverted(b"")),
        Just(reverted(b"abcd")),
        Just(Statement::Stopped(Execution::InsufficientFunds)),
        Just(Statement::Stopped(Execution::OutOfGas)),
    ]
}

/// Nodes in the order in which they answer: whether each lies, and what it says if it does.
fn electorate() -> impl Strategy<Value = (Vec<bool>, Vec<Statement>)> {
    (1_usize..=9).prop_flat_map(|nodes| {
        let liars = nodes - (nodes / 2 + 1);
        let lying = (0..nodes).map(|node| node < liars).collect::<Vec<_>>();
        (Just(lying).prop_shuffle(), proptest::collection::vec(statement(), nodes))
    })
}

fn majority(nodes: usize) -> Voters {
    Voters { nodes, quorum: nodes / 2 + 1 }
}

/// The truth, the slow way: what more than half of all nodes say.
fn model(nodes: usize, votes: &[Vote]) -> Option<Statement> {
    let count = |wanted: &Statement| votes.iter().filter(|(_, said)| said == wanted).count();
    votes.iter().map(|(_, said)| said).find(|said| 2 * count(said) > nodes).cloned()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_minority_of_liars_changes_nothing((lying, lies) in electorate(), truth in statement()) {
        let voters = majority(lying.len());
        let mut votes = Vec::new();
        let mut decision = decide(voters, &votes, false);
        for (node, (is_lying, lie)) in lying.iter().zip(lies).enumerate() {
            let QuorumDecision::Undecided { missing } = decision else { break };
            prop_assert!(missing >= 1 && missing <= voters.nodes - votes.len(), "{missing} more are there");
            votes.push((id(node), if *is_lying { lie } else { truth.clone() }));
            decision = decide(voters, &votes, false);
        }
        let QuorumDecision::Agreed { statement, contradicted } = decision else {
            return Err(TestCaseError::fail("all honest nodes have answered"));
        };
        prop_assert_eq!(&statement, &truth);
        prop_assert_eq!(Some(statement), model(voters.nodes, &votes));
        prop_assert!(all_lie(&contradicted, &lying), "{:?}", contradicted);
    }

    #[test]
    fn a_minority_of_liars_moves_no_estimate_beyond_the_honest_ones(
        (lying, lies) in electorate(),
        honest in proptest::collection::vec(1_000_u128..1_020, 9),
        extremes in proptest::collection::vec(prop_oneof![Just(1_u128), Just(1_u128 << 90), 900_u128..1_200], 9),
        with_errors: bool,
        timed_out in proptest::collection::vec(prop::bool::weighted(0.2), 9),
    ) {
        let voters = majority(lying.len());
        let mut votes = Vec::new();
        let mut decision = decide(voters, &votes, false);
        for (node, is_lying) in lying.iter().enumerate() {
            if !matches!(decision, QuorumDecision::Undecided { .. }) { break }
            let said = match is_lying {
                true if with_errors && node % 2 == 0 => lies[node].clone(),
                true => Statement::Estimate(extremes[node]),
                false if timed_out[node] => Statement::Stopped(Execution::Timeout),
                false => Statement::Estimate(honest[node]),
            };
            votes.push((id(node), said));
            decision = decide(voters, &votes, false);
        }
        // Half of the nodes may lie where their number is even, and some have no estimate: then only estimates that are close
        // to each other count.
        let gave_up = votes.iter().any(|(_, said)| said.depends_on_the_node());
        let is_few = voters.nodes.is_multiple_of(2) || gave_up;
        if is_few && matches!(decision, QuorumDecision::Undecided { .. }) {
            decision = decide(voters, &votes, true);
        }
        let (estimate, contradicted) = match decision {
            QuorumDecision::Agreed { statement: Statement::Estimate(estimate), contradicted } => (estimate, contradicted),
            QuorumDecision::Undecided { .. } if is_few => return Ok(()),
            QuorumDecision::Agreed { statement: Statement::Stopped(Execution::Timeout), .. } if is_few => return Ok(()),
            other => return Err(TestCaseError::fail(format!("all honest nodes have answered: {other:?}"))),
        };
        let is_honest = |node: &usize| !lying[*node] && !timed_out[*node];
        let all_honest = || (0..lying.len()).filter(is_honest).map(|node| honest[node]);
        let (least, most) = (all_honest().min().unwrap(), all_honest().max().unwrap());
        let most = if is_few { most + most / (ESTIMATE_TOLERANCE_PART - 1) } else { most };
        prop_assert!((least..=most).contains(&estimate), "{estimate} is not in {least}..={most}");
        prop_assert!(all_lie(&contradicted, &lying));
    }
}

/// An honest node that ran out of time was taken for the liar, so that the median of the two others was the liar's number.
#[test]
fn a_node_that_gave_up_within_its_own_limits_leaves_room_for_a_liar() {
    let (honest, lie) = (Statement::Estimate(5_000_000), Statement::Estimate(1 << 100));
    for limit in
        [Execution::Timeout, Execution::OutOfGas, Execution::GasAboveLimit { most: None }, Execution::Failed]
    {
        let votes = votes(&[honest.clone(), Statement::Stopped(limit), lie.clone()]);
        for is_last in [false, true] {
            let decision = decide(THREE, &votes, is_last);
            assert!(matches!(decision, QuorumDecision::Undecided { .. }), "{limit:?}: {decision:?}");
        }
    }
    let close = [honest, Statement::Stopped(Execution::Timeout), Statement::Estimate(5_010_000)];
    assert_eq!(decide(THREE, &votes(&close), true), agreed(Statement::Estimate(5_010_000), &[]));
}

/// One of two nodes lied about an estimate, and its number was the median.
#[test]
fn two_nodes_that_estimate_differently_decide_nothing() {
    let votes = [(id(0), Statement::Estimate(50_000)), (id(1), Statement::Estimate(0x7fff_ffff))];
    for is_last in [false, true] {
        let decision = decide(majority(2), &votes, is_last);
        assert!(matches!(decision, QuorumDecision::Undecided { .. }), "{decision:?}");
    }
}
