//! The people who use the console: users, their sessions, and links that are valid once. Times are seconds since 1970, UTC.

mod links; // invitations and other links
mod sessions; // signed-in browsers
mod users; // users

pub use links::{LinkKind, LinkRecord};
pub use sessions::SessionRecord;
pub use users::{ListedUser, UserRecord, UserRole, UserStatus};
