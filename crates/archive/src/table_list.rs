//! Work that is the same for every table of a file, whatever the types of its keys and values.

use redb::{Key, TableDefinition, Value};

/// The tables of a kind of file.
pub(crate) trait TableList {
    /// Visits every table, always in the same order.
    fn visit_all<V: TableVisitor>(visitor: &mut V) -> Result<(), V::Error>;

    /// Whether a copy of the file has this row. Rows about the file itself are not in copies.
    fn is_in_copies(table: &str, key: &[u8]) -> bool;
}

/// Work on one table.
pub(crate) trait TableVisitor {
    type Error;

    fn visit<K: Key + 'static, V: Value + 'static>(
        &mut self,
        table: TableDefinition<'static, K, V>,
    ) -> Result<(), Self::Error>;
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The names of all tables of a list.
    pub(crate) fn listed<T: TableList>() -> Vec<String> {
        let mut names = TableNames(Vec::new());
        match T::visit_all(&mut names) {
            Ok(()) => names.0,
            Err(never) => match never {},
        }
    }

    struct TableNames(Vec<String>);

    impl TableVisitor for TableNames {
        type Error = std::convert::Infallible;

        fn visit<K: Key + 'static, V: Value + 'static>(
            &mut self,
            table: TableDefinition<'static, K, V>,
        ) -> Result<(), Self::Error> {
            use redb::TableHandle;
            self.0.push(table.name().to_owned());
            Ok(())
        }
    }
}
