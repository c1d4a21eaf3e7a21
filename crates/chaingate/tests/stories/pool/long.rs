//! A chain whose first blocks are below the window of the view.

use archive::Archive;
use testkit::contracts::token_balance_slot;
use testkit::heavy::{self, HeavyChain, TOKEN, holder};

use crate::demo::Demo;

/// The window has 256.
pub(super) const BLOCKS: u64 = 300;

/// A block that is below the window.
pub(super) const DEEP: u64 = 7;

/// A chain with so many transactions in each block. Two with different numbers have no block in common but the first.
pub(super) fn chain(transactions_per_block: u64) -> HeavyChain {
    chain_of(BLOCKS, transactions_per_block)
}

/// A longer or shorter one.
pub(super) fn chain_of(blocks: u64, transactions_per_block: u64) -> HeavyChain {
    heavy::transaction_heavy(blocks, transactions_per_block)
}

/// A node that has it.
pub(super) fn node(chain: &HeavyChain) -> Demo {
    let folder = tempfile::tempdir().unwrap();
    let archive = Archive::open_or_create(folder.path(), &chain.genesis_json()).unwrap();
    let blocks: Vec<_> = chain.blocks.iter().map(|built| built.block.clone()).collect();
    archive.import_blocks(blocks, &mut archive::NoProgress).unwrap();
    Demo::over(archive, folder, "")
}

/// The parameters of a look at a storage slot that the second transaction has written to.
pub(super) fn storage_at(block: &str) -> String {
    let slot = token_balance_slot(holder(31));
    format!(r#"["{TOKEN}","{slot:#x}",{block}]"#)
}
