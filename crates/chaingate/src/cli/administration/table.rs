//! Tables for people: columns as wide as their longest cell.

use std::fmt::Write as _;

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
        if self.rows.len() == 1 { format!("{if_empty}\n") } else { self.text() }
    }

    fn text(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
        };
        let widths: Vec<_> = (0..columns).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (cell, &width) in row.iter().zip(&widths) {
                let _ = write!(line, "{cell:width$}  ");
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
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
