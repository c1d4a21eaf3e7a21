//! TLS on the public listener.

mod expiry; // when certificates expire

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use settings::Section;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The name of HTTP/2 in a TLS handshake.
pub(super) const ALPN_HTTP2: &[u8] = b"h2";

/// The files of the certificate and its key, both PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsConfig {
    /// The chain, the server's own certificate first.
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl TlsConfig {
    pub(super) fn read(section: &mut Section<'_>) -> Option<Self> {
        match (section.optional_text("tls_certificate"), section.optional_text("tls_key")) {
            (Some(certificate), Some(key)) => Some(Self { certificate: certificate.into(), key: key.into() }),
            (None, None) => None,
            (Some(_), None) => {
                section.error("tls_certificate", "needs tls_key");
                None
            }
            (None, Some(_)) => {
                section.error("tls_key", "needs tls_certificate");
                None
            }
        }
    }

    /// Checks that both files can be read and belong together.
    pub fn check(&self) -> Result<(), String> {
        LoadedCertificate::read(self.clone()).map(drop).map_err(|error| error.to_string())
    }

    /// When callers begin to refuse the certificate, in seconds since 1970: the earliest end of a certificate of the chain.
    pub fn expires_at(&self) -> io::Result<i64> {
        self.expires_at_of(&self.chain()?)
    }

    fn expires_at_of(&self, chain: &[CertificateDer<'static>]) -> io::Result<i64> {
        let times: Option<Vec<i64>> =
            chain.iter().map(|certificate| expiry::expires_at(certificate)).collect();
        times.and_then(|times| times.into_iter().min()).ok_or_else(|| {
            let certificate = self.certificate.display();
            io::Error::other(format!("listen.tls_certificate {certificate}: cannot read when it expires"))
        })
    }

    /// The certificates, the server's own first.
    fn chain(&self) -> io::Result<Vec<CertificateDer<'static>>> {
        let no_certificate = |error| unreadable("listen.tls_certificate", &self.certificate, error);
        let chain: Vec<_> = CertificateDer::pem_file_iter(&self.certificate)
            .and_then(|certificates| certificates.collect())
            .map_err(no_certificate)?;
        if chain.is_empty() { Err(no_certificate(pem::Error::NoItemsFound)) } else { Ok(chain) }
    }

    /// ALPN prefers HTTP/2.
    fn server_config(&self, chain: &[CertificateDer<'static>]) -> io::Result<ServerConfig> {
        let key = PrivateKeyDer::from_pem_file(&self.key)
            .map_err(|error| unreadable("listen.tls_key", &self.key, error))?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_single_cert(chain.to_vec(), key)
            .map_err(|error| {
                let (certificate, key) = (self.certificate.display(), self.key.display());
                io::Error::other(format!(
                    "listen.tls_certificate {certificate} with listen.tls_key {key}: {error}"
                ))
            })?;
        config.alpn_protocols = vec![ALPN_HTTP2.to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

/// The certificate that new connections get. It can be replaced while connections exist; those keep theirs.
#[derive(Debug)]
pub struct ServedCertificate(ArcSwap<LoadedCertificate>);

/// A certificate in memory, with the files that it was read from.
#[derive(Debug)]
struct LoadedCertificate {
    files: TlsConfig,
    chain: Vec<CertificateDer<'static>>,
    server: Arc<ServerConfig>,
    expires_at: i64,
}

impl LoadedCertificate {
    fn read(files: TlsConfig) -> io::Result<Self> {
        let chain = files.chain()?;
        let (server, expires_at) = (files.server_config(&chain)?, files.expires_at_of(&chain)?);
        Ok(Self { files, chain, server: Arc::new(server), expires_at })
    }
}

impl ServedCertificate {
    pub fn read(files: &TlsConfig) -> io::Result<Self> {
        LoadedCertificate::read(files.clone()).map(|loaded| Self(ArcSwap::from_pointee(loaded)))
    }

    /// Reads the files, and tells whether they have another certificate. If that fails, the one that is served stays.
    pub fn replace(&self, files: &TlsConfig) -> io::Result<bool> {
        Self::read(files).map(|read| self.replace_with(read))
    }

    /// Serves one that was read already, and tells whether it is another.
    pub fn replace_with(&self, read: Self) -> bool {
        let loaded = read.0.into_inner();
        let is_another = loaded.chain != self.0.load().chain;
        self.0.store(loaded);
        is_another
    }

    /// The files that it was read from.
    pub fn files(&self) -> TlsConfig {
        self.0.load().files.clone()
    }

    /// When callers begin to refuse it, in seconds since 1970.
    pub fn expires_at(&self) -> i64 {
        self.0.load().expires_at
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.0.load().server))
    }
}

fn unreadable(setting: &str, path: &Path, error: pem::Error) -> io::Error {
    io::Error::other(format!("{setting} {}: {error}", path.display()))
}
