//! `docs/tour.md` says what happens: every command in it is sent to a gateway with the demo chain, and the answer is
//! compared with the output that stands below the command.
//!
//! A command is a block of `sh`, its output is the block after it. `CHAINGATE_WRITE_DOCS=1 cargo test -p chaingate
//! --test stories tour::` writes the outputs anew.

#[path = "tour/command.rs"]
mod command; // a curl command, read and sent
#[path = "tour/output.rs"]
mod output; // an answer, as the page shows it

use command::Command;

use crate::demo_gateway::DemoGateway;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tour.md");
const COMMAND: &str = "```sh\n";
const FENCE: &str = "```";

#[test]
fn every_command_of_the_tour_gives_the_output_below_it() {
    let gateway = DemoGateway::start();
    let before = std::fs::read_to_string(PATH).unwrap();
    let mut after = String::new();
    let mut differences = Vec::new();
    let mut rest = before.as_str();
    let mut commands = 0;
    while let Some((text, command, shown, behind)) = next_step(rest) {
        let output = Command::read(command).run(gateway.public);
        if output != shown {
            differences.push(format!("{command}\nthe tour shows:\n{shown}\nbut it is:\n{output}"));
        }
        after.extend([text, COMMAND, command, FENCE, "\n\n```text\n", &output, FENCE]);
        (rest, commands) = (behind, commands + 1);
    }
    after.push_str(rest);
    if std::env::var_os("CHAINGATE_WRITE_DOCS").is_some() {
        std::fs::write(PATH, after).unwrap();
        return;
    }
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
    assert!(commands > 60, "only {commands} commands were found");
}

/// The text before the next command, the command, the output below it, and the rest of the page.
fn next_step(page: &str) -> Option<(&str, &str, &str, &str)> {
    let (text, page) = page.split_once(COMMAND)?;
    let (command, page) = page.split_once(FENCE).expect("a command ends");
    let page = page.strip_prefix("\n\n```text\n").unwrap_or_else(|| panic!("no output below {command}"));
    let (shown, page) = page.split_once(FENCE).expect("an output ends");
    Some((text, command, shown, page))
}

/// The methods that applications call. The others are called by client libraries on their own.
const TRIED_METHODS: [&str; 12] = [
    "eth_getStorageAt",
    "eth_getLogs",
    "eth_getUncleByBlockNumberAndIndex",
    "eth_getUncleByBlockHashAndIndex",
    "eth_getTransactionByBlockNumberAndIndex",
    "eth_getTransactionByBlockHashAndIndex",
    "eth_getTransactionByHash",
    "eth_getTransactionReceipt",
    "eth_getBlockReceipts",
    "eth_call",
    "eth_estimateGas",
    "zks_getRawBlockTransactions",
];

#[test]
fn the_tour_tries_every_method_that_applications_call() {
    let tour = std::fs::read_to_string(PATH).unwrap();
    for name in TRIED_METHODS {
        assert!(methods::METHODS.iter().any(|method| method.name == name), "{name} is not a method");
        assert!(tour.contains(&format!("\"method\":\"{name}\"")), "{name} is not tried");
    }
}
