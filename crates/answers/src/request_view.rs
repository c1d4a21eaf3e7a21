//! The chain as one request sees it, and as each of its calls does.
//!
//! A view owns the snapshot or the canonical chain that it shows, so all calls of a request are answered about the same chain,
//! whatever is imported or reorganised meanwhile.

use std::sync::Arc;

use methods::{BlockParam, BlockRef, Method, Query};
use nodes::CanonicalChain;
use resources::{AccountId, MemoryCharge, box_future};

use crate::call_account::CallAccount;
use crate::embedded::{Embedded, EmbeddedCall};
use crate::failure::Failure;
use crate::pool_backend::{PoolBackend, PoolView};
use crate::provenance::{Answer, Provenance, Verification};
use crate::remote::{NodeCall, PoolSource};
use crate::unanswered::{Repetition, Unanswered};
use crate::view::{ChainView, Source};

/// The chain as all calls of one request see it.
pub struct RequestView<'b>(PinnedChain<'b>);

enum PinnedChain<'b> {
    Embedded { embedded: &'b Embedded, snapshot: Arc<dyn Source> },
    Pool { backend: &'b PoolBackend, view: PoolView<'b> },
}

/// The chain of a request as one of its calls sees it.
pub struct CallView<'v>(CallChain<'v>);

#[derive(Clone, Copy)]
enum CallChain<'v> {
    Embedded {
        embedded: &'v Embedded,
        snapshot: &'v Arc<dyn Source>,
    },
    /// The executed chain, and the chain of the nodes that belongs to it.
    Executed {
        backend: &'v PoolBackend,
        embedded: &'v Embedded,
        snapshot: &'v Arc<dyn Source>,
        chain: Option<&'v Arc<CanonicalChain>>,
    },
    Nodes {
        backend: &'v PoolBackend,
        chain: &'v Arc<CanonicalChain>,
        /// How far it is verified that the blocks of the call are the ones that it means.
        blocks_verified: Verification,
        /// How far it is verified that a block of the call that the chain does not have does not exist.
        absence_verified: Verification,
    },
    /// The pending block, which only nodes have.
    Pending {
        backend: &'v PoolBackend,
        /// The chain whose newest block stands for it where blocks are named.
        blocks: &'v dyn ChainView,
        chain: Option<&'v Arc<CanonicalChain>>,
        /// Who answers for the newest block while no node answers.
        executed: Option<(&'v Embedded, &'v Arc<dyn Source>)>,
    },
}

impl CallChain<'_> {
    /// The chain of a call that is about its pending block. An embedded chain has none, and answers for its newest block.
    fn at_pending(self) -> Self {
        match self {
            Self::Embedded { .. } | Self::Pending { .. } => self,
            Self::Executed { backend, embedded, snapshot, chain } => {
                Self::Pending { backend, blocks: &**snapshot, chain, executed: Some((embedded, snapshot)) }
            }
            Self::Nodes { backend, chain, .. } => {
                Self::Pending { backend, blocks: &**chain, chain: Some(chain), executed: None }
            }
        }
    }
}

/// A call whose blocks are pinned.
#[derive(Debug)]
pub struct PinnedCall {
    pub method: &'static Method,
    pub query: Query<BlockRef>,
    /// Whether a partner may be asked when nobody else can answer.
    pub may_fail_over: bool,
    pub repetition: Repetition,
    /// The charge for the body that the call came in. Work that outlives its request keeps the query in memory, and with it
    /// the charge.
    pub body: Option<Arc<MemoryCharge>>,
}

impl<'b> RequestView<'b> {
    pub(crate) fn of_embedded(embedded: &'b Embedded) -> Self {
        Self(PinnedChain::Embedded { embedded, snapshot: embedded.snapshot() })
    }

    pub(crate) fn of_pool(backend: &'b PoolBackend) -> Self {
        Self(PinnedChain::Pool { backend, view: backend.view() })
    }

    /// The newest block; `None` before any node has shown its chain.
    pub fn head(&self) -> Option<u64> {
        match &self.0 {
            PinnedChain::Embedded { snapshot, .. } => Some(snapshot.head().number),
            PinnedChain::Pool { view, .. } => view.head(),
        }
    }

