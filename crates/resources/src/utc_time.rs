//! Dates and times of the calendar, UTC.

use time::{Date, Month, OffsetDateTime, Time};

/// A time of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UtcTime {
    pub year: i32,
    /// 1 to 12.
    pub month: u8,
    pub day: u8,
    pub hour: u8,
    pub minute: u8,
    pub second: u8,
}

impl UtcTime {
    /// The beginning of 1970.
    pub const EPOCH: Self = Self { year: 1970, month: 1, day: 1, hour: 0, minute: 0, second: 0 };

    /// The time so many seconds after the beginning of 1970; `None` outside of the years -9999 to 9999.
    pub fn new(unix_seconds: i64) -> Option<Self> {
        let time = OffsetDateTime::from_unix_timestamp(unix_seconds).ok()?;
        let (year, month, day) = time.to_calendar_date();
        let (hour, minute, second) = time.to_hms();
        Some(Self { year, month: u8::from(month), day, hour, minute, second })
    }

    /// Seconds since the beginning of 1970; `None` if the calendar has no such time.
    pub fn unix_seconds(self) -> Option<i64> {
        let month = Month::try_from(self.month).ok()?;
        let date = Date::from_calendar_date(self.year, month, self.day).ok()?;
        let time = Time::from_hms(self.hour, self.minute, self.second).ok()?;
        Some(OffsetDateTime::new_utc(date, time).unix_timestamp())
    }

    /// `2026-11-17`.
    pub fn date(self) -> String {
        format!("{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }

    /// `17:02`.
    pub fn hour_and_minute(self) -> String {
        format!("{:02}:{:02}", self.hour, self.minute)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        for (seconds, date, time) in [
            (0, "1970-01-01", "00:00"),
            (-1, "1969-12-31", "23:59"),
            (951_782_400, "2000-02-29", "00:00"),
            (1_709_251_199, "2024-02-29", "23:59"),
            (253_402_300_799, "9999-12-31", "23:59"),
        ] {
            let utc = UtcTime::new(seconds).unwrap();
            assert_eq!((utc.date().as_str(), utc.hour_and_minute().as_str()), (date, time));
            assert_eq!(utc.unix_seconds(), Some(seconds));
        }
        assert_eq!((UtcTime::new(0), UtcTime::new(i64::MAX)), (Some(UtcTime::EPOCH), None));
        let no_such_day = UtcTime { month: 2, day: 30, ..UtcTime::EPOCH };
        assert_eq!(no_such_day.unix_seconds(), None);
    }
}
