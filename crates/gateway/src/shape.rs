//! Step 8: an answer within limits.
//!
//! A single call has no limit on its bytes: answers of 21 MB exist and are asked for. The replies of one batch together
//! do, because a thousand of those would not fit into any memory. Limits on results and time are held where the work
//! is done, which stops there.

/// The answer does not fit into what its batch has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

/// How many bytes a reply may have.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    most: Option<usize>,
}

impl Room {
    pub fn for_single() -> Self {
        Self { most: None }
    }

    pub fn for_batch(bytes_max: usize) -> Self {
        Self { most: Some(bytes_max) }
    }

    /// Whether a buffer that has grown to `bytes` is still within the limit.
    pub fn check(self, bytes: usize) -> Result<(), TooLarge> {
        match self.most {
            Some(most) if bytes > most => Err(TooLarge),
            _ => Ok(()),
        }
    }
}
