//! New heads that a node pushes over a WebSocket.
//!
//! A pushed head only causes an early poll. The watcher fetches the block itself.

use std::time::Duration;

use alloy_primitives::B256;
use futures_util::{SinkExt, StreamExt};
use resources::SupervisedTask;
use serde::Deserialize;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use crate::call::{BlockId, Fault};

use super::dial::{Dialer, NodeStream};
use super::endpoint::Endpoint;
use super::tls::Purpose;
use crate::outage_log::OutageLog;
use crate::raw::hex::Hex;

/// A header with all its fields is about 2 KB.
const MESSAGE_BYTES_MAX: usize = 64 << 10;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a node may take to confirm a subscription.
const SUBSCRIBED_WITHIN: Duration = Duration::from_secs(2);

/// A connection without messages is pinged after this time, and closed after as long again.
const SILENCE: Duration = Duration::from_secs(20);

/// The first wait before connecting again. It doubles with each failure, and a head resets it.
const PAUSE_MIN: Duration = Duration::from_millis(250);

/// The longest wait before connecting again.
const PAUSE_MAX: Duration = Duration::from_secs(30);

const SUBSCRIBE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["newHeads"]}"#;

/// Subscribes to the new heads of a node for as long as the receiver is held, and connects again whenever the connection ends. The
/// receiver sees only the newest head, so the connection never waits for it.
pub(crate) fn pushed_heads(endpoint: Endpoint, task: SupervisedTask) -> watch::Receiver<Option<BlockId>> {
    let (sender, receiver) = watch::channel(None);
    tokio::spawn(async move {
        tokio::select! {
            () = sender.closed() => {}
            () = task.run(|| Listener::new(endpoint.clone(), sender.clone()).listen()) => {}
        }
    });
    receiver
}

/// Whether a node lets us subscribe to its new heads.
pub(crate) async fn check_heads(endpoint: &Endpoint) -> Result<(), Fault> {
    let mut socket = subscribe(endpoint, &dialer(endpoint)).await?;
    let reply = timeout(SUBSCRIBED_WITHIN, socket.next()).await.map_err(|_| Fault::Timeout)?;
    match reply {
        Some(Ok(Message::Text(text))) if serde_json::from_str::<Subscribed>(&text).is_ok() => Ok(()),
        Some(Ok(Message::Text(_))) => Err(Fault::Refused),
        Some(Ok(_)) => Err(Fault::Garbled),
        Some(Err(_)) | None => Err(Fault::Closed),
    }
}

/// The reply to a subscription: its id. A node that does not have this one replies with an error.
#[derive(Deserialize)]
struct Subscribed {
    #[serde(rename = "result")]
    _id: String,
}

fn dialer(endpoint: &Endpoint) -> Dialer {
    Dialer::new(endpoint, None, Purpose::Heads, CONNECT_TIMEOUT)
}

/// Connects, and asks for the new heads.
async fn subscribe(
    endpoint: &Endpoint,
    dialer: &Dialer,
) -> Result<WebSocketStream<Box<dyn NodeStream>>, Fault> {
    let stream = dialer.dial().await?.stream;
    let mut request = endpoint.url().into_client_request().map_err(|_| Fault::Garbled)?;
    for (name, value) in endpoint.headers() {
        request.headers_mut().insert(name, value.clone());
    }
    let limits = WebSocketConfig::default()
        .max_message_size(Some(MESSAGE_BYTES_MAX))
        .max_frame_size(Some(MESSAGE_BYTES_MAX));
    let handshake = client_async_with_config(request, stream, Some(limits));
    let shaken = timeout(CONNECT_TIMEOUT, handshake).await.map_err(|_| Fault::Timeout)?;
    let (mut socket, _) = shaken.map_err(|error| match error {
        Error::Http(response) => Fault::Status(response.status().as_u16()),
        _ => Fault::Garbled,
    })?;
    socket.send(Message::text(SUBSCRIBE)).await.map_err(|_| Fault::Closed)?;
    Ok(socket)
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
        let dialer = dialer(&endpoint);
        Self { endpoint, dialer, heads, pause: PAUSE_MIN, outage: OutageLog::default() }
    }

    async fn listen(mut self) {
        loop {
            if let Ok(socket) = subscribe(&self.endpoint, &self.dialer).await {
                self.report_heads(socket).await;
            }
            if let Some(failures) = self.outage.record_failure("newHeads", Instant::now()) {
                let node = &self.endpoint;
                tracing::warn!(%node, failures, "newHeads subscription lost; retrying, and polling the node meanwhile");
            }
            sleep(self.pause).await;
            self.pause = (self.pause * 2).min(PAUSE_MAX);
        }
    }

    /// Reports heads until the connection ends.
    async fn report_heads(&mut self, mut socket: WebSocketStream<Box<dyn NodeStream>>) {
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

    /// Returns `None` when the connection cannot be used any more.
    fn report(&mut self, message: &Message) -> Option<()> {
        let Message::Text(text) = message else {
            return if message.is_close() { None } else { Some(()) };
        };
        let notification: Notification = serde_json::from_str(text).ok()?;
        if notification.error.is_some() {
            return None;
        }
        if let Some(params) = notification.params {
            self.pause = PAUSE_MIN;
            if self.outage.record_recovery(Instant::now()) {
                tracing::info!(node = %self.endpoint, "newHeads subscription restored");
            }
            let head = BlockId { number: params.result.number.0, hash: params.result.hash };
            self.heads.send_replace(Some(head));
        }
        Some(())
    }
}

