//! Attacks on memory: bodies that do not end, replies that nobody reads, batches that wait. The memory of the program
//! stays within its limit, and other accounts are served meanwhile.

use std::convert::Infallible;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use hyper::body::{Body, Frame};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use socket2::{Domain, Socket, Type};
use testkit::http::{post, request};

use crate::demo::{endless, metric, until};
use crate::gateway_under_test::{call, chain_id};
use crate::process::Process;

const MIB: u64 = 1 << 20;

/// Memory that a process may take beside the limit: copies while buffers grow, buffers of the kernel, connections.
const SLACK_BYTES: u64 = 96 * MIB;

/// The program with this limit on memory, and a second account beside that of the key `demo`.
fn start(memory_bytes_max: u64, limits: &str, rest: &str) -> Process {
    let limits = format!("[limits]\npool_threads = 2\nmemory_bytes_max = {memory_bytes_max}\n{limits}\n");
    let keys = "[[key]]\nkey = \"other\"\naccount = \"other\"\nplan = \"custom\"\n";
    let process = Process::start("127.0.0.1:0", &format!("{limits}{keys}{rest}"), "info");
    assert_eq!(post(process.public, "/v3/demo", chain_id("1")).status, 200);
    process
}

/// A call whose body is large and whose answer is not.
fn large_call(bytes: usize) -> String {
    call("eth_call", &format!(r#"[{{"data":"0x00{}"}}]"#, "00".repeat(bytes / 2)))
}

/// 10,000 logs, which take 6 MB; no two of these share an answer.
pub(crate) fn logs(number: usize) -> String {
    let chatter = "0x536F14E49e1Bb927003E83aDEBF295F3682ff121";
    let filter =
        format!(r#"{{"fromBlock":"0xb4","toBlock":"0xe5","address":["{chatter}","0x{number:040x}"]}}"#);
    call("eth_getLogs", &format!("[{filter}]"))
}

fn assert_others_are_served(process: &Process) {
    assert_eq!(post(process.public, "/v3/other", large_call(200 << 10)).status, 200, "a large body");
    let reply = post(process.public, "/v3/other", chain_id("1"));
    assert_eq!(reply.status, 200, "a small call");
}

fn refused(process: &Process) -> f64 {
    metric(process.operator, "chaingate_memory_refused_total")
}

/// A connection that sends the head of a request and all but the last byte of its body.
fn unfinished(address: SocketAddr, path: &str, bytes: usize) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(30))).unwrap();
    let whole = request(path, "", &vec![b' '; bytes]);
    // A body that is refused need not be read to its end.
    let _refused = stream.write_all(&whole[..whole.len() - 1]);
    stream
}

/// A hundred connections with unfinished bodies of 5 MiB took 730 MiB.
#[test]
fn bodies_that_do_not_end_take_no_more_than_the_limit() {
    const CONNECTIONS: usize = 48;
    const BODY_BYTES: usize = 4 << 20;
    let process = start(32 * MIB, "body_timeout_ms = 120000", "");
    let before = process.memory();
    let streams: Vec<_> =
        (0..CONNECTIONS).map(|_| unfinished(process.public, "/v3/demo", BODY_BYTES)).collect();
    until("those that do not fit are refused", || refused(&process) >= (CONNECTIONS - 8) as f64);
    assert!(
        metric(process.operator, "chaingate_memory_bytes") <= 20.0 * MIB as f64,
        "the rest is left to others"
    );
    assert_others_are_served(&process);
    let grown = process.peak_memory() - before;
    assert!(grown < 32 * MIB + SLACK_BYTES, "memory grew by {grown} bytes");
    drop(streams);
    until("nothing is held any more", || metric(process.operator, "chaingate_memory_bytes") == 0.0);
}

/// A body of which the last byte never comes.
struct UnfinishedBody {
    left: usize,
}

impl Body for UnfinishedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.left.min(16 << 10);
        if piece == 0 {
            return Poll::Pending;
        }
        self.left -= piece;
        Poll::Ready(Some(Ok(Frame::data(vec![b' '; piece].into()))))
    }
}

/// Sends requests with these bodies on one HTTP/2 connection, and reads nothing of the replies until it is dropped.
struct Http2Caller {
    _stop: tokio::sync::oneshot::Sender<()>,
}

impl Http2Caller {
    fn start<B>(address: SocketAddr, window_bytes: u32, bodies: Vec<B>) -> Self
    where
        B: Body<Data = Bytes, Error = Infallible> + Send + Unpin + 'static,
    {
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        std::thread::spawn(move || {
            runtime.block_on(async {
                let stream = tokio::net::TcpStream::connect(address).await.unwrap();
                let mut builder = http2::Builder::new(TokioExecutor::new());
                builder.initial_stream_window_size(window_bytes);
                let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await.unwrap();
                tokio::spawn(connection);
                let post = || Request::post("http://test/v3/demo").header("content-type", "application/json");
                let requests = bodies.into_iter().map(|body| post().body(body).unwrap());
                let _replies: Vec<_> =
                    requests.map(|request| tokio::spawn(sender.send_request(request))).collect();
                let _dropped = stopped.await;
            });
        });
        Self { _stop: stop }
    }
}

