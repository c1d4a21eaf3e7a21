//! Callers of several gateways, who count every reply that they get.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

use crate::http1;

/// Connections to each gateway.
const CONNECTIONS: u32 = 8;

/// A call that takes longer counts as failed.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a caller waits before it connects again to a gateway that is gone.
const RECONNECT_PAUSE: Duration = Duration::from_millis(20);

const QUESTION: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}"#;

/// Counters of the replies that the callers of one gateway got.
#[derive(Debug, Default)]
struct CallCounters {
    answered: AtomicU64,
    refused: AtomicU64,
    /// Calls without a reply, or with one of another kind.
    failed: AtomicU64,
    /// Calls that found no connection to the gateway.
    unreachable: AtomicU64,
}

/// The values of [`CallCounters`] at one moment, or their growth over a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CallCounts {
    pub(super) answered: u64,
    pub(super) refused: u64,
    pub(super) failed: u64,
    pub(super) unreachable: u64,
}

impl CallCounts {
    pub(super) fn since(self, before: Self) -> Self {
        Self {
            answered: self.answered - before.answered,
            refused: self.refused - before.refused,
            failed: self.failed - before.failed,
            unreachable: self.unreachable - before.unreachable,
        }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            answered: self.answered + other.answered,
            refused: self.refused + other.refused,
            failed: self.failed + other.failed,
            unreachable: self.unreachable + other.unreachable,
        }
    }
}

/// One gateway as its callers see it. Its address changes when it is started again.
#[derive(Debug)]
struct Target {
    address: Mutex<SocketAddr>,
    counters: CallCounters,
}

/// Callers of all gateways with one key, until they are stopped.
#[derive(Debug)]
pub(super) struct CallLoad {
    targets: Vec<Arc<Target>>,
    stopping: Arc<AtomicBool>,
    callers: JoinSet<()>,
}

impl CallLoad {
    /// Starts callers that together make so many calls per second, spread evenly over the gateways.
    pub(super) fn start(addresses: &[SocketAddr], key: &str, calls_per_second: u32) -> Self {
        let request: Arc<[u8]> = http1::post(&format!("/v3/{key}"), "", QUESTION).into();
        let targets: Vec<_> = addresses
            .iter()
            .map(|address| {
                Arc::new(Target { address: Mutex::new(*address), counters: CallCounters::default() })
            })
            .collect();
        let connections = CONNECTIONS * u32::try_from(addresses.len()).unwrap_or(u32::MAX);
        let pause = Duration::from_secs(1) * connections / calls_per_second.max(1);
        let (stopping, mut callers) = (Arc::new(AtomicBool::new(false)), JoinSet::new());
        for target in &targets {
            for _ in 0..CONNECTIONS {
                let (target, request, stopping) =
                    (Arc::clone(target), Arc::clone(&request), Arc::clone(&stopping));
                callers.spawn(async move { target.call_until(&stopping, &request, pause).await });
            }
        }
        Self { targets, stopping, callers }
    }

    pub(super) fn set_address(&self, gateway: usize, address: SocketAddr) {
        *self.targets[gateway].address.lock() = address;
    }

    /// Returns the counts so far, one entry per gateway.
    pub(super) fn counts(&self) -> Vec<CallCounts> {
        self.targets.iter().map(|target| target.counters.now()).collect()
    }

    /// Returns the counts of all gateways so far, added up.
    pub(super) fn total(&self) -> CallCounts {
        self.counts().into_iter().fold(CallCounts::default(), CallCounts::plus)
    }

    /// Waits for this duration. Returns the calls counted meanwhile, and the time that really passed.
    pub(super) async fn count_for(&self, duration: Duration) -> (CallCounts, Duration) {
        let (before, started) = (self.total(), Instant::now());
        sleep(duration).await;
        (self.total().since(before), started.elapsed())
    }

    /// Stops after the calls that are under way, and returns the counts of each gateway.
    pub(super) async fn stop(mut self) -> Vec<CallCounts> {
        self.stopping.store(true, Relaxed);
        while self.callers.join_next().await.is_some() {}
        self.counts()
    }
}

impl CallCounters {
    fn now(&self) -> CallCounts {
        CallCounts {
            answered: self.answered.load(Relaxed),
            refused: self.refused.load(Relaxed),
            failed: self.failed.load(Relaxed),
            unreachable: self.unreachable.load(Relaxed),
        }
    }
}

impl Target {
    /// Calls at a fixed rate over one connection; calls that are late are made at once.
    async fn call_until(&self, stopping: &AtomicBool, request: &[u8], pause: Duration) {
        let mut connection = None;
        let mut ticks = interval(pause);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
        while !stopping.load(Relaxed) {
            ticks.tick().await;
            let stream = match connection.take() {
                Some(stream) => stream,
                None => {
                    let address = *self.address.lock();
                    let Ok(stream) = TcpStream::connect(address).await else {
                        self.counters.unreachable.fetch_add(1, Relaxed);
                        sleep(RECONNECT_PAUSE).await;
                        ticks.reset();
                        continue;
                    };
                    stream
                }
            };
            connection = self.call(stream, request).await;
        }
    }

    /// Makes one call and counts its reply. Gives the connection back if it can be used again.
    async fn call(&self, mut stream: TcpStream, request: &[u8]) -> Option<TcpStream> {
        let exchange = async {
            stream.write_all(request).await?;
            http1::read_reply(&mut stream).await
        };
        let reply = timeout(CALL_TIMEOUT, exchange).await;
        let counter = match &reply {
            Ok(Ok(reply)) if reply.status == 200 => &self.counters.answered,
            Ok(Ok(reply)) if reply.status == 429 => &self.counters.refused,
            _ => &self.counters.failed,
        };
        counter.fetch_add(1, Relaxed);
        reply.is_ok_and(|reply| reply.is_ok_and(|reply| !reply.is_last())).then_some(stream)
    }
}
