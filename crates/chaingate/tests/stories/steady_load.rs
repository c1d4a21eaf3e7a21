//! Calls at a fixed rate over HTTP/1.1 and HTTP/2, with and without TLS, by callers that open another connection when the gateway closes
//! theirs. A call is lost if it could not be sent, or was sent and has no whole reply. One that was not processed, as HTTP/2 tells the
//! caller, is sent again.

use std::error::Error;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{MissedTickBehavior, interval};
use tokio_rustls::rustls::pki_types::CertificateDer;

use crate::gateway_under_test::call;
use crate::tls::try_connect;

/// Calls per second over all callers.
const CALLS_PER_SECOND: u32 = 500;

/// Callers of each kind.
const CALLERS: u32 = 5;

/// The calls, made in turn: each result is a number.
const METHODS: [(&str, &str); 3] = [
    ("eth_chainId", "[]"),
    ("eth_blockNumber", "[]"),
    ("eth_getBalance", r#"["0x0000000000000000000000000000000000000001","latest"]"#),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallerKind {
    Http1,
    /// One connection for each call.
    Http1Fresh,
    Http2,
}

const KINDS: [CallerKind; 3] = [CallerKind::Http1, CallerKind::Http1Fresh, CallerKind::Http2];

/// Where calls go, and how.
#[derive(Clone)]
pub(crate) struct LoadTarget {
    pub(crate) address: SocketAddr,
    /// The certificates that callers trust; none without TLS.
    pub(crate) certificates: Vec<CertificateDer<'static>>,
    pub(crate) key: &'static str,
}

/// The outcome of the calls.
#[derive(Default)]
struct Outcomes {
    has_ended: AtomicBool,
    /// When each call began, and how long its reply took.
    answered: Mutex<Vec<(Instant, Duration)>>,
    lost: Mutex<Vec<String>>,
}

/// Calls that go on until the value is stopped.
pub(crate) struct SteadyLoad {
    outcomes: Arc<Outcomes>,
    thread: Option<JoinHandle<()>>,
}

impl SteadyLoad {
    pub(crate) fn start(target: LoadTarget) -> Self {
        let outcomes = Arc::<Outcomes>::default();
        let shared = Arc::clone(&outcomes);
        let run = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let mut callers = tokio::task::JoinSet::new();
                for kind in KINDS {
                    for _ in 0..CALLERS {
                        callers.spawn(call_steadily(target.clone(), kind, Arc::clone(&shared)));
                    }
                }
                callers.join_all().await;
            });
        };
        Self { outcomes, thread: Some(thread::spawn(run)) }
    }

    pub(crate) fn answered(&self) -> usize {
        self.outcomes.answered.lock().len()
    }

    /// The slowest second of those in which calls were answered since `begin`: its 99th percentile and its maximum.
    pub(crate) fn slowest_second(&self, begin: Instant) -> [Duration; 2] {
        let answered = self.outcomes.answered.lock();
        let mut seconds: Vec<Vec<Duration>> = Vec::new();
        for (begun, took) in answered.iter() {
            let Some(since) = (*begun + *took).checked_duration_since(begin) else { continue };
            let second = since.as_secs() as usize;
            seconds.resize_with(seconds.len().max(second + 1), Vec::new);
            seconds[second].push(*took);
        }
        let slowest = seconds.iter_mut().map(|second| {
            second.sort_unstable();
            let p99 = second.len().checked_sub(1).map(|last| second[last * 99 / 100]);
            [p99.unwrap_or_default(), second.last().copied().unwrap_or_default()]
        });
        slowest.max().unwrap_or_default()
    }

    /// Ends, and returns how many calls were answered. None may be lost.
    pub(crate) fn stop(mut self) -> usize {
        self.outcomes.has_ended.store(true, SeqCst);
        self.thread.take().unwrap().join().unwrap();
        let lost = self.outcomes.lost.lock();
        assert!(
            lost.is_empty(),
            "{} of {} are lost: {:?}",
            lost.len(),
            self.answered(),
            &lost[..lost.len().min(5)]
        );
        self.answered()
    }
}

