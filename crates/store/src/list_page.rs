//! A page of a list, and where it begins.

use crate::columns::KeyColumns;
use crate::failure::StoreFailure;
use crate::records::KeyRecord;

/// Some rows of a list, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListPage<T> {
    pub rows: Vec<T>,
    /// Whether the list goes on after the last row.
    pub has_more: bool,
}

impl<T> Default for ListPage<T> {
    fn default() -> Self {
        Self { rows: Vec::new(), has_more: false }
    }
}

impl<T> ListPage<T> {
    /// A page of `count` rows, of which one more was read if there is one.
    pub(crate) fn of(mut rows: Vec<T>, count: i64) -> Self {
        let count = usize::try_from(count).unwrap_or(0);
        let has_more = rows.len() > count;
        rows.truncate(count);
        Self { rows, has_more }
    }

    /// Where the next page begins; `None` on the last page.
    pub fn next<P>(&self, position: impl FnOnce(&T) -> P) -> Option<P> {
        self.rows.last().filter(|_| self.has_more).map(position)
    }

    pub fn map<U>(self, row: impl FnMut(T) -> U) -> ListPage<U> {
        ListPage { rows: self.rows.into_iter().map(row).collect(), has_more: self.has_more }
    }
}

/// The position of a row in a list that is ordered by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamePosition<R> {
    pub folded_name: String,
    pub id: R,
}

impl<R> NamePosition<R> {
    pub fn new(name: &str, id: R) -> Self {
        Self { folded_name: folded(name), id }
    }
}

/// A text in which the case of A to Z does not matter; the columns `folded_…` have the same form.
pub(crate) fn folded(text: &str) -> String {
    text.to_ascii_lowercase()
}

/// A text after all texts that begin with `start`.
pub(crate) fn end_of(start: &str) -> String {
    format!("{start}{}", char::MAX)
}

pub(crate) fn key_page(rows: Vec<KeyColumns>, count: i64) -> Result<ListPage<KeyRecord>, StoreFailure> {
    let rows = rows.into_iter().map(|columns| columns.into_row_at().map(|(_, row)| row));
    Ok(ListPage::of(rows.collect::<Result<_, _>>()?, count))
}
