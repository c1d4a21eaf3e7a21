//! TLS, and HTTP/2 where it is agreed on.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::join_all;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use super::node::*;
use crate::call::{Ask, Class, Fault, TlsFailure};
use crate::transport::dial::NodeStream;
use crate::transport::{Client, Endpoint, EndpointLimits};

/// Says over which protocol it was asked.
async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let protocol = format!("\"{:?}\"", request.version());
    let body = request.into_body().collect().await?.to_bytes();
    let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
    Ok(Response::new(Full::from(result(id_of(&body), &protocol))))
}

async fn serve(stream: Box<dyn NodeStream>, http2: bool) {
    let stream = TokioIo::new(stream);
    let _ = if http2 {
        let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        builder.serve_connection(stream, service_fn(answer)).await
    } else {
        hyper::server::conn::http1::Builder::new().serve_connection(stream, service_fn(answer)).await
    };
}

/// A node with a certificate for `localhost`, and that certificate.
async fn tls_node(protocol: &'static [u8]) -> (SocketAddr, CertificateDer<'static>) {
    tls_node_until(protocol, 4096).await
}

/// The same with a certificate that expires at the end of a year.
async fn tls_node_until(protocol: &'static [u8], year: i32) -> (SocketAddr, CertificateDer<'static>) {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
    params.not_after = rcgen::date_time_ymd(year, 12, 31);
    let certificate = params.self_signed(&key).unwrap().der().clone();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    config.alpn_protocols = vec![protocol.to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                serve(Box::new(stream), protocol == b"h2").await;
            });
        }
    });
    (address, certificate)
}

fn client(host: &str, address: SocketAddr, trusted: &CertificateDer<'static>) -> Client {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let endpoint = Endpoint::parse(&format!("https://{host}:{}/key", address.port())).unwrap();
    Client::with_roots(endpoint, EndpointLimits::default(), Arc::new(roots))
}

#[tokio::test]
async fn a_node_is_asked_over_tls() {
    let (address, certificate) = tls_node(b"http/1.1").await;
    let client = client("localhost", address, &certificate);
    assert_eq!(ask(&client, "[]").await, said("\"HTTP/1.1\""));
    assert_eq!(ask(&client, "[]").await, said("\"HTTP/1.1\""));
    assert_eq!(client.stats().connections_made, 1);
}

#[tokio::test]
async fn http2_is_spoken_where_both_have_it_and_one_connection_is_enough() {
    let (address, certificate) = tls_node(b"h2").await;
    let client = client("localhost", address, &certificate);
    assert_eq!(ask(&client, "[]").await, said("\"HTTP/2.0\""));
    let calls = (0..20).map(|_| call(Class::Evm, "[]")).collect::<Vec<_>>();
    let warm = client.ask(&calls[0], in_ms(5_000)).await;
    assert_eq!(warm, said("\"HTTP/2.0\""));
    let asks = calls.iter().map(|call| client.ask(call, in_ms(5_000)));
    assert!(join_all(asks).await.iter().all(|reply| *reply == said("\"HTTP/2.0\"")));
    // One for quick calls, one for all others.
    assert_eq!(client.stats().connections_made, 2);
}

#[tokio::test]
async fn http2_may_be_demanded_without_tls() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(Box::new(stream), true));
        }
    });
    let endpoint = Endpoint::parse(&format!("http://{address}")).unwrap().with_http2(true);
    let client = Client::new(endpoint, EndpointLimits::default());
    assert_eq!(ask(&client, "[]").await, said("\"HTTP/2.0\""));
}

