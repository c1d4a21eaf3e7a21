//! Bytes to and from one endpoint.
//!
//! A call waits in the lane of its thread, a line of that lane takes it, alone or together with others that wait, and
//! sends it on its connection; what comes back is read, matched to the calls by id, and handed to those who asked.
//! Nothing here knows what a call means, or whether its answer can be true.

mod endpoint; // where a node is
mod limits; // what it may take of us
mod setup; // what all its connections have in common

mod waiting; // one call
mod lane; // calls that wait on one thread
mod pace; // how many of them may travel together
mod line; // one connection at work
mod request; // calls → bytes
mod dial; // a name → a connection
mod tls; // whom to trust
mod http1; // requests and replies on a connection of our own
mod head; // where a reply ends
mod buffer; // memory for replies
mod receive; // on which terms a reply is read
mod http2; // the same on a shared one
mod gzip; // compressed replies
mod outcome; // bytes → replies
mod bare; // the same for large replies of the usual form

mod stats; // what went over the wire
mod target; // where requests over HTTP/2 go
mod heads; // new heads, over a WebSocket

#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;
use tokio::runtime::{self, Handle};
use tokio::time::{Instant, timeout_at};
use tokio_rustls::rustls::RootCertStore;

use crate::call::{Ask, Call, Fault, Reply};

pub use buffer::ReplyBuffers;
pub use endpoint::{Endpoint, EndpointError};
pub use heads::heads;
pub use limits::Limits;
pub use stats::Stats;

use buffer::EndpointMemory;
use lane::Lane;
use pace::Kind;
use setup::Setup;
use waiting::Waiting;

/// Asks one endpoint. Its connections live on the threads of those who ask.
#[derive(Debug)]
pub struct Client {
    id: u64,
    setup: Arc<Setup>,
    /// All lanes that were ever made; as many as there are threads, for each kind of calls.
    lanes: Mutex<Vec<Arc<Lane>>>,
}

impl Client {
    /// With memory of its own.
    pub fn new(endpoint: Endpoint, limits: Limits) -> Self {
        Self::from_setup(Setup::new(endpoint, limits, None, own_memory()))
    }

    /// With memory that it shares with other endpoints.
    pub fn sharing(endpoint: Endpoint, limits: Limits, memory: &Arc<ReplyBuffers>, is_only: bool) -> Self {
        Self::from_setup(Setup::new(endpoint, limits, None, memory.for_endpoint(is_only)))
    }

    /// Trusts these roots for TLS instead of those of this machine.
    pub fn with_roots(endpoint: Endpoint, limits: Limits, roots: Arc<RootCertStore>) -> Self {
        Self::from_setup(Setup::new(endpoint, limits, Some(roots), own_memory()))
    }

    fn from_setup(setup: Setup) -> Self {
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        Self { id: NEXT_ID.fetch_add(1, Relaxed), setup: Arc::new(setup), lanes: Mutex::default() }
    }

    pub fn endpoint(&self) -> &Endpoint {
        &self.setup.endpoint
    }

    pub fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        self.lanes.lock().iter().for_each(|lane| stats.add(&lane.counters));
        stats
    }

    fn enqueue(&self, kind: Kind, call: Waiting) -> Result<(), Fault> {
        let runtime = Handle::current().id();
        LANES.with_borrow_mut(|lanes| {
            let is_ours =
                |lane: &OwnLane| lane.client == self.id && lane.kind == kind && lane.runtime == runtime;
            let place = lanes.iter().position(is_ours).unwrap_or_else(|| {
                // What belongs to clients and runtimes that are gone goes, too.
                lanes.retain(|lane| lane.runtime == runtime && !lane.lane.is_closed());
                lanes.push(OwnLane { client: self.id, kind, runtime, lane: self.new_lane(kind) });
                lanes.len() - 1
            });
            let lane = &lanes[place].lane;
            if lane.push(call)? {
                line::start(lane);
            }
            Ok(())
        })
    }

    fn new_lane(&self, kind: Kind) -> Arc<Lane> {
        let lane = Arc::new(Lane::new(Arc::clone(&self.setup), kind));
        self.lanes.lock().push(Arc::clone(&lane));
        lane
    }
}

/// Memory for replies of a client that shares it with nobody, and of a pool unless its settings say otherwise: some forty
/// answers of ten thousand logs.
pub const REPLY_MEMORY_BYTES: usize = 256 << 20;

fn own_memory() -> EndpointMemory {
    ReplyBuffers::new(REPLY_MEMORY_BYTES).for_endpoint(true)
}

impl Ask for Client {
    async fn ask(&self, call: &Call, deadline: Instant) -> Result<Reply, Fault> {
        let (waiting, reply) = Waiting::new(call, deadline);
        self.enqueue(Kind::of(call.class), waiting)?;
        match timeout_at(deadline, reply).await {
            Ok(Ok(reply)) => reply,
            // The line was dropped with its runtime.
            Ok(Err(_)) => Err(Fault::Closed),
            Err(_) => Err(Fault::Timeout),
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.lanes.get_mut().iter().for_each(|lane| lane.close());
    }
}

/// A lane of this thread. A thread may serve several runtimes, one after the other, and lines die with theirs.
struct OwnLane {
    client: u64,
    kind: Kind,
    runtime: runtime::Id,
    lane: Arc<Lane>,
}

thread_local! {
    static LANES: RefCell<Vec<OwnLane>> = const { RefCell::new(Vec::new()) };
}
