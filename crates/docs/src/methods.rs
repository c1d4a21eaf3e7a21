//! `methods.md`: every method, for people.

use std::fmt::Write as _;

use callers::BATCH_CREDITS;
use gateway::{REFUSED_BYTES, REFUSED_CREDITS, UNKNOWN_METHOD_CREDITS};
use methods::{Cacheable, Method, MissingBlock, NetworkFamily, Param};
use sources::AnswerLimits;

use crate::examples::Example;
use crate::types::{Shape, TYPES, members};
use crate::{GENERATED, method_facts};
use chaingate::config::Config;

pub(crate) fn document(examples: &[Example]) -> String {
    let mut text = format!(
        "# Methods\n\n{GENERATED}\n\n\
         Send calls as JSON-RPC 2.0 with `POST {{base_url}}/v3/<API_KEY>`, alone or in batches. You can try the examples on the \
         [demo chain](demo-chain.md), which `cargo run --release` serves:\n\n\
         ```\ncurl -s http://127.0.0.1:8545/v3/demo -d '{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_chainId\",\"params\":[]}}'\n```\n\n\
         [wire.md](wire.md) describes the details, and [openrpc.json](openrpc.json) is this page for programs.\n\n\
         Parameters in brackets are optional. [Types](#types) are at the end of this page. In front of nodes, the kind of a \
         method says [what lying nodes can achieve](nodes.md#what-lying-nodes-can-achieve).\n\n\
         | method | parameters | result | kind | credits |\n|---|---|---|---|---|\n"
    );
    for Example { method, query, .. } in examples {
        let (name, result, credits) = (method.name, escaped(method.result), method.credits);
        let (anchor, params, kind) = (anchor(name), params(method), method_facts::kind(query));
        let _ = writeln!(text, "| [`{name}`](#{anchor}) | {params} | {result} | {kind} | {credits} |");
    }
    let _ = writeln!(
        text,
        "\n| other | credits |\n|---|---|\n\
         | an unknown method | {UNKNOWN_METHOD_CREDITS} |\n\
         | a malformed call, or one that the key does not allow | {REFUSED_CREDITS} for each started {} KiB of it |\n\
         | a batch | {BATCH_CREDITS}, and the credits of its calls |\n\
         | a call that a limit refuses, or an internal error | 0 |\n\n\
         The sections below list the errors of each method. Every method can also fail because of wrong parameters (-32602), the key (-32002), rate or \
         capacity (-32005), with `-32002 resource unavailable` and with `-32603 internal error`; see [errors.md](errors.md).\n\n\
         The replies below are shortened: `…` stands for the middle of a long string, and `… 2 more` for further elements of a list.",
        REFUSED_BYTES >> 10
    );
    let defaults = Config::default();
    for example in examples {
        section(&mut text, example, &defaults.limits.answer);
    }
    types(&mut text);
    text
}

/// The anchor that GitHub gives a heading.
fn anchor(name: &str) -> String {
    name.to_lowercase().replace('.', "")
}

fn params(method: &Method) -> String {
    let required = method.required.iter().map(|param| param.name().to_owned());
    let optional = method.optional.iter().map(|param| format!("[{}]", param.name()));
    required.chain(optional).collect::<Vec<_>>().join(", ")
}

fn section(text: &mut String, example: &Example, limits: &AnswerLimits) {
    let method = example.method;
    let _ = writeln!(text, "\n## {}\n\n{}. Costs {} credits.", method.name, method.about, method.credits);
    if let Some(reply) = example.shown_reply() {
        let request = method.example_request();
        let _ = write!(text, "\n```json\n{request}\n```\n\n```text\n{reply}\n```\n");
    }
    if method.params().next().is_some() {
        text.push_str("\n| # | parameter | type | default | |\n|---|---|---|---|---|\n");
    }
    for (position, param) in method.params().enumerate() {
        let default = match method_facts::param_default(param) {
            _ if position < method.required.len() => "required".to_owned(),
            Some(default) => format!("`{default}`"),
            None => "none".to_owned(),
        };
        let (name, kind) = (param.name(), escaped(param.type_name()));
        let about = param.about();
        let _ = writeln!(text, "| {position} | `{name}` | {kind} | {default} | {about} |");
    }
    let _ = writeln!(text, "\nResult: `{}`. {}", method.result, notes(method).join(" "));
    let at_most = method_facts::limits(example, limits);
    if !at_most.is_empty() {
        let _ = writeln!(text, "\nLimits: {}.", at_most.join(", "));
    }
    let errors = method_facts::errors(example);
    if !errors.is_empty() {
        text.push_str("\n| error | when |\n|---|---|\n");
    }
    for (when, error) in errors {
        let _ = writeln!(text, "| `{} {}` | {when} |", error.code, error.message);
    }
}

