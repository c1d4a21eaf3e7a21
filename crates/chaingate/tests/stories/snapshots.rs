//! A chain that grows while it is asked: every request sees it as it was at one moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use alloy_primitives::B256;
use methods::{BlockRef, Query};
use sources::{AnswerBudget, ChainView, Failure, Provenance, SnapshotSource, Source};

use crate::gateway_under_test::{Gateway, block, call};

/// A chain that has one more block whenever somebody looks.
#[derive(Default)]
struct GrowingChain {
    height: AtomicU64,
}

impl SnapshotSource for GrowingChain {
    fn snapshot(&self) -> Arc<dyn Source> {
        Arc::new(ChainAtHeight(self.height.fetch_add(1, SeqCst)))
    }
}

struct ChainAtHeight(u64);

impl ChainView for ChainAtHeight {
    fn head(&self) -> BlockRef {
        block(self.0)
    }

    fn finalized(&self) -> Option<BlockRef> {
        Some(self.head())
    }

    fn safe(&self) -> Option<BlockRef> {
        Some(self.head())
    }

    fn block_by_number(&self, number: u64) -> Result<Option<BlockRef>, Failure> {
        Ok((number <= self.0).then(|| block(number)))
    }

    fn block_by_hash(&self, _: B256) -> Result<Option<BlockRef>, Failure> {
        Ok(None)
    }
}

impl Source for ChainAtHeight {
    fn answer(
        &self,
        query: &Query<BlockRef>,
        _: &AnswerBudget,
        out: &mut Vec<u8>,
    ) -> Result<Provenance, Failure> {
        let number = match query {
            Query::State(query) => query.at.number,
            _ => self.0,
        };
        out.extend_from_slice(format!("\"{number:#x}\"").as_bytes());
        Ok(Provenance::archive(None))
    }
}

/// The head was read anew for each call, and once more for its answer.
#[test]
fn all_calls_of_a_batch_see_the_same_chain() {
    let gateway = Gateway::over_growing(GrowingChain::default());
    let balance = call("eth_getBalance", r#"["0x0000000000000000000000000000000000000001","latest"]"#);
    let number = call("eth_blockNumber", "[]");
    let run = call("eth_call", r#"[{"data":"0x00"},"latest"]"#);
    let heads = || {
        let batch = gateway.post(format!("[{number},{balance},{run},{number}]")).json();
        let results: Vec<_> = batch.as_array().unwrap().iter().map(|reply| reply["result"].clone()).collect();
        assert!(results.iter().all(|result| result.is_string() && *result == results[0]), "{results:?}");
        results[0].clone()
    };
    assert_ne!(heads(), heads(), "the next request sees a newer one");
}
