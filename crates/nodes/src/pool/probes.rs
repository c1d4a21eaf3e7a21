//! Probes of partners at intervals: otherwise a wrong key or chain would only be noticed in an outage.

use std::time::Duration;

use futures_util::future::join_all;
use resources::{Supervisor, WhenDown};
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::partner::Partner;
use crate::transport::Client;
use crate::view::NodesView;

/// How long a partner may take for its answer.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// Probes all partners, for as long as it is polled. `configured` is the chain as the operator names it.
pub(super) async fn run(
    partners: &[Partner<Client>],
    view: &NodesView,
    configured: Option<u64>,
    supervisor: &Supervisor,
) {
    let probes = partners.iter().map(|partner| async move {
        let name = format!("probe of partner {}", partner.node().name());
        let task = supervisor.task(name, WhenDown::Degraded);
        task.run(|| probe(partner, view, configured)).await;
    });
    join_all(probes).await;
}

async fn probe(partner: &Partner<Client>, view: &NodesView, configured: Option<u64>) {
    loop {
        let now = Instant::now();
        let next_at = now + partner.probe_interval();
        partner.probe(now + PROBE_TIMEOUT).await;
        if configured.is_none() {
            // Until the nodes have said which chain this is, there is nothing to compare with.
            let _ready = timeout_at(next_at, view.ready()).await;
        }
        partner.log_mismatch(view.chain_id().or(configured));
        sleep_until(next_at).await;
    }
}
