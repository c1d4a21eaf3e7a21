//! The operator's listener: `/health`, `/ready` and `/metrics`. On loopback by default, and without any key.

mod metrics; // Prometheus text

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use ::http::{Method, Request, Response, StatusCode, header};
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::edge::Edge;
use crate::respond::ReplyBody;

/// Scrapers are few and near; anyone slower than this is none.
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);

/// Begins to serve on a thread of its own, which ends with the process: the state of a draining gateway is worth
/// knowing to the last.
pub(crate) fn start(
    listener: StdListener,
    edge: Arc<Edge>,
    stopping: watch::Receiver<bool>,
) -> io::Result<SocketAddr> {
    let address = listener.local_addr()?;
    let serve = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let served = runtime.and_then(|runtime| runtime.block_on(accept(listener, edge, stopping)));
        if let Err(error) = served {
            tracing::error!(%error, "the operator listener stopped");
        }
    };
    thread::Builder::new().name("operator".to_owned()).spawn(serve)?;
    Ok(address)
}

async fn accept(
    listener: StdListener,
    edge: Arc<Edge>,
    mut stopping: watch::Receiver<bool>,
) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    loop {
        let accepted = tokio::select! {
            // The sender goes away when the drain is over.
            _ = async { while stopping.changed().await.is_ok() {} } => return Ok(()),
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => drop(tokio::spawn(serve(stream, Arc::clone(&edge)))),
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

async fn serve(stream: TcpStream, edge: Arc<Edge>) {
    let service = service_fn(move |request: Request<Incoming>| {
        let reply = answer(&edge, request.method(), request.uri().path());
        async { Ok::<_, Infallible>(reply) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = connection.await {
        tracing::debug!(%error, "an operator connection ended early");
    }
}

fn answer(edge: &Edge, method: &Method, path: &str) -> Response<ReplyBody> {
    if !matches!(*method, Method::GET | Method::HEAD) {
        return reply(StatusCode::METHOD_NOT_ALLOWED, TEXT, "GET only\n".to_owned());
    }
    match path {
        "/health" => reply(StatusCode::OK, TEXT, "alive\n".to_owned()),
        "/ready" => match edge.unready() {
            None => reply(StatusCode::OK, TEXT, "ready\n".to_owned()),
            Some(why) => reply(StatusCode::SERVICE_UNAVAILABLE, TEXT, format!("{why}\n")),
        },
        "/metrics" => reply(StatusCode::OK, "text/plain; version=0.0.4", metrics::text(edge)),
        _ => reply(StatusCode::NOT_FOUND, TEXT, "/health, /ready, /metrics\n".to_owned()),
    }
}

const TEXT: &str = "text/plain; charset=utf-8";

fn reply(status: StatusCode, content_type: &'static str, body: String) -> Response<ReplyBody> {
    let mut response = Response::new(ReplyBody::new([Bytes::from(body), Bytes::new(), Bytes::new()]));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, http::HeaderValue::from_static(content_type));
    response
}
