//! The listeners: one for callers, one for the operator.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use http_server::{ListenerEnd, bind, bind_workers, check_free, overlap};
use settings::Section;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use crate::gateway_state::GatewayState;
use crate::operator::{self, AdminService};

/// `[listen]`: where to listen and with what.
#[derive(Clone, Debug)]
pub struct ListenConfig {
    pub server: http_server::HttpConfig,
    pub operator: operator::OperatorConfig,
}

impl ListenConfig {
    pub fn read(section: &mut Section<'_>) -> Self {
        Self {
            server: http_server::HttpConfig::read(section),
            operator: operator::OperatorConfig::read(section),
        }
    }

    /// The error if callers and the operator share an address, because callers would reach the operator's pages.
    pub fn address_conflict(&self) -> Option<String> {
        let [public, operator] = self.addresses();
        overlap(public, operator).then(|| {
            format!(
                "listen.public ({public}) and listen.operator ({operator}) must not share an address and port"
            )
        })
    }

    /// Why one of the addresses cannot be listened on. Being in use is no reason: the gateway may be running while its
    /// configuration is checked.
    pub fn unusable_address(&self) -> Option<String> {
        let errors = self.addresses().into_iter().filter_map(|address| check_free(address).err());
        let mut unusable = errors.filter(|error| error.kind() != io::ErrorKind::AddrInUse);
        unusable.next().map(|error| error.to_string())
    }

    fn addresses(&self) -> [SocketAddr; 2] {
        [self.server.public, self.operator.address]
    }
}

/// The listening sockets of callers and of the operator.
#[derive(Debug)]
pub struct GatewaySockets {
    /// At most as many as there are workers.
    pub public: Vec<TcpListener>,
    pub operator: TcpListener,
    /// Whether they stay open in another process, such as a service manager, when this one ends.
    pub are_shared: bool,
}

impl GatewaySockets {
    /// Opens them at the configured addresses.
    pub fn bind(config: &ListenConfig) -> io::Result<Self> {
        for address in config.addresses() {
            check_free(address)?;
        }
        let public = bind_workers(config.server.public, config.server.workers)?;
        Ok(Self { public, operator: bind(config.operator.address)?, are_shared: false })
    }
}

/// Both listeners and the threads behind them.
#[derive(Debug)]
pub struct Server {
    callers: http_server::HttpServer,
    operator: SocketAddr,
    /// The operator listener ends when this is dropped.
    operator_stop: watch::Sender<bool>,
    listener_end: ListenerEnd,
}

impl Server {
    /// Binds both addresses and begins to serve.
    pub fn start(config: &ListenConfig, gateway: Arc<GatewayState>) -> io::Result<Self> {
        Self::start_with_admin(config, &GatewaySockets::bind(config)?, gateway, None)
    }

    /// Begins to serve on these sockets, with a service that answers under `/admin` on the operator's listener.
    pub fn start_with_admin(
        config: &ListenConfig,
        sockets: &GatewaySockets,
        gateway: Arc<GatewayState>,
        admin: Option<Arc<dyn AdminService>>,
    ) -> io::Result<Self> {
        let (operator_stop, operator_stopping) = watch::channel(false);
        let listener = sockets.operator.try_clone()?;
        // The operator's thread says that the gateway is ready, so callers can connect before it starts.
        let callers = http_server::HttpServer::start(
            &sockets.public,
            Arc::clone(&gateway.server),
            &gateway,
            &gateway.supervisor,
        )?;
        gateway.change_operator_hosts(&config.operator.hosts);
        let operator = operator::start(listener, Arc::clone(&gateway), admin, operator_stopping);
        let operator = operator.map_err(|error| {
            io::Error::new(error.kind(), format!("cannot start the operator's thread: {error}"))
        })?;
        let listener_end = if sockets.are_shared { ListenerEnd::LeftOpen } else { ListenerEnd::Closed };
        Ok(Self { callers, operator, operator_stop, listener_end })
    }

    /// The address for callers, with the actual port if the configured one is 0.
    pub fn public(&self) -> SocketAddr {
        self.callers.public()
    }

    pub fn operator(&self) -> SocketAddr {
        self.operator
    }

    /// Stops without losing requests: not ready from now on, but everything is still answered for `drain_delay`, and over
    /// HTTP/1 with `Connection: close`. Then idle connections are closed. Returns when no connection is left, or when
    /// `drain_timeout` is over.
    pub fn drain(self) {
        self.callers.drain(self.listener_end);
    }

    /// Drains without `drain_delay`, for Ctrl-C.
    pub fn drain_at_once(self) {
        self.callers.drain_at_once(self.listener_end);
    }

    /// Drains for another process, which has the sockets of this one. Once it accepts, it answers the operator, too.
    pub fn hand_over(self, listeners: ListenerEnd) {
        if listeners == ListenerEnd::TakenOver {
            self.operator_stop.send_replace(true);
        }
        self.callers.drain(listeners);
    }
}

/// Serves one connection over any stream until it ends, in the same way as the workers.
pub async fn serve_stream<S>(gateway: Arc<GatewayState>, stream: S)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    http_server::serve_stream(Arc::clone(&gateway.server), gateway, stream).await;
}
