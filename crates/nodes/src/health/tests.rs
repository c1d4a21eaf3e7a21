use tokio::time::advance;

use super::*;

const CLOSED: Observation = Observation::Bad(Fault::Closed);

fn health_after(observations: &[Observation]) -> Health {
    let mut health = Health::default();
    observations.iter().for_each(|&observation| health.record(observation, Instant::now()));
    health
}

fn availability_after(observations: &[Observation]) -> Availability {
    health_after(observations).availability(Instant::now())
}

#[tokio::test(start_paused = true)]
async fn faults_in_a_row_lower_it_by_degrees() {
    assert_eq!(availability_after(&[CLOSED]), Availability::Up);
    assert_eq!(availability_after(&[CLOSED, CLOSED]), Availability::InDoubt);
    assert_eq!(availability_after(&[CLOSED, CLOSED, CLOSED]), Availability::InDoubt);
    assert_eq!(availability_after(&[CLOSED, CLOSED, CLOSED, CLOSED]), Availability::Down);
}

#[tokio::test(start_paused = true)]
async fn a_good_reply_in_between_forgives_what_came_before() {
    assert_eq!(
        availability_after(&[CLOSED, Observation::Good, CLOSED, Observation::Good, CLOSED]),
        Availability::Up
    );
    assert_eq!(
        availability_after(&[CLOSED, CLOSED, CLOSED, Observation::Good, CLOSED]),
        Availability::InDoubt
    );
}

#[tokio::test(start_paused = true)]
async fn silence_weighs_less_than_a_timeout() {
    assert_eq!(availability_after(&[Observation::Bad(Fault::Timeout)]), Availability::Up);
    assert_eq!(availability_after(&[Observation::Silent; 3]), Availability::Up);
    assert_eq!(availability_after(&[Observation::Silent; 4]), Availability::InDoubt);
}

const WRONG: Observation = Observation::Bad(Fault::Wrong);

/// A node that was proven wrong was probed after less than a second, and kept answering by its probes.
#[tokio::test(start_paused = true)]
async fn a_node_proven_wrong_is_excluded_for_minutes_and_comes_back_slowly() {
    let mut health = health_after(&[WRONG]);
    let left = |health: &Health| health.excluded_for(Instant::now());
    assert_eq!(
        (health.availability(Instant::now()), left(&health)),
        (Availability::Down, Some(state::EXCLUSION_MIN))
    );
    // Neither good replies nor time-outs change that, and neither do other wrong answers of the same moment.
    [Observation::Good, Observation::PollGood, CLOSED, WRONG, WRONG]
        .iter()
        .for_each(|&observation| health.record(observation, Instant::now()));
    assert_eq!(
        (health.availability(Instant::now()), left(&health)),
        (Availability::Down, Some(state::EXCLUSION_MIN))
    );
    assert!(!health.begin_probe(Instant::now()));
    advance(state::EXCLUSION_MIN).await;
    assert!(health.begin_probe(Instant::now()));
    for _ in 0..30 {
        health.record(Observation::Good, Instant::now());
        assert_eq!(health.availability(Instant::now()), Availability::InDoubt);
    }
    health.record(Observation::Good, Instant::now());
    assert_eq!(health.availability(Instant::now()), Availability::Up);
    health.record(WRONG, Instant::now());
    assert_eq!(left(&health), Some(2 * state::EXCLUSION_MIN), "the next wrong answer costs more");
}

/// Each poll that was answered forgave what calls had shown. A node that answered polls and hung on everything else was asked
/// again and again, and half of the calls took seconds.
#[tokio::test(start_paused = true)]
async fn polls_forgive_only_what_polls_have_shown() {
    let hangs = [Observation::Silent, Observation::PollGood].repeat(8);
    assert_eq!(availability_after(&hangs), Availability::Down);
    let polls = [Observation::PollBad(Fault::Timeout); 4];
    assert_eq!(availability_after(&polls), Availability::Down);
    let mut back = polls.to_vec();
    back.extend([Observation::PollGood; 4]);
    assert_eq!(availability_after(&back), Availability::Up);
}

#[tokio::test(start_paused = true)]
async fn too_many_requests_is_a_short_rest_and_nothing_else() {
    let health = health_after(&[Observation::Bad(Fault::RateLimited); 9]);
    assert_eq!(health.availability(Instant::now()), Availability::RateLimited);
    advance(RATE_LIMITED).await;
    assert_eq!(health.availability(Instant::now()), Availability::Up);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_down_is_probed_by_one_at_a_time() {
    let mut health = health_after(&[CLOSED; 4]);
    assert!(!health.begin_probe(Instant::now()), "before its back-off is over");
    advance(BACK_OFF_MIN).await;
    assert!(health.begin_probe(Instant::now()));
    assert!(!health.begin_probe(Instant::now()), "while another is at it");
    health.record(Observation::Good, Instant::now());
    assert_eq!(health.availability(Instant::now()), Availability::InDoubt);
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_never_reports_is_forgotten() {
    let mut health = health_after(&[CLOSED; 4]);
    advance(BACK_OFF_MIN).await;
    assert!(health.begin_probe(Instant::now()));
    advance(PROBE_MAX).await;
    assert!(health.begin_probe(Instant::now()));
}

#[tokio::test(start_paused = true)]
async fn the_back_off_doubles_with_each_bad_probe_up_to_five_seconds() {
    let mut health = health_after(&[CLOSED; 4]);
    let mut waits_ms = Vec::new();
    for _ in 0..9 {
        let due = health.probe_at().unwrap();
        waits_ms.push((due - Instant::now()).as_millis());
        advance(due - Instant::now()).await;
        assert!(health.begin_probe(Instant::now()));
        health.record(CLOSED, Instant::now());
    }
    for (wait_ms, most_ms) in waits_ms.iter().zip([100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000, 5_000]) {
        assert!((most_ms * 3 / 4..=most_ms).contains(wait_ms), "{waits_ms:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn late_faults_of_calls_that_were_in_flight_do_not_lengthen_the_back_off() {
    let health = health_after(&[CLOSED; 60]);
    assert!(health.probe_at().unwrap() <= Instant::now() + BACK_OFF_MIN);
}

#[tokio::test(start_paused = true)]
async fn after_a_minute_down_it_is_up_again_within_seconds_of_its_return() {
    let mut health = health_after(&[CLOSED; 4]);
    let dead_until = Instant::now() + Duration::from_secs(60);
    let mut now = Instant::now();
    while health.availability(now) != Availability::Up {
        now = health.probe_at().unwrap();
        assert!(health.begin_probe(now));
        health.record(if now < dead_until { CLOSED } else { Observation::Good }, now);
    }
    assert!(now - dead_until < Duration::from_secs(7), "{:?}", now - dead_until);
}
