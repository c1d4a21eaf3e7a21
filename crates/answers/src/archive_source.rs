//! The embedded archive as a source: typed reads of one snapshot, written out as JSON.

mod blocks; // blocks, transactions and receipts
mod fees; // fee suggestions and histories
mod logs; // log queries
mod simulation; // calls and estimates

use std::sync::Arc;

use alloy_primitives::{B256, U256};
use archive::{Archive, Snapshot, StateSource, StoreError};
use methods::{BlockRef, GatewayQuery, Query, StateQuery, StateValue};
use sources::{
    AnswerBudget, AnswerLimits, ChainView, CurrentLimits, Failure, Json, PriorityFee, Provenance,
    SnapshotSource, Source,
};
use tokio::sync::watch;

/// Limits of an inline try. Work beyond them takes longer than 200 µs, or may.
mod brief {
    /// Values of a filter: each is a search in the index.
    pub(super) const FILTER_VALUES_MAX: usize = 32;
    /// Logs of an answer: each may be a search.
    pub(super) const LOGS_MAX: u64 = 64;
    /// Bytes of an answer.
    pub(super) const JSON_BYTES_MAX: usize = 64 << 10;
    /// Bytes of a message's data.
    pub(super) const INPUT_BYTES_MAX: usize = 4 << 10;
    /// Transactions of a block that is written with them, or with their receipts.
    pub(super) const TRANSACTIONS_MAX: u32 = 16;
    /// Transactions of a block that is written with their hashes only.
    pub(super) const HASHES_MAX: u32 = 128;
    /// Memory of a message. One instruction may go over all of it, and nothing stops it in the middle.
    pub(super) const MEMORY_BYTES_MAX: u64 = 512 << 10;
}

/// Answers calls from an archive. It keeps no snapshot between two requests: the pages of the file that an old snapshot needs
/// cannot be used again, so an import into an archive that nobody asks would make the file grow without bound.
#[derive(Debug)]
pub struct ArchiveSource {
    archive: Arc<Archive>,
    context: Arc<ArchiveContext>,
    /// How many commits there were.
    commits: watch::Sender<u64>,
}

/// The archive as it was at one head.
#[derive(Debug)]
struct ArchiveSnapshot {
    snapshot: Arc<Snapshot>,
    context: Arc<ArchiveContext>,
}

/// State that all snapshots of an archive share.
#[derive(Debug)]
struct ArchiveContext {
    limits: CurrentLimits,
    priority_fee: PriorityFee,
}

impl ArchiveSource {
    /// The archive behind it.
    pub fn archive(&self) -> &Arc<Archive> {
        &self.archive
    }

    /// The limits are those of the answer step.
    pub fn new(archive: Arc<Archive>, limits: impl Into<CurrentLimits>) -> Self {
        let limits = limits.into();
        let context = Arc::new(ArchiveContext { limits, priority_fee: PriorityFee::default() });
        let commits = watch::Sender::new(0);
        let counted = commits.clone();
        archive.on_commit(move || counted.send_modify(|commits| *commits += 1));
        Self { archive, context, commits }
    }
}

impl SnapshotSource for ArchiveSource {
    fn snapshot(&self) -> Arc<dyn Source> {
        let snapshot = Arc::clone(&self.archive.current());
        Arc::new(ArchiveSnapshot { snapshot, context: Arc::clone(&self.context) })
    }

    fn commits(&self) -> Option<watch::Receiver<u64>> {
        Some(self.commits.subscribe())
    }

    fn change_limits(&self, limits: &AnswerLimits) {
        self.context.limits.replace(limits);
    }

    fn own_archive(&self) -> Option<&Arc<Archive>> {
        Some(&self.archive)
    }
}

impl ChainView for ArchiveSnapshot {
    fn head(&self) -> BlockRef {
        BlockRef { number: self.snapshot.head(), hash: self.snapshot.head_hash() }
    }

    fn finalized(&self) -> Option<BlockRef> {
        Some(self.head())
    }

    fn safe(&self) -> Option<BlockRef> {
        Some(self.head())
    }

    fn block_by_number(&self, number: u64) -> Result<Option<BlockRef>, Failure> {
        let summary = self.snapshot.summary(number).inspect_err(report)?;
        Ok(summary.map(|summary| BlockRef { number, hash: summary.hash }))
    }

    fn block_by_hash(&self, hash: B256) -> Result<Option<BlockRef>, Failure> {
        let number = self.snapshot.number_of(hash).inspect_err(report)?;
        Ok(number.map(|number| BlockRef { number, hash }))
    }
}

