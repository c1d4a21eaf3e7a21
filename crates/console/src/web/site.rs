//! State that all requests of the console share.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use callers::administration::Administration;
use callers::people::People;
use futures_util::stream::BoxStream;
use gateway::{AllowedHosts, GatewaySnapshot};
use http::{HeaderMap, HeaderValue};
use parking_lot::Mutex;
use resources::{RepeatedWarning, Supervisor};
use tokio::sync::{Semaphore, watch};

use super::console_settings::ConsoleSettings;
use super::cookies::CookieNames;
use super::traffic_history::TrafficHistory;
use super::user_limits::UserLimits;
use crate::pages::configuration::ConfigurationSection;
use crate::pages::live::LiveStatus;
use crate::pages::try_it::MethodForm;

/// Facts about the gateway that pages show and do not read from the store.
#[derive(Clone, Debug)]
pub struct SiteFacts {
    pub network: String,
    /// The address of the public listener with the path before the key, such as `http://127.0.0.1:8545/v3/`.
    pub base_url: String,
    /// A key that everybody knows, such as `demo` on the demo network.
    pub example_key: Option<String>,
    pub methods: Vec<MethodForm>,
    pub config_file: Option<String>,
    pub configuration: Vec<ConfigurationSection>,
}

/// Browsers that watch the live view at once; each holds a connection.
const LIVE_STREAMS_MAX: usize = 16;

/// The source of the present state of the gateway, for the live view.
pub struct LiveSource {
    /// Reads the state; the console asks once per second, and after each change of the chain.
    pub snapshot: Box<dyn Fn() -> GatewaySnapshot + Send + Sync>,
    /// Returns a stream of the changes of the chain from now on.
    pub changes: Box<dyn Fn() -> BoxStream<'static, ()> + Send + Sync>,
}

impl fmt::Debug for LiveSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveSource").finish_non_exhaustive()
    }
}

/// Finds the address of the person behind a connection, which a trusted proxy may report.
pub type ClientAddress = Box<dyn Fn(SocketAddr, &HeaderMap) -> IpAddr + Send + Sync>;

/// The console without its listener.
pub struct ConsoleSite {
    pub(super) people: People,
    pub(super) administration: Arc<Administration>,
    pub(super) facts: SiteFacts,
    /// The status of this second, which all who watch share.
    pub(super) live: watch::Sender<Arc<LiveStatus>>,
    pub(super) live_source: LiveSource,
    traffic: Mutex<TrafficHistory>,
    pub(super) live_streams: Arc<Semaphore>,
    pub(super) user_limits: UserLimits,
    /// Whether the process ends, so that streams end first.
    pub(super) stopping: watch::Sender<bool>,
    pub(super) client_address: ClientAddress,
    pub(super) hosts: AllowedHosts,
    pub(super) cookies: CookieNames,
    pub(super) policy: HeaderValue,
    /// The address that the operator has configured, which is the only origin of forms under its name.
    pub(super) configured_url: Option<String>,
    /// The address of the console, for links that people send to each other.
    pub(super) url: String,
    pub(super) is_https: bool,
    pub(super) failures: RepeatedWarning,
    pub(super) supervisor: Supervisor,
}

impl fmt::Debug for ConsoleSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConsoleSite").field("url", &self.url).finish_non_exhaustive()
    }
}

impl ConsoleSite {
    /// `address` is where the console listens. The connections to the store belong to the thread of the listener.
    pub fn new(
        settings: &ConsoleSettings,
        address: SocketAddr,
        administration: Administration,
        facts: SiteFacts,
        live_source: LiveSource,
        client_address: ClientAddress,
        supervisor: Supervisor,
    ) -> Self {
        let administration = Arc::new(administration);
        let mut traffic = TrafficHistory::default();
        let names: Vec<String> = settings.host_name().into_iter().collect();
        Self {
            people: People::new(Arc::clone(&administration), settings.sign_up_rule(), supervisor.clone()),
            administration,
            policy: content_policy(&facts.base_url),
            facts,
            live: watch::Sender::new(Arc::new(traffic.add((live_source.snapshot)()))),
            live_source,
            traffic: Mutex::new(traffic),
            live_streams: Arc::new(Semaphore::new(LIVE_STREAMS_MAX)),
            user_limits: UserLimits::default(),
            stopping: watch::Sender::new(false),
            client_address,
            hosts: AllowedHosts::new(&names),
            cookies: CookieNames::new(settings.is_https()),
            configured_url: settings.url.clone(),
            url: settings.url.clone().unwrap_or_else(|| format!("http://{address}")),
            is_https: settings.is_https(),
            failures: RepeatedWarning::default(),
            supervisor,
        }
    }
}

impl ConsoleSite {
    /// Reads the status of this second, for everybody who watches.
    pub(super) fn update_live(&self) {
        let status = self.traffic.lock().add((self.live_source.snapshot)());
        self.live.send_replace(Arc::new(status));
    }

    /// Reads the status again, and keeps the traffic of this second.
    pub(super) fn update_live_chain(&self) {
        let before = LiveStatus::clone(&self.live.borrow());
        let status = LiveStatus { gateway: (self.live_source.snapshot)(), ..before };
        self.live.send_replace(Arc::new(status));
    }
}

/// The hosts that a page may load from and contact: this site, and the gateway that it tries calls on.
fn content_policy(base_url: &str) -> HeaderValue {
    let without_path = base_url.splitn(4, '/').take(3).collect::<Vec<_>>().join("/");
    let policy = format!(
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self' {without_path}; \
         form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    );
    let strict = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
    HeaderValue::from_str(&policy).unwrap_or(strict)
}
