//! How long heavy work took.

use methods::DeadlineKind;
use resources::Histogram;

/// How long heavy work took.
#[derive(Debug, Default)]
pub struct Timings {
    /// Waiting for a thread of the pool.
    pub waits: Histogram,
    pub logs: Histogram,
    pub calls: Histogram,
    pub fees: Histogram,
    pub blocks: Histogram,
}

impl Timings {
    pub(crate) fn of(&self, deadline: DeadlineKind) -> &Histogram {
        match deadline {
            DeadlineKind::Logs => &self.logs,
            DeadlineKind::Call => &self.calls,
            DeadlineKind::Fees => &self.fees,
            DeadlineKind::Block => &self.blocks,
        }
    }
}
