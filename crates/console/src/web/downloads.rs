//! Downloads that are under way: one for each user and few in all, because each takes tens of megabytes until it is read.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;

use super::page_error::{PageError, RETRY_S};

/// Downloads at once, of all users: 700 MB if each has the most rows that a report may have.
const DOWNLOADS_MAX: usize = 16;

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
    /// Begins a download of a user, unless the user has one already, or there are too many.
    pub(super) fn begin(&self, email: &str) -> Result<Download, PageError> {
        let mut users = self.0.lock();
        if users.contains(email) {
            return Err(PageError::TooManyRequests { wait_s: RETRY_S });
        }
        if users.len() >= DOWNLOADS_MAX {
            return Err(PageError::Status(503));
        }
        users.insert(email.to_owned());
        Ok(Download { users: self.clone(), email: email.to_owned() })
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
        let first = downloads.begin("ada").unwrap();
        assert!(matches!(downloads.begin("ada"), Err(PageError::TooManyRequests { .. })));
        assert!(downloads.begin("bob").is_ok());
        drop(first);
        assert!(downloads.begin("ada").is_ok());
    }

    #[test]
    fn all_users_together_have_few_downloads() {
        let downloads = Downloads::default();
        let mut open: Vec<_> =
            (0..DOWNLOADS_MAX).map(|number| downloads.begin(&number.to_string()).unwrap()).collect();
        assert!(matches!(downloads.begin("ada"), Err(PageError::Status(503))));
        open.pop();
        assert!(downloads.begin("ada").is_ok());
    }
}
