//! Downloads that are under way: one for each user, because each takes tens of megabytes until it is read.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;

/// Users with a download.
#[derive(Clone, Debug, Default)]
pub(super) struct Downloads(Arc<Mutex<HashSet<String>>>);

/// A download that is under way; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Download {
    users: Downloads,
    email: String,
}

impl Downloads {
    /// Begins a download of a user; `None` if the user has one already.
    pub(super) fn begin(&self, email: &str) -> Option<Download> {
        let is_first = self.0.lock().insert(email.to_owned());
        is_first.then(|| Download { users: self.clone(), email: email.to_owned() })
    }
}

impl Drop for Download {
    fn drop(&mut self) {
        self.users.0.lock().remove(&self.email);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_one_download_at_a_time() {
        let downloads = Downloads::default();
        let first = downloads.begin("ada");
        assert!(first.is_some() && downloads.begin("ada").is_none() && downloads.begin("bob").is_some());
        drop(first);
        assert!(downloads.begin("ada").is_some());
    }
}
