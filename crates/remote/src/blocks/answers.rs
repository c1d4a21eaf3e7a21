//! Answers about blocks, transactions, receipts and uncles, made from proven blocks.

use std::sync::Arc;

use alloy_primitives::B256;
use bytes::Bytes;
use methods::{BlockPart, BlockQuery, BlockRef, TransactionPart, TransactionQuery};
use nodes::proven::ProvenBody;
use resources::MemoryCharge;
use sources::{
    AnswerBudget, Failure, Json, LogWriter, ReplyCharge, Verification, write_block_header,
    write_pending_transaction, write_uncle,
};

use super::Blocks;
use super::location::{Located, Nowhere, TransactionSearch};
use crate::block_ids::block_of;
use crate::call_context::CallContext;
use crate::fetched::{CacheDecision, Fetched, NULL, written};
use crate::mined::{blob_fee, write_mined_receipt, write_mined_transaction, write_whole_block};

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

/// Writes answers from proven blocks.
#[derive(Clone, Copy)]
pub(crate) struct BlockAnswers<'a> {
    pub(crate) blocks: &'a Blocks,
    pub(crate) context: CallContext<'a>,
}

impl BlockAnswers<'_> {
    pub(crate) async fn of_transaction(self, query: TransactionQuery) -> Result<Fetched, Failure> {
        match query.part {
            TransactionPart::Transaction => self.transaction(query.hash).await,
            TransactionPart::Receipt => self.receipt(query.hash).await,
        }
    }

    pub(crate) async fn of_block(self, query: BlockQuery<BlockRef>) -> Result<Fetched, Failure> {
        at(query.block, self.block_part(query).await)
    }

    async fn block_part(self, query: BlockQuery<BlockRef>) -> Result<Bytes, Failure> {
        let BlockQuery { block, part } = query;
        match part {
            BlockPart::Whole { full } => self.block(block, full).await,
            BlockPart::Header => {
                let body = self.blocks.body(self.context, block).await?;
                Ok(written(|json| write_block_header(body.header(), body.hash(), json)))
            }
            BlockPart::TransactionCount => {
                let body = self.blocks.body(self.context, block).await?;
                Ok(quantity(body.transactions().len()))
            }
            BlockPart::Receipts => self.block_receipts(block).await,
            BlockPart::UncleCount => self.uncle_count(block).await,
            BlockPart::Uncle { index } => self.uncle(block, index).await,
            BlockPart::Transaction { index } => self.transaction_at(block, index).await,
        }
    }

    async fn block(self, block: BlockRef, full: bool) -> Result<Bytes, Failure> {
        let body = self.blocks.body(self.context, block).await?;
        let uncles = self.blocks.uncles(self.context, &body).await?;
        let most = if full { SENDERS_AT_ONCE_MAX } else { ITEMS_AT_ONCE_MAX };
        let work = match body.transactions().len() <= most {
            true => Writing::Short,
            false => Writing::Long { held_bytes: body.bytes() },
        };
        self.write(work, move |budget, json| write_whole_block(&body, &uncles, full, budget, json)).await
    }

    async fn block_receipts(self, block: BlockRef) -> Result<Bytes, Failure> {
        let body = self.blocks.body(self.context, block).await?;
        let receipts = self.blocks.receipts(self.context, &body).await?;
        let is_short = receipts.len() <= SENDERS_AT_ONCE_MAX && receipts.log_count() <= ITEMS_AT_ONCE_MAX;
        let work = match is_short {
            true => Writing::Short,
            false => Writing::Long { held_bytes: body.bytes() + receipts.bytes() },
        };
        let blob_fee = blob_fee(self.blocks.blob_network(), body.header());
        self.write(work, move |budget, json| {
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

    async fn uncle_count(self, block: BlockRef) -> Result<Bytes, Failure> {
        let body = self.blocks.body(self.context, block).await?;
        let uncles = self.blocks.uncles(self.context, &body).await?;
        Ok(quantity(uncles.headers().len()))
    }

    async fn uncle(self, block: BlockRef, index: u64) -> Result<Bytes, Failure> {
        let body = self.blocks.body(self.context, block).await?;
        let uncles = self.blocks.uncles(self.context, &body).await?;
        let uncle = usize::try_from(index).ok().and_then(|index| uncles.headers().get(index));
        Ok(uncle.map_or(NULL, |uncle| written(|json| write_uncle(uncle, json))))
    }

    async fn transaction_at(self, block: BlockRef, index: u64) -> Result<Bytes, Failure> {
        let body = self.blocks.body(self.context, block).await?;
        match usize::try_from(index).ok().filter(|index| *index < body.transactions().len()) {
            Some(index) => self.mined_transaction(body, index).await,
            None => Ok(NULL),
        }
    }

    async fn mined_transaction(self, body: Arc<ProvenBody>, index: usize) -> Result<Bytes, Failure> {
        self.write(Writing::Short, move |_, json| write_mined_transaction(&body, index, json)).await
    }

    async fn locate(self, hash: B256, part: TransactionPart) -> Result<Located, Failure> {
        TransactionSearch { blocks: self.blocks, context: self.context, hash, part }.locate().await
    }

    async fn transaction(self, hash: B256) -> Result<Fetched, Failure> {
        match self.locate(hash, TransactionPart::Transaction).await? {
            Located::Mined { body, index } => {
                let block = block_of(&body);
                at(block, self.mined_transaction(body, index).await)
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

    async fn receipt(self, hash: B256) -> Result<Fetched, Failure> {
        match self.locate(hash, TransactionPart::Receipt).await? {
            Located::Mined { body, index } => {
                let block = block_of(&body);
                at(block, self.mined_receipt(body, index).await)
            }
            Located::Pending(_) => Ok(not_mined(NULL, Verification::None, CacheDecision::No)),
            Located::Nowhere(Nowhere { all_say_so, verified }) => {
                let cache = if all_say_so { CacheDecision::Absent } else { CacheDecision::No };
                Ok(not_mined(NULL, verified, cache))
            }
        }
    }

    async fn mined_receipt(self, body: Arc<ProvenBody>, index: usize) -> Result<Bytes, Failure> {
        let receipts = self.blocks.receipts(self.context, &body).await?;
        let logs = receipts.get(index).map_or(0, |receipt| receipt.logs.len());
        let blob_fee = blob_fee(self.blocks.blob_network(), body.header());
        let work = match logs <= ITEMS_AT_ONCE_MAX {
            true => Writing::Short,
            false => Writing::Long { held_bytes: body.bytes() + receipts.bytes() },
        };
        self.write(work, move |_, json| {
            write_mined_receipt(&body, &receipts, index, blob_fee, &mut LogWriter::default(), json)
        })
        .await
    }

    /// Writes a result: at once if it is short, else in the pool of threads, where the account is charged for it while it
    /// grows, and for what it is made from.
    async fn write(
        self,
        work: Writing,
        write: impl FnOnce(&AnswerBudget, &mut Json<'_>) -> Result<(), Failure> + Send + 'static,
    ) -> Result<Bytes, Failure> {
        let (workers, context) = (&self.blocks.workers, self.context);
        let reply = ReplyCharge::new(workers.memory.clone(), context.account);
        let budget = AnswerBudget {
            deadline: Some(context.deadline.into_std()),
            reply: Some(reply),
            ..AnswerBudget::default()
        };
        let mut charge = MemoryCharge::default();
        if let Writing::Long { held_bytes } = work {
            workers.memory.of(context.account).grow(&mut charge, held_bytes)?;
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
            Writing::Long { .. } => workers.threads.run(context.account, job).await?,
        }
    }
}

fn at(block: BlockRef, result: Result<Bytes, Failure>) -> Result<Fetched, Failure> {
    result.map(|result| Fetched::proven(result, Some(block)))
}

/// An answer about a transaction that is in no block.
fn not_mined(result: Bytes, verified: Verification, cache: CacheDecision) -> Fetched {
    Fetched { result, block: None, verified, cache, trust: None }
}

fn quantity(number: usize) -> Bytes {
    written(|json| json.quantity(number as u64))
}
