//! Records of a CSV file (RFC 4180) with the lines on which they begin.

/// One record: its line, from 1, and its cells.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CsvRecord {
    pub(super) line: usize,
    pub(super) cells: Vec<String>,
}

/// All records but empty lines, or the line of a quote that does not end.
pub(super) fn records(text: &str) -> Result<Vec<CsvRecord>, usize> {
    let mut reader = CsvReader { rest: text.trim_start_matches('\u{feff}'), line: 1 };
    let mut records = Vec::new();
    while !reader.rest.is_empty() {
        let record = reader.record()?;
        if record.cells != [""] {
            records.push(record);
        }
    }
    Ok(records)
}

struct CsvReader<'a> {
    rest: &'a str,
    line: usize,
}

impl CsvReader<'_> {
    fn record(&mut self) -> Result<CsvRecord, usize> {
        let (line, mut cells) = (self.line, Vec::new());
        loop {
            cells.push(self.cell()?);
            let Some(end) = self.rest.chars().next() else { break };
            self.rest = &self.rest[end.len_utf8()..];
            if end == '\r' {
                self.rest = self.rest.strip_prefix('\n').unwrap_or(self.rest);
            }
            if end != ',' {
                self.line += 1;
                break;
            }
        }
        Ok(CsvRecord { line, cells })
    }

    /// A cell up to the comma or the end of the line that ends it.
    fn cell(&mut self) -> Result<String, usize> {
        let mut cell = String::new();
        if self.rest.starts_with('"') {
            cell = self.quoted()?;
        }
        let end = self.rest.find([',', '\r', '\n']).unwrap_or(self.rest.len());
        cell.push_str(&self.rest[..end]);
        self.rest = &self.rest[end..];
        Ok(cell)
    }

    /// The text between two quotes. Two quotes stand for one.
    fn quoted(&mut self) -> Result<String, usize> {
        let (began, mut cell, mut is_first) = (self.line, String::new(), true);
        while let Some(inner) = self.rest.strip_prefix('"') {
            if !std::mem::take(&mut is_first) {
                cell.push('"');
            }
            let end = inner.find('"').ok_or(began)?;
            cell.push_str(&inner[..end]);
            self.line += inner[..end].matches('\n').count();
            self.rest = &inner[end + 1..];
        }
        Ok(cell)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(text: &str) -> Vec<(usize, Vec<String>)> {
        records(text).unwrap().into_iter().map(|record| (record.line, record.cells)).collect()
    }

    #[test]
    fn quotes_lines_and_empty_cells_are_read() {
        let text = "a,b\r\n\"x, \"\"y\"\"\",\n\n\"two\nlines\",2\nlast,\"\"";
        let expected = [(1, ["a", "b"]), (2, ["x, \"y\"", ""]), (4, ["two\nlines", "2"]), (6, ["last", ""])];
        let expected: Vec<_> = expected.map(|(line, cells)| (line, cells.map(str::to_owned).to_vec())).into();
        assert_eq!(cells(text), expected);
        assert_eq!(cells("\"\"\"q\"\"\""), [(1, vec!["\"q\"".to_owned()])]);
    }

    #[test]
    fn a_quote_that_does_not_end_is_reported_with_its_line() {
        assert_eq!(records("a\n\"b\nc"), Err(2));
    }
}
