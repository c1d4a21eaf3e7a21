//! Opens the archive or the nodes that the configuration names.

use std::path::PathBuf;
use std::sync::Arc;

use answers::{ArchiveSource, Sources};
use archive::{ARCHIVE_FILE, Archive, BLOCKS_FILE, OpenError};
use demo;

use methods::{Checkpoint, Network};
use remote::StartedPool;
use remote::settings::FollowMode;
use resources::Supervisor;

use crate::config::Config;

/// Opens the nodes of the configuration, or the archive if there are none.
pub fn open(
    config: &Config,
    supervisor: &Supervisor,
    progress: impl FnMut(u64, u64),
) -> Result<Sources, String> {
    open_after(config, supervisor, |_| Ok(()), progress)
}

/// Opens the nodes of the configuration, or the archive if there are none. Calls `before_files` before files are opened that only one
/// process can open. It is told whether the head of the nodes is awaited that are watched by then.
pub(crate) fn open_after(
    config: &Config,
    supervisor: &Supervisor,
    before_files: impl FnOnce(&dyn Fn() -> bool) -> Result<(), String>,
    progress: impl FnMut(u64, u64),
) -> Result<Sources, String> {
    let (remote, data_dir) = (&config.remote, &config.data_dir);
    if remote.nodes.is_empty() {
        before_files(&|| false)?;
        return open_archive(config, progress).map(Sources::from);
    }
    let nodes = match remote.follow.mode {
        FollowMode::Off | FollowMode::Blocks => {
            StartedPool::start(remote, &config.network, data_dir, supervisor, |pool| {
                before_files(&|| pool.view().head().is_none())
            })?
        }
        FollowMode::Full => {
            before_files(&|| false)?;
            let archive = open_following_archive(config)?;
            let network = network_of(config, archive.archive())?;
            StartedPool::start(remote, &network, data_dir, supervisor, |_| Ok(()))?
                .with_archive(Arc::clone(archive.archive()), archive)
        }
    };
    Ok(Sources::Remote(Box::new(nodes)))
}

/// Whether the sources of a configuration have files that only one process can open.
pub(crate) fn has_exclusive_files(config: &Config) -> bool {
    config.remote.nodes.is_empty() || config.remote.follow.mode != FollowMode::Off
}

/// Those of these files that exist.
pub(crate) fn exclusive_files(config: &Config) -> impl Iterator<Item = PathBuf> {
    let files = [ARCHIVE_FILE, BLOCKS_FILE].map(|name| config.data_dir.join(name));
    files.into_iter().filter(|file| file.exists())
}

/// Opens the archive that is extended with the blocks of the nodes.
fn open_following_archive(config: &Config) -> Result<Arc<ArchiveSource>, String> {
    let in_follow = |what: String| format!("[follow] mode = \"full\": {what}");
    let archive = Archive::open(&config.data_dir).map_err(|cause| {
        in_follow(match cause {
            OpenError::Missing(path) => format!(
                "there is no archive at {}; create one with `chaingate import --data-dir {} --genesis genesis.json`, \
                 followed by block files if you have any",
                path.display(),
                config.data_dir.display()
            ),
            other => other.to_string(),
        })
    })?;
    check_identity(&config.network, &archive).map_err(in_follow)?;
    Ok(Arc::new(ArchiveSource::new(Arc::new(archive), config.limits.answer.clone())))
}

/// The network with the identity of the archive, so that nodes of another chain are not used.
fn network_of(config: &Config, archive: &Archive) -> Result<Network, String> {
    let snapshot = archive.snapshot();
    let genesis_hash = Some(snapshot.genesis_hash().map_err(|cause| cause.to_string())?);
    let chain_id = Some(snapshot.chain().chain_id());
    Ok(Network { chain_id, genesis_hash, ..config.network.clone() })
}

