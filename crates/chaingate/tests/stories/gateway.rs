//! A gateway over a chain of eleven blocks that answers by rule, or over the demo chain.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use alloy_primitives::{B256, Bytes};
use answers::{ArchiveSource, Sources};
use chaingate::config::Config;
use gateway::{GatewayState, Server};
use methods::{
    BlockPart, BlockQuery, BlockRef, GatewayQuery, LogBlocks, LogsQuery, Query, SimulationKind,
    SimulationQuery, StateQuery, StateValue,
};
use resources::Supervisor;
use serde_json::Value;
use sources::{AnswerBudget, ChainView, Failure, Provenance, SnapshotSource, Source};
use tempfile::TempDir;
use testkit::http::{ReceivedReply, post};

pub(crate) const HEAD: u64 = 10;

/// A gateway that is stopped when the test is over.
pub(crate) struct Gateway {
    server: Option<Server>,
    pub(crate) chain: Arc<Chain>,
    _folder: Option<TempDir>,
    pub(crate) public: SocketAddr,
    pub(crate) operator: SocketAddr,
    pub(crate) supervisor: Supervisor,
}

impl Gateway {
    pub(crate) fn start() -> Self {
        Self::with("", "")
    }

    /// `limits` are lines of `[limits]`, `rest` is any other part of a configuration.
    pub(crate) fn with(limits: &str, rest: &str) -> Self {
        Self::configured(&config("", limits, rest))
    }

    /// `listen` are lines of `[listen]`.
    pub(crate) fn listening(listen: &str) -> Self {
        Self::configured(&config(listen, "", ""))
    }

    /// `listen` are lines of `[listen]`, `limits` lines of `[limits]`.
    pub(crate) fn listening_with(listen: &str, limits: &str) -> Self {
        Self::configured(&config(listen, limits, ""))
    }

    pub(crate) fn configured(config: &Config) -> Self {
        let chain = Arc::new(Chain::default());
        Self::over(config, Arc::clone(&chain), chain, None)
    }

    /// Starts a gateway over the embedded archive with the demo chain; `limits` are lines of `[limits]`.
    pub(crate) fn on_demo_chain(limits: &str) -> Self {
        Self::on_demo_chain_configured(&config("", limits, ""))
    }

    pub(crate) fn on_demo_chain_configured(config: &Config) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let archive = demo::open(folder.path(), |_, _| ()).unwrap();
        let source = ArchiveSource::new(Arc::new(archive), config.limits.answer.clone());
        Self::over(config, Arc::new(source), Arc::default(), Some(folder))
    }

    fn over(config: &Config, source: impl Into<Sources>, chain: Arc<Chain>, folder: Option<TempDir>) -> Self {
        let supervisor = Supervisor::default();
        let state = Arc::new(config.gateway(source, &supervisor).unwrap());
        let server = Server::start(&config.listen, state).unwrap();
        let (public, operator) = (server.public(), server.operator());
        Self { server: Some(server), chain, _folder: folder, public, operator, supervisor }
    }

    /// Starts a gateway over a chain that changes while it is served.
    pub(crate) fn over_growing(source: impl SnapshotSource) -> Self {
        Self::over(&config("", "", ""), Sources::Embedded(Arc::new(source)), Arc::default(), None)
    }

    /// Posts a body under the key `demo`.
    pub(crate) fn post(&self, body: impl AsRef<[u8]>) -> ReceivedReply {
        post(self.public, "/v3/demo", body)
    }

    pub(crate) fn call(&self, method: &str, params: &str) -> Value {
        self.post(call(method, params)).json()
    }

    /// The error of a call as `code message`.
    pub(crate) fn error(&self, method: &str, params: &str) -> String {
        let reply = self.post(call(method, params));
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.error()
    }

    pub(crate) fn stop(&mut self) {
        if let Some(server) = self.server.take() {
            server.drain();
        }
    }
}

pub(crate) fn config(listen: &str, limits: &str, rest: &str) -> Config {
    let addresses = "public = \"127.0.0.1:0\"\noperator = \"127.0.0.1:0\"\nworkers = 2";
    let text = format!("[listen]\n{addresses}\n{listen}\n[limits]\n{limits}\n{rest}");
    let mut config = Config::parse(&text).unwrap_or_else(|errors| panic!("{errors}"));
    if !text.contains("drain_timeout_ms") {
        config.limits.listen.drain_timeout = Duration::from_millis(200);
    }
    if !text.contains("drain_delay_ms") {
        config.limits.listen.drain_delay = Duration::ZERO;
    }
    config
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The state that connections share, without sockets.
pub(crate) fn state(limits: &str) -> Arc<GatewayState> {
    let config = Config::parse(&format!("[limits]\n{limits}")).unwrap_or_else(|errors| panic!("{errors}"));
    Arc::new(config.gateway(Arc::new(Chain::default()), &Supervisor::default()).unwrap())
}

pub(crate) fn call(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#)
}

pub(crate) fn chain_id(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"eth_chainId"}}"#)
}

