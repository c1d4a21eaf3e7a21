use std::sync::mpsc;
use std::time::Duration;

use super::*;

/// Maximum time that a test waits for an expected event.
const PATIENCE: Duration = Duration::from_secs(60);

/// Submits a job that runs until the sender is dropped; the receiver reports its start.
fn endless(threads: &ThreadPool, account: AccountId) -> (mpsc::Sender<()>, mpsc::Receiver<()>) {
    let (release, released) = mpsc::channel::<()>();
    let (begin, begun) = mpsc::channel();
    let job = move || {
        let _ = begin.send(());
        let _released = released.recv();
    };
    threads.submit(account, job).unwrap();
    (release, begun)
}

/// The calls of other accounts waited for four seconds while one account ran 64 endless simulations.
#[test]
fn an_account_with_endless_jobs_does_not_delay_others() {
    let threads = ThreadPool::start(2, 4_096).unwrap();
    let (greedy, other) = (AccountId::unique(), AccountId::unique());
    let jobs: Vec<_> = (0..64).map(|_| endless(&threads, greedy)).collect();
    jobs[0].1.recv_timeout(PATIENCE).unwrap();
    for number in 0..100 {
        let (sender, receiver) = mpsc::channel();
        threads.submit(other, move || sender.send(number).unwrap()).unwrap();
        assert_eq!(receiver.recv_timeout(PATIENCE), Ok(number));
    }
    assert!(threads.waiting() >= 62, "no endless job has ended");
    drop(jobs);
}

/// Both jobs were submitted before the only idle thread had woken up, so no second thread was started, and the other account
/// waited for the endless job.
#[test]
fn a_notified_thread_does_not_count_as_idle_for_two_jobs() {
    for _ in 0..50 {
        let threads = ThreadPool::start(1, 100).unwrap();
        let (_release, _begun) = endless(&threads, AccountId::unique());
        let (sender, receiver) = mpsc::channel();
        threads.submit(AccountId::unique(), move || sender.send(()).unwrap()).unwrap();
        assert_eq!(receiver.recv_timeout(PATIENCE), Ok(()));
    }
}

/// The body of a disconnected caller stayed in memory until its job had run.
#[tokio::test]
async fn a_job_whose_caller_is_gone_does_not_run() {
    let threads = ThreadPool::start(1, 100).unwrap();
    let account = AccountId::unique();
    let (release, begun) = endless(&threads, account);
    begun.recv_timeout(PATIENCE).unwrap();
    let (sender, receiver) = mpsc::channel();
    let abandoned = tokio::time::timeout(Duration::ZERO, threads.run(account, move || sender.send(())));
    assert!(abandoned.await.is_err());
    drop(release);
    assert_eq!(receiver.recv_timeout(PATIENCE), Err(mpsc::RecvTimeoutError::Disconnected));
}

/// Both were one value, so callers were told of our own fault that the gateway is over capacity.
#[tokio::test]
async fn a_job_that_panics_is_told_from_one_that_is_refused() {
    let threads = ThreadPool::start(1, 1).unwrap();
    let account = AccountId::unique();
    assert_eq!(threads.run(account, || 7).await, Ok(7));
    assert_eq!(threads.run(account, || panic!("a fault of ours")).await, Err::<(), _>(PoolFailure::Panicked));
    let (_release, begun) = endless(&threads, account);
    begun.recv_timeout(PATIENCE).unwrap();
    while threads.submit(account, || ()).is_ok() {}
    assert_eq!(threads.run(account, || 7).await, Err(PoolFailure::Refused));
}

#[test]
fn a_panic_does_not_end_a_thread() {
    let threads = ThreadPool::start(1, 100).unwrap();
    let account = AccountId::unique();
    for _ in 0..20 {
        threads.submit(account, || panic!("a job that panics")).unwrap();
    }
    let (sender, receiver) = mpsc::channel();
    threads.submit(account, move || sender.send(()).unwrap()).unwrap();
    assert_eq!(receiver.recv_timeout(PATIENCE), Ok(()));
}