async fn ping(socket: &mut WebSocketStream<Box<dyn NodeStream>>) -> Result<(), Error> {
    socket.send(Message::Ping(Default::default())).await
}

/// A message of the node: its reply to the subscription, or a head.
#[derive(Deserialize)]
struct Notification {
    error: Option<serde::de::IgnoredAny>,
    params: Option<PushedHead>,
}

#[derive(Deserialize)]
struct PushedHead {
    result: HeadFields,
}

#[derive(Deserialize)]
struct HeadFields {
    number: Hex<u64>,
    hash: B256,
}

#[cfg(test)]
mod tests {
    use resources::{Supervisor, WhenDown};
    use tokio::net::TcpListener;
    use tokio_tungstenite::accept_async;

    use super::*;

    fn notification(number: u64) -> Message {
        let hash = B256::with_last_byte(number as u8);
        Message::text(format!(
            r#"{{"jsonrpc":"2.0","method":"eth_subscription","params":{{"subscription":"0x1","result":{{"number":"{number:#x}","hash":"{hash}","gasUsed":"0x0"}}}}}}"#
        ))
    }

    fn task() -> SupervisedTask {
        Supervisor::default().task("heads", WhenDown::Degraded)
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
                socket.send(notification(turn + 1)).await.unwrap();
                // Until it was seen, so that the next one does not replace it.
                socket.send(Message::Ping(Default::default())).await.unwrap();
                assert!(socket.next().await.unwrap().unwrap().is_pong());
            }
            std::future::pending::<()>().await;
        });
        let supervisor = Supervisor::default();
        // It panics before the first connection, and listens all the same.
        supervisor.inject_panics("heads", 1);
        let task = supervisor.task("heads", WhenDown::Degraded);
        let mut heads = pushed_heads(Endpoint::parse_websocket(&url).unwrap(), task);
        for number in 1..=2 {
            heads.wait_for(|seen| *seen == head(number)).await.unwrap();
        }
        assert_eq!(supervisor.report()[0].panics, 1);
    }

    #[tokio::test]
    async fn who_panics_for_ever_is_down() {
        let supervisor = Supervisor::default();
        supervisor.inject_panics("heads", u32::MAX);
        let endpoint = Endpoint::parse_websocket("ws://127.0.0.1:1/").unwrap();
        let _heads = pushed_heads(endpoint, supervisor.task("heads", WhenDown::Degraded));
        let is_down = async {
            while supervisor.why_down("heads").is_none() {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(Duration::from_secs(60), is_down).await.expect("it is down");
    }

    /// Heads were sent through a queue of 64. When nobody read it, because the node was lost, the connection stood still:
    /// its pings were not answered any more, and then 64 old heads were looked at one by one.
    #[tokio::test]
    async fn a_flood_of_heads_that_nobody_reads_does_not_stop_the_connection() {
        const HEADS: u64 = 200;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("ws://{}/", listener.local_addr().unwrap());
        let mut heads = pushed_heads(Endpoint::parse_websocket(&url).unwrap(), task());
        let (stream, _) = listener.accept().await.unwrap();
        let mut socket = accept_async(stream).await.unwrap();
        socket.next().await.unwrap().unwrap();
        for number in 1..=HEADS {
            socket.send(notification(number)).await.unwrap();
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
        let heads = pushed_heads(Endpoint::parse_websocket(&url).unwrap(), task());
        let (stream, _) = listener.accept().await.unwrap();
        let mut socket = accept_async(stream).await.unwrap();
        socket.next().await.unwrap().unwrap();
        drop(heads);
        let end = timeout(Duration::from_secs(5), socket.next()).await.unwrap();
        assert!(!matches!(end, Some(Ok(Message::Text(_)))));
    }
}
