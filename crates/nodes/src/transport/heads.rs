//! New heads as a node tells of them, over a WebSocket.
//!
//! What comes this way is a hint that there is something to look at; who follows the chain asks for the block itself.

use std::time::Duration;

use alloy_primitives::{B256, U64};
use futures_util::{SinkExt, StreamExt};
use serde::Deserialize;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use crate::call::BlockId;

use super::dial::{Dialer, Stream};
use super::endpoint::Endpoint;
use super::tls::Purpose;
use crate::outage_log::OutageLog;

/// A header with all its fields is about 2 KB.
const MESSAGE_BYTES_MAX: usize = 64 << 10;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// A connection that says nothing for so long is asked whether it lives, and given up after as long again.
const SILENCE: Duration = Duration::from_secs(20);

/// The first wait before connecting again. It doubles with each failure; a head brings it back.
const PAUSE_MIN: Duration = Duration::from_millis(250);

/// The longest wait: a node that is back is heard within half a minute.
const PAUSE_MAX: Duration = Duration::from_secs(30);

const SUBSCRIBE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["newHeads"]}"#;

/// Listens to a node for as long as the receiver is held, and connects again whenever the connection ends. The receiver
/// sees the newest head and none that came before it: whoever reads late misses nothing, and the node never waits.
pub fn heads(endpoint: Endpoint) -> watch::Receiver<Option<BlockId>> {
    let (sender, receiver) = watch::channel(None);
    tokio::spawn(async move {
        let gone = sender.clone();
        tokio::select! {
            () = gone.closed() => {}
            () = Listener::new(endpoint, sender).listen() => {}
        }
    });
    receiver
}

struct Listener {
    endpoint: Endpoint,
    dialer: Dialer,
    heads: watch::Sender<Option<BlockId>>,
    pause: Duration,
    outage: OutageLog,
}

impl Listener {
    fn new(endpoint: Endpoint, heads: watch::Sender<Option<BlockId>>) -> Self {
        let dialer = Dialer::new(&endpoint, None, Purpose::Heads, CONNECT_TIMEOUT);
        Self { endpoint, dialer, heads, pause: PAUSE_MIN, outage: OutageLog::default() }
    }

    async fn listen(mut self) {
        loop {
            if let Some(socket) = self.connect().await {
                self.hear(socket).await;
            }
            if let Some(failures) = self.outage.failed(Instant::now()) {
                let node = &self.endpoint;
                tracing::warn!(%node, failures, "no new heads are pushed from this ws_url; its node is polled instead");
            }
            sleep(self.pause).await;
            self.pause = (self.pause * 2).min(PAUSE_MAX);
        }
    }

    async fn connect(&self) -> Option<WebSocketStream<Box<dyn Stream>>> {
        let stream = self.dialer.dial().await.ok()?.stream;
        let mut request = self.endpoint.url().into_client_request().ok()?;
        for (name, value) in self.endpoint.headers() {
            request.headers_mut().insert(name, value.clone());
        }
        let limits = WebSocketConfig::default()
            .max_message_size(Some(MESSAGE_BYTES_MAX))
            .max_frame_size(Some(MESSAGE_BYTES_MAX));
        let handshake = client_async_with_config(request, stream, Some(limits));
        let (mut socket, _) = timeout(CONNECT_TIMEOUT, handshake).await.ok()?.ok()?;
        socket.send(Message::text(SUBSCRIBE)).await.ok()?;
        Some(socket)
    }

    /// Reports heads until the connection ends.
    async fn hear(&mut self, mut socket: WebSocketStream<Box<dyn Stream>>) {
        let mut asked = false;
        loop {
            match timeout(SILENCE, socket.next()).await {
                Ok(Some(Ok(message))) => {
                    asked = false;
                    if self.report(&message).is_none() {
                        return;
                    }
                }
                Ok(_) => return,
                Err(_) if asked => return,
                Err(_) => {
                    asked = true;
                    if ping(&mut socket).await.is_err() {
                        return;
                    }
                }
            }
        }
    }

