//! The quotas of partners per day, which hold over restarts and over all gateways with the same store.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use answers::Answers;
use callers::PartnerCalls;
use callers::usage::{DayCredits, UsageRecorder};
use nodes::{DayCalls, NodeId};
use parking_lot::Mutex;

/// The calls of a day to each partner.
#[derive(Debug)]
pub(crate) struct PartnerQuotas {
    recorder: Arc<UsageRecorder>,
    partners: Mutex<HashMap<NodeId, Arc<PartnerCalls>>>,
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
        let quotas = Self { recorder: Arc::clone(recorder), partners: Mutex::default() };
        quotas.update(answers);
        quotas
    }

    /// Counts what the store knows as used, unless more is known here.
    pub(crate) fn raise_used(&self, answers: &Answers, credits: &DayCredits) {
        self.update(answers);
        self.partners.lock().values().for_each(|partner| partner.raise_used(credits));
    }

    /// Begins to count the calls to partners that have come, and forgets those that are gone.
    fn update(&self, answers: &Answers) {
        let Some(remote) = answers.remote() else { return };
        let (present, mut counted) = (remote.pool().partners(), self.partners.lock());
        counted.retain(|id, _| present.iter().any(|partner| partner.id() == *id));
        for partner in present.iter() {
            let (Some(terms), Entry::Vacant(entry)) = (partner.partner_terms(), counted.entry(partner.id()))
            else {
                continue;
            };
            let per_day = terms.quota().calls_per_day;
            let calls = Arc::new(PartnerCalls::new(partner.name(), per_day, Arc::clone(&self.recorder)));
            terms.share_day(Arc::new(CountedCalls(Arc::clone(&calls))));
            entry.insert(calls);
        }
    }
}
