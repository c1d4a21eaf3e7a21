//! One look at every node, for an operator who asks what is wrong before a gateway starts. Nothing is watched afterwards.
//!
//! The questions are those of the watchers, so a node that they would exclude is reported with their reason.

use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::Address;
use futures_util::future::join_all;
use serde_json::json;
use tokio::join;
use tokio::time::{Instant, timeout};

use super::chain::{ChainAgreement, ConfiguredIdentity};
use super::header::HeaderCheck;
use super::history::HistoryProbe;
use super::probe::find_lowest_state;
use super::questions::{BlockSelector, NodeIntroduction, Questions, watcher_call};
use super::{ExclusionReason, WatchSettings, Watched};
use crate::call::{BlockId, Class, Fault, RpcCall, RpcReply};
use crate::dialect::{self, Meaning};
use crate::node::{HistoryKind, HistoryReach, HistoryReaches, STATE_PROOF_METHOD};
use crate::node_fault::NodeFault;

/// How long one answer may take, and all answers about what a node is.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);
/// How long it may take to find out what a node has of old blocks, for which it is asked up to a hundred times.
const HISTORY_TIME_MAX: Duration = Duration::from_secs(15);

/// The result of asking one node or partner.
#[derive(Debug)]
pub struct NodeInspection {
    pub name: String,
    pub is_partner: bool,
    /// Its properties, or why it cannot be used.
    pub shown: Result<NodeFindings, String>,
    /// Why it pushes no heads, if it is configured to push them.
    pub heads_fault: Option<NodeFault>,
}

/// The properties of a node that can be used.
#[derive(Debug)]
pub struct NodeFindings {
    pub chain_id: u64,
    /// How long it took to say that, with the time for connecting.
    pub answered_in: Duration,
    /// Its history. A partner is not asked, because that would cost money.
    pub data: Option<NodeData>,
}

/// The history of a node: old data, state and proofs.
#[derive(Debug)]
pub struct NodeData {
    pub client_version: Option<String>,
    pub head: BlockId,
    /// Seconds since 1970.
    pub head_timestamp: u64,
    history: HistoryReaches,
    /// The lowest block with state; `None` if that was not found out in time.
    pub lowest_state: Option<u64>,
    /// Methods that it does not have or does not let us use, besides that for proofs.
    pub missing_methods: Vec<&'static str>,
    /// Whether it can prove the state of its newest block.
    pub has_proofs: bool,
}

impl NodeData {
    /// Down to which block it has this.
    pub fn history(&self, kind: HistoryKind) -> HistoryReach {
        self.history.of(kind)
    }
}

/// Looks at all nodes at the same time. Those of the operator decide on the chain if the settings do not, by a quorum.
pub(crate) async fn inspect<W: Watched>(
    nodes: &[Arc<W>],
    settings: &WatchSettings,
    quorum: usize,
) -> Vec<NodeInspection> {
    let headers = HeaderCheck::new(settings.check_headers);
    let configured = ConfiguredIdentity { chain_id: settings.chain_id, genesis: settings.genesis };
    let chain = ChainAgreement::new(configured);
    let voters = nodes.iter().filter(|node| node.partner_terms().is_none());
    chain.set_nodes(voters.map(|node| (node.id(), node.name().to_owned())), quorum);
    let inspectors = nodes.iter().map(|node| {
        let questions =
            Questions { node: &**node, timeout: ANSWER_TIME_MAX, headers: &headers, shows_presence: true };
        Inspector { questions, settings, chain: &chain }
    });
    let inspectors: Vec<_> = inspectors.collect();
    let introductions = join_all(inspectors.iter().map(Inspector::introduction)).await;
    let introduced = inspectors.iter().zip(introductions);
    join_all(introduced.map(|(inspector, introduction)| inspector.inspection(introduction))).await
}

/// Looks at one node.
struct Inspector<'a, W> {
    questions: Questions<'a, W>,
    settings: &'a WatchSettings,
    chain: &'a ChainAgreement,
}

/// The identity that a node claims, and how long its reply took.
type TimedIntroduction = (NodeIntroduction, Duration);

