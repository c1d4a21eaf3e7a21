//! The times of this crate that no setting changes: what happens at each, and why then.

use std::time::Duration;

/// A call that may fail over leaves nodes that seem to be down for a partner. A node that is back answers a look-up sooner, and a
/// caller hardly notices it.
pub(crate) const OUTAGE_TIMEOUT: Duration = Duration::from_millis(250);

/// A call that failed stops waiting for its nodes to be looked at: the shortest time between two polls of a node, and its answers. A
/// node that takes longer is of no help to the call.
pub(crate) const LOOK_TIME_MAX: Duration = Duration::from_secs(2);

/// A search that would fail stops waiting for what is found out about the history of nodes.
pub(crate) const HISTORY_WAIT_MAX: Duration = Duration::from_secs(2);

/// Such a search looks again at what was found out.
pub(crate) const HISTORY_CHECKED_EVERY: Duration = Duration::from_millis(50);

/// A prediction of what a call will read is given up, and so is fetching that. Without it, the call is run and finds out.
pub(crate) const HINT_TIME_MAX: Duration = Duration::from_secs(1);

/// Nodes that leave the configuration go, whether those that come have shown their chain or not.
pub(crate) const HANDOVER_TIME_MAX: Duration = Duration::from_secs(3);

/// A change of nodes looks again whether those that come have shown their chain.
pub(crate) const HANDOVER_CHECKED_EVERY: Duration = Duration::from_millis(20);

/// A follower gives up one block, or the headers that lead to it, over all nodes that are asked.
pub(crate) const FETCH_TIME_MAX: Duration = Duration::from_secs(30);

/// A follower tries again what failed, unless the view changes before.
pub(crate) const TRIED_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Older blocks that could not be fetched are tried again at the latest. The pause doubles until then.
pub(crate) const TRIED_AGAIN_AFTER_MAX: Duration = Duration::from_secs(30);

/// A block that could not be executed is tried again, unless the view changes before.
pub(crate) const STOPPED_TRIED_AGAIN_AFTER: Duration = Duration::from_secs(60);

/// A new block that no node has delivered is tried again at the latest: one may be back at any moment.
pub(crate) const UNDELIVERED_PAUSE_MAX: Duration = Duration::from_secs(8);

/// A block whose data fails its proof is tried again at the latest: a node with it must come, or another version of its program.
pub(crate) const UNPROVEN_PAUSE_MAX: Duration = Duration::from_secs(600);

/// It is checked whether older blocks are missing, beside when blocks were stored.
pub(crate) const LOOKED_AGAIN_AFTER: Duration = Duration::from_secs(10);

/// The log says how far the storing of older blocks is.
pub(crate) const PROGRESS_LOGGED_EVERY: Duration = Duration::from_secs(10);

/// Stored blocks are served if no node has shown its chain: they are older than those of nodes.
pub(crate) const NODES_FIRST: Duration = Duration::from_secs(10);
