//! How long what only nodes have said is taken for true.
//!
//! A quorum of liars may become honest, and an honest quorum may have been wrong. So an answer that nothing proves carries a
//! [`TrustMark`]: it is asked again after a time, and as soon as anything shows that nodes were believed wrongly.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tokio::time::Instant;

/// How long what a quorum has confirmed is taken for true, unless the configuration says otherwise.
pub const CONFIRMED_FOR: Duration = Duration::from_secs(60);

/// The trust epoch of a pool: a number that is raised when a node is proven wrong or leaves the chain, and when a quorum changes
/// its mind. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrustEpoch(Arc<AtomicU64>);

impl TrustEpoch {
    pub(crate) fn now(&self) -> u64 {
        self.0.load(Relaxed)
    }

    pub(crate) fn raise(&self) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// The trust epoch in which nodes were asked, and until when their answer is taken for true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrustMark {
    pub(crate) epoch: u64,
    pub(crate) until: Instant,
}

/// Whether something that nodes said is still taken for true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Good,
    /// It must be asked again. Where nobody can be asked, it is better than nothing.
    Expired,
    /// The trust epoch has ended since.
    Void,
}

impl TrustMark {
    /// The mark of a statement that must be asked for again before it is relied on.
    pub fn expired(epoch: u64) -> Self {
        Self { epoch, until: Instant::now() }
    }

    /// Keeps the mark valid although its own call has raised the trust epoch once: what the call confirms is the reason.
    pub fn survive_raise(&mut self) {
        self.epoch += 1;
    }

    /// Whether its time is over. It may have to be asked again earlier.
    pub(crate) fn is_over(self) -> bool {
        Instant::now() >= self.until
    }

    pub(crate) fn standing(self, epoch: u64) -> Standing {
        match self.epoch == epoch {
            false => Standing::Void,
            true if self.is_over() => Standing::Expired,
            true => Standing::Good,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_stands_until_its_time_is_over_or_the_epoch_ends() {
        let epoch = TrustEpoch::default();
        let mut mark = TrustMark { epoch: epoch.now(), until: Instant::now() + CONFIRMED_FOR };
        assert_eq!(mark.standing(epoch.now()), Standing::Good);
        epoch.clone().raise();
        assert_eq!(mark.standing(epoch.now()), Standing::Void);
        mark.survive_raise();
        assert_eq!(mark.standing(epoch.now()), Standing::Good);
        tokio::time::advance(CONFIRMED_FOR).await;
        assert_eq!(mark.standing(epoch.now()), Standing::Expired);
        epoch.raise();
        assert_eq!(mark.standing(epoch.now()), Standing::Void);
    }
}
