use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use resources::{Supervisor, WhenDown};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;

use super::*;

/// Longer than any test takes, on any machine.
const NEVER: Duration = Duration::from_secs(600);
const LATE: Duration = Duration::from_secs(60);

const PLACES: usize = 4;

fn connection(last: u8, incomplete_since: Option<Instant>) -> Arc<OpenConnection> {
    let incomplete_since = Mutex::new(incomplete_since);
    Arc::new(OpenConnection { address: [192, 0, 2, last].into(), incomplete_since, task: Mutex::default() })
}

/// The oldest connection was closed without a reply, although it was being answered: of 33 probes at once, one failed.
#[test]
fn a_connection_that_is_answered_is_never_closed_for_another() {
    let now = Instant::now();
    let (old, young) = (now - Duration::from_secs(5), now - Duration::from_millis(100));
    assert_eq!(room(&[connection(1, None)], 2, now), RoomForOne::Free);
    assert_eq!(room(&[connection(1, None), connection(1, None)], 2, now), RoomForOne::NotBefore(None));
    assert_eq!(room(&[connection(1, None), connection(1, Some(old))], 2, now), RoomForOne::AfterClosing(1));
    let waits = room(&[connection(1, None), connection(1, Some(young))], 2, now);
    assert_eq!(waits, RoomForOne::NotBefore(Some(young + REQUEST_GRACE)), "the rest may be on its way");
}

/// One address could take all connections, and cut those of others.
#[test]
fn room_is_made_by_the_address_with_the_most_connections() {
    let now = Instant::now();
    let old = Some(now - Duration::from_secs(5));
    let open = [connection(1, old), connection(2, old), connection(2, old)];
    assert_eq!(room(&open, 3, now), RoomForOne::AfterClosing(1), "the oldest of those that have two");
}

/// A listener without any timeout, whose service reads the body and answers after `work`.
struct Served {
    address: SocketAddr,
    _stop: watch::Sender<bool>,
}

impl Served {
    fn start(keep_alive: bool, work: Duration) -> Self {
        let listener = crate::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let limits = SmallListenerLimits {
            connections_max: PLACES,
            head_timeout: NEVER,
            connection_timeout: None,
            unread_timeout: NEVER,
            buffer_bytes_max: 8 << 10,
            keep_alive,
            drain_timeout: Duration::ZERO,
        };
        let listener = SmallListener::new("test", listener, limits).unwrap();
        let (stop, stopping) = watch::channel(false);
        tokio::spawn(async move {
            let task = Supervisor::default().task("test", WhenDown::Degraded);
            let service = move |request: Request<IncomingBody>, _| async move {
                let body = request.into_body().collect().await.unwrap().to_bytes();
                tokio::time::sleep(work).await;
                Response::new(Full::<Bytes>::from(body))
            };
            listener.serve(&task, stopping, service).await;
        });
        Self { address, _stop: stop }
    }

    async fn send(&self, text: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        stream
    }
}

const GET: &str = "GET / HTTP/1.1\r\nhost: x\r\n\r\n";

async fn is_answered(stream: &mut TcpStream) -> bool {
    let mut begin = [0; 15];
    let read = timeout(LATE, stream.read_exact(&mut begin)).await;
    matches!(read, Ok(Ok(_))) && &begin == b"HTTP/1.1 200 OK"
}

/// Of 33 probes at once, the first got no reply.
#[tokio::test]
async fn a_burst_waits_for_its_turn() {
    let served = Served::start(false, Duration::from_millis(5));
    let mut burst = Vec::new();
    for _ in 0..PLACES * 10 {
        burst.push(served.send(GET).await);
    }
    for stream in &mut burst {
        assert!(is_answered(stream).await);
    }
}

/// Clients that announce a body and do not send it would keep everybody else out.
#[tokio::test]
async fn requests_that_are_not_complete_make_room_for_others() {
    let head = "GET / HTTP/1.1\r\nhost:";
    let length = "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n12345";
    let chunks = "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n5\r\n12345";
    for begun in ["", head, length, chunks] {
        let served = Served::start(true, Duration::ZERO);
        let mut slow = Vec::new();
        for _ in 0..PLACES {
            slow.push(served.send(begun).await);
        }
        assert!(is_answered(&mut served.send(GET).await).await, "{begun}");
        // The rest of the newest is still read and answered.
        if begun == length {
            let newest = slow.last_mut().unwrap();
            newest.write_all(b"67890").await.unwrap();
            assert!(is_answered(newest).await);
        }
    }
}

/// Connections that wait for another request make room, those that are being answered do not.
#[tokio::test]
async fn idle_connections_make_room_for_others() {
    let served = Served::start(true, Duration::ZERO);
    let mut idle = Vec::new();
    for _ in 0..PLACES {
        let mut stream = served.send(GET).await;
        assert!(is_answered(&mut stream).await);
        idle.push(stream);
    }
    assert!(is_answered(&mut served.send(GET).await).await);
    let mut rest = Vec::new();
    assert!(timeout(LATE, idle[0].read_to_end(&mut rest)).await.is_ok(), "the oldest is closed");
}
