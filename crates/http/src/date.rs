//! The date header of replies.

use std::cell::RefCell;
use std::time::{Duration, UNIX_EPOCH};

thread_local! {
    /// The current second and its date in the format of HTTP.
    static DATE: RefCell<(u64, String)> = const { RefCell::new((0, String::new())) };
}

/// Calls `use_date` with the date in the format of HTTP. It is formatted once per second, because every reply needs it.
pub(super) fn with_http_date(unix_seconds: u64, use_date: impl FnOnce(&str)) {
    DATE.with_borrow_mut(|(second, date)| {
        if *second != unix_seconds {
            *second = unix_seconds;
            *date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(unix_seconds));
        }
        use_date(date);
    });
}
