//! `[limits]` and `[cache]`: every limit by name, each owned by the step that enforces it.

use settings::Section;

use crate::request_limits::RequestLimits;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayLimits {
    pub listen: http_server::HttpLimits,
    pub http: RequestLimits,
    pub answer: sources::AnswerLimits,
    /// Bytes of request bodies and replies in memory, over all accounts. The default holds about eighty of the largest log
    /// answers. Without a limit, callers that send or read slowly would fill any memory.
    pub memory_bytes_max: usize,
}

const MEMORY_BYTES_MAX: usize = 512 << 20;

impl Default for GatewayLimits {
    fn default() -> Self {
        Self {
            listen: http_server::HttpLimits::default(),
            http: RequestLimits::default(),
            answer: sources::AnswerLimits::default(),
            memory_bytes_max: MEMORY_BYTES_MAX,
        }
    }
}

impl GatewayLimits {
    pub fn read(section: &mut Section<'_>, cache: &mut Section<'_>) -> Self {
        Self {
            listen: http_server::HttpLimits::read(section),
            http: RequestLimits::read(section),
            answer: sources::AnswerLimits::read(section, cache),
            memory_bytes_max: section.size("memory_bytes_max", MEMORY_BYTES_MAX),
        }
    }
}
