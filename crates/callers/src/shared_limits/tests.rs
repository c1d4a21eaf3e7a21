//! Shared limits in simulations, and with a real Redis.

mod model_redis; // the script, written a second time
mod real_redis; // the same with a server
mod simulation; // instances and a network in virtual time

use proptest::prelude::*;

use simulation::{NetworkFault, Outage, PRICE, Scenario, Simulation};

const NO_FAULT: NetworkFault = NetworkFault { out_ms: 0, back_ms: 5, is_lost: false, is_reply_lost: false };

fn scenario(per_second: u64, demands: &[u64]) -> Scenario {
    Scenario {
        per_second,
        instances: demands.iter().map(|&demand| (0, vec![demand])).collect(),
        faults: vec![NO_FAULT],
        outages: Vec::new(),
    }
}

/// The relative difference between what was granted and a limit, in tenths of a percent.
fn difference(granted: u64, limit: u64) -> i64 {
    (granted as i64 - limit as i64) * 1_000 / limit as i64
}

#[test]
fn three_instances_grant_the_limit_within_two_percent_at_five_times_the_load() {
    for (per_second, demands) in [
        (4_000, [6_667, 6_667, 6_667]),
        (4_000, [18_000, 1_600, 400]),
        (4_000, [20_000, 0, 0]),
        (500, [833, 833, 833]),
        (100_000, [100_000, 300_000, 100_000]),
    ] {
        let outcome = Simulation::run(scenario(per_second, &demands), 33_000);
        let granted = outcome.granted_between(3_000, 33_000);
        let off = difference(granted, per_second * 30);
        assert!((-20..=20).contains(&off), "{per_second} {demands:?}: {granted} granted, {off} ‰ off");
        let total = outcome.granted_between(0, 33_000);
        assert!(total <= per_second * 31 + 3 * PRICE, "{total} granted at {per_second} per second");
    }
}

#[test]
fn a_limit_that_one_instance_uses_alone_is_granted_as_without_redis() {
    let outcome = Simulation::run(scenario(4_000, &[8_000]), 13_000);
    // The first instance of all waits before it serves.
    assert_eq!(outcome.granted_between(0, 3_000), 0);
    let off = difference(outcome.granted_between(3_000, 13_000), 44_000);
    assert!((-5..=5).contains(&off), "{off} ‰ off");
}

#[test]
fn callers_that_move_between_instances_get_the_limit_again_within_seconds() {
    let mut moving = scenario(4_000, &[0, 0]);
    moving.instances[0].1 = [vec![20_000; 10], vec![0; 10]].concat();
    moving.instances[1].1 = [vec![0; 10], vec![20_000; 10]].concat();
    let outcome = Simulation::run(moving, 40_000);
    for from in [13_000, 23_000, 33_000] {
        let off = difference(outcome.granted_between(from, from + 7_000), 28_000);
        assert!((-20..=20).contains(&off), "{off} ‰ off from {from} ms");
    }
    assert!(outcome.granted_between(0, 40_000) <= 38 * 4_000 + 2 * PRICE);
}

#[test]
fn without_redis_every_instance_keeps_its_part_and_later_ones_get_little() {
    let mut outage = scenario(4_000, &[6_667, 6_667, 6_667, 6_667]);
    outage.instances[3].0 = 15_000;
    outage.outages = vec![Outage { from_ms: 10_000, to_ms: 30_000, forgets: true }];
    let outcome = Simulation::run(outage, 45_000);
    let off = difference(outcome.granted_between(12_000, 15_000), 12_000);
    assert!((-20..=20).contains(&off), "{off} ‰ off without Redis");
    let off = difference(outcome.granted_between(20_000, 30_000), 40_000);
    assert!((0..=50).contains(&off), "{off} ‰ off with another instance");
    let off = difference(outcome.granted_between(34_000, 45_000), 44_000);
    assert!((-20..=20).contains(&off), "{off} ‰ off after Redis is back");
    assert!((17..45).all(|second| outcome.served.iter().all(|served| served.contains_key(&second))));
}

