//! The keys of a CSV or JSON file.

use std::collections::HashSet;

use callers::administration::KeyImport;
use callers::{KEY_FIELDS, KeyFieldKind, KeyPatch};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::csv::{self, CsvRecord};

/// Members of a key besides its settings.
const MEMBERS: [&str; 5] = ["account", "plan", "name", "key", "expires_at"];

/// Separates the entries of a list in a cell.
const LIST_SEPARATOR: char = '|';

/// A mistake in a line. It never repeats a value, which could be a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FileMistake {
    pub(super) line: usize,
    pub(super) message: String,
}

impl FileMistake {
    fn new(line: usize, message: impl Into<String>) -> Self {
        Self { line, message: message.into() }
    }
}

/// The keys that can be read, the line of each, and what is wrong with the others.
#[derive(Debug, Default)]
pub(super) struct KeyFile {
    pub(super) keys: Vec<KeyImport>,
    pub(super) lines: Vec<usize>,
    pub(super) mistakes: Vec<FileMistake>,
}

impl KeyFile {
    /// Reads an array of JSON if the text begins with one, and else CSV. A mistake that makes the rest unreadable is an error.
    pub(super) fn parse(text: &str) -> Result<Self, FileMistake> {
        let mut file = Self::default();
        let records = if text.trim_start().starts_with('[') {
            json_objects(text)?
        } else {
            csv_objects(text, &mut file.mistakes)?
        };
        for (line, object) in records {
            match object.and_then(key_import) {
                Ok(key) => {
                    file.keys.push(key);
                    file.lines.push(line);
                }
                Err(message) => file.mistakes.push(FileMistake::new(line, message)),
            }
        }
        Ok(file)
    }
}

/// A record by the names of its members, or why it cannot be read.
type LineObject = (usize, Result<Map<String, Value>, String>);

fn json_objects(text: &str) -> Result<Vec<LineObject>, FileMistake> {
    // The message of `serde_json` can repeat a value, and its line is all that helps.
    let malformed =
        |error: serde_json::Error| FileMistake::new(error.line(), "this is not an array of JSON objects");
    let values: Vec<&RawValue> = serde_json::from_str(text).map_err(malformed)?;
    let (mut line, mut counted_to) = (1, 0);
    let mut line_of = |value: &RawValue| {
        // A raw value is a part of the text.
        let begins_at = value.get().as_ptr().addr() - text.as_ptr().addr();
        line += text[counted_to..begins_at].matches('\n').count();
        counted_to = begins_at;
        line
    };
    let object = |value: &RawValue| {
        serde_json::from_str(value.get()).map_err(|_| "this is not a JSON object".to_owned())
    };
    Ok(values.into_iter().map(|value| (line_of(value), object(value))).collect())
}

fn csv_objects(text: &str, mistakes: &mut Vec<FileMistake>) -> Result<Vec<LineObject>, FileMistake> {
    let unended = |line| FileMistake::new(line, "the quote that begins here does not end");
    let mut records = csv::records(text).map_err(unended)?.into_iter();
    let Some(CsvRecord { line, cells: columns }) = records.next() else { return Ok(Vec::new()) };
    let columns: Vec<_> = columns.iter().map(|column| column.trim().to_owned()).collect();
    let mut seen = HashSet::new();
    for column in &columns {
        let is_known = MEMBERS.contains(&column.as_str()) || kind_of(column).is_some();
        if !is_known {
            let names: Vec<_> =
                MEMBERS.into_iter().chain(KEY_FIELDS.iter().map(|field| field.name)).collect();
            // The first line of a file without names of columns has a key.
            let message =
                format!("the first line must name columns, of which there are: {}", names.join(", "));
            return Err(FileMistake::new(line, message));
        }
        if !seen.insert(column) {
            mistakes.push(FileMistake::new(line, format!("the column {column} is there twice")));
        }
    }
    let objects = records.map(|record| (record.line, cells_object(&columns, record.cells)));
    Ok(objects.collect())
}

fn cells_object(columns: &[String], cells: Vec<String>) -> Result<Map<String, Value>, String> {
    if cells.len() != columns.len() {
        return Err(format!("it has {} cells, and the first line has {}", cells.len(), columns.len()));
    }
    let given = columns.iter().zip(cells).filter(|(_, cell)| !cell.trim().is_empty());
    given.map(|(column, cell)| Ok((column.clone(), cell_value(column, cell.trim())?))).collect()
}

