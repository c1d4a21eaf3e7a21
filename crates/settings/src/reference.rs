//! Values that are kept elsewhere: `${NAME}` is an environment variable, and `file:PATH` the content of a file.

use std::fs::File;
use std::io::Read;

/// The most bytes of a file that a value names. Keys and passwords have fewer.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// Reads an environment variable.
pub(crate) type Environment = fn(&str) -> Option<String>;

pub(crate) fn process_environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Whether a text refers to something else.
pub(crate) fn is_reference(text: &str) -> bool {
    text.starts_with("file:") || text.contains("${")
}

/// The value that a text of the configuration file stands for. `$${` is `${` without a meaning.
pub(crate) fn resolve(text: &str, environment: Environment) -> Result<String, String> {
    match text.strip_prefix("file:") {
        Some(path) => read_file(&with_variables(path, environment)?),
        None => with_variables(text, environment),
    }
}

fn with_variables(text: &str, environment: Environment) -> Result<String, String> {
    let mut resolved = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, reference) = rest.split_at(at);
        if let Some(before) = before.strip_suffix('$') {
            resolved.push_str(before);
            resolved.push_str("${");
            rest = &reference[2..];
            continue;
        }
        resolved.push_str(before);
        let (name, after) = reference[2..].split_once('}').ok_or("a } is missing after ${")?;
        let value = environment(name)
            .ok_or_else(|| format!("the environment variable {name} is not set, or is not UTF-8"))?;
        resolved.push_str(&value);
        rest = after;
    }
    resolved.push_str(rest);
    Ok(resolved)
}

/// The content of a file without the line breaks at its end, which editors add.
fn read_file(path: &str) -> Result<String, String> {
    let cannot_read = |cause: std::io::Error| format!("cannot read {path}: {cause}");
    let mut content = String::new();
    let file = File::open(path).map_err(cannot_read)?;
    file.take(FILE_BYTES_MAX + 1).read_to_string(&mut content).map_err(cannot_read)?;
    if content.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("{path} is longer than {FILE_BYTES_MAX} bytes"));
    }
    Ok(content.trim_end_matches(['\r', '\n']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(name: &str) -> Option<String> {
        match name {
            "HOST" => Some("db.example".to_owned()),
            "NESTED" => Some("${HOST}".to_owned()),
            _ => None,
        }
    }

    #[test]
    fn variables_are_replaced_once() {
        for (text, expected) in [
            ("", ""),
            ("plain $HOME {x}", "plain $HOME {x}"),
            ("postgres://${HOST}/x", "postgres://db.example/x"),
            ("${HOST}${HOST}", "db.exampledb.example"),
            ("${NESTED}", "${HOST}"),
            ("$${HOST} costs $5", "${HOST} costs $5"),
        ] {
            assert_eq!(resolve(text, environment).as_deref(), Ok(expected), "{text}");
        }
        for (text, problem) in [("${NOBODY}", "NOBODY is not set"), ("${HOST", "} is missing")] {
            assert!(resolve(text, environment).is_err_and(|error| error.contains(problem)), "{text}");
        }
    }

    #[test]
    fn a_file_is_read_without_its_last_line_break() {
        let path = std::env::temp_dir().join(format!("settings-{}", std::process::id()));
        let text = format!("file:{}", path.display());
        assert!(resolve(&text, environment).is_err_and(|error| error.contains("cannot read")));
        std::fs::write(&path, "secret ${HOST}\n").unwrap();
        assert_eq!(resolve(&text, environment).as_deref(), Ok("secret ${HOST}"));
        std::fs::write(&path, "x".repeat(FILE_BYTES_MAX as usize + 1)).unwrap();
        assert!(resolve(&text, environment).is_err_and(|error| error.contains("is longer than")));
        std::fs::remove_file(&path).unwrap();
    }
}
