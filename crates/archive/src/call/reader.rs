//! The state that a message sees: overrides first, then the source. Every read is watched.

use super::{
    error::CallError,
    overrides::Overlay,
    watch::{Stop, Watch},
};
use crate::state::StateSource;
use alloy_primitives::{Address, B256, U256, map::B256Map};
use revm::{
    Database,
    context::DBErrorMarker,
    state::{AccountInfo, Bytecode},
};

/// A state to run on.
pub(super) struct Reader<'l, S> {
    source: S,
    pub(super) overlay: Overlay,
    pub(super) watch: Watch<'l>,
    /// Code that was read: many contracts have the same, and it is large.
    code: B256Map<Bytecode>,
}

impl<'l, S: StateSource> Reader<'l, S> {
    pub(super) fn new(source: S, overlay: Overlay, watch: Watch<'l>) -> Self {
        Self { source, overlay, watch, code: B256Map::default() }
    }
}

impl<S: StateSource> Database for Reader<'_, S> {
    type Error = ReadError<S::Error>;

    fn basic(&mut self, address: Address) -> Result<Option<AccountInfo>, Self::Error> {
        self.watch.read()?;
        let account = self.source.account(address).map_err(ReadError::Source)?.map(AccountInfo::from);
        Ok(self.overlay.account(address, account))
    }

    fn code_by_hash(&mut self, hash: B256) -> Result<Bytecode, Self::Error> {
        if let Some(code) = self.code.get(&hash) {
            return Ok(code.clone());
        }
        self.watch.read()?;
        let code = self.source.code(hash).map_err(ReadError::Source)?;
        self.watch.code_read(code.len())?;
        self.code.insert(hash, code.clone());
        Ok(code)
    }

    fn storage(&mut self, address: Address, slot: U256) -> Result<U256, Self::Error> {
        if let Some(value) = self.overlay.storage(address, slot) {
            return Ok(value);
        }
        self.watch.read()?;
        let value = self.source.storage(address, slot).map_err(ReadError::Source)?;
        if self.source.has_guessed() {
            self.watch.end_soon();
        }
        Ok(value)
    }

    fn block_hash(&mut self, number: u64) -> Result<B256, Self::Error> {
        if let Some(hash) = self.overlay.block_hash(number) {
            return Ok(hash);
        }
        self.watch.read()?;
        self.source.block_hash(number).map_err(ReadError::Source)
    }
}

/// Why a read failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError<E> {
    /// The source could not be read.
    #[error(transparent)]
    Source(E),
    /// The run is over.
    #[error(transparent)]
    Stopped(#[from] Stop),
}

impl<E: DBErrorMarker> DBErrorMarker for ReadError<E> {}

impl<E: DBErrorMarker> From<ReadError<E>> for CallError {
    fn from(cause: ReadError<E>) -> Self {
        match cause {
            ReadError::Source(cause) => Self::State(Box::new(cause)),
            ReadError::Stopped(stop) => Self::Stopped(stop),
        }
    }
}
