//! The sources that this deployment has.

use crate::{answer::archive::ArchiveSource, config::Config, demo};
use archive::{Archive, OpenError};
use std::sync::Arc;

/// Opens the embedded chain in the data directory. The demo network makes its chain where there is none, and is
/// told how far it is.
pub fn open(config: &Config, progress: impl FnMut(u64, u64)) -> Result<Arc<ArchiveSource>, String> {
    let archive = match Archive::open(&config.data_dir) {
        Err(OpenError::Missing(_)) if config.network.is_demo() => None,
        Ok(archive) if demo::is_unfinished(&archive) => None,
        opened => Some(opened.map_err(|cause| cause.to_string())?),
    };
    let archive = match archive {
        Some(archive) => archive,
        None => demo::open(&config.data_dir, progress).map_err(|cause| cause.to_string())?,
    };
    Ok(Arc::new(ArchiveSource::new(Arc::new(archive), config.limits.answer.clone())))
}
