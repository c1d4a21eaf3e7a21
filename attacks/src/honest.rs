//! Honest load: calls arrive at a fixed rate, whether the gateway keeps up or not, and every one must be answered.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use crate::attack::calls;
use crate::gateway::HONEST_KEY;
use crate::http1;

pub(crate) const CALLS_PER_SECOND: u32 = 100;

/// Enough for 100 calls a second even when each takes a tenth of a second.
pub(crate) const CONNECTIONS: usize = 16;

/// A call that takes longer counts as an error.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub(crate) struct HonestFigures {
    /// Times from the moment that a call was due, in ascending order.
    latencies: Vec<Duration>,
    /// Number of failed calls by error.
    pub(crate) errors: BTreeMap<String, u64>,
}

impl HonestFigures {
    pub(crate) fn sent(&self) -> u64 {
        self.latencies.len() as u64 + self.error_count()
    }

    pub(crate) fn error_count(&self) -> u64 {
        self.errors.values().sum()
    }

    /// The latency that `share` of the answered calls do not exceed.
    pub(crate) fn percentile(&self, share: f64) -> Duration {
        let last = self.latencies.len().saturating_sub(1);
        self.latencies.get((last as f64 * share).round() as usize).copied().unwrap_or_default()
    }
}

/// Callers that keep their connections, or open a new one for each call.
#[derive(Clone, Debug)]
pub(crate) struct HonestCallers {
    target: SocketAddr,
    fresh: bool,
    /// Used in turn, so that none idles for long.
    idle: Arc<Mutex<VecDeque<TcpStream>>>,
    places: Arc<Semaphore>,
}

impl HonestCallers {
    pub(crate) fn new(target: SocketAddr, fresh: bool) -> Self {
        Self { target, fresh, idle: Arc::default(), places: Arc::new(Semaphore::new(CONNECTIONS)) }
    }

    /// Opens all kept connections, so that none has to be opened during an attack.
    pub(crate) async fn connect(&self) -> io::Result<()> {
        for _ in 0..CONNECTIONS {
            let stream = TcpStream::connect(self.target).await?;
            stream.set_nodelay(true)?;
            self.idle.lock().push_back(stream);
        }
        Ok(())
    }

    /// Calls for this duration, and returns the figures.
    pub(crate) async fn call_for(&self, duration: Duration) -> HonestFigures {
        let (start, mut calls) = (Instant::now(), JoinSet::new());
        let count = (duration.as_secs_f64() * f64::from(CALLS_PER_SECOND)) as u32;
        for number in 0..count {
            let due = start + Duration::from_secs(1) * number / CALLS_PER_SECOND;
            sleep_until(due).await;
            let caller = self.clone();
            calls.spawn(async move {
                let outcome = timeout(PATIENCE, caller.call(number)).await;
                outcome.unwrap_or_else(|_| Err("no answer in time".to_owned())).map(|()| due.elapsed())
            });
        }
        let mut figures = HonestFigures::default();
        while let Some(ended) = calls.join_next().await {
            match ended.unwrap_or_else(|error| Err(error.to_string())) {
                Ok(latency) => figures.latencies.push(latency),
                Err(error) => *figures.errors.entry(error).or_default() += 1,
            }
        }
        figures.latencies.sort_unstable();
        figures
    }

    async fn call(&self, number: u32) -> Result<(), String> {
        let _place = self.places.acquire().await.map_err(|error| error.to_string())?;
        let kept = if self.fresh { None } else { self.idle.lock().pop_front() };
        let mut stream = match kept {
            Some(stream) => stream,
            None => TcpStream::connect(self.target).await.map_err(|error| format!("connecting: {error}"))?,
        };
        let request = http1::post(&format!("/v3/{HONEST_KEY}"), "", question(number).as_bytes());
        stream.write_all(&request).await.map_err(|error| format!("sending: {error}"))?;
        let reply = http1::read_reply(&mut stream).await.map_err(|error| format!("reading: {error}"))?;
        if !self.fresh && !reply.is_last() {
            self.idle.lock().push_back(stream);
        }
        if reply.status == 200 && reply.body.windows(9).any(|window| window == b"\"result\":") {
            return Ok(());
        }
        let text: String = String::from_utf8_lossy(&reply.body).chars().take(120).collect();
        Err(format!("{} {text}", reply.status))
    }
}

/// Mostly cheap calls, and some of each kind that runs in the pool.
fn question(number: u32) -> String {
    match number % 10 {
        3 | 7 => calls::short_execution(number),
        9 => calls::one_block_of_logs(number),
        _ => calls::balance(),
    }
}
