//! TLS towards nodes.

use std::sync::{Arc, OnceLock};

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{ClientConfig, Error, RootCertStore};

/// The protocol of a connection after its handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// HTTP/2 if the node has it.
    Calls,
    /// WebSockets begin as HTTP/1.1.
    Heads,
}

/// The root certificates of this machine.
pub(super) fn native() -> Arc<RootCertStore> {
    static ROOTS: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    Arc::clone(ROOTS.get_or_init(|| {
        let found = rustls_native_certs::load_native_certs();
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(found.certs);
        if roots.is_empty() {
            tracing::error!(
                "no trusted root certificates found on this machine; install ca-certificates to use nodes behind https"
            );
        }
        Arc::new(roots)
    }))
}

pub(super) fn connector(roots: Arc<RootCertStore>, purpose: Purpose) -> Result<TlsConnector, Error> {
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = match purpose {
        Purpose::Calls => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        Purpose::Heads => vec![b"http/1.1".to_vec()],
    };
    Ok(TlsConnector::from(Arc::new(config)))
}
