//! `[limits]` and `[cache]`: every limit by name, each owned by the step that holds it.

use crate::config::Section;
use crate::{answer, http, listen};

/// All limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    pub listen: listen::Limits,
    pub http: http::Limits,
    pub answer: answer::Limits,
    /// Bytes of request bodies and replies in memory, over all accounts: some eighty of the largest log answers. Callers
    /// that send or read slowly would otherwise fill any memory.
    pub memory_bytes_max: usize,
}

const MEMORY_BYTES_MAX: usize = 512 << 20;

impl Default for Limits {
    fn default() -> Self {
        Self {
            listen: listen::Limits::default(),
            http: http::Limits::default(),
            answer: answer::Limits::default(),
            memory_bytes_max: MEMORY_BYTES_MAX,
        }
    }
}

impl Limits {
    pub(crate) fn read(section: &mut Section<'_>, cache: &mut Section<'_>) -> Self {
        Self {
            listen: listen::Limits::read(section),
            http: http::Limits::read(section),
            answer: answer::Limits::read(section, cache),
            memory_bytes_max: section.size("memory_bytes_max", MEMORY_BYTES_MAX),
        }
    }
}
