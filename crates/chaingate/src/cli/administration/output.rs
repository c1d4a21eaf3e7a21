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
        Self { json, url: config.callers_url(config.listen.server.public) }
    }

    /// Prints the reply as it is, or as text, which ends with the reason if a change is not in effect yet.
    pub(crate) fn print<T: DeserializeOwned>(
        &self,
        reply: &Value,
        text: impl FnOnce(T) -> String,
    ) -> Result<(), String> {
        write(&self.shown(reply, text)?)
    }

    fn shown<T: DeserializeOwned>(
        &self,
        reply: &Value,
        text: impl FnOnce(T) -> String,
    ) -> Result<String, String> {
        if self.json {
            return Ok(format!("{reply}\n"));
        }
        let read = T::deserialize(reply).map_err(|error| format!("cannot read the reply: {error}"))?;
        let late = reply["not_in_effect_because"].as_str();
        let late = late.map(|reason| format!("The change is not in effect on this gateway yet: {reason}\n"));
        Ok(text(read) + &late.unwrap_or_default())
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
    use serde_json::json;

    use super::*;

    /// A suspension, or a new key, was reported without a word that the gateway did not know of it yet.
    #[test]
    fn a_change_that_is_not_in_effect_is_not_reported_as_if_it_were() {
        let text = CommandOutput { json: false, url: String::new() };
        let shown = |reply: Value| text.shown(&reply, |_: Value| "done\n".to_owned()).unwrap();
        assert_eq!(shown(json!({ "name": "acme" })), "done\n");
        let late = shown(json!({ "name": "acme", "not_in_effect_because": "it loads" }));
        assert_eq!(late, "done\nThe change is not in effect on this gateway yet: it loads\n");
    }

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
