//! Requests to the admin API of a running gateway.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use console::AdminToken;
use http::{HeaderValue, Request, Response, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Longer than the gateway gives an operator connection as a whole.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);

/// Bytes of a reply: a page of a list has less than a megabyte.
const REPLY_BYTES_MAX: usize = 64 << 20;

/// Where the admin API of the running gateway is, and the token for it.
#[derive(Debug)]
pub(super) struct AdminClient {
    pub(super) address: SocketAddr,
    pub(super) token: AdminToken,
}

impl AdminClient {
    /// Sends one request on a connection of its own.
    pub(super) async fn send(&self, mut request: Request<Bytes>) -> Result<Response<Bytes>, String> {
        let authorization =
            HeaderValue::from_str(&self.token.authorization()).map_err(|error| error.to_string())?;
        let host = HeaderValue::from_str(&self.address.to_string()).map_err(|error| error.to_string())?;
        request.headers_mut().insert(header::AUTHORIZATION, authorization);
        request.headers_mut().insert(header::HOST, host);
        let failed = |why: String| format!("the running gateway at {} does not answer: {why}", self.address);
        match timeout(REQUEST_TIMEOUT, exchange(self.address, request)).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(failed(error.to_string())),
            Err(_) => Err(failed(format!("no reply within {} seconds", REQUEST_TIMEOUT.as_secs()))),
        }
    }
}

type ExchangeFailure = Box<dyn std::error::Error + Send + Sync>;

async fn exchange(address: SocketAddr, request: Request<Bytes>) -> Result<Response<Bytes>, ExchangeFailure> {
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let answered = async {
        let (head, body) = sender.send_request(request.map(Full::new)).await?.into_parts();
        let body = Limited::new(body, REPLY_BYTES_MAX).collect().await?;
        Ok::<_, ExchangeFailure>(Response::from_parts(head, body.to_bytes()))
    };
    let mut answered = std::pin::pin!(answered);
    tokio::select! {
        answered = &mut answered => answered,
        // The connection ends after the reply, which may still have to be read.
        _ = connection => answered.await,
    }
}
