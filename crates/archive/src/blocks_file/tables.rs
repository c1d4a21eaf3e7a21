//! Every table of the file of stored blocks: its key, its value, and one line of what it is for.
//!
//! `docs/blocks-format.md` describes the rows byte by byte; a change to either raises [`FORMAT_VERSION`].

use crate::table_list::{TableList, TableVisitor};
use redb::TableDefinition;

/// The version of everything below. A file of another version is refused.
///
/// It is far from the versions of the archive's file, so that neither is taken for the other.
pub(super) const FORMAT_VERSION: u32 = 0x1001;

/// name → which chain this is.
pub(super) const CHAIN: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("chain");

/// lowest block number → newest block number of a range without gaps of whole blocks.
pub(super) const RANGES: TableDefinition<'_, u64, u64> = TableDefinition::new("ranges");

/// block number → hash, hash of the parent, bloom of the logs; also of blocks that are not stored whole.
pub(super) const HEADERS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("headers");

/// block number → the whole block, compressed.
pub(super) const BODIES: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("bodies");

/// block number → its receipts, compressed.
pub(super) const RECEIPTS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("receipts");

/// hash of a whole block → block number.
pub(super) const BLOCK_NUMBERS: TableDefinition<'_, &[u8; 32], u64> = TableDefinition::new("block_numbers");

/// transaction hash → (block number, place in the block).
pub(super) const TRANSACTION_PLACES: TableDefinition<'_, &[u8; 32], (u64, u32)> =
    TableDefinition::new("transaction_places");

/// All of the above.
#[derive(Debug)]
pub(super) struct BlocksFileTables;

impl TableList for BlocksFileTables {
    fn visit_all<V: TableVisitor>(visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(CHAIN)?;
        visitor.visit(RANGES)?;
        visitor.visit(HEADERS)?;
        visitor.visit(BODIES)?;
        visitor.visit(RECEIPTS)?;
        visitor.visit(BLOCK_NUMBERS)?;
        visitor.visit(TRANSACTION_PLACES)
    }

    fn is_in_copies(_table: &str, _key: &[u8]) -> bool {
        true
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests say what went wrong by failing")]
mod tests {
    //! The document says what the code says.

    use crate::table_list::tests::listed;

    const CODE: &str = include_str!("tables.rs");
    const DOCUMENT: &str = include_str!("../../../../docs/blocks-format.md");

    #[test]
    fn the_document_lists_the_tables_of_the_code_in_their_order() {
        let documented: Vec<[String; 3]> = documented_tables().collect();
        assert!(!documented.is_empty());
        assert_eq!(documented, defined_tables().collect::<Vec<_>>());
        let sections = DOCUMENT.lines().filter_map(|line| line.strip_prefix("### `")?.strip_suffix('`'));
        let names: Vec<String> = defined_tables().map(|[name, ..]| name).collect();
        assert_eq!(sections.collect::<Vec<_>>(), names);
    }

    #[test]
    fn every_table_is_in_the_list() {
        let defined: Vec<_> = defined_tables().map(|[name, ..]| name).collect();
        assert_eq!(listed::<super::BlocksFileTables>(), defined);
    }

    #[test]
    fn the_document_is_about_this_version() {
        assert!(DOCUMENT.contains(&format!("**Format version: {}.**", super::FORMAT_VERSION)));
    }

    /// `| [`name`](#name) | `key` | `value` | … |`
    fn documented_tables() -> impl Iterator<Item = [String; 3]> {
        DOCUMENT.lines().filter(|line| line.starts_with("| [`")).map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let (name, _) = cells[1].trim_start_matches("[`").split_once('`').unwrap();
            [name, cells[2].trim_matches('`'), cells[3].trim_matches('`')].map(str::to_owned)
        })
    }

    /// `TableDefinition<'_, Key, Value> = TableDefinition::new("name");`
    fn defined_tables() -> impl Iterator<Item = [String; 3]> {
        let (code, _) = CODE.split_once("#[cfg(test)]").unwrap();
        code.split("TableDefinition<'_, ").skip(1).map(|definition| {
            let (types, rest) = definition.split_once("> =").unwrap();
            let (key, value) = types.split_once(", ").unwrap();
            [rest.split('"').nth(1).unwrap(), key, value].map(str::to_owned)
        })
    }
}