/// Redis knew nothing, so it gave the whole limit to the instance that had just started, while the other still used it.
#[test]
fn an_instance_that_starts_when_redis_returns_without_its_data_waits_for_the_others() {
    for starts_ms in (11_000..14_000).step_by(25) {
        let mut outage = scenario(4_000, &[8_000, 8_000]);
        outage.instances[1].0 = starts_ms;
        outage.faults = vec![NetworkFault { out_ms: 0, back_ms: 400, ..NO_FAULT }];
        outage.outages = vec![Outage { from_ms: 10_000, to_ms: 12_000, forgets: true }];
        let outcome = Simulation::run(outage, 30_000);
        let rates = outcome.rates_max;
        assert!(rates <= 4_800, "rates of {rates} with an instance that starts at {starts_ms} ms");
        let off = difference(outcome.granted_between(20_000, 30_000), 40_000);
        assert!((-20..=20).contains(&off), "{off} ‰ off with an instance that starts at {starts_ms} ms");
    }
}

#[test]
fn an_instance_that_joins_a_limit_in_use_soon_serves_its_few_callers() {
    let mut joining = scenario(4_000, &[20_000, 0, 0]);
    joining.instances[1].1 = [vec![0; 10], vec![80; 20]].concat();
    let outcome = Simulation::run(joining, 30_000);
    assert!((14..30).all(|second| outcome.served[1].contains_key(&second)), "{:?}", outcome.served[1]);
    assert!(outcome.granted_between(3_000, 30_000) <= 28 * 4_000 + 2 * PRICE);
}

fn fault() -> impl Strategy<Value = NetworkFault> {
    let delay = || prop_oneof![6 => 0..20_u64, 3 => 20..250_u64, 1 => 250..2_500_u64];
    (delay(), delay(), prop::bool::weighted(0.1), prop::bool::weighted(0.1)).prop_map(
        |(out_ms, back_ms, is_lost, is_reply_lost)| NetworkFault { out_ms, back_ms, is_lost, is_reply_lost },
    )
}

fn outage() -> impl Strategy<Value = Outage> {
    (0..25_000_u64, 10..12_000_u64, any::<bool>()).prop_map(|(from_ms, length, forgets)| Outage {
        from_ms,
        to_ms: from_ms + length,
        forgets,
    })
}

fn faulty() -> impl Strategy<Value = Scenario> {
    let demand = prop::collection::vec(prop_oneof![Just(0), 0..2_000_u64, 2_000..20_000_u64], 1..6);
    let instances = prop::collection::vec((prop_oneof![3 => Just(0), 1 => 0..20_000_u64], demand), 1..6);
    let faults = prop::collection::vec(fault(), 1..60);
    let outages = prop::collection::vec(outage(), 0..5);
    (400..8_000_u64, instances, faults, outages).prop_map(|(per_second, instances, faults, outages)| {
        Scenario { per_second, instances, faults, outages }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Whatever is lost, late or forgotten: the rates of all instances together are never above 1.2 times the limit, and
    /// what is granted is never above that, two bursts and one call of each instance.
    #[test]
    fn no_fault_of_redis_or_the_network_grants_more_than_the_limit_and_a_fifth(scenario in faulty()) {
        let (limit, count) = (scenario.per_second, scenario.instances.len() as u64);
        let outcome = Simulation::run(scenario, 35_000);
        prop_assert!(
            outcome.rates_max <= limit * 6 / 5 + count,
            "rates of {} at a limit of {}", outcome.rates_max, limit
        );
        let granted: u64 = outcome.granted.iter().sum();
        prop_assert!(granted * 10 <= limit * 12 * 32 + 20 * limit + 10 * count * PRICE, "{} granted", granted);
    }
}
