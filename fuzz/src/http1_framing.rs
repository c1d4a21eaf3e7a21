//! The bytes of a connection, cut into requests by the gateway's HTTP/1 reader and by hyper's. Whatever ours accepts, hyper
//! accepts too, and cuts at the same places; ours may refuse more.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::{BodyExt, Empty};
use http_server::framed_requests;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncWriteExt, duplex};
use tokio::runtime::{Builder, Runtime};

/// More than all replies to the longest input.
const PIPE_BYTES: usize = 4 << 20;

/// More headers than fit into the longest input, because only framing is compared.
const HEADERS_MAX: usize = 10_000;

/// A method and a body.
type Seen = (String, Vec<u8>);

/// Compares the two readers.
pub struct Readers {
    runtime: Runtime,
}

impl Readers {
    pub fn start() -> Self {
        Self { runtime: Builder::new_current_thread().build().expect("a runtime can be made") }
    }

    /// Gives how many requests were compared.
    pub fn run(&self, connection: &[u8]) -> usize {
        let ours = framed_requests(connection);
        if ours.is_empty() {
            return 0;
        }
        let theirs = self.runtime.block_on(seen_by_hyper(connection));
        for (index, request) in ours.iter().enumerate() {
            let (method, target) = first_line(request.head);
            // Ours answers such targets with 404, hyper with 400; that is not about framing.
            if target.parse::<Uri>().is_err() {
                return index;
            }
            let seen = theirs.get(index);
            assert_eq!(seen, Some(&(method.to_owned(), request.body.clone())), "request {index}");
        }
        ours.len()
    }
}

/// The method and the target of a head. Lines that are empty may stand before it.
fn first_line(head: &[u8]) -> (&str, &str) {
    let text = std::str::from_utf8(head.trim_ascii_start()).unwrap_or_default();
    let mut words = text.split(' ');
    (words.next().unwrap_or_default(), words.next().unwrap_or_default())
}

async fn seen_by_hyper(connection: &[u8]) -> Vec<Seen> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (mut near, far) = duplex(PIPE_BYTES);
    near.write_all(connection).await.expect("the pipe is large enough");
    near.shutdown().await.expect("a pipe can be closed");
    let service = service_fn(|request: Request<Incoming>| {
        let seen = Arc::clone(&seen);
        async move {
            let method = request.method().as_str().to_owned();
            // A body that does not end is a request that hyper does not accept.
            if let Ok(body) = request.into_body().collect().await {
                seen.lock().expect("nobody panics").push((method, body.to_bytes().to_vec()));
            }
            Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new()))
        }
    });
    let served = http1::Builder::new()
        .half_close(true)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(far), service)
        .await;
    // What comes behind the accepted requests may be anything.
    let _broken = served.is_err();
    std::mem::take(&mut seen.lock().expect("nobody panics"))
}
