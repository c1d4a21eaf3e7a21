//! TLS on the public listener: a certificate, its key, and nothing else to configure.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::config::Section;

/// Where the certificate and its key are, both PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The chain, the server's own certificate first.
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl Tls {
    pub(super) fn read(section: &mut Section<'_>) -> Option<Self> {
        match (section.optional_text("tls_certificate"), section.optional_text("tls_key")) {
            (Some(certificate), Some(key)) => Some(Self { certificate: certificate.into(), key: key.into() }),
            (None, None) => None,
            (Some(_), None) => {
                section.mistake("tls_certificate", "a certificate needs its tls_key");
                None
            }
            (None, Some(_)) => {
                section.mistake("tls_key", "a key needs its tls_certificate");
                None
            }
        }
    }

    /// What greets callers. HTTP/2 comes first, because those who offer both mean it.
    pub(super) fn acceptor(&self) -> io::Result<TlsAcceptor> {
        let unreadable = |error: pem::Error| io::Error::other(format!("TLS: {error}"));
        let chain: Result<Vec<_>, _> =
            CertificateDer::pem_file_iter(&self.certificate).map_err(unreadable)?.collect();
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(unreadable)?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_single_cert(chain.map_err(unreadable)?, key)
            .map_err(io::Error::other)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}
