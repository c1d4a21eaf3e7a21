//! `[limits]` and `[cache]`: every limit by name, each owned by the step that holds it.

use crate::config::Section;
use crate::{answer, http, listen};

/// All limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    pub listen: listen::Limits,
    pub http: http::Limits,
    pub answer: answer::Limits,
}

impl Limits {
    pub(crate) fn read(section: &mut Section<'_>, cache: &mut Section<'_>) -> Self {
        Self {
            listen: listen::Limits::read(section),
            http: http::Limits::read(section),
            answer: answer::Limits::read(section, cache),
        }
    }
}