/// The text of a cell as the admin API has it.
fn cell_value(column: &str, cell: &str) -> Result<Value, String> {
    let number =
        || cell.parse::<u64>().map(|number| json!(number)).map_err(|_| format!("{column}: must be a number"));
    match kind_of(column) {
        None if column == "expires_at" => number(),
        Some(KeyFieldKind::Credits) => number(),
        Some(KeyFieldKind::Required | KeyFieldKind::Right) => cell
            .parse::<bool>()
            .map(|flag| json!(flag))
            .map_err(|_| format!("{column}: must be true or false")),
        Some(KeyFieldKind::AllowList | KeyFieldKind::PublicKeys) => {
            Ok(json!(cell.split(LIST_SEPARATOR).map(str::trim).collect::<Vec<_>>()))
        }
        None | Some(KeyFieldKind::Text | KeyFieldKind::Secret) => Ok(json!(cell)),
    }
}

fn kind_of(column: &str) -> Option<KeyFieldKind> {
    KEY_FIELDS.iter().find(|field| field.name == column).map(|field| field.kind)
}

fn key_import(mut object: Map<String, Value>) -> Result<KeyImport, String> {
    let mut text = |name: &str| match object.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("{name}: must be a text")),
    };
    let (account, plan, name, key) = (text("account")?, text("plan")?, text("name")?, text("key")?);
    let expires_at = match object.remove("expires_at") {
        None | Some(Value::Null) => None,
        Some(at) => Some(at.as_i64().ok_or("expires_at: must be a time in seconds since 1970")?),
    };
    let missing = |name: &str| format!("{name}: is missing");
    Ok(KeyImport {
        account: account.ok_or_else(|| missing("account"))?,
        plan,
        name: name.ok_or_else(|| missing("name"))?,
        key: key.ok_or_else(|| missing("key"))?,
        expires_at,
        settings: KeyPatch::try_from(object)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "0123456789abcdef0123456789abcdef";

    fn mistakes(text: &str) -> Vec<(usize, String)> {
        let file = KeyFile::parse(text).unwrap();
        file.mistakes.into_iter().map(|mistake| (mistake.line, mistake.message)).collect()
    }

    #[test]
    fn both_formats_have_the_same_keys() {
        let csv = format!(
            "account,plan,name,key,methods,credits_per_day\nacme,growth,a,{KEY},eth_call | eth_getLogs,5\n"
        );
        let json = json!([{
            "account": "acme", "plan": "growth", "name": "a", "key": KEY, "methods": ["eth_call", "eth_getLogs"],
            "credits_per_day": 5,
        }]);
        for text in [csv, json.to_string()] {
            let file = KeyFile::parse(&text).unwrap();
            assert!(file.mistakes.is_empty(), "{:?}", file.mistakes);
            let KeyImport { account, plan, name, key, expires_at, settings } = &file.keys[0];
            assert_eq!((account.as_str(), plan.as_deref(), name.as_str()), ("acme", Some("growth"), "a"));
            assert_eq!((key.as_str(), *expires_at), (KEY, None));
            let expected = json!({ "methods": ["eth_call", "eth_getLogs"], "credits_per_day": 5 });
            let Value::Object(expected) = expected else { panic!("not an object") };
            assert_eq!(*settings, KeyPatch::try_from(expected).unwrap());
        }
    }

    #[test]
    fn every_mistake_is_told_with_its_line_and_without_its_value() {
        let csv = format!("account,name,key,credits_per_day\n,a,{KEY},\nacme,a\nacme,b,{KEY},many\n");
        let expected = [
            (2, "account: is missing".to_owned()),
            (3, "it has 2 cells, and the first line has 4".to_owned()),
            (4, "credits_per_day: must be a number".to_owned()),
        ];
        assert_eq!(mistakes(&csv), expected);
        let json = format!(
            "[\n{{\"account\":\"acme\",\"name\":\"a\",\"key\":\"{KEY}\",\"origin\":[]}},\n[],\n{{\"account\":7}}]"
        );
        let told = mistakes(&json);
        assert_eq!(told.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [2, 3, 4]);
        assert!(told[0].1.starts_with("unknown field `origin`"), "{told:?}");
        assert!(!format!("{told:?}").contains(KEY));
    }

    #[test]
    fn a_file_without_columns_is_refused_without_showing_its_keys() {
        for text in [format!("acme,a,{KEY}\n"), format!("[{{\"key\":\"{KEY}\"")] {
            let mistake = KeyFile::parse(&text).unwrap_err();
            assert!(mistake.line == 1 && !mistake.message.contains(KEY), "{mistake:?}");
        }
    }
}
