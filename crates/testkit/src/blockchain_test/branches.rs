//! The blocks of a test as a tree, and one archive that holds the branch that was used last.

use alloy_genesis::Genesis;
use alloy_primitives::{B256, Bytes};
use alloy_rlp::Decodable;
use archive::{Archive, Block, BlockFile};
use std::collections::BTreeMap;
use tempfile::TempDir;

/// Why there is no block 0.
pub(super) struct GenesisRefused(pub(super) String);

/// All accepted blocks of a test.
pub(super) struct Branches {
    genesis_json: String,
    accepted: BTreeMap<B256, Accepted>,
    open: OpenBranch,
}

struct Accepted {
    parent: B256,
    rlp: Bytes,
}

/// An archive with the blocks up to its head.
struct OpenBranch {
    archive: Archive,
    folder: TempDir,
}

impl Branches {
    pub(super) fn new(genesis: Result<Genesis, String>) -> Result<Self, GenesisRefused> {
        let text = |error: serde_json::Error| GenesisRefused(error.to_string());
        let genesis_json = serde_json::to_string(&genesis.map_err(GenesisRefused)?).map_err(text)?;
        let open = OpenBranch::new(&genesis_json).map_err(GenesisRefused)?;
        Ok(Self { genesis_json, accepted: BTreeMap::new(), open })
    }

    pub(super) fn genesis_hash(&self) -> B256 {
        self.open.archive.snapshot().genesis_hash().unwrap_or_default()
    }

    /// Imports a block after the block that it names as its parent.
    pub(super) fn import(&mut self, rlp: &Bytes) -> Result<(), String> {
        // Bytes that are no block go to the archive, too, because it has to refuse them.
        let Ok(block) = Block::decode(&mut rlp.as_ref()) else { return self.open.import(rlp) };
        let (hash, parent) = (block.header.hash_slow(), block.header.parent_hash);
        if self.accepted.contains_key(&hash) {
            return Ok(());
        }
        if self.accepted.contains_key(&parent) || parent == self.genesis_hash() {
            self.archive_at(parent)?;
        }
        self.open.import(rlp)?;
        self.accepted.insert(hash, Accepted { parent, rlp: rlp.clone() });
        Ok(())
    }

    /// An archive whose head is this block.
    pub(super) fn archive_at(&mut self, head: B256) -> Result<&Archive, String> {
        if self.open.archive.snapshot().head_hash() != head {
            let mut path = Vec::new();
            let mut at = head;
            while let Some(block) = self.accepted.get(&at) {
                path.push(&block.rlp);
                at = block.parent;
            }
            if at != self.genesis_hash() {
                return Err(format!("block {head} was not accepted"));
            }
            let open = OpenBranch::new(&self.genesis_json)?;
            path.iter().rev().try_for_each(|rlp| open.import(rlp))?;
            self.open = open;
        }
        Ok(&self.open.archive)
    }
}

impl OpenBranch {
    fn new(genesis_json: &str) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let archive =
            Archive::open_or_create(folder.path(), genesis_json).map_err(|error| error.to_string())?;
        Ok(Self { archive, folder })
    }

    fn import(&self, rlp: &Bytes) -> Result<(), String> {
        let path = self.folder.path().join("block.rlp");
        std::fs::write(&path, rlp).map_err(|error| error.to_string())?;
        let file = BlockFile::open(path).map_err(|error| error.to_string())?;
        let progress =
            self.archive.import(file, &mut archive::NoProgress).map_err(|error| error.to_string())?;
        if progress.blocks == 1 { Ok(()) } else { Err("the file holds no new block".into()) }
    }
}