fn notes(method: &Method) -> Vec<String> {
    let mut notes = Vec::new();
    if method.params().any(names_block) {
        notes.push(match method.rules.missing {
            MissingBlock::Null if method.name.ends_with("AndIndex") => {
                "`null` if the block does not exist, or has nothing at this index.".to_owned()
            }
            MissingBlock::Null => "`null` if the block does not exist.".to_owned(),
            MissingBlock::EmptyList => "`[]` if the block does not exist.".to_owned(),
            MissingBlock::Error => String::new(),
        });
    }
    notes.push(
        match method.rules.cacheable {
            Cacheable::Never => "",
            Cacheable::BlockHash if method.params().next().is_none() => "It never changes.",
            Cacheable::BlockHash => "For the same block hash it never changes.",
            Cacheable::CanonicalBlock if method.params().any(|param| param == Param::TransactionHash) => {
                "`null` while there is no such transaction, or no receipt of it. Once it is in a block, the result changes only if a \
                 reorganisation replaces the block."
            }
            Cacheable::CanonicalBlock => {
                "For block numbers it changes only if a reorganisation replaces a block; for tags it changes with the chain."
            }
            Cacheable::Head => "It changes with each block.",
        }
        .to_owned(),
    );
    if method.rules.asks_nodes_at_pending {
        notes.push(
            "In front of nodes, a call at `pending` is forwarded to one node: the result includes the pending transactions of that node, is not \
             cached, and has `Chaingate-Verified: none`. On the embedded chain, `pending` means `latest`."
                .to_owned(),
        );
    }
    if method.rules.families == [NetworkFamily::Zksync] {
        notes.push("Available on networks of the family zksync and on the demo chain.".to_owned());
    }
    if method.rules.failover {
        notes.push("A partner may answer during an outage.".to_owned());
    }
    notes.retain(|note| !note.is_empty());
    notes
}

fn names_block(param: Param) -> bool {
    match param {
        Param::StateBlock
        | Param::BlockNumber
        | Param::AnyBlock
        | Param::BlockInteger
        | Param::BlockHash
        | Param::NewestBlock
        | Param::Filter => true,
        Param::Address
        | Param::Position
        | Param::BlockCount
        | Param::RewardPercentiles
        | Param::Index
        | Param::TransactionHash
        | Param::Call
        | Param::StateOverrides
        | Param::BlockOverrides
        | Param::FullTransactions => false,
    }
}

fn types(text: &mut String) {
    text.push_str("\n# Types\n\n`[Type]` is an array, and `|` separates alternatives.\n\n");
    text.push_str("| type | meaning | format |\n|---|---|---|\n");
    for row in TYPES {
        let shape = match row.shape {
            Shape::Text(pattern) => format!("`{}`", escaped(pattern)),
            Shape::Plain(kind) => format!("JSON {kind}"),
            Shape::OneOf(shape) => escaped(shape),
            Shape::Object(_) => format!("[members](#{})", anchor(row.name)),
        };
        let _ = writeln!(text, "| {} | {} | {shape} |", row.name, row.about);
    }
    for row in TYPES {
        if let Shape::Object(object) = row.shape {
            object_section(text, row.name, object);
        }
    }
}

fn object_section(text: &mut String, name: &str, object: &'static str) {
    let _ = writeln!(text, "\n## {name}\n\n| member | type | |\n|---|---|---|");
    for (name, shape, always) in members(object) {
        let note = if always { "" } else { "optional" };
        let _ = writeln!(text, "| `{name}` | {} | {note} |", escaped(shape));
    }
}

/// Escapes bars, which would end the cell of a table.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::examples_without_replies;

    #[test]
    fn nodes_md_says_of_every_kind_what_lying_nodes_can_achieve() {
        let page = include_str!("../../../docs/nodes.md");
        let (_, table) = page.split_once("| a lying minority |").unwrap();
        for Example { method, query, .. } in &examples_without_replies().unwrap() {
            let kind = method_facts::kind(query);
            assert!(table.contains(&format!("**{kind}**")), "{} is of the kind {kind}", method.name);
        }
    }
}
