//! Answers about blocks, transactions, receipts and uncles, made from proven blocks.

use std::sync::Arc;

use alloy_primitives::B256;
use bytes::Bytes;
use methods::{BlockPart, BlockQuery, BlockRef, TransactionPart, TransactionQuery};
use nodes::ChainFamily;
use nodes::proven::ProvenBody;
use resources::MemoryCharge;

use super::asking::Asking;
use super::fetched::{CacheDecision, Fetched, NULL, written};
use super::located::{Located, Nowhere};
use super::mined::{blob_fee, write_mined_receipt, write_mined_transaction, write_whole_block};
use super::pool_source::PoolSource;
use super::proven_blocks::block_of;
use crate::budget::{AnswerBudget, ReplyCharge};
use crate::failure::Failure;
use crate::provenance::Verification;
use crate::query_plan::NodeQuery;
use crate::results::json::Json;
use crate::results::{LogWriter, write_pending_transaction, write_uncle};

/// Transactions that are written at once with their senders, each of which takes up to 100 µs to recover.
const SENDERS_AT_ONCE_MAX: usize = 2;

/// Hashes of transactions, or logs of a receipt, that are written at once: some 100 µs.
const ITEMS_AT_ONCE_MAX: usize = 128;

/// How long it takes to write a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writing {
    Short,
    /// The blocks that it is made from take this many bytes. They may be in no cache any more, and then nobody else accounts
    /// for them.
    Long {
        held_bytes: usize,
    },
}

impl PoolSource {
    /// Whether block data is answered from proven blocks. Headers of zkSync-like chains cannot be computed.
    pub(super) fn proves_blocks(&self) -> bool {
        self.family == ChainFamily::Ethereum && self.integrity.proves()
    }

    /// The answer that proven blocks give; `None` for queries that are not about block data.
    pub(super) async fn answer_from_blocks(
        &self,
        asking: Asking<'_>,
        query: NodeQuery<'_>,
    ) -> Option<Result<Fetched, Failure>> {
        if !self.proves_blocks() {
            return None;
        }
        match query {
            NodeQuery::Block(query) => Some(at(query.block, Box::pin(self.block_part(asking, query)).await)),
            NodeQuery::Transaction(TransactionQuery { hash, part }) => Some(match part {
                TransactionPart::Transaction => Box::pin(self.transaction(asking, hash)).await,
                TransactionPart::Receipt => Box::pin(self.receipt(asking, hash)).await,
            }),
            NodeQuery::Fees(query) => Box::pin(self.answer_fees(asking, query)).await,
            NodeQuery::State(_) | NodeQuery::Simulation(_) | NodeQuery::RawTransactions(_) => None,
        }
    }

    async fn block_part(&self, asking: Asking<'_>, query: BlockQuery<BlockRef>) -> Result<Bytes, Failure> {
        let BlockQuery { block, part } = query;
        match part {
            BlockPart::Whole { full } => self.block(asking, block, full).await,
            BlockPart::TransactionCount => {
                let body = self.body(asking, block).await?;
                Ok(quantity(body.transactions().len()))
            }
            BlockPart::Receipts => self.block_receipts(asking, block).await,
            BlockPart::UncleCount => self.uncle_count(asking, block).await,
            BlockPart::Uncle { index } => self.uncle(asking, block, index).await,
            BlockPart::Transaction { index } => self.transaction_at(asking, block, index).await,
        }
    }

    async fn block(&self, asking: Asking<'_>, block: BlockRef, full: bool) -> Result<Bytes, Failure> {
        let body = self.body(asking, block).await?;
        let uncles = self.uncles(asking, &body).await?;
        let most = if full { SENDERS_AT_ONCE_MAX } else { ITEMS_AT_ONCE_MAX };
        let work = match body.transactions().len() <= most {
            true => Writing::Short,
            false => Writing::Long { held_bytes: body.bytes() },
        };
        self.write(asking, work, move |budget, json| write_whole_block(&body, &uncles, full, budget, json))
            .await
    }

    async fn block_receipts(&self, asking: Asking<'_>, block: BlockRef) -> Result<Bytes, Failure> {
        let body = self.body(asking, block).await?;
        let receipts = self.receipts(asking, &body).await?;
        let is_short = receipts.len() <= SENDERS_AT_ONCE_MAX && receipts.log_count() <= ITEMS_AT_ONCE_MAX;
        let work = match is_short {
            true => Writing::Short,
            false => Writing::Long { held_bytes: body.bytes() + receipts.bytes() },
        };
        let blob_fee = blob_fee(self.blob_network(), body.header());
        self.write(asking, work, move |budget, json| {
            let (mut logs, mut outcome) = (LogWriter::default(), Ok(()));
            json.list(0..receipts.len(), |json, index| {
                if outcome.is_ok() {
                    let written = write_mined_receipt(&body, &receipts, index, blob_fee, &mut logs, json);
                    outcome = written.and_then(|()| budget.proceed(json.0.capacity()));
                }
            });
            outcome
        })
        .await
    }

