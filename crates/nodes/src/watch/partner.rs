//! The watcher of a partner. Each of its questions costs money, so it asks seldom whether the partner answers and is of this chain.
//! Otherwise a wrong key or url would only be noticed in an outage.

use std::sync::Arc;
use std::time::Duration;

use resources::DAY_S;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::chain::Identity;
use super::questions::{NodeIntroduction, Questions};
use super::{ExclusionReason, WatchContext, Watched, log_exclusion};
use crate::outage_log::OutageLog;
use crate::partner::PartnerTerms;

/// How often a partner is probed, if its quota allows that.
const PROBE_EVERY: Duration = Duration::from_secs(600);
/// How many times as often one is probed whose chain is not known yet. Until then it is not used.
const PROBES_WHILE_UNKNOWN: u32 = 10;
/// Probes use at most one of this many calls of a partner's daily quota.
const CALLS_PER_PROBE: u64 = 100;
/// How long a partner may take for its answer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct PartnerWatcher<W> {
    node: Arc<W>,
    context: Arc<WatchContext>,
    /// Its chain, once it has answered a probe.
    identity: Option<Identity>,
    other_checkpoint: Option<ExclusionReason>,
    exclusion: Option<ExclusionReason>,
    outage: OutageLog,
}

impl<W: Watched> PartnerWatcher<W> {
    pub(super) fn new(node: Arc<W>, context: Arc<WatchContext>) -> Self {
        let outage = OutageLog::default();
        Self { node, context, identity: None, other_checkpoint: None, exclusion: None, outage }
    }

    /// Probes the partner at intervals, within its quota.
    pub(super) async fn run(mut self, terms: &PartnerTerms) {
        let calls = 1 + u64::from(self.context.settings.checkpoint.is_some());
        loop {
            let probed_at = Instant::now();
            if terms.take(calls) {
                self.probe().await;
            }
            let next_at = probed_at + self.pause(terms.quota().calls_per_day);
            self.compare_chain();
            // The chain of the nodes may not be known yet.
            if timeout_at(next_at, self.context.chain.settled()).await.is_ok() {
                self.compare_chain();
            }
            sleep_until(next_at).await;
        }
    }

    fn pause(&self, calls_per_day: u64) -> Duration {
        let seconds = DAY_S.saturating_mul(CALLS_PER_PROBE) / calls_per_day.max(1);
        let usual = PROBE_EVERY.max(Duration::from_secs(seconds));
        if self.identity.is_some() { usual } else { usual / PROBES_WHILE_UNKNOWN }
    }

    /// Asks which chain it is of, and for its block of the checkpoint's number.
    async fn probe(&mut self) {
        let WatchContext { settings, headers, .. } = &*self.context;
        let questions =
            Questions { node: &*self.node, timeout: ANSWER_TIME_MAX, headers, shows_presence: true };
        match questions.partner_introduction(settings.checkpoint).await {
            Ok(NodeIntroduction { identity, other_checkpoint, .. }) => {
                (self.identity, self.other_checkpoint) = (Some(identity), other_checkpoint);
                self.outage.log_recovery(self.node.name());
                self.node.record_poll(Ok(()));
            }
            Err(fault) => {
                if !fault.kind.is_our_shortage() {
                    self.outage.log_fault(self.node.name(), &fault);
                    self.node.record_loss();
                }
                self.node.record_poll(Err(fault));
            }
        }
    }

    /// Lets it be asked if it is of the chain of the own nodes, as far as that is known.
    fn compare_chain(&mut self) {
        let Some(identity) = self.identity else { return };
        let chain = &self.context.chain;
        let of_other_chain = || chain.contradicts_configuration(identity).or_else(|| chain.differs(identity));
        let exclusion = self.other_checkpoint.clone().or_else(of_other_chain);
        match &exclusion {
            None => self.node.admit(),
            Some(reason) => {
                if self.exclusion.as_ref() != Some(reason) {
                    log_exclusion(self.node.name(), reason);
                }
                self.node.exclude(reason);
            }
        }
        self.exclusion = exclusion;
    }
}
