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
