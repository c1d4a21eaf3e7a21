//! The documents that are made from the tables: methods, errors, configuration, and an OpenRPC description.
//!
//! `chaingate docs --out docs` writes them. A test fails when one that is committed is not what the tables say.

mod configuration; // every key of the file
mod errors; // what a caller may be told
mod example_config; // every key of the file, as a file
mod examples; // a call of each method and its reply
mod method_facts; // defaults, errors and limits of each method
mod methods; // every method, for people
mod openrpc; // every method, for programs
mod types; // what parameters and results are made of

/// Every document: the name of its file, and its text.
pub fn documents() -> Result<[(&'static str, String); 5], String> {
    let examples = examples::examples()?;
    Ok([
        ("methods.md", methods::document(&examples)),
        ("openrpc.json", openrpc::document(&examples)),
        ("errors.md", errors::document()),
        ("configuration.md", configuration::document()),
        ("chaingate.example.toml", example_config::document()),
    ])
}

/// What every document says about itself.
const MADE: &str =
    "<!-- Made by `chaingate docs --out docs`; changes belong into the tables in the source. -->";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_documents_are_what_the_tables_say() {
        for (name, text) in documents().unwrap() {
            let path = format!("{}/../../docs/{name}", env!("CARGO_MANIFEST_DIR"));
            if std::env::var_os("CHAINGATE_WRITE_DOCS").is_some() {
                std::fs::write(&path, &text).unwrap();
            }
            let committed = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(committed == text, "docs/{name} is out of date; write it with CHAINGATE_WRITE_DOCS=1");
        }
    }
}
