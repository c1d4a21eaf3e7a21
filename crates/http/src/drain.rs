//! Stages of a shutdown, as connections see them.

use std::time::Duration;

use tokio::sync::watch;

/// The fate of the listening sockets when a server stops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListenerEnd {
    /// Nobody else has them: connections are refused from then on.
    #[default]
    Closed,
    /// Another process has them, too, and accepts later; until then the kernel holds new connections for it.
    LeftOpen,
    /// Another process accepts from them already.
    TakenOver,
}

/// How a server stops.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DrainPlan {
    /// How long connections are told to end before idle ones are closed.
    pub(crate) delay: Duration,
    pub(crate) listeners: ListenerEnd,
}

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