/// Opens the archive in the data directory. The demo chain is created if it does not exist, which `progress` reports.
pub(crate) fn open_archive(
    config: &Config,
    progress: impl FnMut(u64, u64),
) -> Result<Arc<ArchiveSource>, String> {
    let archive = match Archive::open(&config.data_dir) {
        Err(OpenError::Missing(_)) if config.serves_demo_chain() => None,
        Ok(archive) if demo::is_unfinished(&archive) => None,
        opened => Some(opened.map_err(|cause| cause.to_string())?),
    };
    let archive = match archive {
        Some(archive) => archive,
        None => demo::open(&config.data_dir, progress).map_err(|cause| cause.to_string())?,
    };
    check_chain(config, &archive)?;
    Ok(Arc::new(ArchiveSource::new(Arc::new(archive), config.limits.answer.clone())))
}

/// The result of looking at the archive that a configuration names.
#[derive(Debug, PartialEq, Eq)]
pub enum ArchiveCheck {
    /// It can be served, or is not needed.
    Ok,
    /// Another process has it open, probably a gateway that serves it.
    InUse(String),
}

/// Checks whether the archive that a configuration names can be served, without creating or changing anything.
pub fn check(config: &Config) -> Result<ArchiveCheck, String> {
    if !config.remote.nodes.is_empty() {
        remote::check_genesis(&config.network)?;
        return check_continued_archive(config);
    }
    match Archive::open(&config.data_dir) {
        Ok(archive) => check_chain(config, &archive).map(|()| ArchiveCheck::Ok),
        Err(OpenError::Missing(_)) if config.serves_demo_chain() => Ok(ArchiveCheck::Ok),
        Err(cause @ OpenError::InUse(_)) => Ok(ArchiveCheck::InUse(cause.to_string())),
        Err(cause) => Err(cause.to_string()),
    }
}

/// Checks the archive that nodes continue. They need one only with `[follow] mode = "full"`.
fn check_continued_archive(config: &Config) -> Result<ArchiveCheck, String> {
    if config.remote.follow.mode != FollowMode::Full {
        return Ok(ArchiveCheck::Ok);
    }
    if let Err(cause @ OpenError::InUse(_)) = Archive::open(&config.data_dir) {
        return Ok(ArchiveCheck::InUse(cause.to_string()));
    }
    // The archive of the check above is closed by now, otherwise it would be in use.
    open_following_archive(config).map(|_| ArchiveCheck::Ok)
}

/// Checks whether the archive has the chain that the configuration names.
fn check_identity(network: &Network, archive: &Archive) -> Result<(), String> {
    let snapshot = archive.snapshot();
    let theirs = snapshot.chain().chain_id();
    if let Some(ours) = network.chain_id.filter(|ours| *ours != theirs) {
        return Err(format!("the archive has chain id {theirs}, but chain_id in [network] is {ours}"));
    }
    let genesis = network.genesis_hash.map(|hash| ("genesis_hash", Checkpoint { number: 0, hash }));
    let checkpoint = network.checkpoint.map(|checkpoint| ("checkpoint", checkpoint));
    for (key, Checkpoint { number, hash }) in genesis.into_iter().chain(checkpoint) {
        let summary = snapshot.summary(number).map_err(|cause| cause.to_string())?;
        if let Some(theirs) = summary.map(|summary| summary.hash).filter(|theirs| *theirs != hash) {
            return Err(format!(
                "block {number} of the archive is {theirs}, but {key} in [network] is {hash}"
            ));
        }
    }
    Ok(())
}

/// Refuses to serve another chain as the demo network, because everybody knows the key of that network.
fn check_chain(config: &Config, archive: &Archive) -> Result<(), String> {
    check_identity(&config.network, archive)?;
    if !config.serves_demo_chain() || demo::is_of_this_chain(archive) {
        return Ok(());
    }
    let data_dir = config.data_dir.display();
    let missing = if config.has_own_key() { "a name" } else { "a name and an API key" };
    let key = if config.has_own_key() { "" } else { "\n\n[[key]]\nkey = \"a-long-random-text\"" };
    Err(format!(
        "the archive in {data_dir} is not the demo chain, so it needs {missing}. Write into the configuration file, and start with \
         --config FILE:\n\n\
         data_dir = \"{data_dir}\"\n\n\
         [network]\n\
         name = \"mainnet\"  # any name but demo{key}"
    ))
}