/// A request that the node had not begun to work on counted as a fault of the node. Every graceful end of a connection under
/// load has such requests. Later, each of them opened a connection of its own.
#[tokio::test]
async fn a_request_that_a_node_refuses_over_http2_is_sent_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let refused = Arc::new(Mutex::new(HashSet::new()));
    let seen = Arc::clone(&refused);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let seen = Arc::clone(&seen);
            tokio::spawn(async move {
                let mut connection = h2::server::handshake(stream).await.unwrap();
                while let Some(Ok((request, mut respond))) = connection.accept().await {
                    let seen = Arc::clone(&seen);
                    tokio::spawn(async move {
                        let body = request.into_body().data().await.unwrap().unwrap();
                        if seen.lock().insert(body.clone()) {
                            return respond.send_reset(h2::Reason::REFUSED_STREAM);
                        }
                        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
                        let mut reply = respond.send_response(Response::new(()), false).unwrap();
                        reply.send_data(echo(&body).into(), true).unwrap();
                    });
                }
            });
        }
    });
    let endpoint = Endpoint::parse(&format!("http://{address}")).unwrap().with_http2(true);
    let client = Client::new(endpoint, EndpointLimits::default());
    assert_eq!(ask(&client, "[]").await, said("[]"));
    let asks = (0..20).map(|_| ask(&client, "[]"));
    assert!(join_all(asks).await.iter().all(|reply| *reply == said("[]")));
    assert!(refused.lock().len() > 1, "more than one request was refused");
    assert_eq!(client.stats().connections_made, 1);
}

/// Answers each call of a request with its own params.
async fn answer_stream(request: Request<h2::RecvStream>, mut respond: h2::server::SendResponse<Bytes>) {
    let body = request.into_body().data().await.unwrap().unwrap();
    let mut reply = respond.send_response(Response::new(()), false).unwrap();
    reply.send_data(echo(&serde_json::from_slice(&body).unwrap()).into(), true).unwrap();
}

/// Every graceful end of a connection counted as a fault of the node.
#[tokio::test]
async fn a_request_on_a_connection_that_the_node_ends_is_sent_on_another() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut connection = h2::server::handshake(stream).await.unwrap();
                let (request, respond) = connection.accept().await.unwrap().unwrap();
                tokio::spawn(answer_stream(request, respond));
                // The second request of each connection is answered with GOAWAY.
                let _unanswered = connection.accept().await;
                connection.abrupt_shutdown(h2::Reason::NO_ERROR);
                while connection.accept().await.is_some() {}
            });
        }
    });
    let endpoint = Endpoint::parse(&format!("http://{address}")).unwrap().with_http2(true);
    let client = Client::new(endpoint, EndpointLimits::default());
    for connections in 1..=3 {
        assert_eq!(ask(&client, "[]").await, said("[]"));
        assert_eq!(client.stats().connections_made, connections);
    }
}

#[tokio::test]
async fn a_certificate_that_cannot_be_trusted_is_the_end_of_it() {
    let (address, certificate) = tls_node(b"http/1.1").await;
    let (_, other) = tls_node(b"http/1.1").await;
    let unknown = ask(&client("localhost", address, &other), "[]").await;
    assert!(
        matches!(unknown, Err(Fault::Tls(TlsFailure::UnknownIssuer | TlsFailure::BadCertificate))),
        "{unknown:?}"
    );
    let other_name = ask(&client("127.0.0.1", address, &certificate), "[]").await;
    assert_eq!(other_name, Err(Fault::Tls(TlsFailure::OtherName)));
}

#[tokio::test]
async fn a_certificate_that_has_expired_is_told_as_such() {
    let (address, certificate) = tls_node_until(b"http/1.1", 2020).await;
    let expired = ask(&client("localhost", address, &certificate), "[]").await;
    assert_eq!(expired, Err(Fault::Tls(TlsFailure::Expired)));
}

#[tokio::test]
async fn a_host_that_has_no_address_is_told_as_such() {
    let endpoint = Endpoint::parse("http://no-such-host.invalid:8545").unwrap();
    assert_eq!(ask(&Client::new(endpoint, EndpointLimits::default()), "[]").await, Err(Fault::Dns));
}

#[tokio::test]
async fn a_node_without_tls_is_not_asked_without_it() {
    let node = Node::start(|mut talk| async move { talk.reply("{}").await }).await;
    let (_, certificate) = tls_node(b"http/1.1").await;
    assert_eq!(
        ask(&client("localhost", node.address, &certificate), "[]").await,
        Err(Fault::Tls(TlsFailure::NoTls))
    );
}
