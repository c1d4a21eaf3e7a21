//! Requests that arrive while the gateway stops.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::calls;
use crate::gateway::{HONEST_KEY, LogTarget};
use crate::http1;
use crate::report::AttackReport;
use crate::run::{AttackOptions, runtime};

/// As many as lost 344 requests on kept connections and 128 on new ones in eight runs.
const CALLERS: usize = 64;
const RUNS_MAX: u64 = 8;

/// How long callers call before the signal.
const BEFORE: Duration = Duration::from_millis(500);

/// Between two requests of a caller.
const THINKING: Duration = Duration::from_millis(5);

/// A request without an answer for so long is lost.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, Default)]
struct LostRequests {
    answered: u64,
    on_kept_connections: u64,
    on_new_connections: u64,
}

pub(super) fn sigterm(options: &AttackOptions) -> io::Result<AttackReport> {
    let mut report = AttackReport { exit: "exit status: 0".to_owned(), ..Default::default() };
    let runtime = runtime()?;
    let runs = (options.duration.as_secs() / 3).clamp(1, RUNS_MAX);
    let mut total = LostRequests::default();
    for _ in 0..runs {
        let mut gateway = options.start(LogTarget::File, "info")?;
        let over = Arc::new(AtomicBool::new(false));
        let mut callers = JoinSet::new();
        for _ in 0..CALLERS {
            callers.spawn_on(call_until_refused(gateway.public, Arc::clone(&over)), runtime.handle());
        }
        std::thread::sleep(BEFORE);
        gateway.terminate()?;
        let exit = gateway.wait_for_end();
        over.store(true, Relaxed);
        report.require(exit == "exit status: 0", || format!("the gateway ended with {exit}"));
        for lost in runtime.block_on(callers.join_all()) {
            total.answered += lost.answered;
            total.on_kept_connections += lost.on_kept_connections;
            total.on_new_connections += lost.on_new_connections;
        }
    }
    let LostRequests { answered, on_kept_connections: kept, on_new_connections: new } = total;
    report.notes.push(format!(
        "{runs} runs: {answered} answered, {kept} lost on kept connections, {new} on new ones"
    ));
    report
        .require(kept + new == 0, || format!("{kept} requests lost on kept connections, {new} on new ones"));
    Ok(report)
}

/// Calls on one connection as long as it is kept, then on the next, until none is accepted any more.
async fn call_until_refused(target: SocketAddr, over: Arc<AtomicBool>) -> LostRequests {
    let mut lost = LostRequests::default();
    let request = http1::post(&format!("/v3/{HONEST_KEY}"), "", calls::balance().as_bytes());
    while !over.load(Relaxed) {
        let Ok(mut stream) = TcpStream::connect(target).await else {
            sleep(THINKING).await;
            continue;
        };
        for number in 0_u64.. {
            let exchange = async {
                stream.write_all(&request).await?;
                http1::read_reply(&mut stream).await
            };
            match timeout(PATIENCE, exchange).await {
                Ok(Ok(reply)) => {
                    lost.answered += 1;
                    if reply.is_last() {
                        break;
                    }
                }
                _ if number == 0 => {
                    lost.on_new_connections += 1;
                    break;
                }
                _ => {
                    lost.on_kept_connections += 1;
                    break;
                }
            }
            sleep(THINKING).await;
        }
    }
    lost
}
