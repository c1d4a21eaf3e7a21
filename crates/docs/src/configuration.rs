//! `configuration.md`: every key of the file.
//!
//! The keys and their defaults are taken from the code that reads the file; [`KEY_DOCS`] describes them. A test fails if a key
//! has no description, or a description no key.

use std::fmt::Write as _;

use callers::Plans;
use settings::{KnownKey, ZeroMeaning};

use crate::GENERATED;
use chaingate::config::Config;

/// A file with every section, so that every key is read.
const EVERY_SECTION: &str = "[network]\nunsupported_tags = { safe = [] }\ncheckpoint = {}\n[plans.NAME]\n[[key]]\n[[node]]\n[[partner]]";

pub(crate) fn document() -> String {
    let mut text = format!(
        "# Configuration\n\n{GENERATED}\n\n\
         The gateway reads one TOML file: `chaingate serve --config FILE`. Every key is optional unless its default is `required`. API keys come from `[[key]]` \
         sections or from the store, where they are created while the gateway runs. [chaingate.example.toml](chaingate.example.toml) is a file with every key.\n\n\
         `chaingate check --config FILE` reports all wrong keys and values at once, each with its line number, without starting the gateway. If there are none, it checks the certificates, the addresses, the keys and the archive.\n\n\
         These options and environment variables override the file:\n\n\
         * `--data-dir` or `CHAINGATE_DATA_DIR`: `data_dir`\n\
         * `--listen` or `CHAINGATE_LISTEN`: `[listen] public`\n\
         * `--operator` or `CHAINGATE_OPERATOR`: `[listen] operator`\n\
         * `--console` or `CHAINGATE_CONSOLE`: `[listen] console`\n\n\
         Every value may come from elsewhere: `\"${{NAME}}\"` is the environment variable `NAME`, also within a text, and `\"file:PATH\"` is the content of a file \
         (64 KiB at most, without the line break at its end). This keeps secrets out of the file: `url = \"postgres://gateway:${{PASSWORD}}@db/gateway\"`, or \
         `secret = \"file:/run/credentials/secret\"`. A variable that is not set, or a file that cannot be read, is an error. `$${{` is `${{` without a meaning.\n\n\
         After a change of the file, `chaingate reload` or SIGHUP makes a running gateway read it again. Keys with \"reload\" below then take effect, without a call that fails; the others need a restart, and the command names those that have changed. A file with a mistake changes nothing. [operation.md](operation.md#reload) says more.\n\n\
         Numbers must be greater than 0, unless the table says what 0 means. Keys that end in `_ms` are milliseconds, those with `bytes` are bytes.\n"
    );
    let mut open = "none yet";
    for doc in KEY_DOCS {
        if doc.section != open {
            open = doc.section;
            let title = if open == TOP { "Top-level keys".to_owned() } else { format!("`{open}`") };
            let _ = write!(
                text,
                "\n## {title}\n\n{}| key | default | takes effect | |\n|---|---|---|---|\n",
                about(open)
            );
        }
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {}{} |",
            doc.key,
            doc.shown(),
            doc.takes_effect(),
            doc.about,
            doc.zero()
        );
    }
    text
}

/// The text of a section before its table of keys.
fn about(section: &str) -> String {
    match section {
        "[[key]]" => KEY_SECTION.to_owned(),
        "[[node]]" => NODE_SECTION.to_owned(),
        "[[partner]]" => PARTNER_SECTION.to_owned(),
        "[plans.NAME]" => plans(),
        _ => String::new(),
    }
}

const KEY_SECTION: &str = "One section for each API key. A setting that is left out does not restrict the key. Requests that a setting excludes get 403.\n\n";
const NODE_SECTION: &str =
    "One section for each node. Without nodes, the gateway serves the archive in `data_dir`.\n\n";
const PARTNER_SECTION: &str = "One section for each provider that may be asked when no node can answer; see [nodes.md](nodes.md#outages).\n\n";

