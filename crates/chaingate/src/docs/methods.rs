//! `methods.md`: every method, for people.

use std::fmt::Write as _;

use answers::AnswerLimits;
use gateway::admit::{BATCH_CREDITS, REFUSED_BYTES, REFUSED_CREDITS, UNKNOWN_METHOD_CREDITS};
use methods::{Cacheable, Family, METHODS, Method, Missing, Param};

use super::examples::Example;
use super::types::{Shape, TYPES, members, of_param};
use super::{GENERATED, method_facts};
use crate::config::Config;

pub(super) fn document(examples: &[Example]) -> String {
    let mut text = format!(
        "# Methods\n\n{GENERATED}\n\nCalls are JSON-RPC 2.0, POSTed to `{{base_url}}/v3/<API_KEY>`, single or in batches. Try the examples on the \
         [demo chain](demo-chain.md), which `cargo run --release` serves:\n\n\
         ```\ncurl -s http://127.0.0.1:8545/v3/demo -d '{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_chainId\",\"params\":[]}}'\n```\n\n\
         Parameters in brackets are optional. Types are at the [end of this page](#types). [wire.md](wire.md) has the details, and \
         [openrpc.json](openrpc.json) is this page for programs.\n\n\
         | method | parameters | result | credits |\n|---|---|---|---|\n"
    );
    for method in METHODS {
        let (name, result, credits) = (method.name, escaped(method.result), method.credits);
        let _ =
            writeln!(text, "| [`{name}`](#{}) | {} | {result} | {credits} |", anchor(name), params(method));
    }
    let _ = writeln!(
        text,
        "\nAn unknown method costs {UNKNOWN_METHOD_CREDITS} credits. A call that is malformed or refused costs {REFUSED_CREDITS} for each started \
         {} KiB of it. A batch costs {BATCH_CREDITS} more than its calls. Calls that a limit refuses, and internal errors, are free.\n\n\
         Every method may also fail with the errors for wrong parameters (-32602), keys (-32002), rates (-32005), capacity (-32005), \
         `-32002 resource unavailable` and `-32603 internal error`; see [errors.md](errors.md).\n\n\
         In the replies below, long strings are shortened to their ends with `…` between them, and of a list of more than two elements only the first is \
         shown, with the number of the others.",
        REFUSED_BYTES >> 10
    );
    let defaults = Config::default();
    for method in METHODS {
        let example = examples.iter().find(|example| example.method == method.name);
        section(&mut text, method, example, &defaults.limits.answer);
    }
    types(&mut text);
    text
}

/// The name that GitHub gives the heading of a method.
fn anchor(name: &str) -> String {
    name.to_lowercase().replace('.', "")
}

fn params(method: &Method) -> String {
    let named = method.params.iter().map(|param| param.name()).enumerate().map(|(position, name)| {
        if position < method.optional_from { name.to_owned() } else { format!("[{name}]") }
    });
    named.collect::<Vec<_>>().join(", ")
}

fn section(text: &mut String, method: &Method, example: Option<&Example>, limits: &AnswerLimits) {
    let _ = writeln!(text, "\n## {}\n\n{}. Costs {} credits.", method.name, method.about, method.credits);
    if let Some(example) = example {
        let _ = write!(
            text,
            "\n```json\n{}\n```\n\n```text\n{}\n```\n",
            example.request(),
            example.shown_reply()
        );
    }
    if !method.params.is_empty() {
        text.push_str("\n| # | parameter | type | default | |\n|---|---|---|---|---|\n");
    }
    for (position, &param) in method.params.iter().enumerate() {
        let default = match method_facts::param_default(param) {
            _ if position < method.optional_from => "required".to_owned(),
            Some(default) => format!("`{default}`"),
            None => "none".to_owned(),
        };
        let (name, kind) = (param.name(), escaped(of_param(param)));
        let about = method_facts::about_param(param);
        let _ = writeln!(text, "| {position} | `{name}` | {kind} | {default} | {about} |");
    }
    let _ = writeln!(text, "\nResult: {}. {}", method.result, notes(method).join(" "));
    let at_most = method_facts::limits(method, limits);
    if !at_most.is_empty() {
        let _ = writeln!(text, "\nLimits: {}.", at_most.join(", "));
    }
    let errors = method_facts::errors(method);
    if !errors.is_empty() {
        text.push_str("\n| error | when |\n|---|---|\n");
    }
    for (when, error) in errors {
        let _ = writeln!(text, "| `{} {}` | {when} |", error.code, error.message);
    }
}

fn notes(method: &Method) -> Vec<String> {
    let mut notes = Vec::new();
    if method.params.iter().any(|&param| names_block(param)) {
        notes.push(match method.missing {
            Missing::Null => "`null` if the block does not exist.".to_owned(),
            Missing::EmptyList => "`[]` if the block does not exist.".to_owned(),
            Missing::Error => String::new(),
        });
    }
    notes.push(
        match method.cacheable {
            Cacheable::Never => "",
            Cacheable::BlockHash if method.params.is_empty() => "It never changes.",
            Cacheable::BlockHash => "For the same block hash it never changes.",
            Cacheable::CanonicalBlock => "It changes only if the block is reorganised away.",
            Cacheable::Head => "It changes with each block.",
        }
        .to_owned(),
    );
    if method.asks_nodes_at_pending {
        notes.push(
            "In front of nodes, a call at `pending` is forwarded to one of them: the result includes the pending transactions of that node, is not \
             cached, and comes with `Chaingate-Verified: none`. The embedded chain answers it as `latest`."
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
