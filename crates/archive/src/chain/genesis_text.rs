//! The text of a genesis file: which of its members is wrong, and on which line it stands.
//!
//! The library that reads the file takes the last of two equal keys, reads `""` as zero, gives a chain without
//! `chainId` the number of mainnet, and loses the line of most errors. All of that is found here, on the text as the
//! user wrote it.

use super::GenesisError;
use alloy_genesis::Genesis;
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;
use std::{borrow::Cow, collections::BTreeMap, fmt};

/// Members of block 0 that are numbers, beside those of `config` and `alloc`.
const HEADER_NUMBERS: [&str; 9] = [
    "nonce",
    "timestamp",
    "gasLimit",
    "difficulty",
    "number",
    "gasUsed",
    "baseFeePerGas",
    "excessBlobGas",
    "blobGasUsed",
];

/// Parses the text of a genesis file.
pub(super) fn parse(text: &str) -> Result<Genesis, GenesisError> {
    let file = GenesisText { text };
    let members: GenesisMembers<'_> = serde_json::from_str(text)?;
    file.check(&members)?;
    let quoted = file.with_quoted_terminal_difficulty(&members);
    serde_json::from_str(&quoted).map_err(|error| file.wrong_member(&members).unwrap_or(error.into()))
}

/// The members of a JSON object in their order; equal keys are all there.
struct GenesisMembers<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for GenesisMembers<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;
        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = GenesisMembers<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(GenesisMembers(members))
            }
        }
        deserializer.deserialize_map(MembersVisitor)
    }
}

impl<'a> GenesisMembers<'a> {
    /// The members of an object; none if the value is no object, which is for the reader of the values to refuse.
    fn of(value: &'a RawValue) -> Self {
        serde_json::from_str(value.get()).unwrap_or(Self(Vec::new()))
    }

    fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(found, _)| found == key).map(|(_, value)| *value)
    }
}

struct GenesisText<'a> {
    text: &'a str,
}

impl<'a> GenesisText<'a> {
    /// Finds what no reader of single values can see.
    fn check(&self, root: &GenesisMembers<'a>) -> Result<(), GenesisError> {
        self.check_object("", root, |key| HEADER_NUMBERS.contains(&key))?;
        let Some(config) = root.get("config") else {
            return Err(GenesisError::Missing { line: 1, field: "config" });
        };
        let members = GenesisMembers::of(config);
        self.check_object("config.", &members, is_config_number)?;
        if members.get("chainId").is_none() {
            return Err(GenesisError::Missing { line: self.line(config), field: "config.chainId" });
        }
        if let Some(schedule) = members.get("blobSchedule").map(GenesisMembers::of) {
            self.check_object("config.blobSchedule.", &schedule, |_| false)?;
            for (fork, params) in &schedule.0 {
                let path = format!("config.blobSchedule.{fork}.");
                self.check_object(&path, &GenesisMembers::of(params), |_| true)?;
            }
        }
        root.get("alloc").map_or(Ok(()), |alloc| self.check_accounts(&GenesisMembers::of(alloc)))
    }

    fn check_accounts(&self, accounts: &GenesisMembers<'a>) -> Result<(), GenesisError> {
        self.check_duplicates("alloc.", accounts, normalised)?;
        for (address, account) in &accounts.0 {
            let (path, members) = (format!("alloc.{address}."), GenesisMembers::of(account));
            self.check_object(&path, &members, |key| key == "nonce" || key == "balance")?;
            if let Some(storage) = members.get("storage") {
                self.check_duplicates(&format!("{path}storage."), &GenesisMembers::of(storage), normalised)?;
            }
        }
        Ok(())
    }

    fn check_object(
        &self,
        path: &str,
        members: &GenesisMembers<'a>,
        is_number: impl Fn(&str) -> bool,
    ) -> Result<(), GenesisError> {
        self.check_duplicates(path, members, str::to_owned)?;
        let empty = members.0.iter().find(|(key, value)| is_number(key) && value.get() == "\"\"");
        empty.map_or(Ok(()), |(key, value)| {
            Err(self.wrong(value, format!("{path}{key}"), "expected a number, found an empty string"))
        })
    }

