//! Lists that have several pages.

/// The addresses of other pages of a list.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListLinks {
    /// `None` on the first page.
    pub(crate) first: Option<String>,
    /// `None` on the last page.
    pub(crate) next: Option<String>,
}
