//! Tables for people: columns as wide as their longest cell.

use callers::usage::aligned;

/// Rows below a line of headings.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(headings: &[&str]) -> Self {
        Self { rows: vec![headings.iter().map(|&heading| heading.to_owned()).collect()] }
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into());
    }

    /// The table, or a sentence if it has no rows.
    pub(crate) fn text_or(&self, if_empty: &str) -> String {
        if self.rows.len() == 1 { format!("{if_empty}\n") } else { aligned(&self.rows, self.rows[0].len()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_longest_cell() {
        let mut table = Table::new(&["NAME", "PLAN"]);
        assert_eq!(table.text_or("none"), "none\n");
        table.row(["a-long-name".to_owned(), "core".to_owned()]);
        table.row(["é".to_owned(), String::new()]);
        assert_eq!(table.text_or("none"), "NAME         PLAN\na-long-name  core\né\n");
    }
}
