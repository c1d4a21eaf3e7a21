//! The embedded archive as a source: typed reads of one snapshot, written out as JSON.

mod fees;

use super::results::{
    BlockFields, LOG_BYTES_TYPICAL, LogWriter, PriorityFee, json::Json, write_block, write_receipt,
    write_transaction, write_uncle,
};
use super::simulation::{call_failure, overrides};
use crate::budget::AnswerBudget;
use crate::failure::Failure;
use crate::limits::AnswerLimits;
use crate::provenance::Provenance;
use crate::view::{ChainView, SnapshotSource, Source};
use alloy_primitives::{B256, U256};
use arc_swap::ArcSwap;
use archive::{
    Archive, BlockPlace, CallError, CallLimits, Deadline, LogLimits, LogsError, ReceiptData, Snapshot,
    StateSource, StoreError,
};
use methods::{
    BlockPart, BlockQuery, BlockRef, CallMessage, GatewayQuery, LogBlocks, LogsQuery, Query, SimulationKind,
    SimulationQuery, StateQuery, StateValue, TransactionPart, TransactionQuery,
};
use std::{ops::ControlFlow, sync::Arc};

/// The result of `web3_clientVersion`.
pub(super) const CLIENT_VERSION: &[u8] = concat!("\"Chaingate/v", env!("CARGO_PKG_VERSION"), "\"").as_bytes();

/// Logs of a receipt that room is made for at once. A row that is damaged may claim any number of them.
const RESERVED_LOGS_MAX: u32 = 1_024;

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

/// Answers calls from an archive.
#[derive(Debug)]
pub struct ArchiveSource {
    archive: Arc<Archive>,
    /// The newest snapshot that was asked for.
    newest: ArcSwap<ArchiveSnapshot>,
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
    limits: AnswerLimits,
    priority_fee: PriorityFee,
}

impl ArchiveSource {
    /// The archive behind it.
    pub fn archive(&self) -> &Archive {
        &self.archive
    }

    pub(super) fn shared_archive(&self) -> &Arc<Archive> {
        &self.archive
    }

    /// The limits are those of the answer step.
    pub fn new(archive: Arc<Archive>, limits: AnswerLimits) -> Self {
        let context = Arc::new(ArchiveContext { limits, priority_fee: PriorityFee::default() });
        let snapshot = Arc::clone(&archive.current());
        Self { archive, newest: ArcSwap::from_pointee(ArchiveSnapshot { snapshot, context }) }
    }
}

