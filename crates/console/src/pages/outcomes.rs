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

impl OutcomeCounts {
    /// All outcomes except `ok`, with what to do about each.
    const DESCRIPTIONS: [FailureRow; 8] = [
        FailureRow {
            label: "refused",
            codes: "429 or 402, -32005",
            meaning: "A limit of the plan or of the key was reached.",
            advice: "Wait as long as Retry-After says and send fewer calls per second. If it stays, raise the limit of the key or \
                     ask for a larger plan.",
            is_charged: false,
            calls: 0,
        },
        FailureRow {
            label: "denied",
            codes: "403, -32002",
            meaning: "The settings of the key exclude the call.",
            advice: "The error names the setting in data.setting. Add the origin, address or method to the lists of the key.",
            is_charged: true,
            calls: 0,
        },
        FailureRow {
            label: "invalid",
            codes: "-32600, -32601, -32602, -32700",
            meaning: "The call is malformed, its method is unknown, or its parameters are wrong.",
            advice: "Read the message of the error: it names the parameter. Send the call in Try it to compare.",
            is_charged: true,
            calls: 0,
        },
        FailureRow {
            label: "reverted",
            codes: "3 or -32000",
            meaning: "The contract ran and failed. This is a right answer.",
            advice: "Look at the reason in error.data, and check the sender, the value and the block of the call.",
            is_charged: true,
            calls: 0,
        },
        FailureRow {
            label: "over_capacity",
            codes: "503, -32005",
            meaning: "The gateway had too much to do.",
            advice: "Send the call again after Retry-After. Tell the operator if it happens often.",
            is_charged: false,
            calls: 0,
        },
        FailureRow {
            label: "unavailable",
            codes: "-32002",
            meaning: "No node could answer.",
            advice: "Send the call again in some seconds. Tell the operator if it happens often.",
            is_charged: false,
            calls: 0,
        },
        FailureRow {
            label: "our_fault",
            codes: "500, -32603",
            meaning: "An error of the gateway.",
            advice: "Tell the operator the value of the header Chaingate-Request-Id.",
            is_charged: false,
            calls: 0,
        },
        FailureRow {
            label: "abandoned",
            codes: "none",
            meaning: "Your client closed the connection before the answer.",
            advice: "Raise the time-out of your client, or ask for less in one call.",
            is_charged: true,
            calls: 0,
        },
    ];

    /// The outcomes that occurred, except `ok`, the most frequent first.
    pub(crate) fn failures(&self) -> Vec<FailureRow> {
        let mut rows: Vec<_> =
            Self::DESCRIPTIONS.map(|row| FailureRow { calls: self.of(row.label), ..row }).into();
        rows.retain(|row| row.calls > 0);
        rows.sort_by_key(|row| std::cmp::Reverse(row.calls));
        rows
    }

    /// The share of one count in all calls, from 0 to 1.
    pub(crate) fn share_of(&self, calls: &u64) -> f64 {
        *calls as f64 / self.calls().max(1) as f64
    }

    fn of(&self, label: &str) -> u64 {
        match label {
            "ok" => self.ok,
            "reverted" => self.reverted,
            "invalid" => self.invalid,
            "denied" => self.denied,
            "refused" => self.refused,
            "over_capacity" => self.over_capacity,
            "unavailable" => self.unavailable,
            "our_fault" => self.our_fault,
            "abandoned" => self.abandoned,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_label_is_counted_once() {
        let labels = [
            "ok",
            "reverted",
            "invalid",
            "denied",
            "refused",
            "over_capacity",
            "unavailable",
            "our_fault",
            "abandoned",
        ];
        let mut counts = OutcomeCounts::default();
        for (index, label) in labels.into_iter().enumerate() {
            counts.add(label, 1 << index);
            assert_eq!(counts.calls(), (2 << index) - 1, "{label}");
            assert_eq!(counts.of(label), 1 << index);
        }
        counts.add("unknown", 7);
        assert_eq!(counts.calls(), 511);
        assert_eq!((counts.answered(), counts.failed()), (3, 508));
        assert_eq!(counts.failures().len(), 8);
        assert_eq!(counts.failures()[0].label, "abandoned");
    }

    #[test]
    fn there_is_no_share_of_no_calls() {
        assert_eq!(OutcomeCounts::default().success_share(), None);
        assert_eq!(OutcomeCounts { ok: 1, refused: 3, ..Default::default() }.success_share(), Some(0.25));
        assert!(OutcomeCounts::default().failures().is_empty());
    }
}
