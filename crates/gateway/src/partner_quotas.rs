//! The quotas of partners per day, which hold over restarts and over all gateways.

use std::sync::Arc;

use answers::Answers;
use callers::usage::{DayCredits, UsageRecorder};
use callers::{PartnerCalls, SharedLimits};
use nodes::DayCalls;

/// The calls of a day to each partner.
#[derive(Debug, Default)]
pub(crate) struct PartnerQuotas {
    partners: Vec<Arc<PartnerCalls>>,
}

/// Connects the crates `nodes` and `callers`, which do not know each other.
#[derive(Debug)]
struct CountedCalls(Arc<PartnerCalls>);

impl DayCalls for CountedCalls {
    fn take(&self, calls: u64, unix_seconds: u64) -> bool {
        self.0.take(calls, unix_seconds)
    }

    fn used(&self, unix_seconds: u64) -> u64 {
        self.0.used_today(unix_seconds)
    }
}

impl PartnerQuotas {
    /// From now on the calls to all partners are counted in the ledger.
    pub(crate) fn new(answers: &Answers, recorder: &Arc<UsageRecorder>) -> Self {
        let Some(remote) = answers.remote() else { return Self::default() };
        let partners = remote.pool().partners().iter().map(|partner| {
            let per_day = partner.quota().calls_per_day;
            let calls = Arc::new(PartnerCalls::new(partner.node().name(), per_day, Arc::clone(recorder)));
            partner.share_day(Arc::new(CountedCalls(Arc::clone(&calls))));
            calls
        });
        Self { partners: partners.collect() }
    }

    pub(crate) fn share(&self, shared: &Arc<SharedLimits>) {
        self.partners.iter().for_each(|partner| partner.share(shared));
    }

    pub(crate) fn raise_used(&self, credits: &DayCredits) {
        self.partners.iter().for_each(|partner| partner.raise_used(credits));
    }
}