/// One call after the other, each when it is due.
async fn call_steadily(target: LoadTarget, kind: CallerKind, outcomes: Arc<Outcomes>) {
    let callers = CALLERS * KINDS.len() as u32;
    let mut ticks = interval(Duration::from_secs(1) * callers / CALLS_PER_SECOND);
    // After a pause the rate is the same as before: the calls that were missed are not made.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let (mut connection, mut made) = (None, 0);
    while !outcomes.has_ended.load(SeqCst) {
        ticks.tick().await;
        let begun = Instant::now();
        let (method, params) = METHODS[made % METHODS.len()];
        made += 1;
        match make_call(&target, kind, call(method, params), &mut connection).await {
            Ok(()) => outcomes.answered.lock().push((begun, begun.elapsed())),
            Err(error) => {
                connection = None;
                outcomes.lost.lock().push(format!("{kind:?}: {error}"));
            }
        }
    }
}

/// Makes a call, on a new connection if the one of before does not take it.
async fn make_call(
    target: &LoadTarget,
    kind: CallerKind,
    body: String,
    connection: &mut Option<CallerConnection>,
) -> Result<(), String> {
    let scheme = if target.certificates.is_empty() { "http" } else { "https" };
    let request =
        Request::post(format!("{scheme}://localhost/v3/{}", target.key)).header("host", "localhost");
    let mut request = request.body(Full::<Bytes>::from(body)).unwrap();
    let response = loop {
        let mut open = match connection.take() {
            Some(open) => open,
            None => {
                CallerConnection::open(target, kind).await.map_err(|error| format!("not opened: {error}"))?
            }
        };
        match open.send(request).await {
            Ok(response) => {
                *connection = (kind != CallerKind::Http1Fresh).then_some(open);
                break response;
            }
            Err(NotAnswered::NotSent(unsent)) => request = *unsent,
            Err(NotAnswered::Lost(error)) => return Err(error),
        }
    };
    let status = response.status();
    let body =
        response.into_body().collect().await.map_err(|error| format!("no whole reply: {error}"))?.to_bytes();
    let is_answer = status == 200 && body.starts_with(br#"{"jsonrpc":"2.0","id":1,"result":"0x"#);
    if is_answer { Ok(()) } else { Err(format!("{status} {}", String::from_utf8_lossy(&body))) }
}

/// A connection of a caller.
enum CallerConnection {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

/// Why a request has no reply.
enum NotAnswered {
    /// The connection was closed before anything of it was sent.
    NotSent(Box<Request<Full<Bytes>>>),
    Lost(String),
}

impl CallerConnection {
    async fn open(target: &LoadTarget, kind: CallerKind) -> io::Result<Self> {
        let is_http2 = kind == CallerKind::Http2;
        if target.certificates.is_empty() {
            return Self::over(TcpStream::connect(target.address).await?, is_http2).await;
        }
        let protocol: &[u8] = if is_http2 { b"h2" } else { b"http/1.1" };
        Self::over(try_connect(target.address, &target.certificates, protocol).await?, is_http2).await
    }

    async fn over(
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        is_http2: bool,
    ) -> io::Result<Self> {
        let stream = TokioIo::new(stream);
        if is_http2 {
            let (sender, connection) =
                http2::handshake(TokioExecutor::new(), stream).await.map_err(io::Error::other)?;
            drive(connection);
            return Ok(Self::Http2(sender));
        }
        let (sender, connection) = http1::handshake(stream).await.map_err(io::Error::other)?;
        drive(connection);
        Ok(Self::Http1(sender))
    }

    async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, NotAnswered> {
        let is_open = match self {
            Self::Http1(sender) => sender.ready().await.is_ok(),
            Self::Http2(sender) => sender.ready().await.is_ok(),
        };
        if !is_open {
            return Err(NotAnswered::NotSent(Box::new(request)));
        }
        let copy = request.clone();
        let sent = match self {
            Self::Http1(sender) => sender.try_send_request(request).await,
            Self::Http2(sender) => sender.try_send_request(request).await,
        };
        sent.map_err(|mut error| match error.take_message() {
            Some(unsent) => NotAnswered::NotSent(Box::new(unsent)),
            None if is_not_processed(error.error()) => NotAnswered::NotSent(Box::new(copy)),
            None => NotAnswered::Lost(format!("no reply: {:?}", error.into_error())),
        })
    }
}

/// Whether GOAWAY came before the request was sent, or names an earlier one as the last that was processed.
fn is_not_processed(error: &hyper::Error) -> bool {
    let http2 = error.source().and_then(|source| source.downcast_ref::<h2::Error>());
    http2.is_some_and(|error| {
        error.is_go_away() && error.is_remote() && error.reason() == Some(h2::Reason::NO_ERROR)
    })
}

/// Errors of a connection are those of its requests.
fn drive(connection: impl Future<Output = Result<(), hyper::Error>> + Send + 'static) {
    tokio::spawn(async move {
        let _ended = connection.await;
    });
}
