//! `configuration.md`: every key of the file.
//!
//! Which keys there are and what they are when left out comes from reading a file; what they mean stands here. A key
//! that has no line here, and a line that has no key, fails a test.

use std::fmt::Write as _;

use callers::Plans;
use settings::{KnownKey, ZeroMeaning};

use super::MADE;
use crate::config::Config;

/// A file that has every section, so that every key is asked for.
const EVERY_SECTION: &str = "[network]\nunsupported_tags = { safe = [] }\ncheckpoint = {}\n[plans.NAME]\n[[key]]\n[[node]]\n[[partner]]";

pub(super) fn document() -> String {
    let mut text = format!(
        "# Configuration\n\n{MADE}\n\nOne TOML file, `chaingate serve --config FILE`. Every key may be left out, but only the demo chain is served without a `[[key]]`. `chaingate check` reports \
         all mistakes at once, each with its line, without starting. The flags `--data-dir`, `--listen` and \
         `--operator` (or `CHAINGATE_DATA_DIR`, `CHAINGATE_LISTEN`, `CHAINGATE_OPERATOR`) override the file. \
         [chaingate.example.toml](chaingate.example.toml) is a file with every key.\n\n\
         Numbers must be greater than 0, unless the table says what 0 means.\n"
    );
    let mut open = "none yet";
    for line in LINES {
        if line.section != open {
            open = line.section;
            let title = if open == TOP { "At the top".to_owned() } else { format!("`{open}`") };
            let _ = write!(text, "\n## {title}\n\n{}| key | default | |\n|---|---|---|\n", about(open));
        }
        let _ = writeln!(text, "| `{}` | {} | {}{} |", line.key, line.shown(), line.about, line.zero());
    }
    text
}

/// What a section says before its keys.
fn about(section: &str) -> String {
    match section {
        "[[key]]" => "Once for each key. Omitted settings do not restrict. What an allowlist refuses is answered with 403.\n\n".to_owned(),
        "[plans.NAME]" => plans(),
        _ => String::new(),
    }
}

/// The usual plans, which sections of the same name change.
fn plans() -> String {
    let mut text = "Changes a plan, or adds one that starts without limits. These are there:\n\n\
                    | plan | credits/second | credits/day | keys | failover |\n|---|---|---|---|---|\n"
        .to_owned();
    let plans = Plans::default();
    for plan in plans.names().filter_map(|name| plans.named(name)) {
        let limit = |limit: Option<u64>| limit.map_or("no limit".to_owned(), |limit| limit.to_string());
        let (second, day) = (limit(plan.credits_per_second), limit(plan.credits_per_day));
        let (keys, failover) = (limit(plan.keys_max), if plan.failover { "yes" } else { "no" });
        let _ = writeln!(text, "| {} | {second} | {day} | {keys} | {failover} |", plan.name);
    }
    text.push('\n');
    text
}

/// The keys before the first section.
const TOP: &str = "";

/// One key.
pub(super) struct Line {
    pub(super) section: &'static str,
    pub(super) key: &'static str,
    /// Shown instead of the default where it depends on something else.
    pub(super) usual: &'static str,
    pub(super) about: &'static str,
}

impl Line {
    /// As the reader of the file names it.
    fn path(&self) -> String {
        let section = self.section.trim_matches(['[', ']']);
        let place = if self.section.starts_with("[[") { " 1" } else { "" };
        match section {
            TOP => self.key.to_owned(),
            _ => format!("{section}{place}.{}", self.key),
        }
    }

    fn shown(&self) -> String {
        if !self.usual.is_empty() {
            return self.usual.to_owned();
        }
        self.literal_default().map_or("–".to_owned(), |default| format!("`{default}`"))
    }

    /// The default as it is written in a file, where it is always the same.
    pub(super) fn literal_default(&self) -> Option<String> {
        let known = self.known().filter(|known| self.usual.is_empty() && !known.default.is_empty());
        known.map(|known| known.default)
    }

    pub(super) fn is_required(&self) -> bool {
        self.usual == "required"
    }

    /// What 0 means, where it may be set.
    pub(super) fn zero(&self) -> &'static str {
        match self.known().and_then(|known| known.zero) {
            None | Some(ZeroMeaning::Refused) => "",
            Some(ZeroMeaning::NoLimit) => "; 0 = no limit",
            Some(ZeroMeaning::NoDelay) => "; 0 = none",
        }
    }

    fn known(&self) -> Option<KnownKey> {
        read().into_iter().find(|known| known.path == self.path())
    }
}

