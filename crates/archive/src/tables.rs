//! Every table of the archive file: its key, its value, and one line of what it is for.
//!
//! Numbers inside byte keys and rows are big-endian, so that byte order is number order. `docs/storage-format.md`
//! describes the rows byte by byte; a change to either raises [`FORMAT_VERSION`].
//!
//! Two parts that do not need each other: the block data (`blocks` to `raw_records`) and the state
//! (`accounts` to `trie_nodes`). A block without state is legal.

use crate::table_list::{TableList, TableVisitor};
use redb::TableDefinition;

/// The version of everything below. An archive of another version is refused.
pub(crate) const FORMAT_VERSION: u32 = 2;

/// name → what the archive is: genesis, the last block with state.
pub(crate) const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");

/// The row of `meta` that lists the savepoints.
pub(crate) const META_SAVEPOINTS: &str = "savepoints";

/// block number → block row: header, uncles, withdrawals, and where its transactions and logs begin.
pub(crate) const BLOCKS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("blocks");

/// block hash → block number.
pub(crate) const BLOCK_NUMBERS: TableDefinition<'_, &[u8; 32], u64> = TableDefinition::new("block_numbers");

/// transaction ordinal (counted over the whole chain) → transaction row: hash, sender, EIP-2718 encoding.
pub(crate) const TRANSACTIONS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("transactions");

/// transaction hash → (block number, transaction ordinal).
pub(crate) const TRANSACTION_ORDINALS: TableDefinition<'_, &[u8; 32], (u64, u64)> =
    TableDefinition::new("transaction_ordinals");

/// transaction ordinal → receipt row: outcome, gas, and where its logs begin.
pub(crate) const RECEIPTS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("receipts");

/// number of a pack of 32 logs (ordinals are counted over the whole chain) → their row; or 2^63 + log ordinal → data
/// that is too large for a pack.
pub(crate) const LOGS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("logs");

/// kind (1 byte), value (32 bytes), chunk of log ordinals (4 bytes) → roaring bitmap of the ordinals in it.
pub(crate) const LOG_INDEX: TableDefinition<'_, &[u8; 37], &[u8]> = TableDefinition::new("log_index");

/// block number → raw block transaction records, a JSON array.
pub(crate) const RAW_RECORDS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("raw_records");

/// address (20 bytes), block number (8 bytes) → the account as that block left it; empty where it is gone.
pub(crate) const ACCOUNTS: TableDefinition<'_, &[u8; 28], &[u8]> = TableDefinition::new("accounts");

/// address (20 bytes), slot (32 bytes), block number (8 bytes) → the value as that block left it, without
/// leading zeros.
pub(crate) const STORAGE: TableDefinition<'_, &[u8; 60], &[u8]> = TableDefinition::new("storage");

/// code hash → code.
pub(crate) const CODE: TableDefinition<'_, &[u8; 32], &[u8]> = TableDefinition::new("code");

/// owner (nothing for accounts, else the hashed address) and path of nibbles → RLP of the trie node there,
/// as of the last block.
pub(crate) const TRIE_NODES: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("trie_nodes");

/// All of the above.
#[derive(Debug)]
pub(crate) struct ArchiveTables;

impl TableList for ArchiveTables {
    fn visit_all<V: TableVisitor>(visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(META)?;
        visitor.visit(BLOCKS)?;
        visitor.visit(BLOCK_NUMBERS)?;
        visitor.visit(TRANSACTIONS)?;
        visitor.visit(TRANSACTION_ORDINALS)?;
        visitor.visit(RECEIPTS)?;
        visitor.visit(LOGS)?;
        visitor.visit(LOG_INDEX)?;
        visitor.visit(RAW_RECORDS)?;
        visitor.visit(ACCOUNTS)?;
        visitor.visit(STORAGE)?;
        visitor.visit(CODE)?;
        visitor.visit(TRIE_NODES)
    }

    /// Savepoints are pages of the file that they were made in.
    fn is_in_copies(table: &str, key: &[u8]) -> bool {
        table != "meta" || key != META_SAVEPOINTS.as_bytes()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests say what went wrong by failing")]
mod tests {
    //! The document says what the code says.

    use crate::table_list::tests::listed;

    const CODE: &str = include_str!("tables.rs");
    const DOCUMENT: &str = include_str!("../../../docs/storage-format.md");

    /// Name, key and value.
    type Table = (String, String, String);

    #[test]
    fn the_document_lists_the_tables_of_the_code_in_their_order() {
        let documented: Vec<Table> = documented_tables().collect();
        assert!(!documented.is_empty());
        assert_eq!(documented, defined_tables().collect::<Vec<_>>());
    }

    #[test]
    fn the_document_has_a_section_for_every_table_and_no_others() {
        let sections = DOCUMENT.lines().filter_map(|line| line.strip_prefix("### `")?.strip_suffix('`'));
        let tables: Vec<String> = defined_tables().map(|(name, ..)| name).collect();
        assert_eq!(sections.collect::<Vec<_>>(), tables);
    }

    #[test]
    fn the_document_is_about_this_version() {
        assert!(DOCUMENT.contains(&format!("**Format version: {}.**", super::FORMAT_VERSION)));
    }

    #[test]
    fn every_table_is_in_the_list() {
        assert_eq!(
            listed::<super::ArchiveTables>(),
            defined_tables().map(|(name, ..)| name).collect::<Vec<_>>()
        );
    }

    /// `| [`name`](#name) | `key` | `value` | … |`
    fn documented_tables() -> impl Iterator<Item = Table> {
        DOCUMENT.lines().filter(|line| line.starts_with("| [`")).map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let (name, _) = cells[1].trim_start_matches("[`").split_once('`').unwrap();
            (name.to_owned(), cells[2].trim_matches('`').to_owned(), cells[3].trim_matches('`').to_owned())
        })
    }

    /// `TableDefinition<'_, Key, Value> = TableDefinition::new("name");`
    fn defined_tables() -> impl Iterator<Item = Table> {
        let (code, _) = CODE.split_once("#[cfg(test)]").unwrap();
        code.split("TableDefinition<'_, ").skip(1).map(|definition| {
            let (types, rest) = definition.split_once("> =").unwrap();
            let (key, value) = types.split_once(", ").unwrap();
            let name = rest.split('"').nth(1).unwrap();
            (name.to_owned(), key.to_owned(), value.to_owned())
        })
    }
}
