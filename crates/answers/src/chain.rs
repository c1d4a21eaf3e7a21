//! The chain as one request sees it, and as each of its calls does.
//!
//! It owns the snapshot or the canonical chain that it shows, so all calls of a request are answered about the same chain, whatever
//! is imported or reorganised meanwhile.

use std::sync::Arc;
use std::time::Duration;

use methods::{BlockParam, Method, Query, TransactionPart};
use nodes::CanonicalChain;
use remote::{AlignedChains, PinnedCall, PoolSource, Repetition, Unanswered};
use resources::AccountId;
use sources::{Answer, ChainView, Failure, Provenance, Source, Verification};
use tokio::time::timeout;

use crate::call_account::CallAccount;
use crate::embedded::Embedded;

/// How long nodes have to say whether a transaction that is in no block is pending.
const PENDING_LOOKUP_TIMEOUT: Duration = Duration::from_secs(2);

/// The chain as all calls of one request see it.
pub struct Chain<'a> {
    own: Option<OwnChain<'a>>,
    nodes: Option<NodesChain<'a>>,
}

/// The embedded chain at one moment, or an archive that follows the nodes.
struct OwnChain<'a> {
    embedded: &'a Embedded,
    snapshot: Arc<dyn Source>,
    /// The archive beside the chain of the nodes that it follows, and whether it answers everything.
    aligned: Option<(Arc<AlignedChains>, bool)>,
}

/// The chain of the nodes at one moment.
struct NodesChain<'a> {
    remote: &'a PoolSource,
    /// `None` before any node has shown its chain.
    canonical: Option<Arc<CanonicalChain>>,
}

/// The chain of a request as one of its calls sees it.
pub struct CallChain<'a>(Answering<'a>);

/// Who answers a call.
#[derive(Clone, Copy)]
enum Answering<'a> {
    /// Nodes are asked only for what may be pending.
    Own { own: &'a OwnChain<'a>, nodes: Option<&'a NodesChain<'a>> },
    Nodes {
        remote: &'a PoolSource,
        canonical: &'a Arc<CanonicalChain>,
        /// How far it is verified that the blocks of the call are the ones that it means.
        blocks_verified: Verification,
        /// How far it is verified that a block of the call that the chain does not have does not exist.
        absence_verified: Verification,
    },
    /// A node, about the pending block, which only nodes have.
    Pending {
        nodes: &'a NodesChain<'a>,
        /// The chain whose newest block stands for it where blocks are named.
        blocks: &'a dyn ChainView,
        /// Who answers for the newest block while no node answers.
        own: Option<&'a OwnChain<'a>>,
    },
}

impl OwnChain<'_> {
    fn answers_all(&self) -> bool {
        self.aligned.as_ref().is_none_or(|(_, answers_all)| *answers_all)
    }

    /// Whether it answers a query: it has all the blocks that are meant.
    fn answers(&self, query: &Query<BlockParam>) -> bool {
        self.aligned.as_ref().is_none_or(|(chains, answers_all)| {
            *answers_all && !chains.is_about_side_block(query) || chains.has_blocks(query)
        })
    }

    async fn answer(
        &self,
        account: CallAccount<'_>,
        call: PinnedCall,
        out: &mut Vec<u8>,
    ) -> Result<Answer, Failure> {
        self.embedded.answer(account, &self.snapshot, call, out).await
    }

    /// Answers, and asks nodes for a transaction that it does not have: it may be pending.
    async fn answer_beside(
        &self,
        nodes: Option<&NodesChain<'_>>,
        account: CallAccount<'_>,
        call: PinnedCall,
        out: &mut Vec<u8>,
    ) -> Result<Answer, Failure> {
        let start = out.len();
        let may_be_pending =
            call.query.transaction().is_some_and(|query| query.part == TransactionPart::Transaction);
        let nodes = nodes.filter(|_| may_be_pending);
        let pending = nodes.and_then(|nodes| {
            let repetition = Repetition::Never { deadline: None };
            let call = PinnedCall { query: call.query.clone(), repetition, body: None, ..call };
            Some((nodes.remote, nodes.canonical.as_ref()?, call))
        });
        let answer = self.answer(account, call, out).await?;
        let is_null = answer.shared.as_deref().unwrap_or(&out[start..]) == b"null";
        if let Some((remote, canonical, call)) = pending
            && is_null
            && !remote.pool().all_unreachable()
        {
            let by_nodes = Box::pin(remote.ask(account.id, canonical, call));
            if let Ok(Ok(pending)) = timeout(PENDING_LOOKUP_TIMEOUT, by_nodes).await {
                out.truncate(start);
                return Ok(pending);
            }
        }
        Ok(answer)
    }
}

