//! The output of a command: one JSON object for programs, or text for people.

use std::io::{Write as _, stdout};

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::config::Config;

/// How a command prints its result.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    json: bool,
    /// The URL of the gateway up to the key.
    url: String,
}

impl CommandOutput {
    pub(super) fn new(config: &Config, json: bool) -> Self {
        let scheme = if config.listen.server.tls.is_some() { "https" } else { "http" };
        Self { json, url: format!("{scheme}://{}/v3/", config.listen.server.public) }
    }

    /// Prints the reply as it is, or as text.
    pub(crate) fn print<T: DeserializeOwned>(
        &self,
        reply: &Value,
        text: impl FnOnce(T) -> String,
    ) -> Result<(), String> {
        let shown = if self.json {
            format!("{reply}\n")
        } else {
            text(T::deserialize(reply).map_err(|error| format!("cannot read the reply: {error}"))?)
        };
        write(&shown)
    }

    /// A command with which a key can be tried.
    pub(crate) fn curl_line(&self, key: &str) -> String {
        let url = &self.url;
        format!(
            "curl -s {url}{key} -H 'Content-Type: application/json' \\\n    \
             -d '{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_blockNumber\",\"params\":[]}}'"
        )
    }
}

fn write(text: &str) -> Result<(), String> {
    let mut out = stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| format!("cannot write the result: {error}"))
}

const DAY_S: i64 = 24 * 60 * 60;

/// A time in seconds since 1970 as `2026-01-31 23:59`, UTC.
pub(crate) fn utc_text(seconds: i64) -> String {
    let (days, second) = (seconds.div_euclid(DAY_S), seconds.rem_euclid(DAY_S));
    let (year, month, day) = date_of(days);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}", second / 3_600, second / 60 % 60)
}

/// The year, month and day of a number of days since 1970-01-01.
fn date_of(days: i64) -> (i64, i64, i64) {
    /// Days from 0000-03-01 to 1970-01-01, and of 400 years.
    const TO_1970: i64 = 719_468;
    const FOUR_CENTURIES: i64 = 146_097;
    let shifted = days + TO_1970;
    let (era, day_of_era) = (shifted.div_euclid(FOUR_CENTURIES), shifted.rem_euclid(FOUR_CENTURIES));
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / (FOUR_CENTURIES - 1)) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Years begin in March here, so that the day that leap years add is the last one.
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_in_utc() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00"),
            (-1, "1969-12-31 23:59"),
            (951_782_400, "2000-02-29 00:00"),
            (1_709_251_199, "2024-02-29 23:59"),
            (1_709_251_200, "2024-03-01 00:00"),
            (4_107_542_400, "2100-03-01 00:00"),
            (1_798_761_599, "2026-12-31 23:59"),
        ] {
            assert_eq!(utc_text(seconds), text);
        }
    }
}
