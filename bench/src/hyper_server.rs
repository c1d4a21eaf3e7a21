//! The limit: a server that does nothing but read a request with hyper and reply with a fixed body.

use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, body::Bytes, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use std::{convert::Infallible, io::Write};
use tokio::net::TcpListener;

/// Serves until it is killed. Says its port on standard output first.
pub(crate) fn run(bytes: usize) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(serve(Bytes::from(vec![b'0'; bytes])));
}

async fn serve(body: Bytes) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    println!("{}", listener.local_addr().expect("an address").port());
    std::io::stdout().flush().expect("somebody reads the port");
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        stream.set_nodelay(true).expect("a TCP socket");
        let body = body.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| reply(request, body.clone()));
            // A connection that breaks ends; the next one comes.
            let _ended = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn reply(request: Request<Incoming>, body: Bytes) -> Result<Response<Full<Bytes>>, Infallible> {
    let _read = request.into_body().collect().await;
    let reply = Response::builder().header("content-type", "application/json").body(Full::new(body));
    Ok(reply.expect("a reply"))
}
