//! Places for connections, and the descriptors that they take.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::{Running, calls};
use crate::gateway::HONEST_KEY;
use crate::hostile::Attacker;
use crate::http1;
use crate::run::AttackContext;

/// As many as the gateway allows at once by default.
const ONE_ADDRESS_CONNECTIONS: usize = 10_000;

/// More than the gateway may have descriptors in this attack.
const OPERATOR_CONNECTIONS: usize = 1_500;
const DESCRIPTOR_CONNECTIONS: usize = 2_000;

/// Before a silent connection that was cut or refused is opened again: thousands of them would otherwise measure how fast
/// the kernel opens connections.
const REOPEN_AFTER: Duration = Duration::from_secs(1);

/// Lines of the log about descriptors that have run out; a hundred were written in three seconds.
const EMFILE_LINES_MAX: usize = 10;

/// After the attack, a new connection is answered within this time.
const RECOVERY_MAX: Duration = Duration::from_secs(1);

pub(super) fn one_address(context: AttackContext) -> Running {
    Box::pin(async move {
        hold_silent(&context.attacker, context.options.scaled(ONE_ADDRESS_CONNECTIONS)).join_all().await;
    })
}

/// Keeps so many connections open that send nothing; one that is cut is opened again.
fn hold_silent(attacker: &Attacker, count: usize) -> JoinSet<()> {
    let mut connections = JoinSet::new();
    for _ in 0..count {
        let attacker = attacker.clone();
        connections.spawn(async move {
            loop {
                if let Ok(mut connection) = attacker.connect().await {
                    let mut reply = [0; 512];
                    while connection.stream.read(&mut reply).await.is_ok_and(|count| count > 0) {}
                    connection.was_cut();
                }
                sleep(REOPEN_AFTER).await;
            }
        });
    }
    connections
}

pub(super) fn operator_connections(context: AttackContext) -> Running {
    Box::pin(async move {
        check_operator_pages(&context);
        let operator = context.attacker.at(context.gateway.lock().operator);
        hold_silent(&operator, OPERATOR_CONNECTIONS).join_all().await;
    })
}

/// A page that a browser was tricked into asking for is refused, and none is taken for something else than it is.
fn check_operator_pages(context: &AttackContext) {
    let gateway = context.gateway.lock();
    let status = |page: &str| page.split(' ').nth(1).unwrap_or_default().to_owned();
    let foreign = gateway.operator_page_as("/metrics", "attacker.example").unwrap_or_default();
    let own = gateway.operator_page("/metrics").unwrap_or_default();
    drop(gateway);
    if status(&foreign) == "200" {
        context.exceeded("the operator's listener answers a foreign Host".to_owned());
    }
    if status(&own) != "200" {
        context.exceeded(format!("the operator's listener answers {} to its own Host", status(&own)));
    }
    if !own.to_ascii_lowercase().contains("x-content-type-options: nosniff") {
        context.exceeded("the operator's pages lack nosniff".to_owned());
    }
}

pub(super) fn emfile(context: AttackContext) -> Running {
    Box::pin(async move {
        let connections = hold_silent(&context.attacker, DESCRIPTOR_CONNECTIONS);
        // The attack ends early, so that the recovery is seen while honest load goes on.
        sleep(context.options.duration.mul_f64(0.7)).await;
        drop(connections);
        let released = Instant::now();
        while let Err(error) =
            timeout(RECOVERY_MAX, one_call(&context)).await.unwrap_or_else(|_| Err("no answer".into()))
        {
            if context.is_over() {
                return context.exceeded(format!("new connections fail after the attack: {error}"));
            }
            sleep(Duration::from_millis(20)).await;
        }
        let recovered = released.elapsed();
        context.note(format!("a new connection was answered {recovered:.1?} after the attack"));
        if recovered > RECOVERY_MAX.max(context.options.latency_floor) {
            context.exceeded(format!("recovery took {recovered:.1?}"));
        }
        let log = context.gateway.lock().log_text();
        let lines = log.lines().filter(|line| !line.contains("\"level\":\"INFO\"")).count();
        context.note(format!("{lines} lines of warnings"));
        if lines > EMFILE_LINES_MAX {
            context.exceeded(format!("{lines} lines of warnings, at most {EMFILE_LINES_MAX} are allowed"));
        }
    })
}

async fn one_call(context: &AttackContext) -> Result<(), String> {
    let public = context.attacker.target;
    let mut stream = TcpStream::connect(public).await.map_err(|error| error.to_string())?;
    let request = http1::post(&format!("/v3/{HONEST_KEY}"), "", calls::balance().as_bytes());
    stream.write_all(&request).await.map_err(|error| error.to_string())?;
    let reply = http1::read_reply(&mut stream).await.map_err(|error| error.to_string())?;
    if reply.status == 200 { Ok(()) } else { Err(format!("status {}", reply.status)) }
}
