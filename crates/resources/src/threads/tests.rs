use std::sync::mpsc;
use std::time::Duration;

use super::*;

/// How long a test waits for something that must happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// A job that runs until its sender is dropped, and the event that it has begun.
fn endless(threads: &Threads, account: AccountId) -> (mpsc::Sender<()>, mpsc::Receiver<()>) {
    let (release, released) = mpsc::channel::<()>();
    let (begin, begun) = mpsc::channel();
    let job = move || {
        let _unheard = begin.send(());
        let _released = released.recv();
    };
    threads.submit(account, job).unwrap();
    (release, begun)
}

/// Beside 64 simulations without end of one account, the calls of others used to wait for four seconds.
#[test]
fn an_account_with_endless_jobs_delays_nobody_else() {
    let threads = Threads::start(2, 4_096).unwrap();
    let (greedy, other) = (AccountId::unique(), AccountId::unique());
    let jobs: Vec<_> = (0..64).map(|_| endless(&threads, greedy)).collect();
    jobs[0].1.recv_timeout(PATIENCE).unwrap();
    for number in 0..100 {
        let (sender, receiver) = mpsc::channel();
        threads.submit(other, move || sender.send(number).unwrap()).unwrap();
        assert_eq!(receiver.recv_timeout(PATIENCE), Ok(number));
    }
    assert!(threads.waiting() >= 62, "not one of the endless jobs has ended");
    drop(jobs);
}

// Both jobs were submitted before the only idle thread had woken up, so no second thread was started, and the other account
// waited for the endless job.
#[test]
fn a_job_is_not_left_waiting_because_a_thread_is_about_to_wake_up() {
    for _ in 0..50 {
        let threads = Threads::start(1, 100).unwrap();
        let (_release, _begun) = endless(&threads, AccountId::unique());
        let (sender, receiver) = mpsc::channel();
        threads.submit(AccountId::unique(), move || sender.send(()).unwrap()).unwrap();
        assert_eq!(receiver.recv_timeout(PATIENCE), Ok(()));
    }
}

// A body that its caller had given up stayed in memory until the queue had come to it, and was read for nobody.
#[tokio::test]
async fn a_job_that_nobody_waits_for_does_not_run() {
    let threads = Threads::start(1, 100).unwrap();
    let account = AccountId::unique();
    let (release, begun) = endless(&threads, account);
    begun.recv_timeout(PATIENCE).unwrap();
    let (sender, receiver) = mpsc::channel();
    let abandoned = tokio::time::timeout(Duration::ZERO, threads.run(account, move || sender.send(())));
    assert!(abandoned.await.is_err());
    drop(release);
    assert_eq!(receiver.recv_timeout(PATIENCE), Err(mpsc::RecvTimeoutError::Disconnected));
}

#[test]
fn jobs_that_panic_cost_no_thread() {
    let threads = Threads::start(1, 100).unwrap();
    let account = AccountId::unique();
    for _ in 0..20 {
        threads.submit(account, || panic!("a job that panics")).unwrap();
    }
    let (sender, receiver) = mpsc::channel();
    threads.submit(account, move || sender.send(()).unwrap()).unwrap();
    assert_eq!(receiver.recv_timeout(PATIENCE), Ok(()));
}
