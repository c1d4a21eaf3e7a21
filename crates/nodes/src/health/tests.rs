use tokio::time::advance;

use super::*;

const CLOSED: Sign = Sign::Bad(Fault::Closed);

fn told(signs: &[Sign]) -> Health {
    let health = Health::new(Instant::now());
    signs.iter().for_each(|&sign| health.record(sign, Instant::now()));
    health
}

fn grade_after(signs: &[Sign]) -> Grade {
    told(signs).grade(Instant::now())
}

#[tokio::test(start_paused = true)]
async fn faults_in_a_row_lower_it_by_degrees() {
    assert_eq!(grade_after(&[CLOSED]), Grade::Up);
    assert_eq!(grade_after(&[CLOSED, CLOSED]), Grade::Doubted);
    assert_eq!(grade_after(&[CLOSED, CLOSED, CLOSED]), Grade::Doubted);
    assert_eq!(grade_after(&[CLOSED, CLOSED, CLOSED, CLOSED]), Grade::Down);
}

#[tokio::test(start_paused = true)]
async fn a_good_reply_in_between_forgives_what_came_before() {
    assert_eq!(grade_after(&[CLOSED, Sign::Good, CLOSED, Sign::Good, CLOSED]), Grade::Up);
    assert_eq!(grade_after(&[CLOSED, CLOSED, CLOSED, Sign::Good, CLOSED]), Grade::Doubted);
}

#[tokio::test(start_paused = true)]
async fn silence_weighs_less_than_a_timeout() {
    assert_eq!(grade_after(&[Sign::Bad(Fault::Timeout)]), Grade::Up);
    assert_eq!(grade_after(&[Sign::Silent; 3]), Grade::Up);
    assert_eq!(grade_after(&[Sign::Silent; 4]), Grade::Doubted);
}

const LIE: Sign = Sign::Bad(Fault::Wrong);

/// A liar was probed after less than a second and lived by its probes.
#[tokio::test(start_paused = true)]
async fn a_liar_is_left_out_for_minutes_and_comes_back_slowly() {
    let health = told(&[LIE]);
    let left = |health: &Health| health.left_out_for_lie(Instant::now());
    assert_eq!((health.grade(Instant::now()), left(&health)), (Grade::Down, Some(state::LIE_TIME_MIN)));
    // Neither good replies nor time-outs change that, and neither do other lies of the same moment.
    [Sign::Good, Sign::PollGood, CLOSED, LIE, LIE]
        .iter()
        .for_each(|&sign| health.record(sign, Instant::now()));
    assert_eq!((health.grade(Instant::now()), left(&health)), (Grade::Down, Some(state::LIE_TIME_MIN)));
    assert!(!health.begin_probe(Instant::now()));
    advance(state::LIE_TIME_MIN).await;
    assert!(health.begin_probe(Instant::now()));
    for _ in 0..30 {
        health.record(Sign::Good, Instant::now());
        assert_eq!(health.grade(Instant::now()), Grade::Doubted);
    }
    health.record(Sign::Good, Instant::now());
    assert_eq!(health.grade(Instant::now()), Grade::Up);
    health.record(LIE, Instant::now());
    assert_eq!(left(&health), Some(2 * state::LIE_TIME_MIN), "the next lie costs more");
}

/// Each poll that was answered forgave what calls had shown. A node that answered polls and hung on everything else was asked
/// again and again, and half of the calls took seconds.
#[tokio::test(start_paused = true)]
async fn polls_forgive_only_what_polls_have_shown() {
    let hangs = [Sign::Silent, Sign::PollGood].repeat(8);
    assert_eq!(grade_after(&hangs), Grade::Down);
    let polls = [Sign::PollBad(Fault::Timeout); 4];
    assert_eq!(grade_after(&polls), Grade::Down);
    let mut back = polls.to_vec();
    back.extend([Sign::PollGood; 4]);
    assert_eq!(grade_after(&back), Grade::Up);
}

#[tokio::test(start_paused = true)]
async fn too_many_requests_is_a_short_rest_and_nothing_else() {
    let health = told(&[Sign::Bad(Fault::RateLimited); 9]);
    assert_eq!(health.grade(Instant::now()), Grade::Resting);
    advance(REST).await;
    assert_eq!(health.grade(Instant::now()), Grade::Up);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_down_is_probed_by_one_at_a_time() {
    let health = told(&[CLOSED; 4]);
    assert!(!health.begin_probe(Instant::now()), "before its back-off is over");
    advance(BACK_OFF_MIN).await;
    assert!(health.begin_probe(Instant::now()));
    assert!(!health.begin_probe(Instant::now()), "while another is at it");
    health.record(Sign::Good, Instant::now());
    assert_eq!(health.grade(Instant::now()), Grade::Doubted);
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_never_reports_is_forgotten() {
    let health = told(&[CLOSED; 4]);
    advance(BACK_OFF_MIN).await;
    assert!(health.begin_probe(Instant::now()));
    advance(PROBE_MAX).await;
    assert!(health.begin_probe(Instant::now()));
}

#[tokio::test(start_paused = true)]
async fn the_back_off_doubles_with_each_bad_probe_up_to_five_seconds() {
    let health = told(&[CLOSED; 4]);
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
    let health = told(&[CLOSED; 60]);
    assert!(health.probe_at().unwrap() <= Instant::now() + BACK_OFF_MIN);
}

#[tokio::test(start_paused = true)]
async fn after_a_minute_down_it_is_up_again_within_seconds_of_its_return() {
    let health = told(&[CLOSED; 4]);
    let dead_until = Instant::now() + Duration::from_secs(60);
    let mut now = Instant::now();
    while health.grade(now) != Grade::Up {
        now = health.probe_at().unwrap();
        assert!(health.begin_probe(now));
        health.record(if now < dead_until { CLOSED } else { Sign::Good }, now);
    }
    assert!(now - dead_until < Duration::from_secs(7), "{:?}", now - dead_until);
}