    /// `None` when the connection is of no more use.
    fn report(&mut self, message: &Message) -> Option<()> {
        let Message::Text(text) = message else {
            return if message.is_close() { None } else { Some(()) };
        };
        let told: Told = serde_json::from_str(text).ok()?;
        if told.error.is_some() {
            return None;
        }
        if let Some(params) = told.params {
            self.pause = PAUSE_MIN;
            if self.outage.recovered(Instant::now()) {
                tracing::info!(node = %self.endpoint, "new heads are pushed again");
            }
            let head = BlockId { number: params.result.number.to(), hash: params.result.hash };
            self.heads.send_replace(Some(head));
        }
        Some(())
    }
}

async fn ping(socket: &mut WebSocketStream<Box<dyn Stream>>) -> Result<(), Error> {
    socket.send(Message::Ping(Default::default())).await
}

/// What a node says: its reply to the subscription, or a head.
#[derive(Deserialize)]
struct Told {
    error: Option<serde::de::IgnoredAny>,
    params: Option<ToldHead>,
}

#[derive(Deserialize)]
struct ToldHead {
    result: Header,
}

#[derive(Deserialize)]
struct Header {
    number: U64,
    hash: B256,
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;
    use tokio_tungstenite::accept_async;

    use super::*;

    fn told(number: u64) -> Message {
        let hash = B256::with_last_byte(number as u8);
        Message::text(format!(
            r#"{{"jsonrpc":"2.0","method":"eth_subscription","params":{{"subscription":"0x1","result":{{"number":"{number:#x}","hash":"{hash}","gasUsed":"0x0"}}}}}}"#
        ))
    }

    fn head(number: u64) -> Option<BlockId> {
        Some(BlockId { number, hash: B256::with_last_byte(number as u8) })
    }

    #[tokio::test]
    async fn heads_are_reported_and_a_lost_connection_is_made_again() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("ws://{}/key", listener.local_addr().unwrap());
        tokio::spawn(async move {
            for turn in 0..2 {
                let (stream, _) = listener.accept().await.unwrap();
                let mut socket = accept_async(stream).await.unwrap();
                assert_eq!(socket.next().await.unwrap().unwrap(), Message::text(SUBSCRIBE));
                socket.send(Message::text(r#"{"jsonrpc":"2.0","id":1,"result":"0x1"}"#)).await.unwrap();
                socket.send(told(turn + 1)).await.unwrap();
                // Until it was seen, so that the next one does not replace it.
                socket.send(Message::Ping(Default::default())).await.unwrap();
                assert!(socket.next().await.unwrap().unwrap().is_pong());
            }
            std::future::pending::<()>().await;
        });
        let mut heads = heads(Endpoint::parse_websocket(&url).unwrap());
        for number in 1..=2 {
            heads.wait_for(|seen| *seen == head(number)).await.unwrap();
        }
    }

    /// Heads were sent through a queue of 64. When nobody read it, because the node was lost, the connection stood still:
    /// its pings were not answered any more, and then 64 old heads were looked at one by one.
    #[tokio::test]
    async fn a_flood_of_heads_that_nobody_reads_does_not_stop_the_connection() {
        const HEADS: u64 = 200;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("ws://{}/", listener.local_addr().unwrap());
        let mut heads = heads(Endpoint::parse_websocket(&url).unwrap());
        let (stream, _) = listener.accept().await.unwrap();
        let mut socket = accept_async(stream).await.unwrap();
        socket.next().await.unwrap().unwrap();
        for number in 1..=HEADS {
            socket.send(told(number)).await.unwrap();
        }
        socket.send(Message::Ping(Default::default())).await.unwrap();
        let pong = timeout(Duration::from_secs(60), socket.next()).await.expect("it is answered");
        assert!(pong.unwrap().unwrap().is_pong());
        assert_eq!(*heads.borrow_and_update(), head(HEADS), "only the newest is left");
    }

    #[tokio::test]
    async fn who_stops_listening_ends_the_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("ws://{}/", listener.local_addr().unwrap());
        let heads = heads(Endpoint::parse_websocket(&url).unwrap());
        let (stream, _) = listener.accept().await.unwrap();
        let mut socket = accept_async(stream).await.unwrap();
        socket.next().await.unwrap().unwrap();
        drop(heads);
        let end = timeout(Duration::from_secs(5), socket.next()).await.unwrap();
        assert!(!matches!(end, Some(Ok(Message::Text(_)))));
    }
}