/// The default plans, which sections of the same name change.
fn plans() -> String {
    let mut text = "Changes a default plan, or adds a plan. A new plan has no limits unless you set them. The default plans:\n\n\
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

/// The description of one key.
pub(crate) struct KeyDoc {
    pub(crate) section: &'static str,
    pub(crate) key: &'static str,
    /// Shown instead of the default if that is not a fixed value.
    pub(crate) default_text: &'static str,
    pub(crate) about: &'static str,
}

impl KeyDoc {
    /// Whether a reload is enough.
    fn takes_effect(&self) -> &'static str {
        let section = self.section.trim_matches(['[', ']']);
        if chaingate::reload::is_live(section, self.key) { "live" } else { "restart" }
    }

    /// The name of the key in [`KnownKey`].
    fn path(&self) -> String {
        let section = self.section.trim_matches(['[', ']']);
        let place = if self.section.starts_with("[[") { " 1" } else { "" };
        match section {
            TOP => self.key.to_owned(),
            _ => format!("{section}{place}.{}", self.key),
        }
    }

    fn shown(&self) -> String {
        if !self.default_text.is_empty() {
            return self.default_text.to_owned();
        }
        self.literal_default().map_or("–".to_owned(), |default| format!("`{default}`"))
    }

    /// The default as it is written in a file, if it is a fixed value.
    pub(crate) fn literal_default(&self) -> Option<String> {
        let known = self.known().filter(|known| self.default_text.is_empty() && !known.default.is_empty());
        known.map(|known| known.default)
    }

    pub(crate) fn is_required(&self) -> bool {
        self.default_text == "required"
    }

    /// The note about the value 0, if it is allowed.
    pub(crate) fn zero(&self) -> &'static str {
        match self.known().and_then(|known| known.zero) {
            None | Some(ZeroMeaning::Invalid) => "",
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

const fn key(
    section: &'static str,
    key: &'static str,
    default_text: &'static str,
    about: &'static str,
) -> KeyDoc {
    KeyDoc { section, key, default_text, about }
}

#[rustfmt::skip]
pub(crate) static KEY_DOCS: &[KeyDoc] = &[
    key(TOP, "data_dir", "", "directory of the archive, of blocks stored from nodes, of the store, of usage that waits for it, and of the admin token"),
    key(TOP, "core_dumps", "", "whether a crash may leave a core dump. Core dumps contain keys and secrets, so they are off; while they are off, debuggers of the same user cannot attach, either"),
    key(TOP, "log", "", "what is logged: `error`, `warn`, `info`, `debug` or `trace`, also for parts (`info,gateway=debug`). The environment variable `RUST_LOG` overrides it"),

    key("[network]", "name", "", "name of the network, in metrics and in `networks` of keys. With the name `demo` and without nodes, the gateway creates and serves the demo chain, with the key `demo`"),
    key("[network]", "family", "`\"ethereum\"`; on the demo network, both", "`ethereum` or `zksync`: decides which methods exist"),
    key("[network]", "chain_id", "reported by a quorum of the nodes", "chain id of the network. Nodes of another chain are not used, and an archive of another chain is refused"),
    key("[network]", "genesis_hash", "reported by a quorum of the nodes", "hash of block 0. Nodes with another one are not used, and an archive with another one is refused"),
    key("[network]", "checkpoint.number", "none", "number of a block that the chain must have: `checkpoint = { number = 21000000, hash = \"0x…\" }`. Nodes with another block at this number are not used, and a chain with another block there is refused, however many nodes report it; see [nodes.md](nodes.md#which-chain-is-served)"),
    key("[network]", "checkpoint.hash", "none", "hash of that block"),
    key("[network]", "genesis", "built in for mainnet, Sepolia, Holesky and Hoodi", "genesis file of the nodes' chain, in the format of `chaingate import`. With `[integrity] state = \"prove\"`, it states the rules for `eth_call` and `eth_estimateGas`"),
    key("[network]", "unsupported_tags.safe", "none", "methods that refuse the tag `safe`. Other tags can be refused in the same way, under their names"),

    key("[listen]", "public", "", "address for callers"),
    key("[listen]", "operator", "", "address for `/health`, `/ready`, `/status` and `/metrics`, and for the admin API; see [callers.md](callers.md#admin-api)"),
    key("[listen]", "console", "", "address for the console, the web pages for developers and operators; `\"off\"` = none. If it is not set and the default address is in use, such as by another gateway, the console takes a free port; the log and the banner say which. It speaks HTTP; for other machines, put a proxy with TLS in front of it and set `[console] url`. A proxy in `trusted_proxies` reports the addresses of people in `X-Forwarded-For`"),
    key("[listen]", "admin_token_file", "`admin-token` in `data_dir`, created on the first start", "file with the token of the admin API: one line of 32 to 1,024 visible ASCII characters. Only its owner may be able to read it"),
    key("[listen]", "operator_hosts", "none", "host names that requests to the operator address may use, besides `localhost` and IP addresses. Others get 403"),
    key("[listen]", "trusted_proxies", "none", "addresses and networks of your proxies, such as `[\"10.0.0.0/8\"]`. They report the addresses of their callers, to which the limits per address then apply. These limits do not apply to the proxies themselves"),
    key("[listen]", "proxy_protocol", "", "whether connections from `trusted_proxies` start with a PROXY protocol header (version 1 or 2). Connections of callers without it are closed; the console takes addresses from `proxy_header` only"),
    key("[listen]", "proxy_header", "", "header to which `trusted_proxies` append the addresses of their callers: `x-forwarded-for` or `forwarded`. The last address that is not a trusted proxy is used"),
    key("[listen]", "workers", "one per core", "threads that serve connections"),
    key("[listen]", "tls_certificate", "", "PEM file with the certificate chain; needs `tls_key`"),
    key("[listen]", "tls_key", "", "PEM file with the private key of the certificate"),

    key("[console]", "url", "the address that it listens on", "address under which people reach the console, such as `https://console.example.com`. Requests under other host names than this one, `localhost` and IP addresses get 403. With `https`, cookies are sent over TLS only"),
    key("[console]", "public_url", "the address of `[listen] public`", "address under which callers reach the gateway, such as `https://rpc.example.com`, for the examples that the console and the commands show"),
    key("[console]", "sign_up", "", "who may create an account in the console: `invitation` (people with an invitation of an operator) or `open` (everybody)"),
    key("[console]", "sign_up_plan", "", "plan of accounts that people create by themselves, with `sign_up = \"open\"`"),

    key("[[key]]", "key", "required", "the API key, which callers put into the path: letters, digits, `-` and `_`. Not required with `key_hash`"),
    key("[[key]]", "key_hash", "", "`sha256:` and the SHA-256 hash of the key in hexadecimal, in the place of `key`, so that whoever reads the file does not know the key. `chaingate keys hash` prints it. Only for long random keys: short ones can be guessed from their hash"),
    key("[[key]]", "name", "`key-1`, `key-2`, …", "name of the key in the log and in usage reports"),
    key("[[key]]", "account", "an account of its own", "account of the key. Keys of one account share its plan and limits"),
    key("[[key]]", "plan", "", "plan of the account"),
    key("[[key]]", "secret", "", "secret that callers send as the password of HTTP Basic, with any user name"),
    key("[[key]]", "secret_required", "`true` with a `secret`", "whether requests without the secret are refused"),
    key("[[key]]", "jwt_public_keys", "", "PEM public keys (RSA, P-256, Ed25519) whose tokens are accepted (RS256, ES256, EdDSA)"),
    key("[[key]]", "jwt_required", "`true` with `jwt_public_keys`", "whether requests without `Authorization: Bearer` are refused"),
    key("[[key]]", "jwt_audience", "", "audience that the `aud` of a token must name"),
    key("[[key]]", "networks", "", "names of the networks that the key may be used for"),
    key("[[key]]", "origins", "", "web pages that may use the key: `https://app.example.com`, `*.example.com`, `localhost:3000`"),
    key("[[key]]", "user_agents", "", "texts, one of which must occur in `User-Agent`"),
    key("[[key]]", "addresses", "", "contracts that the key may query with calls, estimates, logs, storage, balances and code. Overrides of code and storage are refused. Blocks, transactions, receipts and `eth_getTransactionCount` are not restricted"),
    key("[[key]]", "methods", "", "methods that the key may call"),
    key("[[key]]", "show_node", "`false`", "whether replies to single calls name the node or partner that answered, in `Chaingate-Node`. Names may be host names, so it is for callers whom you trust with them"),
    key("[[key]]", "credits_per_second", "", "credits per second that the key may use, within the limits of its account"),
    key("[[key]]", "credits_per_day", "", "credits per day (UTC) that the key may use, within the limits of its account"),

    key("[store]", "url", "SQLite in `data_dir`", "where accounts, keys, users of the console, usage and the audit log are stored: `postgres://USER:PASSWORD@HOST:PORT/DATABASE`, which several gateways can share, or `sqlite:FILE`"),
    key("[store]", "copy_age_max_s", "", "how long accounts and keys are used without the store, because keys may have been revoked meanwhile: a gateway does not start with a local copy that is older, and one that has not followed the store for so long is not ready (it still serves). See [operation.md](operation.md#without-the-store)"),

    key("[plans.NAME]", "credits_per_second", "the plan's", "credits per second that an account may use"),
    key("[plans.NAME]", "credits_per_day", "the plan's", "credits per day (UTC) that an account may use"),
    key("[plans.NAME]", "keys_max", "the plan's", "keys of one account. The store has at most 10,000 valid keys of an account in any case"),
    key("[plans.NAME]", "failover", "the plan's", "whether a partner may answer during an outage"),

    key("[methods]", "failover", "the two methods marked in [methods.md](methods.md)", "methods that a partner may answer"),
    key("[methods]", "eth_call_requires_from", "", "whether `eth_call` without `from` is refused"),

    key("[shared]", "redis_url", "none", "Redis over which several gateways share the limits per second of accounts and keys, such as `redis://127.0.0.1:6379/0`, or `rediss://` for TLS; see [limits.md](limits.md). Without it, each gateway counts for itself"),

    key("[limits]", "body_bytes_max", "", "bytes of a request body, before and after decompression"),
    key("[limits]", "batch_calls_max", "", "calls in one batch"),
    key("[limits]", "batch_reply_bytes_max", "", "bytes of all replies of one batch together"),
    key("[limits]", "calls_in_flight_max", "", "calls in progress, over all accounts. One account may have at most half of them"),
    key("[limits]", "connections_max", "", "open connections. When all are in use, a new connection replaces the oldest one that has sent no valid key, or an idle one of the accounts with most connections. Only 32 connections of each of the 8 accounts with most are searched; if none of them is idle, it replaces the oldest connection of an account that has more than half of all, or gets 503"),
    key("[limits]", "connections_per_address_max", "", "open connections from one IPv4 address or IPv6 /64 network"),
    key("[limits]", "unauthenticated_per_second_max", "", "requests per second from one such address that have no valid key, or are refused before the key is checked (unknown path, method other than POST, content type, declared length). Further ones get 429"),
    key("[limits]", "address_limits_exempt", "`[\"127.0.0.0/8\", \"::1\"]`", "addresses and networks to which the two limits above do not apply"),
    key("[limits]", "requests_per_connection_max", "", "requests after which a connection is closed, so that load balancers can spread the load again"),
    key("[limits]", "first_byte_timeout_ms", "", "time until a new connection must send its first byte. Everything until the end of its first head, with the PROXY header and the TLS handshake, may take as long as the larger of this and `header_timeout_ms`"),
    key("[limits]", "header_timeout_ms", "", "time for the head of a request"),
    key("[limits]", "body_timeout_ms", "", "time for the body of a request"),
    key("[limits]", "write_timeout_ms", "", "time over which the reading speed of a caller is measured. Callers that read a reply too slowly for this long are disconnected"),
    key("[limits]", "read_rate_min_bytes", "", "bytes per second that a caller must read while a reply waits for it"),
    key("[limits]", "keep_alive_timeout_ms", "", "time that a connection may be idle between requests"),
    key("[limits]", "drain_delay_ms", "", "time after SIGTERM during which calls are still answered while `/ready` is 503. Set it above the health check interval of your load balancer"),
    key("[limits]", "drain_timeout_ms", "", "time for running calls after that"),
    key("[limits]", "memory_bytes_max", "", "bytes of request bodies and replies in memory, over all accounts. One account can use about half: it never gets more than is still free. Requests above that get `over capacity`. Bodies and replies below 16 KiB are not counted, up to 32 KiB per connection. On HTTP/2, everything above these 32 KiB is counted from its first byte, and so are heads and 10 KiB per request"),
    key("[limits]", "h2_streams_max", "", "requests in progress on one HTTP/2 connection"),
    key("[limits]", "log_params_max", "", "addresses and topics in one filter of `eth_getLogs`"),
    key("[limits]", "log_results_max", "", "logs in one result"),
    key("[limits]", "log_timeout_ms", "", "time for a log query"),
    key("[limits]", "log_blocks_max", "", "blocks that one log query may span"),
    key("[limits]", "call_timeout_ms", "", "time for `eth_call` and `eth_estimateGas`, and on an embedded chain also for blocks, receipts and fees"),
    key("[limits]", "call_gas_multiple", "", "gas of a call, as a multiple of the gas limit of the newest block"),
    key("[limits]", "pool_threads", "one per core", "threads for the heavy calls of one account (logs, calls, fees, blocks, receipts). There are at most eight times as many for all accounts, which take turns if that is not enough"),
    key("[limits]", "pool_queue_max", "", "calls that may wait for such a thread, over all accounts. One account may have at most half of them"),

    key("[access_log]", "calls", "", "which calls have a line: `off`, `errors`, `sampled` (a share of all) or `all`; see [operation.md](operation.md#access-log)"),
    key("[access_log]", "sample_ratio", "", "share of the calls that have a line, with `calls = \"sampled\"`: a number from 0 to 1"),
    key("[access_log]", "file", "standard output", "file to which the lines are appended. Its directory must exist. A file that something else has moved or removed is made again"),
    key("[access_log]", "file_bytes_max", "", "bytes of the file. A full one gets the number 1 behind its name, and the older ones move up"),
    key("[access_log]", "files_max", "", "files that are kept, with the one that is written; at most 1,000"),

    key("[usage]", "spool_bytes_max", "", "bytes of usage in `data_dir` that may wait for the store. When there are more, usage waits in memory, and is lost when that is full, too; see [usage.md](usage.md#when-the-store-is-down)"),
    key("[usage]", "minutes_kept_days", "", "days for which usage by minute is kept"),
    key("[usage]", "hours_kept_days", "", "days for which usage by hour is kept"),

    key("[[node]]", "url", "required", "URL of the node, `http://` or `https://`; it may contain credentials"),
    key("[[node]]", "name", "host and port", "name of the node in metrics and the log"),
    key("[[node]]", "ws_url", "none", "WebSocket URL (`ws://` or `wss://`) at which the node pushes new heads"),
    key("[[node]]", "headers", "none", "headers to send with every request, as `[\"Name: value\"]`"),
    key("[[node]]", "http2", "", "use HTTP/2 without negotiation. With `https://` it is negotiated anyway"),
    key("[[partner]]", "url", "required", "URL of a provider to ask when no node can answer"),
    key("[[partner]]", "methods", "all of `[methods] failover`", "methods of `[methods] failover` for which this partner may be asked"),
    key("[[partner]]", "calls_per_second", "", "calls per second to this partner"),
    key("[[partner]]", "calls_per_day", "", "calls per day (UTC) to this partner"),
    key("[[partner]]", "name", "host and port", "name of the partner in metrics and the log"),
    key("[[partner]]", "headers", "none", "headers to send with every request, as `[\"Name: value\"]`"),
    key("[[partner]]", "http2", "", "use HTTP/2 without negotiation"),

    key("[pool]", "quorum", "a majority of the `[[node]]` entries, up or not", "nodes that must agree on what no hash proves: the head, `safe` and `finalized`, which block has an old number, that a transaction does not exist; see [nodes.md](nodes.md#the-quorum)"),
    key("[pool]", "call_timeout_ms", "", "time for a call over all nodes that are asked. `log_timeout_ms` and `call_timeout_ms` of `[limits]` apply to logs and simulations"),
    key("[pool]", "poll_interval_ms", "half of the block time, from 0.1 to 4 s", "time between two polls of a node's head"),
    key("[pool]", "reply_memory_bytes", "", "memory for replies of nodes while they are read, decompressed and checked; at least 1 MiB. One node may use half of it, with five or six nodes a third, with more a quarter, and all of it if it is the only node. A reply that does not fit waits; then another node is asked. See [nodes.md](nodes.md#known-limits)"),
    key("[pool]", "head_stall_ms", "ten times the block time, at least 30 s", "time without a new head after which `/ready` is 503; 0 switches that off. Nodes that mine when they are told to (anvil, Hardhat, Ganache) have no such limit"),
    key("[pool]", "rollback_after_ms", "two block times, at least 1 s", "how long the heads of a quorum of the nodes must be blocks below ours until we go back to them"),

    key("[cache]", "enabled", "", "whether answers, proven blocks and proven state are cached"),
    key("[cache]", "bytes_max", "", "bytes of memory for cached answers"),
    key("[cache]", "proven_bytes_max", "", "bytes of memory for proven blocks of the nodes"),
    key("[cache]", "state_bytes_max", "", "bytes of memory for proven accounts, storage slots and code, with `[integrity] state = \"prove\"`"),

    key("[follow]", "mode", "`\"blocks\"` where blocks are proven, else `\"off\"`", "what the gateway does with new blocks of the nodes: `off` (nothing), `blocks` (it stores proven blocks in `data_dir` and serves them without a node) or `full` (it executes them and extends the archive in `data_dir`). See [Stored blocks](nodes.md#stored-blocks) and [An archive that follows the nodes](nodes.md#an-archive-that-follows-the-nodes)"),
    key("[follow]", "blocks_max", "", "with `blocks`, number of blocks to store; the oldest ones are deleted"),
    key("[follow]", "headers_max", "", "with `blocks`, number of headers to store for log queries about old blocks, at about 350 bytes each"),
    key("[follow]", "from", "the head at the first start", "with `blocks`, number of the lowest block to store, or `\"earliest\"`. Older blocks are fetched in the background"),

    key("[integrity]", "mode", "", "how answers about blocks are built: from proven blocks (`prove`), or from what a node returns (`off`); see [nodes.md](nodes.md#block-data)"),
    key("[integrity]", "confirmed_for_ms", "", "how long an answer that a quorum of the nodes has confirmed, and nothing proves, is used before the nodes are asked again: state, receipts that do not exist, and which block has an old number. See [nodes.md](nodes.md#what-is-asked-again)"),
    key("[integrity]", "state", "`confirm` with three or more nodes, else `trust`", "how storage, balances, nonces, code, calls and estimates of nodes are verified: `prove` (with proofs against the state root of the block), `confirm` (a quorum of the configured nodes must return the same answer) or `trust` (not at all). With `prove`, calls run in the gateway, and what no node can prove is confirmed. See [nodes.md](nodes.md#state)"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_a_description_and_every_description_a_key() {
        let mut read: Vec<_> = read().into_iter().map(|known| known.path).collect();
        let mut described: Vec<_> = KEY_DOCS.iter().map(KeyDoc::path).collect();
        read.sort();
        read.dedup();
        described.sort();
        assert_eq!(read, described);
    }
}
