//! A type name has one meaning in the whole workspace: whoever reads it need not look up which one is meant.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Names of types that have two meanings for a reason.
const EXCEPTIONS: &[&str] = &[
    // A struct in the interface of a contract of the demo chain.
    "Call",
];

#[test]
fn no_type_name_has_two_meanings() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut defined_in: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for folder in ["crates", "attacks", "bench"] {
        for file in sources(&root.join(folder)) {
            for name in defined_types(&fs::read_to_string(&file).unwrap()) {
                defined_in.entry(name).or_default().push(file.strip_prefix(&root).unwrap().to_owned());
            }
        }
    }
    assert!(defined_in.len() > 500, "the reader finds only {} types", defined_in.len());
    defined_in.retain(|name, files| files.len() > 1 && !EXCEPTIONS.contains(&name.as_str()));
    assert!(defined_in.is_empty(), "rename one of each: {defined_in:#?}");
}

#[test]
fn a_second_definition_is_found() {
    let text = "pub(crate) struct One<T>(T);\nenum Two {}\n#[cfg(test)]\nmod tests {\n    struct Three;\n}\n";
    assert_eq!(defined_types(text), ["One", "Two"]);
    let in_trait = "impl Shape for Two {\n    type Side = u8;\n}\ntrait Four {}\ntype Five = Two;\n";
    assert_eq!(defined_types(in_trait), ["Four", "Five"]);
}

/// The source files in a folder without those of tests.
pub(crate) fn sources(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files = Vec::new();
    for path in paths {
        let name = path.file_stem().unwrap_or_default();
        if name == "tests" || name == "target" {
            continue;
        }
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

/// The types that a file defines outside of its tests. Associated types are not definitions.
fn defined_types(text: &str) -> Vec<String> {
    let product = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    product.lines().filter_map(defined_type).collect()
}

fn defined_type(line: &str) -> Option<String> {
    let definition = line.trim_start();
    let is_nested = definition.len() < line.len();
    let definition = match definition.strip_prefix("pub") {
        Some(public) => public.trim_start_matches(|letter| letter != ' ').trim_start(),
        None => definition,
    };
    let (keyword, rest) = definition.split_once(' ')?;
    let is_type = matches!(keyword, "struct" | "enum" | "trait") || (keyword == "type" && !is_nested);
    let name: String = rest.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect();
    (is_type && name.starts_with(char::is_uppercase)).then_some(name)
}
