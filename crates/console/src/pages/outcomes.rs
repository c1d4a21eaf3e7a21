//! How calls end, in the words of the console, and what a developer can do about each failure.

use callers::usage::Outcome;

/// Calls by how they ended, in the order of [`Outcome::ALL`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OutcomeCounts([u64; Outcome::ALL.len()]);

/// One row of a table of failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FailureRow {
    pub(crate) outcome: Outcome,
    /// The HTTP status and the codes that callers see.
    pub(crate) codes: &'static str,
    /// The outcome in words.
    pub(crate) meaning: &'static str,
    /// The remedy.
    pub(crate) advice: &'static str,
    pub(crate) calls: u64,
}

impl OutcomeCounts {
    pub(crate) fn add(&mut self, outcome: Outcome, calls: u64) {
        let count = &mut self.0[outcome as usize];
        *count = count.saturating_add(calls);
    }

    pub(crate) fn calls(&self) -> u64 {
        self.of(&Outcome::ALL)
    }

    /// Calls that were answered with a result.
    pub(crate) fn ok(&self) -> u64 {
        self.of(&[Outcome::Ok])
    }

    /// Calls with a right answer. A revert is one: the contract failed, not the service.
    pub(crate) fn answered(&self) -> u64 {
        self.of(&[Outcome::Ok, Outcome::Reverted])
    }

    /// Calls that the caller must change: malformed, or not allowed by the settings of the key.
    pub(crate) fn rejected(&self) -> u64 {
        self.of(&[Outcome::Invalid, Outcome::Denied])
    }

    /// Calls that a limit refused.
    pub(crate) fn refused(&self) -> u64 {
        self.of(&[Outcome::Refused])
    }

    /// Calls that the service failed to answer.
    pub(crate) fn service_failures(&self) -> u64 {
        self.of(&[Outcome::OverCapacity, Outcome::Unavailable, Outcome::InternalError])
    }

    /// Calls whose caller did not wait for the answer.
    pub(crate) fn abandoned(&self) -> u64 {
        self.of(&[Outcome::Abandoned])
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
            outcome: Outcome::Refused,
            codes: "429 or 402, -32005",
            meaning: "A limit of the plan or of the key was reached.",
            advice: "Wait as long as Retry-After says and send fewer calls per second. If it stays, raise the limit of the key or \
                     ask for a larger plan.",
            calls: 0,
        },
        FailureRow {
            outcome: Outcome::Denied,
            codes: "403, -32002",
            meaning: "The settings of the key exclude the call.",
            advice: "The error names the setting in data.setting. Add the origin, address or method to the lists of the key.",
            calls: 0,
        },
        FailureRow {
            outcome: Outcome::Invalid,
            codes: "-32600 to -32602, -32700, -32000, -32003 to -32006",
            meaning: "The call is malformed, its method or block does not exist, its parameters are wrong, or it has too many results or takes too long.",
            advice: "Read the message of the error: it says what to change. Send the call in Try it to compare.",
            calls: 0,
        },
        FailureRow {
            outcome: Outcome::Reverted,
            codes: "3 or -32000",
            meaning: "The contract ran and failed. This is a right answer.",
            advice: "Look at the reason in error.data, and check the sender, the value and the block of the call.",
            calls: 0,
        },
        FailureRow {
            outcome: Outcome::OverCapacity,
            codes: "503, -32005",
            meaning: "The gateway had too much to do.",
            advice: "Send the call again after Retry-After. Tell the operator if it happens often.",
            calls: 0,
        },
        FailureRow {
            outcome: Outcome::Unavailable,
            codes: "-32002",
            meaning: "No node could answer.",
            advice: "Send the call again in some seconds. Tell the operator if it happens often.",
            calls: 0,
        },
        FailureRow {
            outcome: Outcome::InternalError,
            codes: "-32603",
            meaning: "An error of the gateway.",
            advice: "Tell the operator the value of the header Chaingate-Request-Id.",
            calls: 0,
        },
        FailureRow {
            outcome: Outcome::Abandoned,
            codes: "none",
            meaning: "Your client closed the connection before the answer.",
            advice: "Raise the time-out of your client, or ask for less in one call.",
            calls: 0,
        },
    ];

    /// The outcomes that occurred, except `ok`, the most frequent first.
    pub(crate) fn failures(&self) -> Vec<FailureRow> {
        let mut rows: Vec<_> =
            Self::DESCRIPTIONS.map(|row| FailureRow { calls: self.of(&[row.outcome]), ..row }).into();
        rows.retain(|row| row.calls > 0);
        rows.sort_by_key(|row| std::cmp::Reverse(row.calls));
        rows
    }

    /// The share of one count in all calls, from 0 to 1.
    pub(crate) fn share_of(&self, calls: &u64) -> f64 {
        *calls as f64 / self.calls().max(1) as f64
    }

    /// The calls that ended in one of these ways.
    fn of(&self, outcomes: &[Outcome]) -> u64 {
        outcomes.iter().map(|outcome| self.0[*outcome as usize]).fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_is_counted_once() {
        let mut counts = OutcomeCounts::default();
        for (index, outcome) in Outcome::ALL.into_iter().enumerate() {
            counts.add(outcome, 1 << index);
            assert_eq!(counts.calls(), (2 << index) - 1, "{outcome:?}");
            assert_eq!(counts.of(&[outcome]), 1 << index);
        }
        assert_eq!((counts.answered(), counts.failed()), (3, 508));
        assert_eq!(counts.failures().len(), Outcome::ALL.len() - 1, "all but ok have a description");
        assert_eq!(counts.failures()[0].outcome, Outcome::Abandoned);
    }

    #[test]
    fn there_is_no_share_of_no_calls() {
        assert_eq!(OutcomeCounts::default().success_share(), None);
        let mut counts = OutcomeCounts::default();
        counts.add(Outcome::Ok, 1);
        counts.add(Outcome::Refused, 3);
        assert_eq!(counts.success_share(), Some(0.25));
        assert!(OutcomeCounts::default().failures().is_empty());
    }
}
