//! Dates and times of UTC as text.

use resources::UtcTime;
use time::{Date, Month, Time};

/// The time as RFC 3339 has it, such as `2026-11-17T13:00:00Z`; the last day of the calendar for later ones.
pub(super) fn format_time(unix_seconds: u64) -> String {
    match i64::try_from(unix_seconds).ok().and_then(UtcTime::new) {
        Some(time) => format!("{}T{}:{:02}Z", time.date(), time.hour_and_minute(), time.second),
        None => "9999-12-31T00:00:00Z".to_owned(),
    }
}

/// Reads `2026-11-17`, `2026-11-17T13:00Z`, `2026-11-17T13:00:00Z`, or seconds since 1970.
pub(super) fn parse_time(text: &str) -> Option<u64> {
    if text.len() > 4 && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().ok();
    }
    let (date, time) = match text.split_once('T') {
        Some((date, time)) => (date, time.strip_suffix('Z')?),
        None => (text, "00:00"),
    };
    let [year, month, day] = numbers(date, '-')?;
    let [hour, minute, second] = match time.matches(':').count() {
        1 => numbers::<2>(time, ':').map(|[hour, minute]| [hour, minute, 0])?,
        _ => numbers(time, ':')?,
    };
    let month = Month::try_from(u8::try_from(month).ok()?).ok()?;
    let date = Date::from_calendar_date(i32::from(year), month, u8::try_from(day).ok()?).ok()?;
    let [hour, minute, second] = [hour, minute, second].map(|number| u8::try_from(number).unwrap_or(u8::MAX));
    let time = Time::from_hms(hour, minute, second).ok()?;
    u64::try_from(date.with_time(time).assume_utc().unix_timestamp()).ok()
}

fn numbers<const N: usize>(text: &str, separator: char) -> Option<[u16; N]> {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts = text.split(separator).map(|part| is_number(part).then(|| part.parse().ok()).flatten());
    parts.collect::<Option<Vec<u16>>>()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use resources::DAY_S;

    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_735_689_600, "2025-01-01T00:00:00Z"),
            (1_798_761_599, "2026-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!((format_time(seconds).as_str(), parse_time(text)), (text, Some(seconds)));
        }
        assert_eq!(format_time(u64::MAX), "9999-12-31T00:00:00Z");
    }

    #[test]
    fn every_day_is_read_as_it_is_written() {
        for day in 0..60_000 {
            assert_eq!(parse_time(&format_time(day * DAY_S)), Some(day * DAY_S), "day {day}");
        }
    }

    #[test]
    fn shorter_forms_are_read() {
        let day = 1_735_689_600;
        assert_eq!(parse_time("2025-01-01"), Some(day));
        assert_eq!(parse_time("2025-01-01T13:05Z"), Some(day + 13 * 3_600 + 5 * 60));
        assert_eq!(parse_time("1735689600"), Some(day));
        for wrong in
            ["", "2025", "2025-13-01", "2025-02-29", "2025-01-01T24:00Z", "2025-01-01T10:00", "-1", "1e9"]
        {
            assert_eq!(parse_time(wrong), None, "{wrong}");
        }
    }
}
