//! Uncles of a block.

use alloy_consensus::constants::EMPTY_OMMER_ROOT_HASH;
use alloy_consensus::{Header, proofs};

use super::{ProofFailure, ProvenBody, Unproven};
use crate::raw::header::RawBlock;

/// A block names at most two uncles.
pub const UNCLES_MAX: usize = 2;

/// The headers of a block's uncles, proven by the block's header.
#[derive(Debug)]
pub struct ProvenUncles(Vec<Header>);

impl ProvenUncles {
    /// The uncles of a block that has none; `None` if its header says that it has some.
    pub fn none(body: &ProvenBody) -> Option<Self> {
        (body.header().ommers_hash == EMPTY_OMMER_ROOT_HASH).then(|| Self(Vec::new()))
    }

    /// Proves the uncles of a block that one node delivered one by one. The list ends at the first null.
    pub fn prove<'a>(
        deliveries: impl IntoIterator<Item = &'a [u8]>,
        body: &ProvenBody,
    ) -> Result<Self, Unproven> {
        let is_there = |delivery: &&[u8]| delivery.trim_ascii() != b"null";
        let headers: Vec<_> =
            deliveries.into_iter().take_while(is_there).map(header).collect::<Result<_, _>>()?;
        match proofs::calculate_ommers_root(&headers) == body.header().ommers_hash {
            true => Ok(Self(headers)),
            // A node that does not store uncles is not blamed.
            false if headers.is_empty() => Err(Unproven::NotThere),
            false => Err(ProofFailure::UnclesHash.into()),
        }
    }

    /// Uncles that were proven before they were stored.
    pub fn restored(headers: Vec<Header>) -> Self {
        Self(headers)
    }

    pub fn headers(&self) -> &[Header] {
        &self.0
    }
}

fn header(delivery: &[u8]) -> Result<Header, ProofFailure> {
    let raw: Option<RawBlock<'_>> = serde_json::from_slice(delivery).ok();
    raw.and_then(|raw| raw.header().ok()).ok_or(ProofFailure::Malformed)
}
