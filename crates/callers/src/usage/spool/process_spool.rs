//! The spool of this process, which is created when there is something to write: a full disk must not keep the gateway from
//! starting.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use resources::unix_time;

use super::{Spool, SpoolId};
use crate::instance_id::InstanceId;

#[derive(Debug)]
pub(in crate::usage) struct ProcessSpool {
    usage_dir: PathBuf,
    id: SpoolId,
    spool: OnceLock<Spool>,
}

impl ProcessSpool {
    pub(in crate::usage) fn new(usage_dir: PathBuf, instance: InstanceId) -> Self {
        let epoch = u64::try_from(unix_time().as_millis()).unwrap_or(u64::MAX);
        Self { usage_dir, id: SpoolId { instance, epoch }, spool: OnceLock::new() }
    }

    pub(in crate::usage) fn id(&self) -> SpoolId {
        self.id
    }

    /// The folder of all spools.
    pub(in crate::usage) fn usage_dir(&self) -> &Path {
        &self.usage_dir
    }

    /// The spool, if anything was written.
    pub(in crate::usage) fn get(&self) -> Option<&Spool> {
        self.spool.get()
    }

    /// The spool, which is created the first time. Only one thread may write.
    pub(in crate::usage) fn get_or_create(&self) -> io::Result<&Spool> {
        match self.spool.get() {
            Some(spool) => Ok(spool),
            None => {
                let spool = Spool::create(&self.usage_dir, self.id)?;
                Ok(self.spool.get_or_init(|| spool))
            }
        }
    }
}
