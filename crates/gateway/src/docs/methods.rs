//! `methods.md`: every method, for people.

use std::fmt::Write as _;

use super::MADE;
use super::types::{Shape, TYPES, members, of_param};
use crate::admit::{BATCH_CREDITS, REFUSED_BYTES, REFUSED_CREDITS, UNKNOWN_METHOD_CREDITS};
use crate::methods::{Cacheable, Deadline, Family, METHODS, Method, Missing, PENDING_METHODS, Work};

pub(super) fn document() -> String {
    let mut text = format!(
        "# Methods\n\n{MADE}\n\nCalls are POSTed to `{{base_url}}/v3/<API_KEY>` as JSON-RPC 2.0, single or in batches. \
         Parameters stand in an array, in the order of the table; those in brackets may be left out. The types are \
         below. [openrpc.json](openrpc.json) says the same to programs, and [errors.md](errors.md) what goes wrong.\n\n\
         | method | parameters | result | credits |\n|---|---|---|---|\n"
    );
    for method in METHODS {
        let (name, result) = (method.name, escaped(method.result));
        let _ = writeln!(
            text,
            "| [`{name}`](#{}) | {} | {result} | {} |",
            name.to_lowercase(),
            params(method),
            method.credits
        );
    }
    let _ = writeln!(
        text,
        "\nAn unknown method costs {UNKNOWN_METHOD_CREDITS} credits, any other call that is malformed or refused \
         {REFUSED_CREDITS} for each started {} KiB of it, a batch {BATCH_CREDITS} on top of its calls. What a limit refuses, and what is our fault, costs nothing.",
        REFUSED_BYTES >> 10
    );
    for method in METHODS {
        section(&mut text, method);
    }
    types(&mut text);
    text
}

fn params(method: &Method) -> String {
    let named = method.params.iter().enumerate().map(|(position, name)| {
        if position < method.optional_from { (*name).to_owned() } else { format!("[{name}]") }
    });
    named.collect::<Vec<_>>().join(", ")
}

fn section(text: &mut String, method: &Method) {
    let _ = writeln!(text, "\n## {}\n\n{}.\n", method.name, method.about);
    if !method.params.is_empty() {
        text.push_str("| # | parameter | type | |\n|---|---|---|---|\n");
    }
    for (position, name) in method.params.iter().enumerate() {
        let required = if position < method.optional_from { "required" } else { "may be left out" };
        let kind = escaped(of_param(method, name));
        let _ = writeln!(text, "| {position} | `{name}` | {kind} | {required} |");
    }
    let lead = if method.params.is_empty() { "" } else { "\n" };
    let _ = writeln!(text, "{lead}Result: {}. {}", method.result, notes(method).join(" "));
}

fn notes(method: &Method) -> Vec<String> {
    let mut notes = vec![format!("Costs {} credits.", method.credits)];
    notes.push(match method.missing {
        _ if !method.params.iter().any(|name| is_block(name)) => String::new(),
        Missing::Null => "A block that is not there gives null.".to_owned(),
        Missing::EmptyList => "A block that is not there gives an empty list.".to_owned(),
        Missing::Error => "A block that is not there is an error.".to_owned(),
    });
    notes.push(
        match method.cacheable {
            Cacheable::Never => "",
            Cacheable::BlockHash => "True for ever at its block.",
            Cacheable::CanonicalBlock => "True as long as its block is canonical.",
            Cacheable::Head => "True until the next block.",
        }
        .to_owned(),
    );
    if let Work::Pooled(deadline) = method.work {
        let limit = if deadline == Deadline::Logs { "log_timeout_ms" } else { "call_timeout_ms" };
        notes.push(format!("Its time is limited by `{limit}`."));
    }
    if PENDING_METHODS.contains(&method.name) {
        notes.push(
            "At `pending`, a gateway in front of nodes passes the call on to one of them: the answer includes that node's pending \
             transactions, is not kept, and comes with `Chaingate-Verified: none`. The embedded chain answers as at `latest`."
                .to_owned(),
        );
    }
    if method.families == [Family::Zksync] {
        notes.push("Only on networks of the family zksync, and on the demo chain.".to_owned());
    }
    if method.failover {
        notes.push("A partner may answer during an outage.".to_owned());
    }
    notes.retain(|note| !note.is_empty());
    notes
}

fn is_block(name: &str) -> bool {
    matches!(name, "block" | "blockHash" | "newestBlock" | "filter")
}

fn types(text: &mut String) {
    text.push_str("\n# Types\n\n| type | what it is | how it is written |\n|---|---|---|\n");
    for row in TYPES {
        let shape = match row.shape {
            Shape::Text(pattern) => format!("`{}`", escaped(pattern)),
            Shape::Plain(kind) => format!("JSON {kind}"),
            Shape::OneOf(shape) => escaped(shape),
            Shape::Object(object) => object_text(object),
        };
        let _ = writeln!(text, "| {} | {} | {shape} |", row.name, row.about);
    }
}

fn object_text(object: &'static str) -> String {
    let each = members(object).map(|(name, shape, always)| {
        let mark = if always { "" } else { "?" };
        format!("`{name}`{mark} {}", escaped(shape))
    });
    each.collect::<Vec<_>>().join(", ")
}

/// A bar would end a cell of a table.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|")
}
