//! Keys that were revoked on this gateway alone, because the store could not be reached. They are kept in a file of the data
//! directory, so that they hold after a restart, and are sent to the store when it is back.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::policy::LOCAL_REVOCATIONS_MAX;

/// Name of the file in the data directory.
pub const LOCAL_REVOCATIONS_FILE: &str = "revoked-keys.json";

/// A key that was revoked on this gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalRevocation {
    /// Seconds since 1970.
    pub at: i64,
    /// Who has revoked it, for the audit log.
    pub actor: String,
}

/// The keys that were revoked on this gateway, by their ids.
#[derive(Debug)]
pub struct LocalRevocations {
    path: PathBuf,
    keys: ArcSwap<BTreeMap<String, LocalRevocation>>,
    /// Ids of those that the store accepts, or may accept.
    unsent: Mutex<BTreeSet<String>>,
    /// Held while keys are added and written.
    adding: Mutex<()>,
}

impl LocalRevocations {
    /// Reads the file. One that cannot be read is an error, because its keys would be accepted.
    pub fn open(data_dir: &Path) -> Result<Self, String> {
        let path = data_dir.join(LOCAL_REVOCATIONS_FILE);
        let keys: BTreeMap<String, LocalRevocation> = match fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => BTreeMap::new(),
            read => read.and_then(|bytes| Ok(serde_json::from_slice(&bytes)?)).map_err(|error| {
                format!("cannot read the keys revoked here in {}: {error}", path.display())
            })?,
        };
        Ok(Self {
            path,
            keys: ArcSwap::from_pointee(keys),
            unsent: Mutex::default(),
            adding: Mutex::default(),
        })
    }

    /// Whether a key was revoked here.
    pub(crate) fn contain(&self, id: &str) -> bool {
        let keys = self.keys.load();
        !keys.is_empty() && keys.contains_key(id)
    }

    /// Refuses a key from now on. After an error it is refused only until the next start.
    pub fn add(&self, id: &str, revocation: LocalRevocation) -> io::Result<()> {
        let _adding = self.adding.lock();
        let mut keys = BTreeMap::clone(&self.keys.load());
        if keys.len() >= LOCAL_REVOCATIONS_MAX
            && !keys.contains_key(id)
            && let Some(oldest) = keys.iter().min_by_key(|(_, key)| key.at).map(|(id, _)| id.clone())
        {
            keys.remove(&oldest);
        }
        keys.entry(id.to_owned()).or_insert(revocation);
        self.keys.store(keys.clone().into());
        self.unsent.lock().insert(id.to_owned());
        self.write(&keys)
    }

    fn write(&self, keys: &BTreeMap<String, LocalRevocation>) -> io::Result<()> {
        let temporary = self.path.with_extension("new");
        let mut options = OpenOptions::new();
        let mut file = options.create(true).write(true).truncate(true).mode(0o600).open(&temporary)?;
        file.write_all(&serde_json::to_vec_pretty(keys)?)?;
        file.sync_all()?;
        fs::rename(temporary, &self.path)?;
        // The new name is on the disk when the folder is.
        self.path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
    }

    /// The store accepts a key: if it was revoked here, that is sent.
    pub(crate) fn accepted_by_store(&self, id: &str) {
        if self.contain(id) {
            self.unsent.lock().insert(id.to_owned());
        }
    }

    /// One that has to be sent to the store.
    pub(crate) fn first_unsent(&self) -> Option<(String, LocalRevocation)> {
        let unsent = self.unsent.lock();
        let keys = self.keys.load();
        unsent.iter().find_map(|id| Some((id.clone(), keys.get(id)?.clone())))
    }

    /// The store refuses the key, or does not know it.
    pub(crate) fn sent(&self, id: &str) {
        self.unsent.lock().remove(id);
    }
}