impl SnapshotSource for ArchiveSource {
    fn snapshot(&self) -> Arc<dyn Source> {
        let current = self.archive.current();
        let newest = self.newest.load_full();
        if Arc::ptr_eq(&newest.snapshot, &current) {
            return newest;
        }
        let newer = Arc::new(ArchiveSnapshot {
            snapshot: Arc::clone(&current),
            context: Arc::clone(&newest.context),
        });
        self.newest.store(Arc::clone(&newer));
        newer
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
        let place = self.snapshot.place(number).inspect_err(report)?;
        Ok(place.map(|place| BlockRef { number, hash: place.hash }))
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
            GatewayQuery::ClientVersion => _ = json.raw(CLIENT_VERSION),
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

    fn about_block(&self, query: BlockQuery<BlockRef>, json: &mut Json<'_>) -> Result<BlockRef, Failure> {
        let BlockQuery { block, part } = query;
        match part {
            BlockPart::Whole { full } => self.block(block, full, json),
            BlockPart::TransactionCount => {
                let place = self.snapshot.place(block.number)?.ok_or(Failure::Unavailable)?;
                json.quantity(u64::from(place.transactions));
                Ok(block)
            }
            BlockPart::Receipts => self.receipts(block, json),
            BlockPart::UncleCount => {
                let data = self.snapshot.block(block.number)?.ok_or(Failure::Unavailable)?;
                json.quantity(data.uncles.len() as u64);
                Ok(block)
            }
            BlockPart::Uncle { index } => self.uncle(block, index, json),
            BlockPart::Transaction { index } => self.transaction_at(block, index, json),
        }
    }

    fn about_transaction(
        &self,
        query: TransactionQuery,
        json: &mut Json<'_>,
    ) -> Result<Option<BlockRef>, Failure> {
        match query.part {
            TransactionPart::Transaction => self.transaction_by_hash(query.hash, json),
            TransactionPart::Receipt => self.receipt(query.hash, json),
        }
    }

    fn head(&self) -> BlockRef {
        BlockRef { number: self.snapshot.head(), hash: self.snapshot.head_hash() }
    }

    fn block(&self, at: BlockRef, full: bool, json: &mut Json<'_>) -> Result<BlockRef, Failure> {
        let data = self.snapshot.block(at.number)?.ok_or(Failure::Unavailable)?;
        let inline_max = if full { brief::TRANSACTIONS_MAX } else { brief::HASHES_MAX };
        self.end_try_if(data.place.transactions > inline_max)?;
        let block = BlockFields {
            header: &data.header,
            hash: data.place.hash,
            total_difficulty: Some(data.place.total_difficulty),
            size: u64::from(data.place.size),
            uncles: &data.uncles,
            withdrawals: data.withdrawals.as_ref(),
        };
        write_block(&block, json, |json| match full {
            true => self.transactions(at.number, json),
            false => self.transaction_hashes(&data.place, json),
        })?;
        Ok(at)
    }

    fn transactions(&self, block: u64, json: &mut Json<'_>) -> Result<(), Failure> {
        let transactions = self.snapshot.transactions(block)?;
        let mut outcome = Ok(());
        json.list(&transactions, |json, data| {
            if outcome.is_ok() {
                write_transaction(&data.into(), json);
                outcome = self.budget.proceed(json.0.capacity());
            }
        });
        outcome
    }

    fn transaction_hashes(&self, place: &BlockPlace, json: &mut Json<'_>) -> Result<(), Failure> {
        let hashes = self.snapshot.transaction_hashes(place)?;
        json.list(&hashes, |json, hash| json.data(hash.as_slice()));
        Ok(())
    }

    fn uncle(&self, at: BlockRef, index: u64, json: &mut Json<'_>) -> Result<BlockRef, Failure> {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        match self.snapshot.uncle(at.number, index)? {
            Some(uncle) => write_uncle(&uncle, json),
            None => {
                json.raw(b"null");
            }
        }
        Ok(at)
    }

    fn transaction_at(&self, at: BlockRef, index: u64, json: &mut Json<'_>) -> Result<BlockRef, Failure> {
        match self.snapshot.transaction_at(at.number, index)? {
            Some(data) => write_transaction(&(&data).into(), json),
            None => {
                json.raw(b"null");
            }
        }
        Ok(at)
    }

    fn transaction_by_hash(&self, hash: B256, json: &mut Json<'_>) -> Result<Option<BlockRef>, Failure> {
        let Some(data) = self.snapshot.transaction(hash)? else { return Ok(write_null(json)) };
        write_transaction(&(&data).into(), json);
        Ok(Some(BlockRef { number: data.block.number, hash: data.block.hash }))
    }

    fn receipt(&self, hash: B256, json: &mut Json<'_>) -> Result<Option<BlockRef>, Failure> {
        let Some(data) = self.snapshot.receipt(hash)? else { return Ok(write_null(json)) };
        self.end_try_if(u64::from(data.row.logs) > brief::LOGS_MAX)?;
        self.write_receipt(&data, &mut LogWriter::default(), json)?;
        self.budget.charge_reply(json.0.capacity())?;
        Ok(Some(BlockRef { number: data.block.number, hash: data.block.hash }))
    }

