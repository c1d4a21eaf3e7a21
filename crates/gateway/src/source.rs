//! The sources that this deployment has.

use crate::{
    answer::{Source, archive::ArchiveSource},
    config::Config,
};
use archive::Archive;
use std::sync::Arc;

/// Opens the embedded chain in the data directory.
pub fn open(config: &Config) -> Result<Arc<dyn Source>, String> {
    let archive = Archive::open(&config.data_dir).map_err(|cause| cause.to_string())?;
    Ok(Arc::new(ArchiveSource::new(Arc::new(archive), config.limits.answer.clone())))
}
