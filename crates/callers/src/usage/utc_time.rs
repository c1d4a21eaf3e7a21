//! Dates and times of UTC as text.

use resources::DAY_S;

/// The time as RFC 3339 has it, such as `2026-11-17T13:00:00Z`.
pub(super) fn format_time(unix_seconds: u64) -> String {
    let (year, month, day) = date(unix_seconds / DAY_S);
    let second = unix_seconds % DAY_S;
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
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
    let is_time = hour < 24 && minute < 60 && second < 60;
    let days = days_since_1970(year, month, day)?;
    is_time.then(|| days * DAY_S + hour * 3_600 + minute * 60 + second)
}

fn numbers<const N: usize>(text: &str, separator: char) -> Option<[u64; N]> {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts = text.split(separator).map(|part| is_number(part).then(|| part.parse().ok()).flatten());
    parts.collect::<Option<Vec<u64>>>()?.try_into().ok()
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days_of_month(year: u64, month: u64) -> u64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + u64::from(is_leap(year)),
        _ => 31,
    }
}

/// Days from 1970 to the first day of a year.
fn days_before_year(year: u64) -> u64 {
    let leap_days = |year: u64| year / 4 - year / 100 + year / 400;
    (year - 1970) * 365 + leap_days(year - 1) - leap_days(1969)
}

fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    let is_date = (1970..=9999).contains(&year) && (1..=12).contains(&month);
    if !is_date || day == 0 || day > days_of_month(year, month) {
        return None;
    }
    let months: u64 = (1..month).map(|month| days_of_month(year, month)).sum();
    Some(days_before_year(year) + months + day - 1)
}

fn date(days_since_1970: u64) -> (u64, u64, u64) {
    // A year has 365.2425 days on average, so this is the year or the one after it.
    let mut year = 1970 + days_since_1970 * 10_000 / 3_652_425 + 1;
    while days_before_year(year) > days_since_1970 {
        year -= 1;
    }
    let (mut month, mut day) = (1, days_since_1970 - days_before_year(year));
    while day >= days_of_month(year, month) {
        day -= days_of_month(year, month);
        month += 1;
    }
    (year, month, day + 1)
}

#[cfg(test)]
mod tests {
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
