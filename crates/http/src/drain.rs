//! How the end of the gateway reaches its connections.

use std::time::Duration;

use tokio::sync::watch;

/// How far the drain of a worker has come, as its connections see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DrainStage {
    Serving,
    /// Every request is still answered, and callers are told to go elsewhere for the next one.
    Draining,
    /// Connections without a request are closed.
    Closing,
}

/// Waits until a worker has reached the stage `wanted`.
pub(crate) async fn reached(stage: &mut watch::Receiver<DrainStage>, wanted: DrainStage) {
    // A worker that has ended has passed every stage.
    let _gone = stage.wait_for(|&stage| stage >= wanted).await.is_err();
}

/// Waits until a worker has gone further than `reached`.
pub(crate) async fn next_stage(stage: &mut watch::Receiver<DrainStage>, reached: DrainStage) -> DrainStage {
    let next = stage.wait_for(|&stage| stage > reached).await.map(|stage| *stage);
    match next {
        Ok(next) => next,
        Err(_) if reached < DrainStage::Closing => DrainStage::Closing,
        Err(_) => std::future::pending().await,
    }
}

/// How long a connection without a request stays open after its last activity when the gateway is about to end: a request
/// may be on its way. Longer than a packet takes around the world.
pub(crate) const LAST_REQUEST_TIME: Duration = Duration::from_millis(500);
