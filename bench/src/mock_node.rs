//! A node that costs next to nothing: it passes each new question on to a real node, and repeats that answer from then
//! on. All its answers are true, so whatever is in front of it may check them.

use crate::peers;
use hyper::body::Bytes;
use jsonrpc::{Call, Request, RequestItem, RpcResponses};
use parking_lot::{Mutex, RwLock};
use std::{
    collections::{HashMap, HashSet},
    io::Write,
    sync::Arc,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// Room for the requests of one connection. Log filters and batches are well below it.
const REQUEST_BYTES_MAX: usize = 1 << 20;

/// Results up to this size are copied behind the head; larger ones are written by themselves.
const COPIED_BYTES_MAX: usize = 128 << 10;

/// Serves until it is killed. Says its port on standard output first.
pub(crate) fn run(original: &str) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(serve(Arc::new(Recording::of(original))));
}

async fn serve(recording: Arc<Recording>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    println!("{}", listener.local_addr().expect("an address").port());
    std::io::stdout().flush().expect("somebody reads the port");
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        stream.set_nodelay(true).expect("a TCP socket");
        let recording = Arc::clone(&recording);
        tokio::spawn(async move {
            // A connection that breaks ends; the next one comes.
            let _ended = answer_all(stream, &recording).await;
        });
    }
}

async fn answer_all(mut stream: TcpStream, recording: &Recording) -> std::io::Result<()> {
    let (mut inbox, mut outbox) = (Vec::with_capacity(8 << 10), Vec::new());
    loop {
        while let Some((body, end)) = request(&inbox) {
            let large = recording.reply(&inbox[body..end], &mut outbox);
            inbox.drain(..end);
            stream.write_all(&outbox).await?;
            if let Some(large) = large {
                stream.write_all(&large).await?;
                stream.write_all(b"}").await?;
            }
        }
        if inbox.len() > REQUEST_BYTES_MAX || stream.read_buf(&mut inbox).await? == 0 {
            return Ok(());
        }
    }
}

/// Where the body of the first request begins and ends, once it is whole.
fn request(inbox: &[u8]) -> Option<(usize, usize)> {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut request = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(body) = request.parse(inbox).ok()? else { return None };
    let length = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-length"))?;
    let length: usize = std::str::from_utf8(length.value).ok()?.trim().parse().ok()?;
    (inbox.len() >= body + length).then_some((body, body + length))
}

/// The answers of the real node so far.
struct Recording {
    original: String,
    results: RwLock<HashMap<Vec<u8>, Bytes>>,
    /// Each text once: many questions have the same answer, and some answers are large.
    texts: Mutex<HashSet<Bytes>>,
}

impl Recording {
    fn of(original: &str) -> Self {
        Self { original: original.to_owned(), results: RwLock::default(), texts: Mutex::default() }
    }

    /// Writes the reply to a request. A large result is returned instead, to be followed by a closing brace.
    fn reply(&self, body: &[u8], out: &mut Vec<u8>) -> Option<Bytes> {
        let mut replies = Vec::new();
        let mut large = None;
        match jsonrpc::parse(body).expect("whoever is measured sends JSON-RPC") {
            Request::Single(item) => large = self.answer(item, &mut replies, true),
            Request::Batch(items) => {
                for item in items {
                    replies.push(if replies.is_empty() { b'[' } else { b',' });
                    self.answer(item, &mut replies, false);
                }
                replies.push(b']');
            }
        }
        let length = replies.len() + large.as_ref().map_or(0, |large| large.len() + 1);
        out.clear();
        out.extend_from_slice(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ");
        out.extend_from_slice(length.to_string().as_bytes());
        out.extend_from_slice(b"\r\n\r\n");
        out.extend_from_slice(&replies);
        large
    }

    fn answer(&self, item: RequestItem<'_>, out: &mut Vec<u8>, alone: bool) -> Option<Bytes> {
        let call = item.expect("whoever is measured sends calls");
        let result = self.result(&call);
        jsonrpc::begin_result(out, call.id.expect("an id"));
        if alone && result.len() > COPIED_BYTES_MAX {
            return Some(result);
        }
        out.extend_from_slice(&result);
        jsonrpc::end_result(out);
        None
    }

    fn result(&self, call: &Call<'_>) -> Bytes {
        let mut key = Vec::with_capacity(256);
        key.extend_from_slice(call.method.as_bytes());
        for param in (0..call.params.count()).filter_map(|position| call.params.get(position)) {
            key.push(b',');
            key.extend_from_slice(param.raw().as_bytes());
        }
        let known = self.results.read().get(&key).cloned();
        known.unwrap_or_else(|| tokio::task::block_in_place(|| self.record(key, call)))
    }

    /// Asks the real node. One that has no answer has `null`.
    fn record(&self, key: Vec<u8>, call: &Call<'_>) -> Bytes {
        let params: Vec<&str> = (0..call.params.count())
            .filter_map(|position| call.params.get(position).map(|param| param.raw()))
            .collect();
        let (method, params) = (&call.method, params.join(","));
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":[{params}]}}"#);
        let reply = peers::post(&self.original, &body).expect("the real node answers");
        let reply = std::str::from_utf8(&reply).expect("the real node's answers are text");
        let Some(RpcResponses::One(response)) = RpcResponses::read(reply, 1) else {
            panic!("{body}: {reply}")
        };
        let text = response.result.map_or("null", |result| result.raw());
        let text = self.one_copy(Bytes::copy_from_slice(text.as_bytes()));
        self.results.write().insert(key, text.clone());
        text
    }

    fn one_copy(&self, text: Bytes) -> Bytes {
        let mut texts = self.texts.lock();
        if let Some(known) = texts.get(&text) {
            return known.clone();
        }
        texts.insert(text.clone());
        text
    }
}
