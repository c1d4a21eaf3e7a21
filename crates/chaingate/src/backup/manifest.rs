//! The manifest: which program made the backup when, of which chain, and the checksum of every file.

use std::fs;
use std::path::Path;

use archive::{Archive, BlocksFile, BlocksFileLimits};
use serde::{Deserialize, Serialize};

use super::checksum;

pub(crate) const MANIFEST_FILE: &str = "manifest.json";

/// The version of the manifest, and of what is in the folder beside it.
const FORMAT: u32 = 1;

/// Bytes of a manifest that are read; one has about 1,500.
const MANIFEST_BYTES_MAX: u64 = 64 << 10;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BackupManifest {
    format: u32,
    /// The version of the program.
    program: String,
    /// Seconds since 1970.
    pub(crate) finished_at: i64,
    pub(crate) network: String,
    pub(crate) archive: Option<ArchiveIdentity>,
    pub(crate) blocks: Option<StoredBlocksIdentity>,
    /// Where accounts, keys and usage are.
    pub(crate) store: BackedUpStore,
    pub(crate) files: Vec<BackedUpFile>,
}

/// The identity of an archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ArchiveIdentity {
    chain_id: u64,
    genesis: String,
    pub(crate) head: u64,
    head_hash: String,
    state_root: String,
}

/// The identity of a file of stored blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredBlocksIdentity {
    chain_id: Option<u64>,
    pub(crate) blocks: u64,
    newest: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BackedUpStore {
    /// In the backup.
    Sqlite,
    /// Not in the backup: the database has backups of its own.
    Postgresql,
    /// The gateway had none.
    Missing,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BackedUpFile {
    pub(crate) name: String,
    pub(crate) bytes: u64,
    pub(crate) sha256: String,
}

/// The manifest as it is written: with its own checksum.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SealedManifest {
    manifest: BackupManifest,
    /// Of the JSON text of the manifest, as [`BackupManifest::text`] gives it.
    sha256: String,
}

impl BackupManifest {
    pub(super) fn new(network: &str, finished_at: i64, store: BackedUpStore) -> Self {
        Self {
            format: FORMAT,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            finished_at,
            network: network.to_owned(),
            archive: None,
            blocks: None,
            store,
            files: Vec::new(),
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// The whole file.
    pub(super) fn text(&self) -> Result<String, String> {
        let unreadable = |error: serde_json::Error| format!("cannot write the manifest: {error}");
        let sha256 = checksum::of_bytes(&serde_json::to_vec_pretty(self).map_err(unreadable)?);
        let sealed = SealedManifest { manifest: self.clone(), sha256 };
        serde_json::to_string_pretty(&sealed).map(|text| text + "\n").map_err(unreadable)
    }

    /// Reads the manifest of a backup. Any change of it is an error.
    pub(super) fn read(backup: &Path) -> Result<Self, String> {
        let path = backup.join(MANIFEST_FILE);
        let wrong = |why: &str| format!("{}: {why}", path.display());
        let length = fs::metadata(&path).map(|file| file.len()).map_err(|error| wrong(&error.to_string()))?;
        if length > MANIFEST_BYTES_MAX {
            return Err(wrong("it is no manifest of a backup"));
        }
        let bytes = fs::read(&path).map_err(|error| wrong(&error.to_string()))?;
        let format = serde_json::from_slice::<serde_json::Value>(&bytes)
            .ok()
            .and_then(|value| value["manifest"]["format"].as_u64());
        if let Some(newer) = format.filter(|format| *format > FORMAT.into()) {
            return Err(wrong(&format!(
                "it has format {newer}, and this program reads {FORMAT}; use the program that made it"
            )));
        }
        let damaged = || wrong("it is damaged, or no manifest of a backup");
        let sealed: SealedManifest = serde_json::from_slice(&bytes).map_err(|_| damaged())?;
        match sealed.manifest.text()?.as_bytes() == bytes {
            true => Ok(sealed.manifest),
            false => Err(damaged()),
        }
    }
}

impl ArchiveIdentity {
    /// Opens the archive of a folder, reads its newest block, and closes it.
    pub(super) fn read(folder: &Path) -> Result<Self, String> {
        let archive = Archive::open(folder).map_err(|cause| cause.to_string())?;
        let snapshot = archive.snapshot();
        let head = snapshot.head();
        let read = snapshot.genesis_hash().and_then(|genesis| Ok((genesis, snapshot.header(head)?)));
        let (genesis, header) = read.map_err(|cause| cause.to_string())?;
        let header = header.ok_or_else(|| format!("block {head} is missing"))?;
        Ok(Self {
            chain_id: snapshot.chain().chain_id(),
            genesis: genesis.to_string(),
            head,
            head_hash: snapshot.head_hash().to_string(),
            state_root: header.state_root.to_string(),
        })
    }
}

impl StoredBlocksIdentity {
    /// Opens the stored blocks of a folder, reads what there is, and closes them.
    pub(super) fn read(folder: &Path) -> Result<Self, String> {
        let file = BlocksFile::open_or_create(folder, BlocksFileLimits::default())
            .map_err(|cause| cause.to_string())?;
        let snapshot = file.snapshot();
        let newest = snapshot.ranges().next_back().map(|range| *range.end());
        let chain_id = snapshot.chain().map(|chain| chain.chain_id);
        Ok(Self { chain_id, blocks: snapshot.block_count(), newest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_of_a_manifest_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(MANIFEST_FILE);
        let mut manifest = BackupManifest::new("demo", 1_798_761_599, BackedUpStore::Sqlite);
        manifest.blocks = Some(StoredBlocksIdentity { chain_id: Some(1), blocks: 2, newest: Some(3) });
        let sha256 = checksum::of_bytes(b"");
        manifest.files.push(BackedUpFile { name: "blocks.redb".to_owned(), bytes: 4, sha256 });
        let text = manifest.text().unwrap();
        fs::write(&path, &text).unwrap();
        assert_eq!(BackupManifest::read(folder.path()).unwrap(), manifest);
        for bit in 0..text.len() * 8 {
            let mut damaged = text.clone().into_bytes();
            damaged[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, damaged).unwrap();
            let error = BackupManifest::read(folder.path()).unwrap_err();
            assert!(error.contains(MANIFEST_FILE), "bit {bit}: {error}");
        }
        for cut in 0..text.len() {
            fs::write(&path, &text[..cut]).unwrap();
            assert!(BackupManifest::read(folder.path()).is_err(), "{cut}");
        }
    }
}