    async fn uncle_count(&self, asking: Asking<'_>, block: BlockRef) -> Result<Bytes, Failure> {
        let body = self.body(asking, block).await?;
        let uncles = self.uncles(asking, &body).await?;
        Ok(quantity(uncles.headers().len()))
    }

    async fn uncle(&self, asking: Asking<'_>, block: BlockRef, index: u64) -> Result<Bytes, Failure> {
        let body = self.body(asking, block).await?;
        let uncles = self.uncles(asking, &body).await?;
        let uncle = usize::try_from(index).ok().and_then(|index| uncles.headers().get(index));
        Ok(uncle.map_or(NULL, |uncle| written(|json| write_uncle(uncle, json))))
    }

    async fn transaction_at(
        &self,
        asking: Asking<'_>,
        block: BlockRef,
        index: u64,
    ) -> Result<Bytes, Failure> {
        let body = self.body(asking, block).await?;
        match usize::try_from(index).ok().filter(|index| *index < body.transactions().len()) {
            Some(index) => self.mined_transaction(asking, body, index).await,
            None => Ok(NULL),
        }
    }

    async fn mined_transaction(
        &self,
        asking: Asking<'_>,
        body: Arc<ProvenBody>,
        index: usize,
    ) -> Result<Bytes, Failure> {
        self.write(asking, Writing::Short, move |_, json| write_mined_transaction(&body, index, json)).await
    }

    async fn transaction(&self, asking: Asking<'_>, hash: B256) -> Result<Fetched, Failure> {
        match self.locate(asking, hash, TransactionPart::Transaction).await? {
            Located::Mined { body, index } => {
                let block = block_of(&body);
                at(block, self.mined_transaction(asking, body, index).await)
            }
            Located::Pending(pending) => {
                let result =
                    written(|json| write_pending_transaction(&pending.transaction, pending.sender, json));
                Ok(not_mined(result, Verification::None, CacheDecision::No))
            }
            // It may be pending any moment.
            Located::Nowhere(Nowhere { verified, .. }) => Ok(not_mined(NULL, verified, CacheDecision::No)),
        }
    }

    async fn receipt(&self, asking: Asking<'_>, hash: B256) -> Result<Fetched, Failure> {
        match self.locate(asking, hash, TransactionPart::Receipt).await? {
            Located::Mined { body, index } => {
                let block = block_of(&body);
                at(block, self.mined_receipt(asking, body, index).await)
            }
            Located::Pending(_) => Ok(not_mined(NULL, Verification::None, CacheDecision::No)),
            Located::Nowhere(Nowhere { all_say_so, verified }) => {
                let cache = if all_say_so { CacheDecision::Absent } else { CacheDecision::No };
                Ok(not_mined(NULL, verified, cache))
            }
        }
    }

    async fn mined_receipt(
        &self,
        asking: Asking<'_>,
        body: Arc<ProvenBody>,
        index: usize,
    ) -> Result<Bytes, Failure> {
        let receipts = self.receipts(asking, &body).await?;
        let logs = receipts.get(index).map_or(0, |receipt| receipt.logs.len());
        let blob_fee = blob_fee(self.blob_network(), body.header());
        let work = match logs <= ITEMS_AT_ONCE_MAX {
            true => Writing::Short,
            false => Writing::Long { held_bytes: body.bytes() + receipts.bytes() },
        };
        self.write(asking, work, move |_, json| {
            write_mined_receipt(&body, &receipts, index, blob_fee, &mut LogWriter::default(), json)
        })
        .await
    }

    /// Writes a result: at once if it is short, else in the pool of threads, where the account is charged for it while it
    /// grows, and for what it is made from.
    async fn write(
        &self,
        asking: Asking<'_>,
        work: Writing,
        write: impl FnOnce(&AnswerBudget, &mut Json<'_>) -> Result<(), Failure> + Send + 'static,
    ) -> Result<Bytes, Failure> {
        let reply = ReplyCharge::new(self.memory.clone(), asking.account);
        let budget = AnswerBudget {
            deadline: Some(asking.deadline.into_std()),
            reply: Some(reply),
            ..AnswerBudget::default()
        };
        let mut charge = MemoryCharge::default();
        if let Writing::Long { held_bytes } = work {
            self.memory.of(asking.account).grow(&mut charge, held_bytes)?;
        }
        let job = move || {
            let _charge = charge;
            let mut out = Vec::new();
            write(&budget, &mut Json(&mut out))?;
            budget.charge_reply(out.capacity())?;
            Ok(Bytes::from(out))
        };
        match work {
            Writing::Short => job(),
            Writing::Long { .. } => self.threads.run(asking.account, job).await?,
        }
    }
}

fn at(block: BlockRef, result: Result<Bytes, Failure>) -> Result<Fetched, Failure> {
    result.map(|result| Fetched::proven(result, Some(block)))
}

/// An answer about a transaction that is in no block.
fn not_mined(result: Bytes, verified: Verification, cache: CacheDecision) -> Fetched {
    Fetched { result, block: None, verified, cache, given_by: None }
}

fn quantity(number: usize) -> Bytes {
    written(|json| json.quantity(number as u64))
}
