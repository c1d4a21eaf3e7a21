//! TLS: both protocols, as the caller offers them.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fs, io};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::demo::{metric, until};
use crate::gateway_under_test::{Gateway, call, chain_id};
use crate::process::Process;

async fn connect(
    address: SocketAddr,
    certificate: &CertificateDer<'static>,
    protocol: &[u8],
) -> TlsStream<TcpStream> {
    try_connect(address, std::slice::from_ref(certificate), protocol).await.unwrap()
}

pub(crate) async fn try_connect(
    address: SocketAddr,
    trusted: &[CertificateDer<'static>],
    protocol: &[u8],
) -> io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    trusted.iter().for_each(|certificate| roots.add(certificate.clone()).unwrap());
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

/// Writes a certificate for localhost into the folder; gives the settings that name it, and the certificate.
pub(crate) fn certificate_in(dir: &Path) -> (String, CertificateDer<'static>) {
    let issued = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (certificate, key) = (dir.join("cert.pem"), dir.join("key.pem"));
    fs::write(&certificate, issued.cert.pem()).unwrap();
    fs::write(&key, issued.signing_key.serialize_pem()).unwrap();
    (format!("tls_certificate = {certificate:?}\ntls_key = {key:?}"), issued.cert.der().clone())
}

// TLS takes bytes before they are sent. A caller that read nothing of a reply which the socket and TLS could hold kept its
// connection for ever, because the write timeout watched only writes.
#[tokio::test]
async fn a_caller_that_reads_nothing_over_tls_is_cut_off() {
    let dir = tempfile::tempdir().unwrap();
    let (tls, certificate) = certificate_in(dir.path());
    let gateway = Gateway::listening_with(&tls, "write_timeout_ms = 300");
    let mut callers = Vec::new();
    // About 30 KB for each call: some replies fit into the buffers on the way, some into that of TLS, some into neither.
    for calls in 1..=10 {
        let mut stream = connect(gateway.public, &certificate, b"http/1.1").await;
        let code = call("eth_getCode", r#"["0x00000000000000000000000000000000000000aa"]"#);
        let batch = format!("[{}]", vec![code; calls].join(","));
        let request = testkit::http::request("/v3/demo", "connection: close\r\n", batch.as_bytes());
        stream.write_all(&request).await.unwrap();
        callers.push(stream);
    }
    until("all are closed", || metric(gateway.operator, "chaingate_connections_open") == 0.0);
}

#[tokio::test]
async fn both_protocols_are_spoken_over_tls() {
    let dir = tempfile::tempdir().unwrap();
    let (tls, certificate) = certificate_in(dir.path());
    let gateway = Gateway::listening(&tls);
    let request = || {
        let request = Request::post("https://localhost/v3/demo").header("host", "localhost");
        request.body(Full::<Bytes>::from(chain_id("1"))).unwrap()
    };

    let stream = connect(gateway.public, &certificate, b"http/1.1").await;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let body = sender.send_request(request()).await.unwrap().into_body().collect().await.unwrap().to_bytes();
    assert_eq!(&body[..], br#"{"jsonrpc":"2.0","id":1,"result":"0x539"}"#);

    let stream = connect(gateway.public, &certificate, b"h2").await;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (mut sender, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let body = sender.send_request(request()).await.unwrap().into_body().collect().await.unwrap().to_bytes();
    assert_eq!(&body[..], br#"{"jsonrpc":"2.0","id":1,"result":"0x539"}"#);
}

/// A renewed certificate needed a restart, which all callers felt.
#[tokio::test]
async fn a_renewed_certificate_is_served_without_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let (tls, old) = certificate_in(dir.path());
    let gateway = Process::start("127.0.0.1:0", &tls, "info");
    let mut before = connect(gateway.public, &old, b"http/1.1").await;
    let (_, new) = certificate_in(dir.path());
    let late = Instant::now() + Duration::from_secs(60);
    let new = [new];
    while try_connect(gateway.public, &new, b"http/1.1").await.is_err() {
        assert!(Instant::now() < late, "the new certificate is not served");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(try_connect(gateway.public, &[old], b"http/1.1").await.is_err());
    let post = testkit::http::request("/v3/demo", "connection: close\r\n", chain_id("1").as_bytes());
    before.write_all(&post).await.unwrap();
    let mut reply = Vec::new();
    let _ended = before.read_to_end(&mut reply).await;
    assert!(reply.starts_with(b"HTTP/1.1 200 OK"), "a connection keeps the certificate that it began with");
}

/// The first bytes alone decided. A proxy that had agreed on HTTP/1.1 could be made to carry HTTP/2, which it does not read.
#[tokio::test]
async fn a_connection_speaks_the_protocol_that_was_agreed_on() {
    let dir = tempfile::tempdir().unwrap();
    let (tls, certificate) = certificate_in(dir.path());
    let gateway = Gateway::listening(&tls);
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
    let post = testkit::http::request("/v3/demo", "connection: close\r\n", chain_id("1").as_bytes());
    for (agreed, sent, begins, contains) in [
        (&b"http/1.1"[..], &post, &b"HTTP/1.1 200 OK"[..], "0x539"),
        (b"http/1.1", &preface, b"HTTP/1.1 400 Bad Request", "the head of the request is not HTTP"),
        // A frame of settings, and no reply.
        (b"h2", &post, b"\0\0", ""),
    ] {
        let mut stream = connect(gateway.public, &certificate, agreed).await;
        stream.write_all(sent).await.unwrap();
        let mut reply = Vec::new();
        // A connection that ends without a last message of TLS still gives what came before.
        let _ended = stream.read_to_end(&mut reply).await;
        let text = String::from_utf8_lossy(&reply);
        assert!(reply.starts_with(begins) && text.contains(contains), "{agreed:?}: {text}");
        assert!(agreed != b"h2" || !text.contains("HTTP/1.1"), "{text}");
    }
}
