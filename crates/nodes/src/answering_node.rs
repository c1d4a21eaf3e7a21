//! Which node has answered, for the caller who may know it.
//!
//! An answer may be made from parts that several modules have fetched, some of them earlier for somebody else. The last node that
//! delivered a part for this one counts. It is a value of the task, because none of those modules needs it.

use std::cell::Cell;

use futures_util::FutureExt;

use crate::node_id::NodeId;

tokio::task_local! {
    static LAST: Cell<Option<NodeId>>;
}

/// Runs work that asks nodes. Returns also the last node whose answer it used; `None` if it needed none.
///
/// No `async` block: it would hold `work` twice, and the futures of calls to nodes are large.
pub fn with_answering_node<T>(work: impl Future<Output = T>) -> impl Future<Output = (T, Option<NodeId>)> {
    LAST.scope(Cell::default(), work.map(|result| (result, LAST.with(Cell::get))))
}

/// Records that a node has given an answer that is used.
pub(crate) fn record_answering_node(node: NodeId) {
    // Watchers and followers ask for no caller.
    let _for_nobody = LAST.try_with(|last| last.set(Some(node)));
}