fn read() -> Vec<KnownKey> {
    Config::keys_of(EVERY_SECTION)
}

const fn line(section: &'static str, key: &'static str, usual: &'static str, about: &'static str) -> Line {
    Line { section, key, usual, about }
}

#[rustfmt::skip]
pub(super) static LINES: &[Line] = &[
    line(TOP, "data_dir", "", "where the archive and the kept blocks of nodes are"),

    line("[network]", "name", "", "a label in metrics, and what keys are enabled for; `demo` without nodes makes and serves the demo chain, and comes with the key `demo`"),
    line("[network]", "family", "`\"ethereum\"`; on the demo network, both", "`ethereum` or `zksync`: which methods exist"),
    line("[network]", "chain_id", "what a quorum of the nodes says", "the chain that this must be; nodes of another one are left out, and an archive of another one is refused"),
    line("[network]", "genesis_hash", "what a quorum of the nodes says", "the hash of its block 0; nodes with another one are left out, and an archive with another one is refused"),
    line("[network]", "checkpoint.number", "none", "a block that the chain must have: `checkpoint = { number = 21000000, hash = \"0x…\" }`. Nodes with another block in its place are left out, and a chain without it is refused, however many nodes have it; see [nodes.md](nodes.md)"),
    line("[network]", "checkpoint.hash", "none", "the hash of that block"),
    line("[network]", "genesis", "that of a public network, by chain id", "the genesis file of the nodes' chain, as `chaingate import` takes it: with `[integrity] state = \"prove\"`, its rules are those by which `eth_call` and `eth_estimateGas` run here. Mainnet, Sepolia, Holesky and Hoodi need none"),
    line("[network]", "unsupported_tags.safe", "none", "methods for which this tag is refused; any tag may stand for `safe`"),

    line("[listen]", "public", "", "the address for callers"),
    line("[listen]", "operator", "", "the address for `/health`, `/ready`, `/status` and `/metrics`"),
    line("[listen]", "operator_hosts", "none", "host names under which the operator's address answers, besides `localhost` and IP addresses; others get 403"),
    line("[listen]", "trusted_proxies", "none", "addresses and networks of your proxies, such as `[\"10.0.0.0/8\"]`: they are believed about their callers' addresses. A proxy itself may have any number of connections, and of requests for which it names no caller"),
    line("[listen]", "proxy_protocol", "", "whether connections from `trusted_proxies` start with a PROXY protocol header (version 1 or 2); those without one are closed"),
    line("[listen]", "proxy_header", "", "the header to which `trusted_proxies` append their callers' addresses: `x-forwarded-for` or `forwarded`. The last address that is no trusted proxy counts"),
    line("[listen]", "workers", "one per core", "threads that serve connections"),
    line("[listen]", "runtime", "", "`per-core` or `work-stealing`: how connections are spread over the workers"),
    line("[listen]", "tls_certificate", "", "PEM file with the certificate chain; needs `tls_key`"),
    line("[listen]", "tls_key", "", "PEM file with its private key"),

    line("[[key]]", "key", "required", "what callers put into the path: letters, digits, `-` and `_`"),
    line("[[key]]", "name", "its place", "what the log calls it"),
    line("[[key]]", "account", "one of its own", "keys of one account share its plan and limits"),
    line("[[key]]", "plan", "", "the plan of its account"),
    line("[[key]]", "secret", "", "sent as the password of HTTP Basic, with any user"),
    line("[[key]]", "secret_required", "`true` where there is a `secret`", "whether a request without it is refused"),
    line("[[key]]", "jwt_public_keys", "", "PEM public keys (RSA, P-256, Ed25519) whose tokens are accepted (RS256, ES256, EdDSA)"),
    line("[[key]]", "jwt_required", "`true` where there are `jwt_public_keys`", "whether a request without `Authorization: Bearer` is refused"),
    line("[[key]]", "jwt_audience", "", "what `aud` of a token has to name"),
    line("[[key]]", "networks", "", "names of the networks that it is enabled for"),
    line("[[key]]", "origins", "", "web pages that may use it: `https://app.example.com`, `*.example.com`, `localhost:3000`"),
    line("[[key]]", "user_agents", "", "parts of which one has to be in `User-Agent`"),
    line("[[key]]", "addresses", "", "contracts that calls, estimates, logs, storage, balances and code may be asked of; overrides of code and storage are refused. Blocks, transactions, receipts and `eth_getTransactionCount` are not restricted"),
    line("[[key]]", "methods", "", "methods that may be called"),
    line("[[key]]", "credits_per_second", "", "credits that it may use in a second, within those of its account"),
    line("[[key]]", "credits_per_day", "", "credits that it may use between two midnights UTC, within those of its account"),

    line("[plans.NAME]", "credits_per_second", "the plan's", "credits that an account may use in a second"),
    line("[plans.NAME]", "credits_per_day", "the plan's", "credits that an account may use between two midnights UTC"),
    line("[plans.NAME]", "keys_max", "the plan's", "keys of one account"),
    line("[plans.NAME]", "failover", "the plan's", "whether a partner may answer during an outage"),

    line("[methods]", "failover", "the two methods marked in [methods.md](methods.md)", "methods that a partner may answer"),
    line("[methods]", "eth_call_requires_from", "", "whether `eth_call` without `from` is refused"),

    line("[limits]", "body_bytes_max", "", "bytes of a request's body, also when it is inflated"),
    line("[limits]", "batch_calls_max", "", "calls in one batch"),
    line("[limits]", "batch_reply_bytes_max", "", "bytes of the replies of one batch together"),
    line("[limits]", "compress_bytes_min", "", "bytes from which a reply is compressed"),
    line("[limits]", "calls_in_flight_max", "", "calls at once, over all accounts; one account has half of the places at most"),
    line("[limits]", "connections_max", "", "connections at once. When all are taken, a new one takes the place of the oldest one on which no valid key was sent, or of an idle one of the account with most connections; if none is found among 32 connections of each of the 8 accounts with most, it gets 503"),
    line("[limits]", "connections_per_address_max", "", "connections at once from one IPv4 address or IPv6 /64 network"),
    line("[limits]", "unauthenticated_per_second_max", "", "requests from one such address in a second that have no valid key, or are refused before their key is looked at (unknown path, method other than POST, content type, declared length); more get 429"),
    line("[limits]", "address_limits_exempt", "`[\"127.0.0.0/8\", \"::1\"]`", "addresses and networks to which the two limits above do not apply"),
    line("[limits]", "requests_per_connection_max", "", "requests until a connection is closed, so that load spreads again"),
    line("[limits]", "first_byte_timeout_ms", "", "how long a new connection may say nothing"),
    line("[limits]", "header_timeout_ms", "", "how long the head of a request may take"),
    line("[limits]", "body_timeout_ms", "", "how long its body may take"),
    line("[limits]", "write_timeout_ms", "", "over how long the rate at which a caller reads is measured; a caller that reads too slowly for so long is disconnected"),
    line("[limits]", "read_rate_min_bytes", "", "bytes per second that a caller has to read while a reply waits for it"),
    line("[limits]", "keep_alive_timeout_ms", "", "how long a connection may idle between requests"),
    line("[limits]", "drain_delay_ms", "", "how long everything is still answered after the signal to stop, while `/ready` is 503; longer than load balancers take to notice"),
    line("[limits]", "drain_timeout_ms", "", "how long running answers may take after that"),
    line("[limits]", "header_bytes_max", "", "bytes of a request's head"),
    line("[limits]", "headers_max", "", "headers of a request"),
    line("[limits]", "memory_bytes_max", "", "bytes of request bodies and replies in memory, over all accounts. An account may come to use no more of them than are free when it asks, which is about half; beyond that, requests are refused with `over capacity`. Bodies and replies below 16 KiB are not counted, up to 32 KiB on each connection, which come on top; on HTTP/2, where many requests share a connection, what exceeds that is counted from its first byte, and so are heads and 10 KiB for each request"),
    line("[limits]", "h2_streams_max", "", "requests at once on one HTTP/2 connection"),
    line("[limits]", "log_params_max", "", "values in one filter of `eth_getLogs`"),
    line("[limits]", "log_results_max", "", "logs in one answer"),
    line("[limits]", "log_timeout_ms", "", "how long a log query may take"),
    line("[limits]", "log_blocks_max", "", "blocks that one log query may span"),
    line("[limits]", "call_timeout_ms", "", "how long `eth_call` and `eth_estimateGas` may take"),
    line("[limits]", "call_gas_multiple", "", "gas of a call, in gas limits of the current block"),
    line("[limits]", "call_memory_bytes_max", "", "memory of a call, over all its frames"),
    line("[limits]", "pool_threads", "one per core", "log queries and calls of one account that run at once; other accounts have threads of their own"),
    line("[limits]", "pool_queue_max", "", "calls that may wait for such a thread, over all accounts; one account has half of the places at most"),

    line("[[node]]", "url", "required", "a node to ask; without one, the embedded chain answers. Credentials may stand in it"),
    line("[[node]]", "name", "host and port", "what metrics and the log call it"),
    line("[[node]]", "ws_url", "none", "where it pushes new heads, `ws://` or `wss://`"),
    line("[[node]]", "headers", "none", "`[\"Name: value\"]`, sent with every request"),
    line("[[node]]", "http2", "", "speak HTTP/2 without asking; over https it is agreed on"),
    line("[[partner]]", "url", "required", "who may be asked during an outage"),
    line("[[partner]]", "methods", "those of `[methods] failover`", "what it may be asked, and which blocks are meant by it"),
    line("[[partner]]", "calls_per_second", "", "calls that may go there in a second"),
    line("[[partner]]", "calls_per_day", "", "calls that may go there on a day (UTC)"),
    line("[[partner]]", "name", "host and port", "what metrics and the log call it"),
    line("[[partner]]", "headers", "none", "`[\"Name: value\"]`, sent with every request"),
    line("[[partner]]", "http2", "", "speak HTTP/2 without asking"),

    line("[pool]", "quorum", "a majority", "nodes that must agree on what nothing proves: the head, `safe` and `finalized`, which block has an old number, that something is not there. A majority of the `[[node]]` entries, whether they are up or not; see [nodes.md](nodes.md)"),
    line("[pool]", "call_timeout_ms", "", "how long a call may take over all nodes that are asked; log queries and simulations have limits of their own"),
    line("[pool]", "poll_interval_ms", "a third of the block time", "time between two looks at a node's head"),
    line(
        "[pool]",
        "reply_memory_bytes",
        "",
        "memory for replies of nodes that are being read, inflated and checked; at least 1 MiB. One node may use half of it, or all of it if it is the only one; a reply whose length is not announced may use half of that, because it is copied while it grows, and a compressed one what is left beside its compressed form. A reply that does not fit waits; then another node is asked",
    ),
    line("[pool]", "head_stall_ms", "ten blocks, at least 30 s", "how long the head may stand still before `/ready` says so"),

    line("[cache]", "enabled", "", "whether answers are kept, to be given again"),
    line("[cache]", "bytes_max", "", "bytes of memory for answers that are kept"),
    line("[cache]", "proven_bytes_max", "", "bytes of memory for proven blocks of the nodes, which further answers are made from"),
    line("[cache]", "state_bytes_max", "", "bytes of memory for proven accounts, storage slots and code, with `[integrity] state = \"prove\"`"),

    line("[follow]", "mode", "`\"blocks\"` where blocks are proven, else `\"off\"`", "what becomes of new blocks: `off`; `blocks`, which keeps proven blocks in `data_dir`, so that they are answered without a node; or `full`, which executes them and continues the archive in `data_dir`; see nodes.md on [`blocks`](nodes.md#blocks-that-are-kept) and [`full`](nodes.md#an-archive-that-follows-the-nodes)"),
    line("[follow]", "blocks_max", "", "blocks that are kept with `blocks`; the newest ones stay"),
    line("[follow]", "headers_max", "", "headers that are kept with `blocks`, for log queries about old blocks, at some 350 bytes each"),
    line("[follow]", "from", "the head at the first start", "with `blocks`, number of the lowest block to keep, or `\"earliest\"`; older blocks are fetched in the background"),

    line("[integrity]", "mode", "", "what answers about blocks are made from: proven blocks (`prove`), or what a node says (`off`); see [nodes.md](nodes.md)"),
    line("[integrity]", "state", "`confirm` with three or more nodes, else `trust`", "how far nodes are believed about storage, balances, nonces, code, calls and estimates. `prove`: everything is proven by the state root of its block, and calls run here; what no node proves is confirmed. `confirm`: a quorum of the configured nodes must give the same answer; `trust`: one node's answer is passed on. See [nodes.md](nodes.md)"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_its_line_and_every_line_its_key() {
        let mut read: Vec<_> = read().into_iter().map(|known| known.path).collect();
        let mut told: Vec<_> = LINES.iter().map(Line::path).collect();
        read.sort();
        read.dedup();
        told.sort();
        assert_eq!(read, told);
    }
}
