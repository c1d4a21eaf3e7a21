//! Opens connections: DNS, TCP, TLS.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{self, CertificateError, RootCertStore};

use crate::call::{Fault, TlsFailure};

use super::endpoint::Endpoint;
use super::tls::{self, Purpose};

/// The most addresses of a host name that are tried.
const ADDRESSES_MAX: usize = 16;

/// A connection with or without TLS. One virtual call per system call is not measurable.
pub(super) trait NodeStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> NodeStream for T {}

/// A new connection, and its protocol.
pub(super) struct Dialed {
    pub(super) stream: Box<dyn NodeStream>,
    pub(super) http2: bool,
}

/// Opens connections to one endpoint.
pub(super) struct Dialer {
    host: String,
    port: u16,
    security: Security,
    /// Whether HTTP/2 is spoken without negotiation.
    http2: bool,
    timeout: Duration,
    /// The addresses of the last look-up. They are used while the name cannot be resolved.
    last_addresses: Mutex<Vec<SocketAddr>>,
}

enum Security {
    None,
    Tls(TlsConnector, ServerName<'static>),
    /// The host name can be on no certificate, or TLS cannot be set up. Connecting then fails instead of going without TLS.
    Impossible,
}

impl fmt::Debug for Dialer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Dialer({}:{})", self.host, self.port)
    }
}

impl Dialer {
    pub(super) fn new(
        endpoint: &Endpoint,
        roots: Option<Arc<RootCertStore>>,
        purpose: Purpose,
        timeout: Duration,
    ) -> Self {
        let security = if endpoint.is_tls() { secure(endpoint, roots, purpose) } else { Security::None };
        Self {
            host: endpoint.host().to_owned(),
            port: endpoint.port(),
            security,
            http2: endpoint.http2(),
            timeout,
            last_addresses: Mutex::default(),
        }
    }

    pub(super) async fn dial(&self) -> Result<Dialed, Fault> {
        let stream = self.connect().await?;
        match &self.security {
            Security::None => Ok(Dialed { stream: Box::new(stream), http2: self.http2 }),
            Security::Impossible => Err(Fault::Tls(TlsFailure::OtherName)),
            Security::Tls(connector, name) => {
                let handshake = connector.connect(name.clone(), stream);
                let late = Fault::Tls(TlsFailure::Handshake);
                let stream = timeout(self.timeout, handshake).await.map_err(|_| late)?;
                let stream = stream.map_err(|error| Fault::Tls(failure(&error)))?;
                let agreed = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                Ok(Dialed { stream: Box::new(stream), http2: agreed || self.http2 })
            }
        }
    }

    /// Tries the addresses of the host name in turn, and takes the first that accepts.
    async fn connect(&self) -> Result<TcpStream, Fault> {
        let mut fault = Fault::Connect;
        for address in self.addresses().await? {
            match self.try_address(address).await {
                Ok(stream) => return Ok(stream),
                Err(failed) => fault = failed,
            }
        }
        Err(fault)
    }

    /// The addresses of the host name, or those that it had before if it cannot be resolved.
    async fn addresses(&self) -> Result<Vec<SocketAddr>, Fault> {
        let found = tokio::net::lookup_host((self.host.as_str(), self.port));
        let found = timeout(self.timeout, found).await.ok().and_then(Result::ok);
        self.found_or_last(found.map(|found| found.take(ADDRESSES_MAX).collect()))
    }

    fn found_or_last(&self, found: Option<Vec<SocketAddr>>) -> Result<Vec<SocketAddr>, Fault> {
        let mut last = self.last_addresses.lock();
        if let Some(found) = found {
            last.clone_from(&found);
            return Ok(found);
        }
        if last.is_empty() { Err(Fault::Dns) } else { Ok(last.clone()) }
    }

    async fn try_address(&self, address: SocketAddr) -> Result<TcpStream, Fault> {
        let connected = timeout(self.timeout, TcpStream::connect(address)).await;
        let stream = connected.map_err(|_| Fault::ConnectTimeout)?.map_err(|_| Fault::Connect)?;
        // Each request is one write, so delaying its last segment gains nothing.
        stream.set_nodelay(true).map_err(|_| Fault::Connect)?;
        Ok(stream)
    }
}

/// Why a handshake failed.
fn failure(error: &std::io::Error) -> TlsFailure {
    let error = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
    match error {
        Some(rustls::Error::InvalidCertificate(certificate)) => match certificate {
            CertificateError::UnknownIssuer => TlsFailure::UnknownIssuer,
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                TlsFailure::OtherName
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => TlsFailure::Expired,
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                TlsFailure::NotYetValid
            }
            _ => TlsFailure::BadCertificate,
        },
        Some(rustls::Error::InvalidMessage(_)) => TlsFailure::NoTls,
        _ => TlsFailure::Handshake,
    }
}

fn secure(endpoint: &Endpoint, roots: Option<Arc<RootCertStore>>, purpose: Purpose) -> Security {
    let name = ServerName::try_from(endpoint.host().to_owned());
    let connector = tls::connector(roots.unwrap_or_else(tls::native), purpose);
    match (name, connector) {
        (Ok(name), Ok(connector)) => Security::Tls(connector, name),
        _ => Security::Impossible,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// While the DNS was down, no new connection was made to a node that ran as before.
    #[test]
    fn a_name_that_cannot_be_resolved_any_more_keeps_its_addresses() {
        let endpoint = Endpoint::parse("http://node.example").unwrap();
        let dialer = Dialer::new(&endpoint, None, Purpose::Calls, Duration::from_secs(30));
        assert_eq!(dialer.found_or_last(None), Err(Fault::Dns));
        let found = vec![SocketAddr::from(([192, 0, 2, 1], 80))];
        assert_eq!(dialer.found_or_last(Some(found.clone())), Ok(found.clone()));
        assert_eq!(dialer.found_or_last(None), Ok(found));
    }
}
