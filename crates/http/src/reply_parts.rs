//! The body of a reply in pieces.

use bytes::Bytes;

/// The body of a reply. A large piece that others share is sent as it is, between what is written around it.
#[derive(Clone, Debug, Default)]
pub struct ReplyParts([Bytes; 3]);

impl ReplyParts {
    pub fn one(body: impl Into<Bytes>) -> Self {
        Self([body.into(), Bytes::new(), Bytes::new()])
    }

    /// A large piece with what is written before and after it.
    pub fn around(large: Bytes, before: impl Into<Bytes>, after: &'static [u8]) -> Self {
        Self([before.into(), large, Bytes::from_static(after)])
    }

    pub fn total_len(&self) -> usize {
        self.0.iter().map(Bytes::len).sum()
    }

    /// Length of the large piece; 0 if there is none.
    pub fn large_len(&self) -> usize {
        self.0[1].len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Bytes> {
        self.0.iter()
    }

    pub fn largest_mut(&mut self) -> Option<&mut Bytes> {
        self.0.iter_mut().max_by_key(|part| part.len())
    }

    /// All pieces as one, which copies them if there are several.
    pub fn joined(self) -> Bytes {
        let len = self.total_len();
        match self.0.iter().find(|part| part.len() == len) {
            Some(whole) => whole.clone(),
            None => self.0.concat().into(),
        }
    }

    pub(crate) fn into_array(self) -> [Bytes; 3] {
        self.0
    }
}
