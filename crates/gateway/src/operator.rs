//! The operator's listener: `/health`, `/ready`, `/status` and `/metrics`, without any key, and what the layer above
//! answers under `/admin`. On loopback by default.
//!
//! It has a thread of its own and a bounded number of short connections, so that it answers while callers overload the
//! gateway, and cannot take file descriptors away from them.

mod admin; // requests that the layer above answers
mod hosts; // names under which it answers
mod metrics; // Prometheus text
mod status; // what is served, and why not
mod snapshot; // the same as plain data, for the console

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use ::http::header::{self, HeaderValue};
use ::http::{Method, Request, Response, StatusCode, Version};
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use resources::RepeatedWarning;
use settings::Section;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::timeout;

pub use self::admin::{AdminService, OperatorPeer};
pub use self::hosts::AllowedHosts;
pub use self::snapshot::{
    GatewaySnapshot, NodeSnapshot, PartnerSnapshot, StorageKind, StorageSnapshot, TrafficCounters,
};
pub use self::status::PoolNodeState;
use crate::gateway_state::GatewayState;

/// How long the head of a request may take. Scrapers are few and near.
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a connection may take as a whole, so that a client that does not read cannot keep it.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(15);

/// Connections at once; beyond it, the oldest one is closed. A scraper and some probes need a handful.
const CONNECTIONS_MAX: usize = 32;

/// The smallest buffer that hyper accepts; the requests here have a few hundred bytes.
const BUFFER_BYTES_MAX: usize = 8 << 10;

/// How long accepting pauses when the process is out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Where the operator's listener is, and under which names it answers.
#[derive(Clone, Debug)]
pub struct OperatorConfig {
    pub address: SocketAddr,
    /// Host names under which it answers, besides `localhost` and IP addresses.
    pub hosts: Vec<String>,
    /// The file with the token of the admin API; by default it is in the data directory.
    pub admin_token_file: Option<PathBuf>,
}

impl OperatorConfig {
    pub(crate) fn read(section: &mut Section<'_>) -> Self {
        let address = section.address("operator", SocketAddr::from(([127, 0, 0, 1], 8546)));
        let hosts = section.texts("operator_hosts").unwrap_or_default();
        if let Some(reason) = hosts.iter().find_map(|host| hosts::invalid_host_reason(host)) {
            section.error("operator_hosts", reason);
        }
        let admin_token_file = section.optional_text("admin_token_file").map(PathBuf::from);
        Self { address, hosts, admin_token_file }
    }
}

/// What the connections share.
#[derive(Debug)]
struct Operator {
    gateway: Arc<GatewayState>,
    hosts: AllowedHosts,
    /// Answers under `/admin`; without it, nothing is there.
    admin: Option<Arc<dyn AdminService>>,
    /// Separate from that of the workers, so that failures of one listener do not hide those of the other.
    accept_failures: RepeatedWarning,
}

/// Starts to serve on a thread of its own. It serves until the drain is over, so that the state of a draining gateway can be
/// read.
pub(crate) fn start(
    listener: StdListener,
    hosts: &[String],
    gateway: Arc<GatewayState>,
    admin: Option<Arc<dyn AdminService>>,
    stopping: watch::Receiver<bool>,
) -> io::Result<SocketAddr> {
    let address = listener.local_addr()?;
    let operator = Arc::new(Operator {
        gateway,
        hosts: AllowedHosts::new(hosts),
        admin,
        accept_failures: RepeatedWarning::default(),
    });
    let serve = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let served = runtime.and_then(|runtime| runtime.block_on(accept(listener, operator, stopping)));
        if let Err(error) = served {
            tracing::error!(%error, "the operator listener stopped");
        }
    };
    thread::Builder::new().name("operator".to_owned()).spawn(serve)?;
    Ok(address)
}

async fn accept(
    listener: StdListener,
    operator: Arc<Operator>,
    mut stopping: watch::Receiver<bool>,
) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let mut open = VecDeque::new();
    loop {
        let accepted = tokio::select! {
            // The sender goes away when the drain is over.
            _ = async { while stopping.changed().await.is_ok() {} } => return Ok(()),
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                make_room(&mut open);
                open.push_back(tokio::spawn(serve(stream, peer, Arc::clone(&operator))).abort_handle());
            }
            Err(error) => {
                if let Some(failures) = operator.accept_failures.count(Instant::now()) {
                    tracing::warn!(%error, failures, "accept failed on the operator listener; pausing");
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Makes room for one more connection. The newest ones are kept: an honest request takes milliseconds.
fn make_room(open: &mut VecDeque<AbortHandle>) {
    open.retain(|connection| !connection.is_finished());
    if open.len() >= CONNECTIONS_MAX
        && let Some(oldest) = open.pop_front()
    {
        oldest.abort();
    }
}

/// Serves one request, then closes the connection.
async fn serve(stream: TcpStream, peer: SocketAddr, operator: Arc<Operator>) {
    let service = service_fn(move |request: Request<Incoming>| {
        let operator = Arc::clone(&operator);
        async move { Ok::<_, Infallible>(operator.reply(request, peer).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(BUFFER_BYTES_MAX)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    match timeout(CONNECTION_TIMEOUT, connection).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "an operator connection ended early"),
        Err(_) => tracing::debug!("an operator connection took too long"),
    }
}

impl Operator {
    async fn reply(&self, request: Request<Incoming>, peer: SocketAddr) -> Response<Full<Bytes>> {
        if !self.allows_host_of(&request) {
            let message = "this host name is not allowed; see operator_hosts in the section [listen]\n";
            return reply(StatusCode::FORBIDDEN, TEXT, message.to_owned());
        }
        match &self.admin {
            Some(service) if admin::is_admin_path(request.uri().path()) => {
                admin::reply(service.as_ref(), &self.hosts, request, peer).await
            }
            _ => answer(&self.gateway, request.method(), request.uri().path()),
        }
    }

    /// Only HTTP/1.0 may leave out `Host`: simple health checks use that version, browsers do not.
    fn allows_host_of(&self, request: &Request<Incoming>) -> bool {
        let mut hosts = request.headers().get_all(header::HOST).iter();
        let in_headers = match (hosts.next(), hosts.next()) {
            (None, _) => request.version() == Version::HTTP_10,
            (Some(host), None) => host.to_str().is_ok_and(|host| self.hosts.allow(host)),
            (Some(_), Some(_)) => false,
        };
        in_headers && request.uri().authority().is_none_or(|target| self.hosts.allow(target.as_str()))
    }
}

fn answer(gateway: &GatewayState, method: &Method, path: &str) -> Response<Full<Bytes>> {
    if !matches!(*method, Method::GET | Method::HEAD) {
        return reply(StatusCode::METHOD_NOT_ALLOWED, TEXT, "GET only\n".to_owned());
    }
    match path {
        "/health" => reply(StatusCode::OK, TEXT, "alive\n".to_owned()),
        "/ready" => match gateway.unready() {
            None => reply(StatusCode::OK, TEXT, "ready\n".to_owned()),
            Some(why) => reply(StatusCode::SERVICE_UNAVAILABLE, TEXT, format!("{why}\n")),
        },
        "/metrics" => reply(StatusCode::OK, "text/plain; version=0.0.4", metrics::text(gateway)),
        "/status" => reply(StatusCode::OK, "application/json", status::text(gateway)),
        _ => reply(
            StatusCode::NOT_FOUND,
            TEXT,
            "not found; there are /health, /ready, /status, /metrics and /admin/v1\n".to_owned(),
        ),
    }
}

const TEXT: &str = "text/plain; charset=utf-8";

fn reply(status: StatusCode, content_type: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
