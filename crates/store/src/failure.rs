//! Why an operation on the store failed.

use sqlx::error::ErrorKind;

/// Why an operation on the store failed. Messages contain no credentials, keys or secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreFailure {
    /// The database cannot be reached or does not answer in time. Trying again later can help.
    #[error("the store of accounts and keys cannot be reached: {0}")]
    Unavailable(String),
    /// The database works, but has not finished a statement in time.
    #[error(
        "the store of accounts and keys is too slow: {0}. Ask for less at once, such as a shorter time; if that does not help, \
         look for what else the database is doing"
    )]
    TimedOut(String),
    /// The tables were made by a newer version of this program.
    #[error(
        "the store of accounts and keys has version {found}, but this program knows only versions up to {known}; \
         use a newer version of this program"
    )]
    NewerVersion { found: i64, known: i64 },
    /// A row with the same name or id exists.
    #[error("the store has such a row already")]
    AlreadyExists,
    /// The database refused a statement, or returned something that is not a row of this program.
    #[error("the store of accounts and keys reports: {0}")]
    Refused(String),
}

impl From<sqlx::Error> for StoreFailure {
    fn from(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::Database(database) if database.kind() == ErrorKind::UniqueViolation => {
                Self::AlreadyExists
            }
            sqlx::Error::Database(database) if is_timeout(database.code().as_deref()) => {
                Self::TimedOut(database.message().to_owned())
            }
            sqlx::Error::Database(database) if is_outage(database.code().as_deref()) => {
                Self::Unavailable(database.message().to_owned())
            }
            sqlx::Error::Database(database) => Self::Refused(database.message().to_owned()),
            sqlx::Error::PoolTimedOut => Self::Unavailable("no connection in time".to_owned()),
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::Protocol(_)
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed
            | sqlx::Error::BeginFailed => Self::Unavailable(error.to_string()),
            _ => Self::Refused(error.to_string()),
        }
    }
}

/// Whether a code of SQLSTATE says that PostgreSQL has given a statement up: 57014 after `statement_timeout`, 55P03 after
/// `lock_timeout`.
fn is_timeout(code: Option<&str>) -> bool {
    matches!(code, Some("57014" | "55P03"))
}

/// Whether a code of SQLSTATE or of SQLite says that the database is down, starting, full or busy.
///
/// Classes of SQLSTATE: 08 is a broken connection, 28 a refused login, 3D a missing database, 53 missing resources, 57 an
/// operator's intervention (shutdown, crash). Codes of SQLite: 5 is busy, 6 locked, 10 an input or output
/// error, 13 a full disk, 14 a file that cannot be opened.
fn is_outage(code: Option<&str>) -> bool {
    let Some(code) = code else { return false };
    match code.parse::<u32>() {
        // All codes of SQLSTATE have five characters; those of SQLite have fewer.
        Ok(number) if code.len() < 5 => matches!(number & 0xff, 5 | 6 | 10 | 13 | 14),
        _ => ["08", "28", "3D", "53", "57"].iter().any(|class| code.starts_with(class)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outages_are_told_from_refused_statements() {
        for outage in ["57P01", "08006", "28P01", "3D000", "53300", "5", "261", "13", "14"] {
            assert!(is_outage(Some(outage)), "{outage}");
        }
        for refused in ["23505", "42P01", "22003", "1", "19", "787"] {
            assert!(!is_outage(Some(refused)), "{refused}");
        }
        assert!(!is_outage(None));
    }
}
