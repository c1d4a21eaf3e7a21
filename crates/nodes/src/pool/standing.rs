//! Whether what nodes have said is still taken for true.

use std::time::Duration;

use tokio::time::Instant;

use super::Pool;
use crate::trust::{Standing, TrustMark};

/// How long an answer that could not be asked for again is served before that is tried once more: a try may take seconds.
const ASKED_AGAIN_AFTER: Duration = Duration::from_secs(5);

impl Pool {
    /// The mark of what nodes are asked from now on. It is taken before they are asked, so that what is found out about them
    /// meanwhile counts against what they say.
    pub fn trust_mark(&self) -> TrustMark {
        TrustMark { epoch: self.view.trust_epoch().now(), until: Instant::now() + self.confirmed_for }
    }

    pub fn standing(&self, trust: TrustMark) -> Standing {
        trust.standing(self.view.trust_epoch().now())
    }

    /// The same for a few seconds more, because it has expired and could not be asked for again.
    pub fn prolonged(&self, trust: TrustMark) -> TrustMark {
        TrustMark { until: Instant::now() + ASKED_AGAIN_AFTER, ..trust }
    }

    /// Records that a quorum says something else than a quorum has said before. So everything that was confirmed by then is asked
    /// again, except what nodes say now.
    pub fn record_correction(&self, asked: &mut TrustMark) {
        self.view.trust_epoch().raise();
        asked.survive_raise();
    }
}
