//! The client of one endpoint.
//!
//! A call waits in the queue of its thread. A connection task takes it, alone or in a batch with others that wait, and sends it.
//! The reply is read, matched to the calls by id, and handed to the callers. Nothing here knows what a call means, or whether its
//! answer can be true.

mod endpoint; // the address of a node
mod limits; // timeouts and sizes
mod setup; // what all its connections share

mod pending_call; // one call
mod call_queue; // calls that wait on one thread
mod batch_policy; // how many of them may travel together
mod connection_task; // the task of one connection
mod request; // calls → bytes
mod dial; // host name → connection
mod tls; // trusted certificates
mod http1; // exchanges over HTTP/1.1
mod head; // the head of an HTTP/1.1 reply
mod buffer; // memory for replies
mod receive; // limits for reading one reply
mod http2; // exchanges over HTTP/2
mod gzip; // compressed replies
mod http_reply; // bytes → replies
mod split_reply; // the same for large replies of the usual form

mod stats; // counters
mod target; // HTTP/2 requests
mod heads; // new heads that a node pushes over a WebSocket

#[cfg(test)]
pub(crate) mod tests;

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;
use tokio::runtime::{self, Handle};
use tokio::time::{Instant, timeout_at};
#[cfg(test)]
use tokio_rustls::rustls::RootCertStore;

use crate::call::{Ask, Fault, RpcCall, RpcReply};

pub use buffer::ReplyBuffers;
pub use endpoint::{Endpoint, EndpointError};
pub(crate) use heads::{check_heads, pushed_heads};
pub(crate) use limits::EndpointLimits;
pub use stats::Stats;

use batch_policy::QueueKind;
#[cfg(test)]
use buffer::EndpointMemory;
use call_queue::CallQueue;
use pending_call::PendingCall;
use setup::EndpointSetup;

/// The client of one endpoint. Its connections live on the threads of its callers.
#[derive(Debug)]
pub struct Client {
    id: u64,
    setup: Arc<EndpointSetup>,
    /// All queues that were ever made: one for each thread and each kind of calls.
    queues: Mutex<Vec<Arc<CallQueue>>>,
}

impl Client {
    /// A client with reply memory of its own.
    #[cfg(test)]
    pub(crate) fn new(endpoint: Endpoint, limits: EndpointLimits) -> Self {
        Self::from_setup(EndpointSetup::new(endpoint, limits, None, own_memory()))
    }

    /// A client that shares its reply memory with others, so that there are `endpoints` of them.
    pub(crate) fn sharing(
        endpoint: Endpoint,
        limits: EndpointLimits,
        memory: &Arc<ReplyBuffers>,
        endpoints: usize,
    ) -> Self {
        Self::from_setup(EndpointSetup::new(endpoint, limits, None, memory.for_endpoint(endpoints)))
    }

    /// A client that trusts these root certificates instead of those of this machine.
    #[cfg(test)]
    pub(crate) fn with_roots(endpoint: Endpoint, limits: EndpointLimits, roots: Arc<RootCertStore>) -> Self {
        Self::from_setup(EndpointSetup::new(endpoint, limits, Some(roots), own_memory()))
    }

    fn from_setup(setup: EndpointSetup) -> Self {
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        Self { id: NEXT_ID.fetch_add(1, Relaxed), setup: Arc::new(setup), queues: Mutex::default() }
    }

    pub fn endpoint(&self) -> &Endpoint {
        &self.setup.endpoint
    }

    pub fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        self.queues.lock().iter().for_each(|queue| stats.add(&queue.counters));
        stats
    }

    fn enqueue(&self, kind: QueueKind, call: PendingCall) -> Result<(), Fault> {
        let runtime = Handle::current().id();
        QUEUES.with_borrow_mut(|queues| {
            let is_ours = |queue: &ThreadQueue| {
                queue.client == self.id && queue.kind == kind && queue.runtime == runtime
            };
            let position = queues.iter().position(is_ours).unwrap_or_else(|| {
                // Queues of clients and runtimes that are gone are dropped, too.
                queues.retain(|queue| queue.runtime == runtime && !queue.queue.is_closed());
                queues.push(ThreadQueue { client: self.id, kind, runtime, queue: self.new_queue(kind) });
                queues.len() - 1
            });
            let queue = &queues[position].queue;
            if queue.push(call)? {
                connection_task::start(queue);
            }
            Ok(())
        })
    }

    fn new_queue(&self, kind: QueueKind) -> Arc<CallQueue> {
        let queue = Arc::new(CallQueue::new(Arc::clone(&self.setup), kind));
        self.queues.lock().push(Arc::clone(&queue));
        queue
    }
}

/// Default reply memory: about forty answers of ten thousand logs.
pub const REPLY_MEMORY_BYTES: usize = 256 << 20;

#[cfg(test)]
fn own_memory() -> EndpointMemory {
    ReplyBuffers::new(REPLY_MEMORY_BYTES).for_endpoint(1)
}

impl Ask for Client {
    async fn ask(&self, call: &RpcCall, deadline: Instant) -> Result<RpcReply, Fault> {
        let (waiting, reply) = PendingCall::new(call, deadline);
        self.enqueue(QueueKind::of(call.class), waiting)?;
        match timeout_at(deadline, reply).await {
            Ok(Ok(reply)) => reply,
            // The connection task was dropped with its runtime.
            Ok(Err(_)) => Err(Fault::Closed),
            Err(_) => Err(Fault::Timeout),
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.queues.get_mut().iter().for_each(|queue| queue.close());
    }
}

/// A queue of this thread. A thread may serve several runtimes one after the other, and connection tasks end with theirs.
struct ThreadQueue {
    client: u64,
    kind: QueueKind,
    runtime: runtime::Id,
    queue: Arc<CallQueue>,
}

thread_local! {
    static QUEUES: RefCell<Vec<ThreadQueue>> = const { RefCell::new(Vec::new()) };
}
