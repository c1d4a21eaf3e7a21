//! The operator's listener: `/health`, `/ready`, `/status` and `/metrics`, without any key, and what the layer above
//! answers under `/admin`. On loopback by default.
//!
//! It has a thread of its own and a bounded number of short connections, so that it answers while callers overload the
//! gateway, and cannot take file descriptors away from them.

mod admin; // requests that the layer above answers
mod metrics; // every figure, as Prometheus text
mod snapshot; // the gateway at one moment

use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use ::http::header::{self, HeaderValue};
use ::http::{Method, Request, Response, StatusCode, Version};
use bytes::Bytes;
use http_body_util::Full;
use http_server::{IncomingBody, SmallListener, SmallListenerLimits};
use resources::WhenDown;
use serde_json::json;
use settings::Section;
use tokio::sync::watch;

pub use self::admin::{AdminService, OperatorPeer};
pub use self::metrics::{MetricDescription, MetricGroup, metric_groups};
pub use self::snapshot::{
    BlockSnapshot, ExecutedSnapshot, FollowSnapshot, GatewaySnapshot, NodeLimits, NodeSnapshot,
    NodesSnapshot, PartnerAnswer, PartnerSnapshot, PoolNodeState, RemoteSnapshot, SharedLimitsSnapshot,
    TaskSnapshot, TrafficCounters,
};
use crate::allowed_hosts::invalid_host_reason;
use crate::gateway_state::GatewayState;

/// Scrapers and probes are few and near, and send one request on each connection.
const LISTENER_LIMITS: SmallListenerLimits = SmallListenerLimits {
    // A scraper and some probes need a handful.
    connections_max: 32,
    head_timeout: Duration::from_secs(5),
    // A client that does not read cannot keep a connection.
    connection_timeout: Some(Duration::from_secs(15)),
    unread_timeout: Duration::from_secs(15),
    // The smallest buffer that hyper accepts; the requests here have a few hundred bytes.
    buffer_bytes_max: 8 << 10,
    keep_alive: false,
    drain_timeout: Duration::from_secs(2),
};

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
        if let Some(reason) = hosts.iter().find_map(|host| invalid_host_reason(host)) {
            section.error("operator_hosts", reason);
        }
        let admin_token_file = section.optional_text("admin_token_file").map(PathBuf::from);
        Self { address, hosts, admin_token_file }
    }
}

/// State that the connections share.
#[derive(Debug)]
struct Operator {
    gateway: Arc<GatewayState>,
    /// Answers under `/admin`; without it, nothing is there.
    admin: Option<Arc<dyn AdminService>>,
}

/// Starts to serve on a thread of its own. It serves until the drain is over, so that the state of a draining gateway can be
/// read.
pub(crate) fn start(
    listener: StdListener,
    gateway: Arc<GatewayState>,
    admin: Option<Arc<dyn AdminService>>,
    stopping: watch::Receiver<bool>,
) -> io::Result<SocketAddr> {
    let address = listener.local_addr()?;
    let operator = Arc::new(Operator { gateway, admin });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let listener = {
        let _context = runtime.enter();
        SmallListener::new("operator", listener, LISTENER_LIMITS)?
    };
    let task = operator.gateway.supervisor.task("listener of the operator", WhenDown::Degraded);
    let service = move |request, peer| {
        let operator = Arc::clone(&operator);
        async move { operator.reply(request, peer).await }
    };
    let serve = move || runtime.block_on(listener.serve(&task, stopping, service));
    thread::Builder::new().name("operator".to_owned()).spawn(serve)?;
    Ok(address)
}

impl Operator {
    async fn reply(&self, request: Request<IncomingBody>, peer: SocketAddr) -> Response<Full<Bytes>> {
        if !self.allows_host_of(&request) {
            let message = "this host name is not allowed; see operator_hosts in the section [listen]\n";
            return reply(StatusCode::FORBIDDEN, TEXT, message.to_owned());
        }
        match &self.admin {
            Some(service) if admin::is_admin_path(request.uri().path()) => {
                let hosts = Arc::clone(&self.gateway.operator_hosts());
                admin::reply(service.as_ref(), &hosts, request, peer).await
            }
            _ => answer(&self.gateway, request.method(), request.uri().path()),
        }
    }

    /// Only HTTP/1.0 may leave out `Host`: simple health checks use that version, browsers do not.
    fn allows_host_of(&self, request: &Request<IncomingBody>) -> bool {
        let allowed = self.gateway.operator_hosts();
        let mut hosts = request.headers().get_all(header::HOST).iter();
        let in_headers = match (hosts.next(), hosts.next()) {
            (None, _) => request.version() == Version::HTTP_10,
            (Some(host), None) => host.to_str().is_ok_and(|host| allowed.allow(host)),
            (Some(_), Some(_)) => false,
        };
        in_headers && request.uri().authority().is_none_or(|target| allowed.allow(target.as_str()))
    }
}

fn answer(gateway: &GatewayState, method: &Method, path: &str) -> Response<Full<Bytes>> {
    if !matches!(*method, Method::GET | Method::HEAD) {
        return reply(StatusCode::METHOD_NOT_ALLOWED, TEXT, "GET only\n".to_owned());
    }
    match path {
        "/health" => reply(StatusCode::OK, TEXT, "alive\n".to_owned()),
        "/ready" => match gateway.unready() {
            None => reply(StatusCode::OK, TEXT, ready_text(gateway)),
            Some(why) => reply(StatusCode::SERVICE_UNAVAILABLE, TEXT, format!("{why}\n")),
        },
        "/metrics" => reply(StatusCode::OK, "text/plain; version=0.0.4", metrics::text(gateway)),
        "/status" => reply(StatusCode::OK, "application/json", status_text(gateway)),
        _ => reply(
            StatusCode::NOT_FOUND,
            TEXT,
            "not found; there are /health, /ready, /status, /metrics and /admin/v1\n".to_owned(),
        ),
    }
}

/// The body of `/status`.
fn status_text(gateway: &GatewayState) -> String {
    format!("{:#}\n", json!(gateway.snapshot()))
}

/// The body of `/ready` of a gateway that is ready, which may serve with less than it should.
fn ready_text(gateway: &GatewayState) -> String {
    if let Some(task) = gateway.supervisor.first_down(WhenDown::Degraded) {
        return format!("ready, but the task {} does not run, see /status\n", task.name);
    }
    match gateway.disk.first_failing() {
        None => "ready\n".to_owned(),
        Some(report) => {
            format!("ready, but {} cannot be written to data_dir, see /status\n", report.writer.what())
        }
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
