//! HTTP/2 with prior knowledge.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};

use crate::gateway_under_test::{Gateway, call, chain_id};

pub(crate) async fn post(
    sender: &mut http2::SendRequest<Full<Bytes>>,
    path: &str,
    body: String,
) -> (u16, serde_json::Value) {
    let request = Request::post(format!("http://test{path}")).header("content-type", "application/json");
    let response = sender.send_request(request.body(Full::from(body)).unwrap()).await.unwrap();
    let status = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&bytes).unwrap())
}

#[tokio::test]
async fn calls_share_a_connection_without_waiting_for_each_other() {
    let gateway = Gateway::start();
    let stream = tokio::net::TcpStream::connect(gateway.public).await.unwrap();
    let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let (mut slow, mut quick, mut other) = (sender.clone(), sender.clone(), sender);
    // It ends only at its deadline, or when nobody waits for it any more.
    let endless = post(&mut slow, "/v3/demo", call("eth_call", r#"[{"data":"0x02"}]"#));
    tokio::select! {
        ended = endless => panic!("the quick call waited for the endless one: {ended:?}"),
        (status, json) = post(&mut quick, "/v3/demo", chain_id("1")) => {
            assert_eq!((status, &json["result"]), (200, &"0x539".into()));
        }
    }
    let (status, json) = post(&mut slow, "/v3/demo", call("eth_call", r#"[{"data":"0x04"}]"#)).await;
    assert_eq!((status, &json["result"]), (200, &"0x04".into()));
    let (status, json) = post(&mut other, "/v3/nobody", chain_id("1")).await;
    assert_eq!((status, json["error"]["code"].as_i64()), (401, Some(-32002)));
    let (status, _) = post(&mut other, "/v3/demo", chain_id("2")).await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn a_reply_to_head_has_no_body() {
    let gateway = Gateway::start();
    let stream = tokio::net::TcpStream::connect(gateway.public).await.unwrap();
    let (mut sender, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = Request::head("http://test/v3/demo").body(Full::<Bytes>::default()).unwrap();
    let response = sender.send_request(request).await.unwrap();
    assert_eq!(response.status(), 405);
    assert!(response.into_body().collect().await.unwrap().to_bytes().is_empty());
}
