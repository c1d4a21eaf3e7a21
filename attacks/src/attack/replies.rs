//! Large replies that nobody reads, or that are read slowly.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::{Running, calls};
use crate::gateway::HOSTILE_KEY;
use crate::honest;
use crate::hostile::{Attacker, HostileConnection};
use crate::http1;
use crate::http2::{self, INITIAL_WINDOW_SIZE, RST_STREAM};
use crate::run::AttackContext;

const ZERO_WINDOW_CONNECTIONS: usize = 4;
const STREAMS: u32 = 100;
const NON_READERS: usize = 200;
const SLOW_READERS: usize = 8;
/// Rates at which they read: the slowest, twice and four times that.
const SLOW_RATES: usize = 3;

/// Connections to the operator's listener that this program has at most; they are counted, too.
const OPERATOR_CONNECTIONS: f64 = 2.0;

/// Before a cut connection is opened again.
pub(super) const PAUSE: Duration = Duration::from_millis(100);

/// Bytes per second of the slowest honest readers; others read up to four times as fast.
const SLOW_RATE: f64 = 25_000.0;

pub(super) fn path() -> String {
    format!("/v3/{HOSTILE_KEY}")
}

pub(super) fn h2_zero_window(context: AttackContext) -> Running {
    Box::pin(async move {
        let mut connections = JoinSet::new();
        for place in 0..context.options.scaled(ZERO_WINDOW_CONNECTIONS) {
            let attacker = context.attacker.clone();
            connections.spawn(async move {
                let first = place as u32 * 1_000_000;
                for round in 0.. {
                    let Ok(mut connection) = attacker.connect().await else {
                        sleep(PAUSE).await;
                        continue;
                    };
                    ask_without_window(&mut connection, first + round * STREAMS).await;
                    connection.was_cut();
                    sleep(PAUSE).await;
                }
            });
        }
        connections.join_all().await;
    })
}

/// Sends requests on all streams and acknowledges what must be, until the gateway ends the connection or all streams.
async fn ask_without_window(connection: &mut HostileConnection, first: u32) {
    let mut requests = http2::opening(&[(INITIAL_WINDOW_SIZE, 0)]);
    for stream in 0..STREAMS {
        requests.extend(http2::post(2 * stream + 1, &path(), calls::many_logs(first + stream).as_bytes()));
    }
    if connection.stream.write_all(&requests).await.is_err() {
        return;
    }
    let mut reset = 0;
    while let Ok(frame) = http2::read_frame(&mut connection.stream).await {
        reset += u32::from(frame.kind == RST_STREAM);
        if reset >= STREAMS {
            return;
        }
        let Some(acknowledgement) = frame.acknowledgement() else { continue };
        if connection.stream.write_all(&acknowledgement).await.is_err() {
            return;
        }
    }
}

pub(super) fn h1_non_readers(context: AttackContext) -> Running {
    Box::pin(async move {
        let (count, mut connections) = (context.options.scaled(NON_READERS), Vec::new());
        for number in 0..count {
            let Ok(connection) = context.attacker.connect_narrow().await else { continue };
            let mut connection = connection.without_record();
            // A connection whose call is refused ends at once and is not counted.
            let request =
                http1::post(&path(), "Connection: close\r\n", calls::many_logs(number as u32).as_bytes());
            if connection.stream.write_all(&request).await.is_ok() {
                connections.push(connection);
            }
        }
        let opened = Instant::now();
        // They do not read, so only the gateway's own count shows when they have been cut.
        let honest = honest::CONNECTIONS as f64;
        while context
            .metric("chaingate_connections_open")
            .is_none_or(|open| open > honest + OPERATOR_CONNECTIONS)
        {
            context.attacker.record_life(opened.elapsed(), 0);
            sleep(PAUSE).await;
        }
        context.attacker.record_life(opened.elapsed(), connections.len() as u64);
        sleep(context.ends.saturating_duration_since(Instant::now())).await;
    })
}

pub(super) fn slow_readers(context: AttackContext) -> Running {
    Box::pin(async move {
        let mut readers = JoinSet::new();
        // A short run reads faster, so that it can end; what the kernel buffers is as large as ever.
        let time = context.options.duration.mul_f64(0.7).as_secs_f64();
        for number in 0..context.options.scaled(SLOW_READERS).max(SLOW_RATES) {
            let attacker = context.attacker.clone();
            let rate = SLOW_RATE * (1 << (number % SLOW_RATES)) as f64;
            readers.spawn(async move { (rate, read_slowly(&attacker, number as u32, rate, time).await) });
        }
        while let Some(ended) = readers.join_next().await {
            let Ok((rate, outcome)) = ended else { continue };
            match outcome {
                Ok(bytes_per_second) => {
                    context.note(format!("a whole reply at {bytes_per_second:.0} bytes/s"));
                }
                Err(error) => context.exceeded(format!("a reader of {rate:.0} bytes/s or more {error}")),
            }
        }
    })
}

/// Reads a large reply in `time` at most, at the rate or faster. Gives the rate that it had.
async fn read_slowly(attacker: &Attacker, number: u32, rate: f64, time: f64) -> Result<f64, String> {
    let failed = |error: std::io::Error| format!("failed: {error}");
    let mut connection = attacker.connect_narrow().await.map_err(failed)?;
    let request = http1::post(&path(), "", calls::many_logs(number).as_bytes());
    connection.stream.write_all(&request).await.map_err(failed)?;
    let mut received = Vec::new();
    let total = loop {
        let head = String::from_utf8_lossy(&received).to_ascii_lowercase();
        if let Some((head, _)) = head.split_once("\r\n\r\n") {
            break head.len() + 4 + http1::length(head).ok_or("got a reply without a length")?;
        }
        if connection.stream.read_buf(&mut received).await.map_err(failed)? == 0 {
            return Err("got no reply".to_owned());
        }
    };
    if !received.starts_with(b"HTTP/1.1 200") {
        return Err(format!("got {}", String::from_utf8_lossy(&received[..received.len().min(15)])));
    }
    let (started, rate, first) = (Instant::now(), rate.max(total as f64 / time), received.len());
    let (mut read, mut buffer) = (first, vec![0; 16 << 10]);
    while read < total {
        let due = Duration::from_secs_f64((read - first) as f64 / rate);
        sleep(due.saturating_sub(started.elapsed())).await;
        let count = connection.stream.read(&mut buffer).await;
        let count = count.map_err(|error| format!("got {read} of {total} bytes: {error}"))?;
        if count == 0 {
            return Err(format!("got {read} of {total} bytes after {:.1?}", started.elapsed()));
        }
        read += count;
    }
    Ok((read - first) as f64 / started.elapsed().as_secs_f64())
}
