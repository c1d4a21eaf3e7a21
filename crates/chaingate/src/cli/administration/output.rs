//! The output of a command: one JSON object for programs, or text for people.

use std::io::{Write as _, stdout};

use resources::UtcTime;
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

pub(crate) fn write(text: &str) -> Result<(), String> {
    let mut out = stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| format!("cannot write the result: {error}"))
}

/// A time in seconds since 1970 as `2026-01-31 23:59`, UTC; the number itself if the calendar has no such time.
pub(crate) fn utc_text(seconds: i64) -> String {
    let Some(time) = UtcTime::new(seconds) else { return seconds.to_string() };
    format!("{} {}", time.date(), time.hour_and_minute())
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
            (i64::MAX, "9223372036854775807"),
        ] {
            assert_eq!(utc_text(seconds), text);
        }
    }
}
