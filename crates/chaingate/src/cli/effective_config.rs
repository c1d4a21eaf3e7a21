//! Every key of the configuration with the value in effect and where that comes from, for the console. Secrets are hidden.

use std::ffi::OsString;

use ::console::{ConfigurationRow, ConfigurationSection, ConfigurationSource, ConfigurationValue};
use settings::{FileValue, KnownKey};

use crate::config::Config;

/// Keys whose values can contain credentials, by the section that they are in.
const HIDDEN: &[(&str, &str)] = &[
    ("key", "key"),
    ("key", "key_hash"),
    ("key", "secret"),
    ("node", "url"),
    ("node", "ws_url"),
    ("node", "headers"),
    ("partner", "url"),
    ("partner", "headers"),
    ("store", "url"),
    ("shared", "redis_url"),
];

/// The sections in the order of the documentation; others follow.
const ORDER: [&str; 18] = [
    "",
    "network",
    "listen",
    "console",
    "key",
    "store",
    "plans",
    "methods",
    "shared",
    "limits",
    "usage",
    "access_log",
    "node",
    "partner",
    "pool",
    "cache",
    "follow",
    "integrity",
];

/// The sections with their keys; `text` is the text of the file.
pub(super) fn sections(config: &Config, text: &str) -> Vec<ConfigurationSection> {
    let in_file = settings::file_values(text);
    let overridden = overridden(config);
    let mut sections: Vec<ConfigurationSection> = Vec::new();
    let mut seen = Vec::new();
    for known in Config::keys_of(text) {
        if seen.contains(&known.path) {
            continue;
        }
        let (section, key) = known.path.rsplit_once('.').unwrap_or(("", &known.path));
        let row = row(&known, section, key, &in_file, &overridden);
        match sections.iter_mut().find(|found| found.name == section) {
            Some(found) => found.rows.push(row),
            None => sections.push(ConfigurationSection { name: section.to_owned(), rows: vec![row] }),
        }
        seen.push(known.path);
    }
    sections.sort_by_key(|section| position(&section.name));
    sections
}

/// Where a section is shown. Sections of lists and plans have more behind their name.
fn position(section: &str) -> usize {
    let name = section.split([' ', '.']).next().unwrap_or_default();
    ORDER.iter().position(|known| *known == name).unwrap_or(ORDER.len())
}

fn row(
    known: &KnownKey,
    section: &str,
    key: &str,
    in_file: &[FileValue],
    overridden: &[Overridden],
) -> ConfigurationRow {
    let found = overridden.iter().find(|option| option.path == known.path);
    let written = in_file.iter().find(|value| value.path == known.path);
    let (value, source) = match (found, written) {
        (Some(option), _) => (option.value.clone(), option.source.clone()),
        (None, Some(value)) => {
            let line = u32::try_from(value.line).unwrap_or(u32::MAX);
            (value.text.clone(), ConfigurationSource::File { line })
        }
        (None, None) => (known.default.clone(), ConfigurationSource::Default),
    };
    let value = match value {
        value if value.is_empty() => ConfigurationValue::NotSet,
        _ if is_hidden(section, key) => ConfigurationValue::Hidden,
        value => ConfigurationValue::Shown(value),
    };
    ConfigurationRow { key: key.to_owned(), value, source }
}

fn is_hidden(section: &str, key: &str) -> bool {
    // Sections of lists have a number behind their name.
    let section = section.split(' ').next().unwrap_or_default();
    HIDDEN.contains(&(section, key))
}

/// A key whose value comes from the command line or the environment.
struct Overridden {
    path: &'static str,
    value: String,
    source: ConfigurationSource,
}

fn overridden(config: &Config) -> Vec<Overridden> {
    let console = config.console_address.preferred().map_or("off".to_owned(), |address| address.to_string());
    let options = [
        ("data_dir", "--data-dir", "CHAINGATE_DATA_DIR", config.data_dir.display().to_string()),
        ("listen.public", "--listen", "CHAINGATE_LISTEN", config.listen.server.public.to_string()),
        ("listen.operator", "--operator", "CHAINGATE_OPERATOR", config.listen.operator.address.to_string()),
        ("listen.console", "--console", "CHAINGATE_CONSOLE", console),
    ];
    let given = options.into_iter().filter_map(|(path, flag, variable, value)| {
        let source = source_of(flag, variable)?;
        Some(Overridden { path, value: format!("\"{value}\""), source })
    });
    given.collect()
}

fn source_of(flag: &str, variable: &str) -> Option<ConfigurationSource> {
    let is_flag = |argument: OsString| {
        let rest = argument.as_encoded_bytes().strip_prefix(flag.as_bytes());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"="))
    };
    if std::env::args_os().any(is_flag) {
        return Some(ConfigurationSource::Flag(flag.to_owned()));
    }
    std::env::var_os(variable).map(|_| ConfigurationSource::Environment(variable.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_name_their_source_and_secrets_are_hidden() {
        let text = "[limits]\nlog_blocks_max = 77\n\
                    [[key]]\nkey = \"canary-a\"\nsecret = \"canary-b\"\nname = \"shop\"\n\
                    [[node]]\nurl = \"http://user:canary-c@node.example\"\nheaders = [\"x: canary-d\"]\nws_url = \"ws://canary-e\"\n\
                    [[partner]]\nurl = \"http://canary-f.example\"\nheaders = [\"x: canary-g\"]\n\
                    [store]\nurl = \"postgres://u:canary-h@h/d\"\n[shared]\nredis_url = \"redis://:canary-i@h\"\n";
        let config = Config::parse(text).unwrap();
        let sections = sections(&config, text);
        let shown = format!("{sections:?}");
        assert!(!shown.contains("canary"), "{shown}");
        let find = |section: &str, key: &str| {
            let section = sections.iter().find(|found| found.name == section).unwrap();
            section.rows.iter().find(|row| row.key == key).unwrap()
        };
        let row = find("limits", "log_blocks_max");
        assert_eq!(row.value, ConfigurationValue::Shown("77".to_owned()));
        assert_eq!(row.source, ConfigurationSource::File { line: 2 });
        assert_eq!(find("key 1", "key").value, ConfigurationValue::Hidden);
        assert_eq!(find("key 1", "name").value, ConfigurationValue::Shown("\"shop\"".to_owned()));
        assert_eq!(find("limits", "log_params_max").source, ConfigurationSource::Default);
        let names: Vec<&str> = sections.iter().map(|section| section.name.as_str()).collect();
        assert_eq!(names[..6], ["", "network", "network.checkpoint", "listen", "console", "key 1"]);
        assert!(names.iter().all(|name| position(name) < ORDER.len()), "{names:?}");
        assert_eq!(find("", "core_dumps").value, ConfigurationValue::Shown("false".to_owned()));
    }
}
