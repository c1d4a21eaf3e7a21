//! A node that follows a script: each connection is handed to it, to be read and written as it likes.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use resources::AccountId;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

use crate::call::{Ask, Class, Fault, Needs, RpcCall, RpcReply};
use crate::transport::{Client, Endpoint, EndpointLimits};

/// Where the node listens, and how many connections it has seen.
pub(crate) struct Node {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl Node {
    pub(crate) async fn start<F, W>(script: F) -> Self
    where
        F: Fn(Conversation) -> W + Send + 'static,
        W: Future<Output = Option<()>> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).unwrap();
                seen.fetch_add(1, Relaxed);
                tokio::spawn(script(Conversation { stream, inbox: Vec::new() }));
            }
        });
        Self { address, connections }
    }

    /// A node that answers each request with whatever the function makes of its body.
    pub(crate) async fn answering<F>(answer: F) -> Self
    where
        F: Fn(&Value) -> String + Send + Sync + 'static,
    {
        let answer = Arc::new(answer);
        Self::start(move |mut talk| {
            let answer = Arc::clone(&answer);
            async move {
                loop {
                    let body = talk.request().await?.body;
                    talk.reply(&answer(&body)).await?;
                }
            }
        })
        .await
    }

    /// A node whose every reply is these bytes on the wire, after which it hangs up.
    pub(crate) async fn saying(wire: impl Fn(u64) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let wire = Arc::new(wire);
        Self::start(move |mut talk| {
            let wire = Arc::clone(&wire);
            async move {
                let id = id_of(&talk.request().await?.body);
                talk.send(&wire(id)).await
            }
        })
        .await
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Relaxed)
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint::parse(&format!("http://{}/key?query=1", self.address)).unwrap()
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.endpoint(), EndpointLimits::default())
    }
}

/// One connection, seen from the node.
pub(crate) struct Conversation {
    stream: TcpStream,
    inbox: Vec<u8>,
}

pub(crate) struct Asked {
    pub(crate) head: String,
    pub(crate) body: Value,
}

impl Conversation {
    /// The next request; `None` when there will be none.
    pub(crate) async fn request(&mut self) -> Option<Asked> {
        loop {
            if let Some(asked) = self.whole_request() {
                return Some(asked);
            }
            if self.stream.read_buf(&mut self.inbox).await.ok()? == 0 {
                return None;
            }
        }
    }

    fn whole_request(&mut self) -> Option<Asked> {
        let head_end = self.inbox.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
        let head = String::from_utf8(self.inbox[..head_end].to_vec()).unwrap();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:")).unwrap();
        let end = head_end + length.trim().parse::<usize>().unwrap();
        let body = serde_json::from_slice(self.inbox.get(head_end..end)?).unwrap();
        self.inbox.drain(..end);
        Some(Asked { head, body })
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) -> Option<()> {
        self.stream.write_all(bytes).await.ok()
    }

    pub(crate) async fn reply(&mut self, body: &str) -> Option<()> {
        self.send(&ok(body)).await
    }
}

/// A plain reply on the wire.
pub(crate) fn ok(body: &str) -> Vec<u8> {
    with_status("200 OK", body)
}

pub(crate) fn with_status(status: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

pub(crate) fn result(id: u64, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

/// Answers each call with its own params, alone or in a batch.
pub(crate) fn echo(body: &Value) -> String {
    match body.as_array() {
        None => result(id_of(body), &body["params"].to_string()),
        Some(calls) => format!("[{}]", calls.iter().map(echo).collect::<Vec<_>>().join(",")),
    }
}

pub(crate) fn id_of(body: &Value) -> u64 {
    body["id"].as_u64().unwrap()
}

pub(crate) fn call(class: Class, params: &str) -> RpcCall {
    let params = Bytes::copy_from_slice(params.as_bytes());
    let (needs, account) = (Needs::default(), AccountId::NONE);
    RpcCall {
        method: "eth_getStorageAt",
        params,
        class,
        needs,
        may_hedge: true,
        account,
        block_by_hash: None,
        trace: None,
    }
}

/// Waits for something that others bring about.
pub(crate) async fn until(mut done: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !done().await {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), wait).await.expect("it happens");
}

pub(crate) fn in_ms(milliseconds: u64) -> Instant {
    Instant::now() + Duration::from_millis(milliseconds)
}

/// One quick call with five seconds of patience.
pub(crate) async fn ask(client: &Client, params: &str) -> Result<RpcReply, Fault> {
    client.ask(&call(Class::Quick, params), in_ms(5_000)).await
}

pub(crate) fn said(text: &str) -> Result<RpcReply, Fault> {
    Ok(RpcReply::Result(Bytes::copy_from_slice(text.as_bytes())))
}