    /// Finds out which blocks a query means, as far as they exist. Nodes are asked in the share of the account.
    pub async fn for_call(
        &self,
        account: AccountId,
        method: &'static Method,
        query: &Query<BlockParam>,
    ) -> Result<CallView<'_>, Failure> {
        let chain = self.chain_for_call(account, query).await?;
        Ok(CallView(if method.is_forwarded_at_pending(query) { chain.at_pending() } else { chain }))
    }

    async fn chain_for_call(
        &self,
        account: AccountId,
        query: &Query<BlockParam>,
    ) -> Result<CallChain<'_>, Failure> {
        let (backend, view) = match &self.0 {
            PinnedChain::Embedded { embedded, snapshot } => {
                return Ok(CallChain::Embedded { embedded, snapshot });
            }
            PinnedChain::Pool { backend, view } => (*backend, view),
        };
        if let Some((embedded, snapshot)) = view.executed_for(query) {
            let chain = view.chain.as_ref();
            return Ok(CallChain::Executed { backend, embedded, snapshot, chain });
        }
        let Some(chain) = &view.chain else {
            return Err(Failure::no_chain());
        };
        let absence_verified = backend.remote.find_blocks(account, chain, query).await?;
        let blocks_verified = backend.remote.blocks.blocks_verified(chain, query);
        Ok(CallChain::Nodes { backend, chain, blocks_verified, absence_verified })
    }
}

impl CallView<'_> {
    /// The chain that the blocks of the call are looked up in.
    pub fn blocks(&self) -> &dyn ChainView {
        match self.0 {
            CallChain::Embedded { snapshot, .. } | CallChain::Executed { snapshot, .. } => &**snapshot,
            CallChain::Nodes { chain, .. } => &**chain,
            CallChain::Pending { blocks, .. } => blocks,
        }
    }

    /// Answers an admitted call whose blocks this view has named, in the share of the account that pays for it.
    pub async fn answer(
        &self,
        account: CallAccount<'_>,
        call: PinnedCall,
        out: &mut Vec<u8>,
    ) -> Result<Answer, Unanswered> {
        let PinnedCall { method, query, may_fail_over, repetition, body } = call;
        let answered = match self.0 {
            CallChain::Embedded { embedded, snapshot } => {
                let call = EmbeddedCall { account, source: snapshot, query, body };
                embedded.answer(call, method, out).await
            }
            CallChain::Executed { backend, embedded, snapshot, chain } => {
                let call = EmbeddedCall { account, source: snapshot, query, body };
                backend.answer_from_executed_chain(embedded, call, chain, method, may_fail_over, out).await
            }
            CallChain::Pending { backend: PoolBackend { remote, .. }, chain, executed, .. } => {
                let chain = chain.map(|chain| &**chain);
                let pending = remote.answer_pending(account.id, chain, method, &query, may_fail_over);
                match (Box::pin(pending).await, executed) {
                    // With all nodes down nobody knows what is pending, and the newest block is what comes closest.
                    (Err(Failure::Unavailable | Failure::NotServed { .. }), Some((embedded, source)))
                        if remote.pool().all_unreachable() =>
                    {
                        embedded.answer(EmbeddedCall { account, source, query, body }, method, out).await
                    }
                    (answered, _) => answered,
                }
            }
            CallChain::Nodes { backend: PoolBackend { remote, .. }, chain, blocks_verified, .. } => {
                let is_placed_by_answer = matches!(query, Query::Transaction(_));
                let answered = match remote.known.get(account.id, chain, method, &query) {
                    Some(answered) => answered?,
                    None => {
                        let call = NodeCall { account: account.id, chain, method, may_fail_over, repetition };
                        // Boxed: the future is large, and few calls need it.
                        box_future(|| remote.answer(call, query)).await?
                    }
                };
                let place_verified = match is_placed_by_answer {
                    true => remote.blocks.place_verified(chain, answered.provenance.block),
                    false => blocks_verified,
                };
                Ok(answered.verified_at_most(place_verified))
            }
        };
        Ok(answered?)
    }

    /// Where it came from that a block does not exist.
    pub fn absence_provenance(&self) -> Provenance {
        match self.0 {
            CallChain::Nodes { absence_verified, .. } => PoolSource::absent_at_nodes(absence_verified),
            CallChain::Pending { .. } => PoolSource::absent_at_nodes(Verification::None),
            CallChain::Embedded { .. } | CallChain::Executed { .. } => Provenance::archive(None),
        }
    }
}

impl std::fmt::Debug for RequestView<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("RequestView").field(&self.head()).finish()
    }
}

impl std::fmt::Debug for CallView<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("CallView").field(&self.blocks().head()).finish()
    }
}
