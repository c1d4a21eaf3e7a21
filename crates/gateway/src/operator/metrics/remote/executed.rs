//! The archive that follows the nodes.

use answers::{ExecutedChain, ExecutionState, PoolSource};

use crate::operator::metrics::one;

pub(super) fn write(out: &mut String, remote: &PoolSource, chain: &ExecutedChain) {
    let head = chain.head();
    one(out, "chaingate_executed_block", "gauge", "Number of the newest block that was executed.", head);
    let newest = remote.pool().view().head().map_or(head, |newest| newest.number);
    one(
        out,
        "chaingate_executed_behind_blocks",
        "gauge",
        "Blocks of the nodes that were not executed yet.",
        newest.saturating_sub(head),
    );
    let stopped = u8::from(matches!(chain.state(), ExecutionState::Stopped(_)));
    one(
        out,
        "chaingate_executed_stopped",
        "gauge",
        "1 while the next block cannot be executed (the log says why). Nodes answer about the blocks that the archive lacks.",
        stopped,
    );
    let mut counter = |name, help, value| one(out, name, "counter", help, value);
    counter(
        "chaingate_executed_blocks_total",
        "Blocks that were executed since the start, those of other branches included.",
        chain.executed_blocks(),
    );
    counter(
        "chaingate_executed_reorganisations_total",
        "How often blocks of the archive were replaced by those of another branch.",
        chain.reorganisations(),
    );
    counter(
        "chaingate_executed_failures_total",
        "How often a block could not be executed, or the archive could not be taken back far enough.",
        chain.failures(),
    );
}