/// A hundred open bodies on one HTTP/2 connection took 830 MiB.
#[test]
fn open_bodies_of_one_http2_connection_take_no_more_than_the_limit() {
    const STREAMS: usize = 48;
    let process = start(32 * MIB, "body_timeout_ms = 120000", "");
    let before = process.memory();
    let bodies = (0..STREAMS).map(|_| UnfinishedBody { left: (4 << 20) - 1 }).collect();
    let caller = Http2Caller::start(process.public, 1 << 16, bodies);
    // After many refusals the connection itself is ended.
    until("those that do not fit are refused", || refused(&process) >= (STREAMS / 4) as f64);
    assert_others_are_served(&process);
    let grown = process.peak_memory() - before;
    assert!(grown < 32 * MIB + SLACK_BYTES, "memory grew by {grown} bytes");
    drop(caller);
}

/// The body of a request with an unknown key is read to keep its connection, and used to be stored for that.
#[test]
fn bodies_of_strangers_are_not_stored() {
    const CONNECTIONS: usize = 400;
    const BYTES_PER_CONNECTION: u64 = 60 << 10;
    let limits = "body_timeout_ms = 120000\nconnections_per_address_max = 1000\nunauthenticated_per_second_max = 100000";
    let process = start(32 * MIB, limits, "");
    // The first large call takes memory that is used again by later ones.
    assert_others_are_served(&process);
    let before = process.memory();
    let streams: Vec<_> =
        (0..CONNECTIONS).map(|_| unfinished(process.public, "/v3/nobody", 64 << 10)).collect();
    until("they are all there", || {
        metric(process.operator, "chaingate_connections_open") >= CONNECTIONS as f64
    });
    assert_others_are_served(&process);
    let grown = process.memory().saturating_sub(before);
    assert!(grown < CONNECTIONS as u64 * BYTES_PER_CONNECTION, "memory grew by {grown} bytes");
    drop(streams);
}

/// Batches of four large answers that are kept and one call that does not end took 25 MiB each, uncounted.
#[test]
fn batches_that_wait_take_no_more_than_the_limit() {
    const BATCHES: usize = 12;
    const CACHE_BYTES_MAX: u64 = 64 * MIB;
    let limits = "call_timeout_ms = 120000\ncall_gas_multiple = 1000000000\nlog_timeout_ms = 120000";
    let cache = format!("[cache]\nbytes_max = {CACHE_BYTES_MAX}");
    let process = start(96 * MIB, limits, &cache);
    for _ in 0..3 {
        assert_eq!(post(process.public, "/v3/demo", logs(0)).status, 200);
    }
    let before = process.memory();
    let streams: Vec<_> = (0..BATCHES)
        .map(|number| {
            let body = format!("[{}{}]", format!("{},", logs(0)).repeat(4), endless(number));
            let mut stream = TcpStream::connect(process.public).unwrap();
            stream.write_all(&request("/v3/demo", "", body.as_bytes())).unwrap();
            stream
        })
        .collect();
    until("each batch waits for its last call", || {
        metric(process.operator, "chaingate_calls_in_flight") == BATCHES as f64
    });
    assert!(refused(&process) > 0.0, "there is no room for all of them");
    assert_others_are_served(&process);
    let grown = process.peak_memory().saturating_sub(before);
    assert!(grown < 96 * MIB + CACHE_BYTES_MAX + SLACK_BYTES, "memory grew by {grown} bytes");
    drop(streams);
}

/// A caller that asks and does not read.
pub(crate) fn non_reader(address: SocketAddr, path: &str, body: &str) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(4 << 10).unwrap();
    socket.connect(&address.into()).unwrap();
    let mut stream = TcpStream::from(socket);
    stream.write_all(&request(path, "", body.as_bytes())).unwrap();
    stream
}

/// 200 callers that did not read, or one HTTP/2 connection, filled the memory for replies, and heavy calls of everybody
/// were refused.
#[test]
fn callers_that_do_not_read_cost_only_their_own_account() {
    let process = start(48 * MIB, "write_timeout_ms = 120000", "[cache]\nenabled = false");
    let streams: Vec<_> =
        (0..12).map(|number| non_reader(process.public, "/v3/demo", &logs(number))).collect();
    until("their account has no memory left", || refused(&process) >= 6.0);
    let refused = post(process.public, "/v3/demo", logs(99));
    assert_eq!((refused.status, refused.error().as_str()), (503, "-32005 over capacity"));
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(post(process.public, "/v3/demo", chain_id("1")).status, 200, "small calls pass");
    let served = post(process.public, "/v3/other", logs(99));
    assert_eq!((served.status, served.json()["result"].as_array().map(Vec::len)), (200, Some(10_000)));
    drop(streams);
}

#[test]
fn an_http2_connection_that_reads_nothing_costs_only_its_own_account() {
    let process = start(48 * MIB, "write_timeout_ms = 120000", "[cache]\nenabled = false");
    let bodies = (0..12).map(|number| http_body_util::Full::new(Bytes::from(logs(number)))).collect();
    let caller = Http2Caller::start(process.public, 1, bodies);
    until("its account has no memory left", || refused(&process) >= 6.0);
    assert_eq!(post(process.public, "/v3/other", logs(99)).status, 200);
    drop(caller);
}