    fn check_duplicates(
        &self,
        path: &str,
        members: &GenesisMembers<'a>,
        same: impl Fn(&str) -> String,
    ) -> Result<(), GenesisError> {
        let mut first = BTreeMap::new();
        for (key, value) in &members.0 {
            if let Some(earlier) = first.insert(same(key), *value) {
                let problem = format!("duplicate key (first defined on line {})", self.line(earlier));
                return Err(self.wrong(value, format!("{path}{key}"), problem));
            }
        }
        Ok(())
    }

    /// The first member that cannot be read on its own.
    fn wrong_member(&self, root: &GenesisMembers<'a>) -> Option<GenesisError> {
        root.0.iter().find_map(|(key, value)| {
            let problem = problem_with(|member| member, key, value)?;
            let inner = match key.as_str() {
                "config" => self.wrong_inner("config.", value, |member| format!("{{\"config\":{member}}}")),
                "alloc" => self.wrong_account(value),
                _ => None,
            };
            inner.or_else(|| Some(self.wrong(value, key.clone(), problem)))
        })
    }

    fn wrong_account(&self, alloc: &'a RawValue) -> Option<GenesisError> {
        GenesisMembers::of(alloc).0.iter().find_map(|(address, account)| {
            let problem = problem_with(|member| format!("{{\"alloc\":{member}}}"), address, account)?;
            // Every account has to have a balance, so each member is tried beside one.
            let path = format!("alloc.{address}.");
            let inner = self.wrong_inner(&path, account, |member| {
                let member = member.trim_start_matches('{');
                let balance = if member.starts_with("\"balance\"") { "" } else { "\"balance\":\"0x0\"," };
                format!("{{\"alloc\":{{\"{}\":{{{balance}{member}}}}}", address)
            });
            inner.or_else(|| Some(self.wrong(account, format!("alloc.{address}"), problem)))
        })
    }

    fn wrong_inner(
        &self,
        path: &str,
        object: &'a RawValue,
        genesis: impl Fn(String) -> String,
    ) -> Option<GenesisError> {
        GenesisMembers::of(object).0.iter().find_map(|(key, value)| {
            let problem = problem_with(&genesis, key, value)?;
            Some(self.wrong(value, format!("{path}{key}"), problem))
        })
    }

    /// geth writes the terminal total difficulty as a bare number of any size, but a JSON number beyond 64 bits
    /// is read as a floating-point number, which rounds it. In quotes it keeps all its digits.
    fn with_quoted_terminal_difficulty(&self, root: &GenesisMembers<'a>) -> Cow<'a, str> {
        let config = root.get("config").map(GenesisMembers::of);
        let value = config.as_ref().and_then(|config| config.get("terminalTotalDifficulty"));
        let bare = value.map(RawValue::get).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        let Some(digits) = bare else { return self.text.into() };
        let start = self.offset(digits);
        let (before, rest) = self.text.split_at(start);
        format!("{before}\"{digits}\"{}", &rest[digits.len()..]).into()
    }

    fn wrong(&self, value: &RawValue, field: String, problem: impl Into<String>) -> GenesisError {
        GenesisError::Member { line: self.line(value), field, problem: problem.into() }
    }

    /// The line on which a value begins.
    fn line(&self, value: &RawValue) -> usize {
        1 + self.text[..self.offset(value.get())].bytes().filter(|byte| *byte == b'\n').count()
    }

    /// Where a part of the text begins in it.
    fn offset(&self, part: &str) -> usize {
        let offset = (part.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        offset.min(self.text.len())
    }
}

/// Why one member alone makes a genesis unreadable. The genesis is built around the text of the member.
fn problem_with(genesis: impl Fn(String) -> String, key: &str, value: &RawValue) -> Option<String> {
    let key = serde_json::to_string(key).ok()?;
    let text = genesis(format!("{{{key}:{}}}", value.get()));
    let error = serde_json::from_str::<Genesis>(&text).err()?.to_string();
    // The position is one in the text that was built here.
    Some(error.split(" at line ").next().unwrap_or_default().to_owned())
}

fn is_config_number(key: &str) -> bool {
    key == "chainId" || key == "terminalTotalDifficulty" || key.ends_with("Block") || key.ends_with("Time")
}

/// An address or a slot may be written with and without `0x`, and in capital letters.
fn normalised(key: &str) -> String {
    let lower = key.to_ascii_lowercase();
    lower.strip_prefix("0x").unwrap_or(&lower).to_owned()
}