impl Source for ArchiveSnapshot {
    fn answer(
        &self,
        query: &Query<BlockRef>,
        budget: &AnswerBudget,
        out: &mut Vec<u8>,
    ) -> Result<Provenance, Failure> {
        let ArchiveContext { limits, priority_fee } = &*self.context;
        let limits = &limits.now();
        let asked = ArchiveReader { snapshot: &self.snapshot, limits, priority_fee, budget };
        asked.answer(query, &mut Json(out)).map(Provenance::archive)
    }
}

fn report(cause: &StoreError) {
    tracing::error!(%cause, "the archive cannot be read");
}

/// One question to one snapshot.
struct ArchiveReader<'a> {
    snapshot: &'a Snapshot,
    limits: &'a AnswerLimits,
    priority_fee: &'a PriorityFee,
    budget: &'a AnswerBudget,
}

impl ArchiveReader<'_> {
    /// Writes the answer, and says at which block it is true.
    fn answer(&self, query: &Query<BlockRef>, json: &mut Json<'_>) -> Result<Option<BlockRef>, Failure> {
        match query {
            Query::Gateway(query) => Ok(self.about_gateway(*query, json)),
            Query::Fees(query) => self.fees(query, json).map(Some),
            Query::State(query) => self.state(*query, json).map(Some),
            Query::Simulation(query) => self.simulate(query, json).map(Some),
            Query::Block(query) => self.about_block(*query, json).map(Some),
            Query::Transaction(query) => self.about_transaction(*query, json),
            Query::RawTransactions(block) => self.raw_records(*block, json).map(Some),
            Query::Logs(query) => self.logs(query, json).map(Some),
        }
    }

    fn about_gateway(&self, query: GatewayQuery, json: &mut Json<'_>) -> Option<BlockRef> {
        match query {
            GatewayQuery::ChainId => json.quantity(self.snapshot.chain().chain_id()),
            GatewayQuery::NetVersion => {
                json.raw(format!("\"{}\"", self.snapshot.chain().chain_id()).as_bytes());
            }
            GatewayQuery::Syncing => _ = json.raw(b"false"),
            GatewayQuery::ClientVersion => _ = json.raw(methods::CLIENT_VERSION.as_bytes()),
            GatewayQuery::Discover => _ = json.raw(methods::OPENRPC.as_bytes()),
            GatewayQuery::BlockNumber => {
                json.quantity(self.snapshot.head());
                return Some(self.head());
            }
        }
        None
    }

    fn state(&self, query: StateQuery<BlockRef>, json: &mut Json<'_>) -> Result<BlockRef, Failure> {
        let StateQuery { address, at, value } = query;
        let state = self.snapshot.state_at(at.number);
        match value {
            StateValue::Balance => {
                json.quantity_u256(state.account(address)?.map_or(U256::ZERO, |account| account.balance));
            }
            StateValue::TransactionCount => {
                json.quantity(state.account(address)?.map_or(0, |account| account.nonce));
            }
            StateValue::Code => json.data(&state.code_of(address)?),
            StateValue::Storage { position } => {
                json.data(&state.storage(address, U256::from_be_bytes(position.0))?.to_be_bytes::<32>());
            }
        }
        Ok(at)
    }

    fn head(&self) -> BlockRef {
        BlockRef { number: self.snapshot.head(), hash: self.snapshot.head_hash() }
    }

    /// Ends an inline try of work that will surely take longer, before it is begun.
    fn end_try_if(&self, takes_longer: bool) -> Result<(), Failure> {
        match self.budget.is_brief() && takes_longer {
            true => Err(Failure::QueryTimeout),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The snapshot of the last request was kept until the next one: an import meanwhile could use no page of the file again.
    #[test]
    fn no_snapshot_is_kept_between_requests() {
        let folder = tempfile::tempdir().unwrap();
        let genesis = r#"{"config":{"chainId":1337},"alloc":{},"difficulty":"0x1","gasLimit":"0x1c9c380"}"#;
        let archive = Arc::new(Archive::open_or_create(folder.path(), genesis).unwrap());
        let holders = || Arc::strong_count(&archive.snapshot());
        let before = holders();
        let source = ArchiveSource::new(Arc::clone(&archive), AnswerLimits::default());
        assert_eq!(holders(), before);
        let asked = source.snapshot();
        assert_eq!(holders(), before + 1);
        drop(asked);
        assert_eq!(holders(), before);
    }
}
