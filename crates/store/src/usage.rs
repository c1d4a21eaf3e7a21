//! Usage by minute, hour and day.
//!
//! Usage arrives in batches of entries with sequence numbers. A batch is added to all three tables in one transaction,
//! together with its last number, so that a batch that is sent again is recognised and counts once.

mod flush; // adds usage
mod report; // sums of usage
mod retention; // deletes old usage
mod usage_row; // what is counted, and for whom

pub use flush::UsageFlush;
pub use report::{UsageDimension, UsageQuery};
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

    fn table(self) -> &'static str {
        match self {
            Self::Minute => "usage_minutes",
            Self::Hour => "usage_hours",
            Self::Day => "usage_days",
        }
    }
}

/// A number as the tables have it.
fn column(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
