//! A caller over a plain socket: what goes out is exactly what the test wrote, and what comes back is taken apart.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Longer than anything in a test should take; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// One HTTP reply.
#[derive(Clone, Debug)]
pub struct ReceivedReply {
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl ReceivedReply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("the body is text")
    }

    /// The body as JSON, which every reply with a body must be.
    pub fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"), "{self:?}");
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// The error as `code message`.
    pub fn error(&self) -> String {
        let json = self.json();
        format!("{} {}", json["error"]["code"], json["error"]["message"].as_str().unwrap_or("no message"))
    }
}

/// A connection of which every byte is the test's own.
#[derive(Debug)]
pub struct TestConnection {
    stream: TcpStream,
    unread: Vec<u8>,
}

impl TestConnection {
    pub fn connect(address: SocketAddr) -> Self {
        Self::try_connect(address).expect("the gateway listens")
    }

    /// Connects to a gateway that may have ended.
    pub fn try_connect(address: SocketAddr) -> std::io::Result<Self> {
        Self::over(TcpStream::connect(address)?)
    }

    /// Over a connection that is there already.
    pub fn over(stream: TcpStream) -> std::io::Result<Self> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, unread: Vec::new() })
    }

    /// Sends bytes; a connection that is closed already does not matter here.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        let _closed = self.stream.write_all(bytes.as_ref());
        self
    }

    /// Says that nothing more will be sent.
    pub fn hang_up(&mut self) -> &mut Self {
        let _closed = self.stream.shutdown(std::net::Shutdown::Write);
        self
    }

    /// Posts a body and waits for the reply.
    pub fn post(&mut self, path: &str, body: impl AsRef<[u8]>) -> ReceivedReply {
        self.send(request(path, "", body.as_ref())).reply()
    }

    /// The next reply, which must come.
    pub fn reply(&mut self) -> ReceivedReply {
        self.next_reply().expect("a reply comes")
    }

    /// The next reply, or `None` if the connection is closed instead.
    pub fn next_reply(&mut self) -> Option<ReceivedReply> {
        let head = self.read_until(b"\r\n\r\n")?;
        let head = String::from_utf8(head).expect("a head is text");
        let mut lines = head.trim_end().split("\r\n");
        let status = lines.next()?.split(' ').nth(1)?.parse().expect("a status is a number");
        let headers: Vec<_> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let mut reply = ReceivedReply { status, headers, body: Vec::new() };
        reply.body = if reply.header("transfer-encoding") == Some("chunked") {
            self.read_chunks()?
        } else {
            let length = reply.header("content-length");
            self.read_exactly(length.map_or(0, |length| length.parse().expect("a length is a number")))?
        };
        Some(reply)
    }

    /// A body in chunks, as some nodes send it; the gateway never does.
    fn read_chunks(&mut self) -> Option<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = String::from_utf8(self.read_until(b"\r\n")?).expect("a length is text");
            let length = usize::from_str_radix(line.trim_end(), 16).expect("a length is a number");
            body.extend(self.read_exactly(length)?);
            self.read_exactly(2)?;
            if length == 0 {
                return Some(body);
            }
        }
    }

    /// How long it takes until the other side closes. Bytes that still come are kept for `next_reply`.
    pub fn closed_after(&mut self) -> Duration {
        let started = Instant::now();
        while self.read_more() {}
        started.elapsed()
    }

    /// All that comes until the other side closes.
    pub fn rest(&mut self) -> Vec<u8> {
        self.closed_after();
        std::mem::take(&mut self.unread)
    }

    /// Whether the other side closes without another byte.
    pub fn is_closed(&mut self) -> bool {
        self.unread.is_empty() && !self.read_more()
    }

    fn read_until(&mut self, end: &[u8]) -> Option<Vec<u8>> {
        loop {
            if let Some(at) = self.unread.windows(end.len()).position(|window| window == end) {
                return Some(self.unread.drain(..at + end.len()).collect());
            }
            if !self.read_more() {
                return None;
            }
        }
    }

    fn read_exactly(&mut self, len: usize) -> Option<Vec<u8>> {
        while self.unread.len() < len {
            if !self.read_more() {
                return None;
            }
        }
        Some(self.unread.drain(..len).collect())
    }

    fn read_more(&mut self) -> bool {
        let mut buffer = [0; 64 << 10];
        match self.stream.read(&mut buffer) {
            Ok(0) => false,
            Ok(len) => {
                self.unread.extend_from_slice(&buffer[..len]);
                true
            }
            // A read with a timeout is interrupted when the process was stopped and goes on.
            Err(error) if error.kind() == ErrorKind::Interrupted => true,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                panic!("nothing came within {PATIENCE:?}, and the connection was not closed")
            }
            Err(_) => false,
        }
    }
}

/// A whole request; `headers` are lines that end with `\r\n`.
pub fn request(path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\ncontent-length: {}\r\n{headers}\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// Posts a body on a connection of its own.
pub fn post(address: SocketAddr, path: &str, body: impl AsRef<[u8]>) -> ReceivedReply {
    TestConnection::connect(address).post(path, body)
}

/// Gets a page on a connection of its own.
pub fn get(address: SocketAddr, path: &str) -> ReceivedReply {
    TestConnection::connect(address).send(format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n\r\n")).reply()
}
