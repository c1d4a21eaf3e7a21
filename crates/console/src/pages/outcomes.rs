//! How calls end, in the words of the console, and what a developer can do about each failure.

/// Calls by how they ended; the fields have the labels of the usage ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OutcomeCounts {
    pub(crate) ok: u64,
    pub(crate) reverted: u64,
    pub(crate) invalid: u64,
    pub(crate) denied: u64,
    pub(crate) refused: u64,
    pub(crate) over_capacity: u64,
    pub(crate) unavailable: u64,
    pub(crate) our_fault: u64,
    pub(crate) abandoned: u64,
}

/// One row of a table of failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FailureRow {
    /// The label of the outcome in the ledger and the CSV file.
    pub(crate) label: &'static str,
    /// The HTTP status and the codes that callers see.
    pub(crate) codes: &'static str,
    /// What happened.
    pub(crate) meaning: &'static str,
    /// What to do about it.
    pub(crate) advice: &'static str,
    /// Whether credits were charged.
    pub(crate) is_charged: bool,
    pub(crate) calls: u64,
}

impl OutcomeCounts {
    /// Adds calls of the outcome with this label. Unknown labels are ignored.
    pub(crate) fn add(&mut self, label: &str, calls: u64) {
        let count = match label {
            "ok" => &mut self.ok,
            "reverted" => &mut self.reverted,
            "invalid" => &mut self.invalid,
            "denied" => &mut self.denied,
            "refused" => &mut self.refused,
            "over_capacity" => &mut self.over_capacity,
            "unavailable" => &mut self.unavailable,
            "our_fault" => &mut self.our_fault,
            "abandoned" => &mut self.abandoned,
            _ => return,
        };
        *count = count.saturating_add(calls);
    }

    /// All calls.
    pub(crate) fn calls(&self) -> u64 {
        [self.answered(), self.rejected(), self.refused, self.service_failures(), self.abandoned]
            .into_iter()
            .fold(0, u64::saturating_add)
    }

    /// Calls with a right answer. A revert is one: the contract failed, not the service.
    pub(crate) fn answered(&self) -> u64 {
        self.ok.saturating_add(self.reverted)
    }

    /// Calls that the caller must change: malformed, or not allowed by the settings of the key.
    pub(crate) fn rejected(&self) -> u64 {
        self.invalid.saturating_add(self.denied)
    }

    /// Calls that the service failed to answer.
    pub(crate) fn service_failures(&self) -> u64 {
        self.over_capacity.saturating_add(self.unavailable).saturating_add(self.our_fault)
    }

    /// Calls without an answer, for any reason.
    pub(crate) fn failed(&self) -> u64 {
        self.calls() - self.answered()
    }

    /// The share of calls that were answered, from 0 to 1; `None` without calls.
    pub(crate) fn success_share(&self) -> Option<f64> {
        let calls = self.calls();
        (calls > 0).then(|| self.answered() as f64 / calls as f64)
    }
}
