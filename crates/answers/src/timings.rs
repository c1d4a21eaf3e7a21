//! How long heavy work took.

use methods::Deadline;
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
    pub(crate) fn of(&self, deadline: Deadline) -> &Histogram {
        match deadline {
            Deadline::Logs => &self.logs,
            Deadline::Call => &self.calls,
            Deadline::Fees => &self.fees,
            Deadline::Block => &self.blocks,
        }
    }
}
