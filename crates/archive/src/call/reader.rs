//! The state that a message sees: overrides first, then the source. Every read counts against the limits.

use super::{
    error::CallError,
    limits::{LimitTracker, StopReason},
    overrides::Overlay,
};
use crate::state::StateSource;
use alloy_primitives::{Address, B256, U256, map::B256Map};
use revm::{
    Database,
    context::DBErrorMarker,
    state::{AccountInfo, Bytecode},
};

/// The state that a run reads: the source with its overrides.
pub(super) struct StateReader<'l, S> {
    source: S,
    pub(super) overlay: Overlay,
    pub(super) limits: LimitTracker<'l>,
    /// Code that was read, because many contracts share the same large code.
    code: B256Map<Bytecode>,
}

impl<'l, S: StateSource> StateReader<'l, S> {
    pub(super) fn new(source: S, overlay: Overlay, limits: LimitTracker<'l>) -> Self {
        Self { source, overlay, limits, code: B256Map::default() }
    }
}

impl<S: StateSource> Database for StateReader<'_, S> {
    type Error = ReadError<S::Error>;

    fn basic(&mut self, address: Address) -> Result<Option<AccountInfo>, Self::Error> {
        self.limits.read()?;
        let account = self.source.account(address).map_err(ReadError::Source)?.map(AccountInfo::from);
        Ok(self.overlay.account(address, account))
    }

    fn code_by_hash(&mut self, hash: B256) -> Result<Bytecode, Self::Error> {
        if let Some(code) = self.code.get(&hash) {
            return Ok(code.clone());
        }
        self.limits.read()?;
        let code = self.source.code(hash).map_err(ReadError::Source)?;
        self.limits.code_read(code.len())?;
        self.code.insert(hash, code.clone());
        Ok(code)
    }

    fn storage(&mut self, address: Address, slot: U256) -> Result<U256, Self::Error> {
        if let Some(value) = self.overlay.storage(address, slot) {
            return Ok(value);
        }
        self.limits.read()?;
        let value = self.source.storage(address, slot).map_err(ReadError::Source)?;
        if self.source.has_guessed() {
            self.limits.end_soon();
        }
        Ok(value)
    }

    fn block_hash(&mut self, number: u64) -> Result<B256, Self::Error> {
        if let Some(hash) = self.overlay.block_hash(number) {
            return Ok(hash);
        }
        self.limits.read()?;
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
    Stopped(#[from] StopReason),
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
