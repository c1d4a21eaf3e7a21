//! Usage by minute, hour and day.
//!
//! Usage arrives in batches of entries with sequence numbers. A batch is added to all tables in one transaction, together with
//! its last number, so that a batch that is sent again is recognised and counts once.
//!
//! A day can have millions of rows, so no statement reads all rows of a day. Sums over keys and over accounts, and the credits
//! of the day, are kept in tables of their own, and so is what callers have tagged: by key and tag, and not by method and outcome,
//! because a key may use many tags.

mod flush; // adds usage
mod count_columns; // the columns that are summed up
mod day_credits; // credits by day, account and key
mod key_day_sums; // usage of single keys on a day
mod report; // sums of usage
mod retention; // deletes old usage
mod usage_row; // counts of one group of calls

pub use day_credits::DayTotal;
pub use flush::{StoredUsage, UsageFlush};
pub use key_day_sums::KeyDaySum;
pub use report::{UsageDimension, UsageQuery, UsedKey};
pub use usage_row::{UsageCounts, UsageGroup, UsageRow};

/// The tables of usage. Each has all usage, as long as it is kept there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UsageStep {
    Minute,
    Hour,
    Day,
}

impl UsageStep {
    pub const ALL: [Self; 3] = [Self::Minute, Self::Hour, Self::Day];

    /// How many seconds one row covers.
    pub fn seconds(self) -> u64 {
        match self {
            Self::Minute => 60,
            Self::Hour => 60 * 60,
            Self::Day => 24 * 60 * 60,
        }
    }

    /// The start of the minute, hour or day that has this second.
    pub fn start(self, unix_seconds: u64) -> u64 {
        unix_seconds / self.seconds() * self.seconds()
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|step| step.name() == name)
    }
}

/// The dimensions of a table besides time and network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UsageDetail {
    Keys,
    Accounts,
    Networks,
    /// Only what has a tag.
    Tags,
}

impl UsageDetail {
    const ALL: [Self; 4] = [Self::Keys, Self::Accounts, Self::Networks, Self::Tags];

    /// The columns that identify a row, in the order of the primary key.
    fn group_columns(self) -> &'static [&'static str] {
        match self {
            Self::Keys => &["account", "starts_at", "network", "key_id", "method", "outcome"],
            Self::Accounts => &["account", "starts_at", "network", "method", "outcome"],
            Self::Networks => &["starts_at", "network", "method", "outcome"],
            Self::Tags => &["account", "starts_at", "network", "key_id", "tag"],
        }
    }

    /// A group of this table: what it does not distinguish is empty.
    fn group(self, group: UsageGroup) -> UsageGroup {
        let empty = || "".into();
        match self {
            Self::Keys => UsageGroup { tag: empty(), ..group },
            Self::Accounts => UsageGroup { key: empty(), tag: empty(), ..group },
            Self::Networks => UsageGroup { account: empty(), key: empty(), tag: empty(), ..group },
            Self::Tags => UsageGroup { method: empty(), outcome: empty(), ..group },
        }
    }

    fn table(self, step: UsageStep) -> &'static str {
        match (self, step) {
            (Self::Keys, UsageStep::Minute) => "usage_minutes",
            (Self::Keys, UsageStep::Hour) => "usage_hours",
            (Self::Keys, UsageStep::Day) => "usage_days",
            (Self::Accounts, UsageStep::Minute) => "usage_account_minutes",
            (Self::Accounts, UsageStep::Hour) => "usage_account_hours",
            (Self::Accounts, UsageStep::Day) => "usage_account_days",
            (Self::Networks, UsageStep::Minute) => "usage_network_minutes",
            (Self::Networks, UsageStep::Hour) => "usage_network_hours",
            (Self::Networks, UsageStep::Day) => "usage_network_days",
            (Self::Tags, UsageStep::Minute) => "usage_tag_minutes",
            (Self::Tags, UsageStep::Hour) => "usage_tag_hours",
            (Self::Tags, UsageStep::Day) => "usage_tag_days",
        }
    }
}

/// A number as the tables have it.
fn column(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