impl<'a> Chain<'a> {
    /// The chain as it is now.
    pub(crate) fn now(embedded: Option<&'a Embedded>, remote: Option<&'a PoolSource>) -> Self {
        let aligned = remote.and_then(|remote| {
            let chains = remote.executed_chain()?.current_view(remote.pool());
            let answers_all = chains.answers_all(remote.pool());
            Some((chains, answers_all))
        });
        // Both are of one moment.
        let nodes = remote.map(|remote| NodesChain {
            remote,
            canonical: match &aligned {
                Some((chains, _)) => chains.canonical_chain().cloned(),
                None => remote.pool().canonical_chain(),
            },
        });
        let own = embedded.map(|embedded| OwnChain {
            embedded,
            snapshot: match &aligned {
                Some((chains, _)) => Arc::clone(chains) as Arc<dyn Source>,
                None => embedded.snapshot(),
            },
            aligned,
        });
        Self { own, nodes }
    }

    /// The newest block; `None` before any node has shown its chain.
    pub fn head(&self) -> Option<u64> {
        let own = self.own.as_ref().filter(|own| own.answers_all());
        let canonical = || self.nodes.as_ref()?.canonical.as_ref();
        own.map(|own| own.snapshot.head().number).or_else(|| Some(canonical()?.head().number))
    }

    /// Finds out which blocks a query means, as far as they exist. Nodes are asked in the share of the account.
    pub async fn for_call(
        &self,
        account: AccountId,
        method: &'static Method,
        query: &Query<BlockParam>,
    ) -> Result<CallChain<'_>, Failure> {
        let own = self.own.as_ref().filter(|own| own.answers(query));
        let at_pending = self.nodes.as_ref().filter(|_| method.is_forwarded_at_pending(query));
        Ok(CallChain(match (own, at_pending, &self.nodes) {
            (Some(own), Some(nodes), _) => {
                Answering::Pending { nodes, blocks: &*own.snapshot, own: Some(own) }
            }
            (Some(own), None, nodes) => Answering::Own { own, nodes: nodes.as_ref() },
            (None, at_pending, Some(NodesChain { remote, canonical: Some(canonical) })) => {
                let absence_verified = remote.find_blocks(account, canonical, query).await?;
                match at_pending {
                    Some(nodes) => Answering::Pending { nodes, blocks: &**canonical, own: None },
                    None => {
                        let blocks_verified = remote.blocks_verified(canonical, query);
                        Answering::Nodes { remote, canonical, blocks_verified, absence_verified }
                    }
                }
            }
            (None, _, _) => return Err(Failure::no_chain()),
        }))
    }
}

impl CallChain<'_> {
    /// The chain that the blocks of the call are looked up in.
    pub fn blocks(&self) -> &dyn ChainView {
        match self.0 {
            Answering::Own { own, .. } => &*own.snapshot,
            Answering::Nodes { canonical, .. } => &**canonical,
            Answering::Pending { blocks, .. } => blocks,
        }
    }

    /// Answers an admitted call whose blocks this chain has named, in the share of the account that pays for it.
    pub async fn answer(
        &self,
        account: CallAccount<'_>,
        call: PinnedCall,
        out: &mut Vec<u8>,
    ) -> Result<Answer, Unanswered> {
        match self.0 {
            Answering::Own { own, nodes } => Ok(own.answer_beside(nodes, account, call, out).await?),
            Answering::Nodes { remote, canonical, blocks_verified, .. } => {
                remote.answer(account.id, canonical, call, blocks_verified).await
            }
            Answering::Pending { nodes: NodesChain { remote, canonical }, own, .. } => {
                let pending = remote.answer_pending(account.id, canonical.as_deref(), &call);
                match (Box::pin(pending).await, own) {
                    // With all nodes down nobody knows what is pending, and the newest block is what comes closest.
                    (Err(Failure::Unavailable | Failure::NotServed { .. }), Some(own))
                        if remote.pool().all_unreachable() =>
                    {
                        Ok(own.answer(account, call, out).await?)
                    }
                    (answered, _) => Ok(answered?),
                }
            }
        }
    }

    /// Where it came from that a block does not exist.
    pub fn absence_provenance(&self) -> Provenance {
        match self.0 {
            Answering::Own { .. } => Provenance::archive(None),
            Answering::Nodes { absence_verified, .. } => PoolSource::absent_at_nodes(absence_verified),
            Answering::Pending { .. } => PoolSource::absent_at_nodes(Verification::None),
        }
    }
}

impl std::fmt::Debug for Chain<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Chain").field(&self.head()).finish()
    }
}

impl std::fmt::Debug for CallChain<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("CallChain").field(&self.blocks().head()).finish()
    }
}