impl<W: Watched> Inspector<'_, W> {
    fn is_partner(&self) -> bool {
        self.questions.node.partner_terms().is_some()
    }

    /// The identity of the node. Its chain is believed unless the settings contradict it.
    async fn introduction(&self) -> Result<TimedIntroduction, NodeFault> {
        let (asked_at, checkpoint) = (Instant::now(), self.settings.checkpoint);
        let introduced = if self.is_partner() {
            timeout(ANSWER_TIME_MAX, self.questions.partner_introduction(checkpoint)).await
        } else {
            timeout(ANSWER_TIME_MAX, self.questions.introduction(checkpoint)).await
        };
        let introduction = introduced.unwrap_or_else(|_| Err(Fault::Timeout.into()))?;
        let NodeIntroduction { identity, other_checkpoint, .. } = &introduction;
        let is_contradicted =
            self.chain.contradicts_configuration(*identity).is_some() || other_checkpoint.is_some();
        if !self.is_partner() && !is_contradicted {
            self.chain.record(self.questions.node.id(), *identity);
        }
        Ok((introduction, asked_at.elapsed()))
    }

    async fn inspection(&self, introduced: Result<TimedIntroduction, NodeFault>) -> NodeInspection {
        let (name, is_partner) = (self.questions.node.name().to_owned(), self.is_partner());
        let shown = match introduced {
            Ok((introduction, answered_in)) => self.findings(introduction, answered_in).await,
            Err(fault) => Err(fault.with_advice()),
        };
        NodeInspection { name, is_partner, shown, heads_fault: None }
    }

    async fn findings(
        &self,
        introduction: NodeIntroduction,
        answered_in: Duration,
    ) -> Result<NodeFindings, String> {
        let chain_id = introduction.identity.chain_id;
        if let Some(reason) = self.exclusion(introduction) {
            return Err(reason.to_string());
        }
        let data = match self.is_partner() {
            true => None,
            false => Some(self.data().await.map_err(|fault| fault.with_advice())?),
        };
        Ok(NodeFindings { chain_id, answered_in, data })
    }

    /// Why the node would not be asked. That too few others have reported a chain is no fault of this one.
    fn exclusion(&self, introduction: NodeIntroduction) -> Option<ExclusionReason> {
        let NodeIntroduction { identity, is_syncing, other_checkpoint } = introduction;
        let undecided = || {
            let reason = self.chain.why_unsettled();
            matches!(reason, ExclusionReason::Undecided { .. }).then_some(reason)
        };
        let is_settled = self.chain.is_settled();
        self.chain
            .contradicts_configuration(identity)
            .or(other_checkpoint)
            .or_else(|| if is_settled { self.chain.differs(identity) } else { undecided() })
            .or_else(|| is_syncing.then_some(ExclusionReason::Syncing))
    }

    async fn data(&self) -> Result<NodeData, NodeFault> {
        let head =
            self.questions.block(BlockSelector::Latest).await?.ok_or_else(NodeFault::no_newest_block)?;
        let (mut probe, number) = (HistoryProbe::default(), head.id.number);
        let (version, history, lowest, mut missing_methods) = join!(
            self.questions.client_version(),
            timeout(HISTORY_TIME_MAX, probe.run(&self.questions, number)),
            timeout(HISTORY_TIME_MAX, find_lowest_state(&self.questions, number)),
            self.questions.missing_methods(head.id),
        );
        let missing = missing_methods.len();
        missing_methods.retain(|method| *method != STATE_PROOF_METHOD);
        Ok(NodeData {
            has_proofs: missing_methods.len() == missing,
            client_version: version.unwrap_or_default(),
            head: head.id,
            head_timestamp: head.timestamp,
            history: history.map(|(reaches, _)| reaches).unwrap_or_default(),
            lowest_state: lowest.ok().and_then(Result::ok).flatten(),
            missing_methods,
        })
    }
}

impl<W: Watched> Questions<'_, W> {
    /// The methods of [`sample_calls`] that the node does not have or does not let us use.
    async fn missing_methods(&self, head: BlockId) -> Vec<&'static str> {
        let calls = sample_calls(head);
        let refused = calls.into_iter().map(|call| async move {
            let reply = self.reply(call.clone()).await;
            let Ok(RpcReply::Error(error)) = reply else { return None };
            let meaning = dialect::read(&error, call.method);
            matches!(meaning, Meaning::NoMethod | Meaning::Unauthorised).then_some(call.method)
        });
        join_all(refused).await.into_iter().flatten().collect()
    }
}

/// A call of each method that calls of callers become, besides those that every watcher makes. All are about the newest block, which
/// every node has.
fn sample_calls(head: BlockId) -> Vec<RpcCall> {
    let (hash, number) = (head.hash, format!("{:#x}", head.number));
    let (account, message) = (Address::ZERO, json!({ "to": Address::ZERO }));
    let of_class = |class, method, params: serde_json::Value| RpcCall {
        class,
        ..watcher_call(method, params.to_string())
    };
    vec![
        of_class(Class::Quick, "eth_getBalance", json!([account, number])),
        of_class(Class::Quick, "eth_getCode", json!([account, number])),
        of_class(Class::Quick, "eth_getStorageAt", json!([account, "0x0", number])),
        of_class(Class::Quick, "eth_getTransactionCount", json!([account, number])),
        of_class(Class::Quick, "eth_getTransactionByHash", json!([hash])),
        of_class(Class::Quick, "eth_getTransactionReceipt", json!([hash])),
        of_class(Class::Bulk, "eth_getBlockReceipts", json!([number])),
        of_class(Class::Logs, "eth_getLogs", json!([{ "fromBlock": number, "toBlock": number }])),
        of_class(Class::Evm, "eth_call", json!([message, number])),
        of_class(Class::Evm, "eth_estimateGas", json!([message, number])),
        of_class(Class::Quick, STATE_PROOF_METHOD, json!([account, [], number])),
    ]
}