    fn receipts(&self, at: BlockRef, json: &mut Json<'_>) -> Result<BlockRef, Failure> {
        let place = self.snapshot.place(at.number)?.ok_or(Failure::Unavailable)?;
        self.end_try_if(place.transactions > brief::TRANSACTIONS_MAX)?;
        let receipts = self.snapshot.receipts(at.number)?.ok_or(Failure::Unavailable)?;
        let logs: u64 = receipts.iter().map(|receipt| u64::from(receipt.row.logs)).sum();
        self.end_try_if(logs > brief::LOGS_MAX)?;
        let (mut logs, mut outcome) = (LogWriter::default(), Ok(()));
        json.list(&receipts, |json, data| {
            if outcome.is_ok() {
                outcome = self
                    .write_receipt(data, &mut logs, json)
                    .and_then(|()| self.budget.proceed(json.0.capacity()));
            }
        });
        outcome.map(|()| at)
    }

    fn write_receipt(
        &self,
        data: &ReceiptData,
        logs: &mut LogWriter,
        json: &mut Json<'_>,
    ) -> Result<(), Failure> {
        write_receipt(data, json, |json| {
            let mut separator: &[u8] = b"";
            json.0.reserve(data.row.logs.min(RESERVED_LOGS_MAX) as usize * LOG_BYTES_TYPICAL);
            json.raw(b"[");
            if data.row.logs > 0 {
                let _ = self.snapshot.logs_by_ordinal(data.log_ordinals()).read(|log| {
                    json.raw(separator);
                    separator = b",";
                    logs.write(&log.into(), json);
                    ControlFlow::<()>::Continue(())
                })?;
            }
            json.raw(b"]");
            Ok(())
        })
    }

    /// Ends an inline try of work that will surely take longer, before it is begun.
    fn end_try_if(&self, takes_longer: bool) -> Result<(), Failure> {
        match self.budget.is_brief() && takes_longer {
            true => Err(Failure::QueryTimeout),
            false => Ok(()),
        }
    }

    fn raw_records(&self, at: BlockRef, json: &mut Json<'_>) -> Result<BlockRef, Failure> {
        let records = self.snapshot.raw_records(at.number)?.unwrap_or_else(|| b"[]".to_vec());
        self.end_try_if(records.len() > brief::JSON_BYTES_MAX)?;
        self.budget.charge_reply(json.0.len() + records.len())?;
        json.raw(&records);
        Ok(at)
    }

    fn logs(&self, query: &LogsQuery<BlockRef>, json: &mut Json<'_>) -> Result<BlockRef, Failure> {
        let LogsQuery { filter, blocks } = query;
        let (from, to) = match *blocks {
            LogBlocks::One(block) => (block, block),
            LogBlocks::Range { from, to } => (from, to),
        };
        let brief = self.budget.is_brief();
        let values = filter.addresses.len() + filter.topics.iter().map(Vec::len).sum::<usize>();
        if brief && values > brief::FILTER_VALUES_MAX {
            return Err(Failure::QueryTimeout);
        }
        let filter =
            archive::LogFilter { addresses: filter.addresses.clone(), topics: filter.topics.clone() };
        let limits = LogLimits {
            results_max: usize::try_from(self.limits.log_results_max).unwrap_or(usize::MAX),
            deadline: self.budget.deadline(),
            cancel: self.budget.abandoned().map(|flag| &**flag),
        };
        let found =
            self.snapshot.logs(from.number..=to.number, &filter, limits).map_err(|cause| match cause {
                LogsError::TooMany { widest_to } => Failure::TooManyResults {
                    from: from.number,
                    to: widest_to.unwrap_or(from.number),
                    most: self.limits.log_results_max,
                },
                other => other.into(),
            })?;
        if brief && found.len() > brief::LOGS_MAX {
            return Err(Failure::QueryTimeout);
        }
        let bytes_max = if brief { json.0.len() + brief::JSON_BYTES_MAX } else { usize::MAX };
        let typical_bytes = found.len() as usize * LOG_BYTES_TYPICAL;
        self.budget.charge_reply(json.0.len() + typical_bytes)?;
        json.0.reserve(typical_bytes);
        let mut writer = LogWriter::default();
        let mut separator: &[u8] = b"[";
        let flow = found.read(|log| {
            json.raw(separator);
            separator = b",";
            writer.write(&log.into(), json);
            if json.0.len() > bytes_max {
                return ControlFlow::Break(Failure::QueryTimeout);
            }
            match self.budget.charge_reply(json.0.capacity()) {
                Ok(()) => ControlFlow::Continue(()),
                Err(failure) => ControlFlow::Break(failure),
            }
        })?;
        if let ControlFlow::Break(failure) = flow {
            return Err(failure);
        }
        json.raw(if found.is_empty() { b"[]" } else { b"]" });
        Ok(to)
    }

