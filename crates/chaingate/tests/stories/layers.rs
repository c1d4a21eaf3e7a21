//! Imports point downwards: between crates as the table below says, and inside a crate so that no two modules import each
//! other in a circle. Only a module and what is inside it may know each other.

#[path = "layers/imports.rs"]
mod imports; // imports between the modules of a crate

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use imports::Crate;

/// Every crate of the product and the crates of ours that it may import, the lowest layer first.
const LAYERS: &[(&str, &[&str])] = &[
    ("jsonrpc", &[]),
    ("http1_framing", &[]),
    ("settings", &[]),
    ("resources", &[]),
    ("methods", &["jsonrpc", "settings"]),
    ("http_server", &["http1_framing", "resources", "settings"]),
    ("archive", &[]),
    ("nodes", &["http1_framing", "jsonrpc", "resources"]),
    ("store", &["resources"]),
    ("callers", &["methods", "resources", "settings", "store"]),
    ("sources", &["archive", "methods", "nodes", "resources", "settings"]),
    ("remote", &["archive", "methods", "nodes", "resources", "settings", "sources"]),
    ("answers", &["archive", "methods", "nodes", "remote", "resources", "sources"]),
    (
        "gateway",
        &[
            "answers",
            "callers",
            "http_server",
            "jsonrpc",
            "methods",
            "nodes",
            "remote",
            "resources",
            "settings",
            "sources",
        ],
    ),
    ("console", &["callers", "gateway", "http_server", "resources", "settings"]),
    ("demo", &["archive"]),
    (
        "chaingate",
        &[
            "answers",
            "archive",
            "callers",
            "console",
            "demo",
            "gateway",
            "http_server",
            "jsonrpc",
            "methods",
            "nodes",
            "remote",
            "resources",
            "settings",
            "store",
        ],
    ),
];

/// Crates that are no part of the product: what tests are made with, and what writes the demo chain and the documents.
const DEVELOPMENT_ONLY: &[&str] = &["chain_builder", "demo_builder", "docs", "testkit"];

#[test]
fn a_crate_imports_only_the_crates_that_its_layer_may_know() {
    let crates = crates();
    let names: BTreeSet<&str> = crates.keys().map(String::as_str).collect();
    let known: BTreeSet<&str> =
        LAYERS.iter().map(|(name, _)| *name).chain(DEVELOPMENT_ONLY.iter().copied()).collect();
    assert_eq!(names, known, "a crate that is new or gone: what may it import?");
    for (name, allowed) in LAYERS {
        let manifest = fs::read_to_string(crates[*name].join("Cargo.toml")).unwrap();
        let forbidden = forbidden(&manifest, &names, allowed);
        assert!(forbidden.is_empty(), "{name} must not import {}: see LAYERS", forbidden.join(", "));
    }
}

#[test]
fn a_dependency_on_a_higher_layer_is_found() {
    let names = BTreeSet::from(["jsonrpc", "methods", "gateway"]);
    let manifest = "[package]\n[dependencies]\njsonrpc.workspace = true\nbytes.workspace = true\n\
                    gateway = { workspace = true }\n[dev-dependencies]\nmethods.workspace = true\n";
    assert_eq!(forbidden(manifest, &names, &["jsonrpc"]), ["gateway"]);
    assert!(forbidden(manifest, &names, &["jsonrpc", "gateway"]).is_empty());
}

#[test]
fn the_count_of_product_lines_leaves_out_the_same_crates() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/product_lines");
    let line = format!("DEVELOPMENT_ONLY=({})", DEVELOPMENT_ONLY.join(" "));
    assert!(fs::read_to_string(script).unwrap().contains(&line), "scripts/product_lines lacks {line}");
}

#[test]
fn modules_of_a_crate_do_not_import_each_other_in_a_circle() {
    let mut circles = Vec::new();
    for (name, folder) in crates() {
        if !DEVELOPMENT_ONLY.contains(&name.as_str()) {
            circles.extend(
                Crate::read(&folder.join("src")).circles().into_iter().map(|c| format!("{name}: {c}")),
            );
        }
    }
    let advice = "move what both need into a module of its own, or below";
    assert!(circles.is_empty(), "{} import circles ({advice}):\n{}", circles.len(), circles.join("\n"));
}

#[test]
fn a_circle_between_modules_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("lib.rs", "mod bread;\nmod butter;\nmod knife;\n");
    write("bread.rs", "use crate::butter::Butter;\npub(crate) struct Bread(Butter);\n");
    write("butter.rs", "use crate::knife::Knife;\npub(crate) struct Butter(Knife);\n");
    write("knife.rs", "pub(crate) struct Knife;\n");
    assert!(Crate::read(folder.path()).circles().is_empty());
    write("knife.rs", "pub(crate) struct Knife;\nfn cut() { crate::bread::slice() }\n");
    let circles = Crate::read(folder.path()).circles();
    assert_eq!(circles.len(), 1, "{circles:?}");
    assert!(["bread", "butter", "knife"].iter().all(|name| circles[0].contains(name)), "{circles:?}");
}

/// Lines below the level info are logged only for crates that are named in the log.
#[test]
fn the_log_knows_every_crate() {
    let log = fs::read_to_string(crates()["gateway"].join("src/log.rs")).unwrap();
    for (name, _) in LAYERS {
        assert!(log.contains(&format!("\"{name}\"")), "CRATES_WITHOUT_SECRETS lacks {name}");
    }
}

/// The folders of all crates, by the name under which they are imported.
fn crates() -> BTreeMap<String, PathBuf> {
    let all = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap();
    let folders = all.map(|entry| entry.unwrap().path()).filter(|path| path.join("Cargo.toml").exists());
    folders.map(|folder| (library_name(&folder), folder)).collect()
}

fn library_name(folder: &Path) -> String {
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    let (_, library) = manifest.split_once("[lib]\nname = \"").expect("a library with a name");
    library.split('"').next().unwrap().to_owned()
}

/// The crates of `names` that a manifest depends on without being allowed to.
fn forbidden(manifest: &str, names: &BTreeSet<&str>, allowed: &[&str]) -> Vec<String> {
    let is_forbidden =
        |import: &String| names.contains(import.as_str()) && !allowed.contains(&import.as_str());
    dependencies(manifest).into_iter().filter(is_forbidden).collect()
}

/// The names in `[dependencies]`.
fn dependencies(manifest: &str) -> Vec<String> {
    let (_, rest) = manifest.split_once("[dependencies]\n").unwrap_or_default();
    let lines = rest.lines().take_while(|line| !line.starts_with('['));
    let name = |line: &str| line.split(['.', ' ', '=']).next().unwrap_or_default().to_owned();
    lines.map(name).filter(|name| !name.is_empty()).collect()
}
