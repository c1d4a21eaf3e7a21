//! `[follow]` of the configuration.

use settings::Section;

/// Whether blocks are stored, and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowSettings {
    pub mode: FollowMode,
    /// Whole blocks that are stored; the newest ones stay.
    pub blocks_max: Option<u64>,
    /// Headers that are stored for log queries.
    pub headers_max: Option<u64>,
    /// The lowest block that is wanted; by default the head at the first start.
    pub from: Option<u64>,
}

/// The part of the chain that is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FollowMode {
    Off,
    /// Proven blocks with their receipts.
    #[default]
    Blocks,
    /// An archive that every new block continues.
    Full,
}

/// Two weeks of blocks that come every twelve seconds.
const BLOCKS_MAX: u64 = 100_000;

/// Some 3.5 GB in the file.
const HEADERS_MAX: u64 = 10_000_000;

impl Default for FollowSettings {
    fn default() -> Self {
        Self {
            mode: FollowMode::Blocks,
            blocks_max: Some(BLOCKS_MAX),
            headers_max: Some(HEADERS_MAX),
            from: None,
        }
    }
}

impl FollowSettings {
    /// `proves_blocks` says whether blocks are proven at all: others are not stored.
    pub(crate) fn read(section: &mut Section<'_>, proves_blocks: bool) -> Self {
        let mode = match section.optional_text("mode").as_deref() {
            None if !proves_blocks => FollowMode::Off,
            None => FollowMode::default(),
            Some("off") => FollowMode::Off,
            Some("blocks") if proves_blocks => FollowMode::Blocks,
            Some("full") if proves_blocks => FollowMode::Full,
            Some("blocks" | "full") => {
                let what = "needs proven blocks: family = \"ethereum\" and [integrity] mode = \"prove\"";
                section.error("mode", what);
                FollowMode::Off
            }
            Some(other) => {
                section.error("mode", &format!("unknown mode `{other}`; must be off, blocks or full"));
                FollowMode::Off
            }
        };
        Self {
            mode,
            blocks_max: section.limit("blocks_max", Some(BLOCKS_MAX)),
            headers_max: section.limit("headers_max", Some(HEADERS_MAX)),
            from: section.block_number_or_word("from", "earliest", 0),
        }
    }
}
