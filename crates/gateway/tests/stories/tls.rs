//! TLS: both protocols, as the caller offers them.

use std::fs;
use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::gateway_under_test::{Gateway, chain_id};

async fn connect(
    gateway: &Gateway,
    certificate: &CertificateDer<'static>,
    protocol: &[u8],
) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    let stream = TcpStream::connect(gateway.public).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
}

#[tokio::test]
async fn both_protocols_are_spoken_over_tls() {
    let issued = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (certificate, key) = (dir.path().join("cert.pem"), dir.path().join("key.pem"));
    fs::write(&certificate, issued.cert.pem()).unwrap();
    fs::write(&key, issued.signing_key.serialize_pem()).unwrap();
    let gateway = Gateway::listening(&format!("tls_certificate = {certificate:?}\ntls_key = {key:?}"));
    let request = || {
        let request = Request::post("https://localhost/v3/demo").header("host", "localhost");
        request.body(Full::<Bytes>::from(chain_id("1"))).unwrap()
    };

    let stream = connect(&gateway, issued.cert.der(), b"http/1.1").await;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let body = sender.send_request(request()).await.unwrap().into_body().collect().await.unwrap().to_bytes();
    assert_eq!(&body[..], br#"{"jsonrpc":"2.0","id":1,"result":"0x539"}"#);

    let stream = connect(&gateway, issued.cert.der(), b"h2").await;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (mut sender, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let body = sender.send_request(request()).await.unwrap().into_body().collect().await.unwrap().to_bytes();
    assert_eq!(&body[..], br#"{"jsonrpc":"2.0","id":1,"result":"0x539"}"#);
}
