//! Numbers, times and sizes as people read them.
//!
//! Arguments are references, because templates pass references.

use resources::UtcTime;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// `1,234,567`.
pub(crate) fn count(number: &u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 call`, `2 calls`.
pub(crate) fn counted(number: &u64, singular: &str, plural: &str) -> String {
    format!("{} {}", count(number), if *number == 1 { singular } else { plural })
}

/// A number for the axis of a chart or a large figure: `950`, `12.5k`, `3M`.
pub(crate) fn short(number: &f64) -> String {
    let (value, unit) = match number.abs() {
        n if n >= 999_950_000.0 => (number / 1e9, "G"),
        n if n >= 999_950.0 => (number / 1e6, "M"),
        n if n >= 10_000.0 => (number / 1e3, "k"),
        n if n >= 1_000.0 => return count(&(number.round() as u64)),
        _ => (*number, ""),
    };
    format!("{}{unit}", one_decimal(value))
}

/// A rate: `1,204`, `12.5`, `0`.
pub(crate) fn rate(per_second: &f64) -> String {
    if *per_second >= 100.0 { count(&(per_second.round() as u64)) } else { one_decimal(*per_second) }
}

/// A share from 0 to 1: `99.9%`. Only everything is `100%` and only nothing is `0%`.
pub(crate) fn percent(share: &f64) -> String {
    let percent = (share * 100.0).clamp(0.0, 100.0);
    if percent > 0.0 && percent < 0.1 {
        "<0.1%".to_owned()
    } else if percent > 99.9 && percent < 100.0 {
        ">99.9%".to_owned()
    } else {
        format!("{}%", one_decimal(percent))
    }
}

/// A share that may be unknown: `99.9%` or `–`.
pub(crate) fn percent_or_dash(share: &Option<f64>) -> String {
    share.as_ref().map_or_else(dash, percent)
}

/// A time in milliseconds: `< 0.01 ms`, `0.41 ms`, `12 ms`, `1.2 s`.
pub(crate) fn milliseconds(value: &f64) -> String {
    match *value {
        ms if ms >= 9_950.0 => format!("{:.0} s", ms / 1e3),
        ms if ms >= 999.5 => format!("{} s", one_decimal(ms / 1e3)),
        ms if ms >= 9.95 => format!("{ms:.0} ms"),
        ms if ms >= 0.995 => format!("{} ms", one_decimal(ms)),
        0.0 => "0 ms".to_owned(),
        ms if ms < 0.005 => "< 0.01 ms".to_owned(),
        ms => format!("{ms:.2} ms"),
    }
}

/// A time in milliseconds that may be unknown.
pub(crate) fn milliseconds_or_dash(value: &Option<f64>) -> String {
    value.as_ref().map_or_else(dash, milliseconds)
}

/// A number that may be unknown.
pub(crate) fn count_or_dash(number: &Option<u64>) -> String {
    number.as_ref().map_or_else(dash, count)
}

/// `512 bytes`, `1.5 kB`, `20.1 GB`.
pub(crate) fn bytes(number: &u64) -> String {
    let mut value = *number as f64;
    if *number < 1000 {
        return counted(number, "byte", "bytes");
    }
    let mut unit = "";
    for next in ["kB", "MB", "GB", "TB", "PB"] {
        if value < 999.95 {
            break;
        }
        (value, unit) = (value / 1000.0, next);
    }
    format!("{} {unit}", one_decimal(value))
}

/// A span of seconds in its two largest units: `45 s`, `3 min`, `2 h 5 min`, `4 d 3 h`.
pub(crate) fn duration(seconds: &i64) -> String {
    let two = |large: i64, unit: &str, small: i64, small_unit: &str| match small {
        0 => format!("{large} {unit}"),
        _ => format!("{large} {unit} {small} {small_unit}"),
    };
    match (*seconds).max(0) {
        s if s < MINUTE => format!("{s} s"),
        s if s < HOUR => format!("{} min", s / MINUTE),
        s if s < DAY => two(s / HOUR, "h", s % HOUR / MINUTE, "min"),
        s => two(s / DAY, "d", s % DAY / HOUR, "h"),
    }
}

/// A span of seconds without a sign.
pub(crate) fn seconds(number: &u64) -> String {
    duration(&i64::try_from(*number).unwrap_or(i64::MAX))
}

/// A span of seconds that may be unknown.
pub(crate) fn seconds_or_dash(number: &Option<u64>) -> String {
    number.as_ref().map_or_else(dash, seconds)
}

/// How long ago something was, of which the seconds are known.
pub(crate) fn seconds_ago(number: &u64) -> String {
    ago(&i64::try_from(*number).unwrap_or(i64::MAX), &0)
}

/// How long ago a time is, in its largest unit: `just now`, `3 min ago`, `2 d ago`; `in 5 min` if it is to come.
pub(crate) fn ago(now: &i64, at: &i64) -> String {
    let largest = |seconds: i64| match seconds {
        s if s < MINUTE => format!("{s} s"),
        s if s < HOUR => format!("{} min", s / MINUTE),
        s if s < 2 * DAY => format!("{} h", s / HOUR),
        s => format!("{} d", s / DAY),
    };
    match now.saturating_sub(*at) {
        seconds if seconds < 0 => format!("in {}", largest(seconds.saturating_neg())),
        0..5 => "just now".to_owned(),
        seconds => format!("{} ago", largest(seconds)),
    }
}

/// `2026-11-17 17:02 UTC`.
pub(crate) fn time(at: &i64) -> String {
    let time = utc(*at);
    format!("{} {} UTC", time.date(), time.hour_and_minute())
}

/// `2026-11-17 17:02:03`, for tables whose head says UTC.
pub(crate) fn time_with_seconds(at: &i64) -> String {
    let time = utc(*at);
    format!("{} {}:{:02}", time.date(), time.hour_and_minute(), time.second)
}

/// `2026-11-17`.
pub(crate) fn date(at: &i64) -> String {
    utc(*at).date()
}

/// `2026-11-17T17:02:03Z`, for the attribute `datetime`.
pub(crate) fn machine_time(at: &i64) -> String {
    format!("{}Z", time_with_seconds(at).replace(' ', "T"))
}

/// The label of a step of a chart: `17:02` for steps below a day, `17 Nov` for days.
pub(crate) fn step_label(at: &i64, step: &i64) -> String {
    let time = utc(*at);
    if *step >= DAY { day_and_month(time) } else { time.hour_and_minute() }
}

/// The label of a step with its day: `17 Nov 17:02`.
pub(crate) fn step_label_with_day(at: &i64, step: &i64) -> String {
    let time = utc(*at);
    let date = day_and_month(time);
    if *step >= DAY { date } else { format!("{date} {}", time.hour_and_minute()) }
}

/// A hash with its middle left out: `0x5d18…9304`.
pub(crate) fn short_hash(hash: &str) -> String {
    match (hash.get(..6), hash.len().checked_sub(4).and_then(|from| hash.get(from..))) {
        (Some(start), Some(end)) if hash.len() > 12 => format!("{start}…{end}"),
        _ => hash.to_owned(),
    }
}

/// The usual name of the browser with this description. The order matters: most browsers name others, too.
pub(crate) fn browser_name(user_agent: &str) -> String {
    const BROWSERS: [(&str, &str); 7] = [
        ("Edg/", "Edge"),
        ("OPR/", "Opera"),
        ("Firefox/", "Firefox"),
        ("Chromium/", "Chromium"),
        ("Chrome/", "Chrome"),
        ("Safari/", "Safari"),
        ("curl/", "curl"),
    ];
    const SYSTEMS: [(&str, &str); 6] = [
        ("Android", "Android"),
        ("iPhone", "iPhone"),
        ("iPad", "iPad"),
        ("Windows", "Windows"),
        ("Mac OS X", "macOS"),
        ("Linux", "Linux"),
    ];
    let found = |names: &[(&str, &'static str)]| {
        names.iter().find(|(part, _)| user_agent.contains(part)).map(|(_, name)| *name)
    };
    match (found(&BROWSERS), found(&SYSTEMS)) {
        (Some(browser), Some(system)) => format!("{browser} on {system}"),
        (Some(browser), None) => browser.to_owned(),
        (None, Some(system)) => format!("Unknown browser on {system}"),
        (None, None) => "Unknown browser".to_owned(),
    }
}

/// Stands for an unknown value.
fn dash() -> String {
    "–".to_owned()
}

/// `12.5`, `3`.
pub(crate) fn decimal(number: &f64) -> String {
    one_decimal(*number)
}

/// One decimal, which is left out if it is 0.
fn one_decimal(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

/// `17 Nov`.
fn day_and_month(time: UtcTime) -> String {
    let month = MONTHS.get(usize::from(time.month).wrapping_sub(1)).copied().unwrap_or_default();
    format!("{} {month}", time.day)
}

/// Times outside of the calendar are shown as 1970.
fn utc(unix_seconds: i64) -> UtcTime {
    UtcTime::new(unix_seconds).unwrap_or(UtcTime::EPOCH)
}

#[cfg(test)]
mod tests;
