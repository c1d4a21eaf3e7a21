//! The gateway over real sockets: one module per story, each row of the wire's rules named by a test.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

#[path = "stories/gateway.rs"]
mod gateway_under_test; // a gateway over a chain of eleven blocks
#[path = "stories/signing.rs"]
mod signing; // tokens as callers make them
#[path = "stories/demo.rs"]
mod demo; // a gateway over a real archive
#[path = "stories/demo_gateway.rs"]
mod demo_gateway; // a gateway without configuration
#[path = "stories/process.rs"]
mod process; // the program itself

#[path = "stories/access_log.rs"]
mod access_log; // a line for each call
#[path = "stories/accounts.rs"]
mod accounts; // accounts and keys from the command line
#[path = "stories/admin.rs"]
mod admin; // the admin API
#[path = "stories/addresses.rs"]
mod addresses; // limits of one address, and addresses that proxies report
#[path = "stories/alloy_client.rs"]
mod alloy_client; // alloy's provider
#[path = "stories/backup.rs"]
mod backup; // backups, restoring them, and damaged files
#[path = "stories/broken_log.rs"]
mod broken_log; // a log that nobody reads, or that cannot be written
#[path = "stories/calls.rs"]
mod calls; // JSON-RPC calls
#[path = "stories/compression.rs"]
mod compression; // smaller replies, compressed bodies, bombs
#[path = "stories/disk.rs"]
mod disk; // a disk that is full
#[path = "stories/documented.rs"]
mod documented; // answers have the shape that openrpc.json gives them
#[path = "stories/evm.rs"]
mod evm; // calls and estimates on the demo chain
#[path = "stories/corpora.rs"]
mod corpora; // recorded exchanges on recorded chains
#[path = "stories/accepted.rs"]
mod accepted; // openrpc.json accepts what the gateway accepts
#[path = "stories/idle_connections.rs"]
mod idle_connections; // ten thousand connections
#[path = "stories/files.rs"]
mod files; // too few file descriptors
#[path = "stories/flood.rs"]
mod flood; // loops in the EVM
#[path = "stories/handover.rs"]
mod handover; // SIGTERM under load
#[path = "stories/take_over.rs"]
mod take_over; // another process takes over under load
#[path = "stories/steady_load.rs"]
mod steady_load; // calls at a fixed rate, none of which may be lost
#[path = "stories/heavy.rs"]
mod heavy; // the pool, shared answers, deadlines, panics
#[path = "stories/http.rs"]
mod http; // paths, statuses, headers
#[path = "stories/http2.rs"]
mod http2; // prior knowledge
#[path = "stories/http2_attacks.rs"]
mod http2_attacks; // silence, callers that do not read, floods
#[path = "stories/http2_memory.rs"]
mod http2_memory; // small bodies and replies, many on one connection
#[path = "stories/import.rs"]
mod import; // `chaingate import` as a user meets it
#[path = "stories/reload.rs"]
mod reload; // the configuration file is read again
#[path = "stories/keys.rs"]
mod keys; // requests that a key's settings refuse
#[path = "stories/key_import.rs"]
mod key_import; // keys that callers have already
#[path = "stories/lookups.rs"]
mod lookups; // on the demo chain: logs, receipts, transactions, uncles, raw records
#[path = "stories/layers.rs"]
mod layers; // which module may import which
#[path = "stories/leaks.rs"]
mod leaks; // facts that the log tells, and secrets that it must not
#[path = "stories/console.rs"]
mod console; // the console, from the link on the terminal to a key that works
#[path = "stories/memory.rs"]
mod memory; // attacks on memory
#[path = "stories/metrics.rs"]
mod metrics; // the exposition format, and how many series there are
#[path = "stories/openrpc.rs"]
mod openrpc; // results against the published schemas
#[path = "stories/operator.rs"]
mod operator; // /health, /ready, /metrics
#[path = "stories/panics.rs"]
mod panics; // panics on the way of a request
#[path = "stories/plans.rs"]
mod plans; // throughput and days
#[path = "stories/pool.rs"]
mod pool; // nodes instead of an embedded chain
#[path = "stories/probe.rs"]
mod probe; // `check --probe` in front of what does not work
#[path = "stories/request_id.rs"]
mod request_id; // every reply has the id that the log has
#[path = "stories/stored_callers.rs"]
mod stored_callers; // accounts and keys of a store, and its outages
#[path = "stories/secrecy.rs"]
mod secrecy; // secrets that never reach a log
#[path = "stories/sharing.rs"]
mod sharing; // threads and memory between accounts
#[path = "stories/shared_limits.rs"]
mod shared_limits; // limits over many gateways
#[path = "stories/service.rs"]
mod service; // support for service managers, containers and packages
#[path = "stories/settings.rs"]
mod settings; // every documented key has an effect
#[path = "stories/shutdown.rs"]
mod shutdown; // drain
#[path = "stories/signal.rs"]
mod signal; // SIGTERM
#[path = "stories/slow.rs"]
mod slow; // callers that take their time
#[path = "stories/smuggling.rs"]
mod smuggling; // requests that end in two places
#[path = "stories/snapshots.rs"]
mod snapshots; // one chain per request
#[path = "stories/startup.rs"]
mod startup; // mistakes that keep the program from starting
#[path = "stories/supervision.rs"]
mod supervision; // tasks beside requests that panic
#[path = "stories/tls.rs"]
mod tls; // encrypted, both protocols
#[path = "stories/tour.rs"]
mod tour; // every command of the tour
#[path = "stories/type_names.rs"]
mod type_names; // one meaning for each type name
#[path = "stories/unread.rs"]
mod unread; // large answers that nobody reads
#[path = "stories/usage.rs"]
mod usage; // the ledger of usage
#[path = "stories/values.rs"]
mod values; // values and parameters