    fn simulate(&self, query: &SimulationQuery<BlockRef>, json: &mut Json<'_>) -> Result<BlockRef, Failure> {
        let (message, at) = (&*query.message, query.at);
        let (header, limits) = self.simulation(message, at)?;
        let rules = self.snapshot.chain().rules_at(&header);
        let state = self.snapshot.state_at(at.number);
        let (request, overrides) = (message.request.clone(), overrides(message));
        let failed = |cause| self.call_failure(cause);
        match query.kind {
            SimulationKind::Call => {
                let output = archive::call(state, rules, &header, request, overrides, &limits);
                json.data(&output.map_err(failed)?);
            }
            SimulationKind::Estimate => {
                let gas = archive::estimate(state, rules, &header, request, overrides, &limits);
                json.quantity(gas.map_err(failed)?);
            }
        }
        Ok(at)
    }

    /// The block that a simulation runs at, and what it may use.
    fn simulation(
        &self,
        message: &CallMessage,
        at: BlockRef,
    ) -> Result<(alloy_consensus::Header, CallLimits), Failure> {
        let timeout = self.limits.call_timeout;
        let brief = self.budget.is_brief();
        if brief && !is_plain(message) {
            return Err(Failure::CallTimeout(timeout));
        }
        let header = self.snapshot.header(at.number)?.ok_or(Failure::Unavailable)?;
        let head_gas_limit = self.snapshot.head_gas_limit();
        let deadline = if brief { Deadline::strict } else { Deadline::at };
        let memory_bytes_max = self.limits.call_memory_bytes_max;
        let limits = CallLimits {
            gas_cap: head_gas_limit.saturating_mul(self.limits.call_gas_multiple),
            memory_bytes_max: if brief {
                memory_bytes_max.min(brief::MEMORY_BYTES_MAX)
            } else {
                memory_bytes_max
            },
            deadline: self.budget.deadline().map(|at| deadline(at, timeout)),
            cancel: self.budget.abandoned().cloned(),
        };
        Ok((header, limits))
    }

    fn call_failure(&self, cause: CallError) -> Failure {
        call_failure(cause, self.limits.call_timeout, self.budget.is_brief())
    }
}

/// Whether nothing has to be done for a message before it runs but to fill in what it leaves out.
fn is_plain(message: &CallMessage) -> bool {
    let (request, overrides) = (&message.request, &message.overrides);
    overrides.state.is_none()
        && overrides.block.is_none()
        && request.access_list.is_none()
        && request.authorization_list.is_none()
        && request.blob_versioned_hashes.is_none()
        && request.input.input().is_none_or(|input| input.len() <= brief::INPUT_BYTES_MAX)
}

/// Writes that there is nothing, which is true at no block in particular.
fn write_null(json: &mut Json<'_>) -> Option<BlockRef> {
    json.raw(b"null");
    None
}

impl From<StoreError> for Failure {
    fn from(cause: StoreError) -> Self {
        Self::Broken(cause.to_string())
    }
}

impl From<LogsError> for Failure {
    fn from(cause: LogsError) -> Self {
        match cause {
            LogsError::Timeout | LogsError::Cancelled => Self::QueryTimeout,
            other => Self::Broken(other.to_string()),
        }
    }
}
