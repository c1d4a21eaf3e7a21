//! Stages of a shutdown, as connections see them.

use tokio::sync::watch;

/// The stage of a worker's shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DrainStage {
    Serving,
    /// Every request is still answered, and replies ask callers to open a new connection (`Connection: close`, GOAWAY).
    Draining,
    /// Idle connections are closed.
    Closing,
}

/// Waits until the worker has reached the stage `wanted`.
pub(crate) async fn reached(stage: &mut watch::Receiver<DrainStage>, wanted: DrainStage) {
    // An error means that the worker has ended, and so passed every stage.
    let _worker_ended = stage.wait_for(|&stage| stage >= wanted).await.is_err();
}

/// Waits until the worker has passed the stage `reached`, and returns its new stage.
pub(crate) async fn next_stage(stage: &mut watch::Receiver<DrainStage>, reached: DrainStage) -> DrainStage {
    let next = stage.wait_for(|&stage| stage > reached).await.map(|stage| *stage);
    match next {
        Ok(next) => next,
        Err(_) if reached < DrainStage::Closing => DrainStage::Closing,
        Err(_) => std::future::pending().await,
    }
}
