//! Every promise about the demo chain, kept.

mod blocks; // eras, uncles, withdrawals
mod calls; // results of calls
mod document; // docs/demo-chain.md
mod logs; // topics, and too many of them
mod opening; // the archive that the product makes
mod raw; // the records of a layer 2
mod source; // contracts/ and the people
mod state; // storage, code, self-destruction
mod transactions; // types and receipts

use super::{
    facts::{Facts, Point},
    *,
};
use alloy_primitives::B256;
use archive::{Archive, Snapshot};
use demo::{CHAIN_ID, HEAD_HASH, HEAD_NUMBER, open};
use std::sync::Arc;
use tempfile::TempDir;

/// The demo chain in an archive of its own.
struct Demo {
    facts: Facts,
    snapshot: Arc<Snapshot>,
    _folder: TempDir,
}

impl Demo {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let facts = build().unwrap().facts;
        let archive = open(folder.path(), |_, _| {}).unwrap();
        Self { facts, snapshot: archive.snapshot(), _folder: folder }
    }

    fn point(&self, name: &str) -> Point {
        *self.facts.point(name).unwrap_or_else(|| panic!("nothing is called {name}"))
    }

    fn block(&self, name: &str) -> u64 {
        self.point(name).block
    }

    fn transaction(&self, name: &str) -> B256 {
        self.facts.transaction(name).unwrap_or_else(|| panic!("no transaction is called {name}"))
    }
}
