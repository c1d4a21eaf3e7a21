//! The text that a terminal shows when the gateway has started: addresses, and a command to try it with.

use std::io::{Write, stdout};
use std::net::SocketAddr;
use std::thread;

use demo::TOUR;

use super::console;
use crate::config::Config;

/// Writes the banner from its own thread, because a terminal that is stopped or gone must not delay serving.
pub(super) fn show(
    config: &Config,
    public: SocketAddr,
    operator: SocketAddr,
    console: Option<SocketAddr>,
    head: Option<u64>,
) {
    let console = console.map(|address| console_lines(config, address, sign_in_link(config)));
    let text = text(config, public, operator, &console.unwrap_or_default(), head);
    let write = move || drop(stdout().write_all(text.as_bytes()));
    if let Err(error) = thread::Builder::new().name("banner".to_owned()).spawn(write) {
        tracing::warn!(%error, "cannot show the banner");
    }
}

/// The path with which the first operator signs in, on the demo network and until there is one. It is shown on the terminal
/// and nowhere else.
fn sign_in_link(config: &Config) -> Option<String> {
    if !config.serves_demo_chain() {
        return None;
    }
    let link = console::first_operator_link(config);
    link.inspect_err(|error| tracing::warn!(error, "cannot make the link with which the operator signs in"))
        .ok()?
}

fn console_lines(config: &Config, address: SocketAddr, link: Option<String>) -> String {
    let url = config.console.url.clone().unwrap_or_else(|| format!("http://{address}"));
    match link {
        None => format!("\n    console    {url}"),
        Some(path) => format!(
            "\n    console    {url}\n\n  Sign in to the console as its operator (this link works once, for 24 hours):\n\n    {url}{path}"
        ),
    }
}

fn text(
    config: &Config,
    public: SocketAddr,
    operator: SocketAddr,
    console: &str,
    head: Option<u64>,
) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let scheme = if config.listen.server.tls.is_some() { "https" } else { "http" };
    let key = if config.serves_demo_chain() { "demo" } else { "<API_KEY>" };
    let url = format!("{scheme}://{public}/v3/{key}");
    let (name, call) = (&config.network.name, example(config));
    let head = head.map_or_else(|| "no block yet".to_owned(), |head| format!("block {head}"));
    format!(
        "
  Chaingate {version}   network {name}, {head}

    callers    {url}
    operator   http://{operator}   /health /ready /status /metrics /admin{console}

  Try it:

    curl -s {url} -H 'Content-Type: application/json' \\
      -d '{call}'

  Press Ctrl-C to stop; running calls are finished first.

"
    )
}

/// A call with a result worth seeing: on the demo chain, the variable 1234 of the contract Tour.
fn example(config: &Config) -> String {
    let (method, params) = if config.serves_demo_chain() {
        ("eth_getStorageAt", format!(r#"["{}","0x0","latest"]"#, TOUR))
    } else {
        ("eth_getBlockByNumber", r#"["latest",false]"#.to_owned())
    };
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_to_try_names_the_address_and_the_key() {
        let address = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let shown = text(&Config::default(), address(8545), address(8546), "", Some(7));
        assert!(shown.contains("curl -s http://127.0.0.1:8545/v3/demo -H"), "{shown}");
        assert!(shown.contains("network demo, block 7"), "{shown}");
        assert!(shown.contains(r#""method":"eth_getStorageAt""#), "{shown}");
        let console = console_lines(&Config::default(), address(8547), Some("/link/abc".to_owned()));
        assert!(console.contains("http://127.0.0.1:8547/link/abc"), "{console}");
    }
}
