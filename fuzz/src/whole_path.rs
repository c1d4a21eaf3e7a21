//! A body through every step of a request, over a connection in memory and the demo chain on disk.

use answers::ArchiveSource;
use chaingate::config::Config;
use gateway::{GatewayState, serve_stream};
use jsonrpc::{Id, Request, RequestItem};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::runtime::{Builder, Runtime};

/// Simulations are cut off after this, so that loops do not take all the time there is.
const LIMITS: &str = "[limits]\ncall_timeout_ms = 50\nlog_timeout_ms = 1000";

/// Longer than any reply should take, on any machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Bytes that may be on their way in either direction.
const PIPE_BYTES: usize = 64 << 10;

/// A gateway without sockets.
pub struct Gateway {
    runtime: Runtime,
    state: Arc<GatewayState>,
    _directory: TempDir,
}

impl Gateway {
    /// Makes the demo chain, and a gateway over it.
    pub fn start() -> Self {
        let directory = tempfile::tempdir().expect("there is a place for temporary files");
        let archive = demo::open(directory.path(), |_, _| {}).expect("the demo chain can be made");
        let config = Config::parse(LIMITS).expect("the limits are right");
        let source = ArchiveSource::new(Arc::new(archive), config.limits.answer.clone());
        let state = config.gateway(Arc::new(source), &Default::default()).expect("threads can be started");
        let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime can be made");
        Self { runtime, state: Arc::new(state), _directory: directory }
    }

    /// Posts a body, and looks at the reply.
    pub fn run(&self, body: &[u8]) {
        let (status, reply) = self.runtime.block_on(async {
            let (near, far) = duplex(PIPE_BYTES);
            let served = serve_stream(Arc::clone(&self.state), far);
            let asked = tokio::time::timeout(PATIENCE, ask(near, body));
            let (reply, ()) = tokio::join!(asked, served);
            reply.expect("a reply comes")
        });
        check(body, status, &reply);
    }
}

/// Posts a body; gives the status and the body of the reply.
async fn ask(mut wire: DuplexStream, body: &[u8]) -> (u16, Vec<u8>) {
    let head = format!(
        "POST /v3/demo HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    // A reply may come before the whole body is sent; that it does not fit then is no fault.
    let _sent = wire.write_all(head.as_bytes()).await;
    let _sent = wire.write_all(body).await;
    let mut reply = Vec::new();
    wire.read_to_end(&mut reply).await.expect("the connection is closed politely");
    let end = reply.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("the head ends");
    let text = std::str::from_utf8(&reply[..end]).expect("a head is text");
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("there is a status");
    (status, reply.split_off(end + 4))
}

/// What any reply to this body must be like.
fn check(body: &[u8], status: u16, reply: &[u8]) {
    let ids = match jsonrpc::parse(body) {
        Ok(Request::Single(item)) => Ids::One(id_of(&item)),
        Ok(Request::Batch(items)) => Ids::Many(items.iter().filter_map(id_of).collect()),
        Err(_) => Ids::One(Some(Id::NULL)),
    };
    let silent = matches!(&ids, Ids::One(None)) || matches!(&ids, Ids::Many(ids) if ids.is_empty());
    assert_eq!((status == 204, reply.is_empty()), (silent, silent), "silence is for notifications only");
    assert!(matches!(status, 200 | 204 | 400 | 413), "a status that no body should lead to: {status}");
    match ids {
        Ids::One(None) => {}
        Ids::One(Some(id)) => check_reply(serde_json::from_slice(reply).expect("a reply is JSON"), id),
        Ids::Many(ids) if ids.is_empty() => {}
        Ids::Many(ids) => {
            let replies: Vec<&RawValue> =
                serde_json::from_slice(reply).expect("a batch has a list of replies");
            assert_eq!(replies.len(), ids.len());
            replies.into_iter().zip(ids).for_each(|(reply, id)| check_reply(reply, id));
        }
    }
}

enum Ids<'a> {
    One(Option<Id<'a>>),
    Many(Vec<Id<'a>>),
}

fn id_of<'a>(item: &RequestItem<'a>) -> Option<Id<'a>> {
    match item {
        Ok(call) => call.id,
        Err(bad) => Some(bad.id),
    }
}

fn check_reply(reply: &RawValue, id: Id<'_>) {
    let members: BTreeMap<&str, &RawValue> =
        serde_json::from_str(reply.get()).expect("a reply is an object without escapes in its names");
    let names: Vec<_> = members.keys().copied().collect();
    assert!(names == ["id", "jsonrpc", "result"] || names == ["error", "id", "jsonrpc"], "{reply}");
    assert_eq!((members["jsonrpc"].get(), members["id"].get()), ("\"2.0\"", id.raw()));
    if let Some(error) = members.get("error") {
        let error: Value = serde_json::from_str(error.get()).expect("an error is JSON");
        assert!(error["message"].is_string() && error["code"].is_i64(), "{error}");
        assert_ne!(error["code"], -32603, "a fault of ours: {error}");
    }
}
