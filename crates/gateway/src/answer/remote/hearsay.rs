//! The chain as a partner tells it, for one request.
//!
//! It stands in where nobody of our own can say which block is meant: before the first head, and for blocks below the
//! view's window during an outage. It ends with the request. Nothing of it becomes part of the view or of the cache.

use std::collections::HashMap;
use std::sync::Arc;

use alloy_primitives::B256;
use nodes::Canon;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::expect::block_ref;
use super::{Remote, head};
use crate::answer::{Failure, View};
use crate::methods::Method;
use crate::params::{BlockParam, Tag};
use crate::resolve::BlockRef;

/// What a partner has told, around what is known anyway.
#[derive(Debug)]
pub struct Hearsay {
    canon: Option<Arc<Canon>>,
    /// The same for all calls of the request.
    head: BlockRef,
    /// What was asked for; `None` for a block that is not there.
    told: Mutex<HashMap<BlockParam, Option<BlockRef>>>,
}

impl Hearsay {
    /// Begins with the head: our own if we have one, and else the partner's.
    pub(super) async fn begin(
        remote: &Remote,
        canon: Option<&Arc<Canon>>,
        method: &'static Method,
        deadline: Instant,
    ) -> Result<Self, Failure> {
        let head = match canon {
            Some(canon) => head(canon),
            None => remote.told(method, LATEST, deadline).await?.ok_or(Failure::Unavailable)?,
        };
        let told = HashMap::from([(by_hash(head.hash), Some(head))]);
        Ok(Self { canon: canon.cloned(), head, told: Mutex::new(told) })
    }

    pub(super) fn canon(&self) -> Option<&Canon> {
        self.canon.as_deref()
    }

    /// Makes sure that this can say what block is meant, if there is such a block.
    pub(super) async fn learn(
        &self,
        remote: &Remote,
        method: &'static Method,
        block: BlockParam,
        deadline: Instant,
    ) -> Result<(), Failure> {
        let block = plain(block);
        if self.knows(block) {
            return Ok(());
        }
        let told = match block {
            BlockParam::Hash { hash, .. } => self.hear_of_hash(remote, method, hash, deadline).await?,
            other => remote.told(method, other, deadline).await?,
        };
        self.told.lock().insert(block, told);
        Ok(())
    }

    fn knows(&self, block: BlockParam) -> bool {
        let canon = self.canon();
        let is_known = match block {
            BlockParam::Tag(Tag::Latest) => true,
            BlockParam::Tag(_) => canon.is_some(),
            // The head itself, or one that is not there yet.
            BlockParam::Number(number) if number >= self.head.number => true,
            BlockParam::Number(number) => canon.is_some_and(|canon| canon.by_number(number).is_some()),
            BlockParam::Hash { hash, .. } => canon.is_some_and(|canon| canon.by_hash(&hash).is_some()),
        };
        is_known || self.told.lock().contains_key(&block)
    }

    /// A hash proves its block, and says nothing about whether that is on the chain: its number does.
    async fn hear_of_hash(
        &self,
        remote: &Remote,
        method: &'static Method,
        hash: B256,
        deadline: Instant,
    ) -> Result<Option<BlockRef>, Failure> {
        let Some(block) = remote.told(method, by_hash(hash), deadline).await? else { return Ok(None) };
        // Whatever is that high and on the chain is known without asking.
        let lowest = self.canon().map_or(self.head.number, Canon::lowest);
        if block.number >= lowest {
            return Ok(None);
        }
        let canonical = match self.canon().and_then(|canon| canon.by_number(block.number)) {
            Some(known) => Some(block_ref(known)),
            None => remote.told(method, BlockParam::Number(block.number), deadline).await?,
        };
        Ok(canonical.filter(|canonical| *canonical == block))
    }

    fn told(&self, block: BlockParam) -> Option<BlockRef> {
        self.told.lock().get(&block).copied().flatten()
    }
}

impl View for Hearsay {
    fn head(&self) -> BlockRef {
        self.head
    }

    fn finalized(&self) -> Option<BlockRef> {
        let known = self.canon().and_then(Canon::finalized).map(block_ref);
        known.or_else(|| self.told(BlockParam::Tag(Tag::Finalized)))
    }

    fn safe(&self) -> Option<BlockRef> {
        let known = self.canon().and_then(Canon::safe).map(block_ref);
        known.or_else(|| self.told(BlockParam::Tag(Tag::Safe)))
    }

    fn block_by_number(&self, number: u64) -> Result<Option<BlockRef>, Failure> {
        let known = self.canon().and_then(|canon| canon.by_number(number)).map(block_ref);
        Ok(known.or_else(|| self.told(BlockParam::Number(number))))
    }

    fn block_by_hash(&self, hash: B256) -> Result<Option<BlockRef>, Failure> {
        let known = self.canon().and_then(|canon| canon.by_hash(&hash)).map(block_ref);
        Ok(known.or_else(|| self.told(by_hash(hash))))
    }
}

const LATEST: BlockParam = BlockParam::Tag(Tag::Latest);

fn by_hash(hash: B256) -> BlockParam {
    BlockParam::Hash { hash }
}

/// One name for what callers may write in several ways.
fn plain(block: BlockParam) -> BlockParam {
    match block {
        BlockParam::Tag(Tag::Pending) => LATEST,
        BlockParam::Tag(Tag::Earliest) => BlockParam::Number(0),
        BlockParam::Hash { hash, .. } => by_hash(hash),
        other => other,
    }
}