/// The block of a number: its hash is the number.
pub(crate) fn block(number: u64) -> BlockRef {
    BlockRef { number, hash: B256::left_padding_from(&number.to_be_bytes()) }
}

/// Blocks 0 to 10. The first byte of a call's data says what happens to it.
#[derive(Debug, Default)]
pub(crate) struct Chain {
    pub(crate) executions: AtomicUsize,
    pub(crate) stopped: AtomicUsize,
}

pub(crate) const REVERT: u8 = 1;
pub(crate) const HANG: u8 = 2;
pub(crate) const PANIC: u8 = 3;
pub(crate) const SLOW: u8 = 4;
pub(crate) const UNAVAILABLE: u8 = 5;
pub(crate) const SLOWER: u8 = 6;

/// A block for which the chain panics.
pub(crate) const PANICKING: u64 = 9;

/// A block that the chain cannot read.
pub(crate) const UNREADABLE: u64 = 6;

impl ChainView for Chain {
    fn head(&self) -> BlockRef {
        block(HEAD)
    }

    fn finalized(&self) -> Option<BlockRef> {
        Some(block(8))
    }

    fn safe(&self) -> Option<BlockRef> {
        None
    }

    fn block_by_number(&self, number: u64) -> Result<Option<BlockRef>, Failure> {
        match number {
            UNREADABLE => Err(Failure::Broken("a disk that fails".to_owned())),
            PANICKING => panic!("a chain that panics"),
            _ => Ok((number <= HEAD).then(|| block(number))),
        }
    }

    fn block_by_hash(&self, hash: B256) -> Result<Option<BlockRef>, Failure> {
        match (0..=HEAD).map(block).find(|block| block.hash == hash) {
            Some(BlockRef { number: UNREADABLE, .. }) => Err(Failure::Broken("a disk that fails".to_owned())),
            found => Ok(found),
        }
    }
}

impl Source for Chain {
    fn answer(
        &self,
        query: &Query<BlockRef>,
        budget: &AnswerBudget,
        out: &mut Vec<u8>,
    ) -> Result<Provenance, Failure> {
        let (result, at) = match query {
            Query::Gateway(GatewayQuery::ChainId) => ("\"0x539\"".to_owned(), None),
            Query::Gateway(GatewayQuery::BlockNumber) => (format!("\"{HEAD:#x}\""), Some(block(HEAD))),
            Query::State(StateQuery { at, value, .. }) => {
                let result = match value {
                    StateValue::Storage { position } => format!("\"{position}\""),
                    StateValue::Balance => format!("\"{:#x}\"", at.number),
                    StateValue::Code => format!("\"0x{}\"", "6001".repeat(8 << 10)),
                    StateValue::TransactionCount => "null".to_owned(),
                };
                (result, Some(*at))
            }
            Query::Block(BlockQuery { block, part: BlockPart::Whole { .. } | BlockPart::Receipts }) => {
                (format!("{{\"number\":\"{:#x}\"}}", block.number), Some(*block))
            }
            Query::RawTransactions(block) => ("[{}]".to_owned(), Some(*block)),
            Query::Logs(LogsQuery { blocks: LogBlocks::Range { from, to }, .. }) => {
                (format!("[\"{}-{}\"]", from.number, to.number), Some(*to))
            }
            Query::Logs(LogsQuery { blocks: LogBlocks::One(block), .. }) => {
                (format!("[\"{}\"]", block.number), Some(*block))
            }
            Query::Simulation(SimulationQuery { kind: SimulationKind::Call, message, at }) => {
                let data = message.request.input.input().cloned().unwrap_or_default();
                (self.run(&data, budget)?, Some(*at))
            }
            Query::Gateway(_)
            | Query::Fees(_)
            | Query::Simulation(_)
            | Query::Block(_)
            | Query::Transaction(_) => ("null".to_owned(), None),
        };
        out.extend_from_slice(result.as_bytes());
        Ok(Provenance::archive(at))
    }
}

impl Chain {
    fn run(&self, data: &Bytes, budget: &AnswerBudget) -> Result<String, Failure> {
        if budget.is_brief() && matches!(data.first(), Some(&SLOW | &SLOWER | &HANG)) {
            return Err(Failure::CallTimeout(Duration::ZERO));
        }
        self.executions.fetch_add(1, SeqCst);
        match data.first() {
            Some(&REVERT) => return Err(Failure::Reverted { data: data.slice(1..) }),
            Some(&PANIC) => panic!("a source that panics"),
            Some(&UNAVAILABLE) => return Err(Failure::Unavailable),
            Some(&SLOW) => thread::sleep(Duration::from_millis(300)),
            Some(&SLOWER) => thread::sleep(Duration::from_secs(3)),
            Some(&HANG) => {
                while !budget.stopped() {
                    thread::sleep(Duration::from_millis(1));
                }
                self.stopped.fetch_add(1, SeqCst);
                return Err(Failure::CallTimeout(Duration::from_secs(5)));
            }
            _ => {}
        }
        Ok(format!("\"{data}\""))
    }
}
