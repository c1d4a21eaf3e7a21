//! The sources that this deployment has.

use std::sync::Arc;

use archive::{Archive, OpenError};

use crate::answer::Sources;
use crate::answer::archive::ArchiveSource;
use crate::answer::remote::Remote;
use crate::config::Config;
use crate::demo;

/// Opens what answers: nodes where there are any, and a chain of our own otherwise.
pub fn open(config: &Config, progress: impl FnMut(u64, u64)) -> Result<Sources, String> {
    if config.remote.nodes.is_empty() {
        return open_archive(config, progress).map(Sources::from);
    }
    Remote::start(&config.remote, &config.network).map(|remote| Sources::Remote(Box::new(remote)))
}

/// Opens the embedded chain in the data directory. The demo network makes its chain where there is none, and is
/// told how far it is.
pub fn open_archive(config: &Config, progress: impl FnMut(u64, u64)) -> Result<Arc<ArchiveSource>, String> {
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
