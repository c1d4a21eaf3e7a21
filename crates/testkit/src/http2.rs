//! A caller that writes HTTP/2 frame by frame: what goes out is exactly what the test wrote.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub const DATA: u8 = 0x0;
pub const HEADERS: u8 = 0x1;
pub const PRIORITY: u8 = 0x2;
pub const RST_STREAM: u8 = 0x3;
pub const SETTINGS: u8 = 0x4;
pub const PING: u8 = 0x6;
pub const GOAWAY: u8 = 0x7;
pub const WINDOW_UPDATE: u8 = 0x8;
pub const CONTINUATION: u8 = 0x9;

pub const END_STREAM: u8 = 0x1;
pub const ACK: u8 = 0x1;
pub const END_HEADERS: u8 = 0x4;

/// The setting of how much may be sent on a new stream.
pub const INITIAL_WINDOW_SIZE: u16 = 0x4;

/// Longer than anything in a test should take; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

impl Frame {
    pub fn new(kind: u8, flags: u8, stream: u32, payload: impl Into<Vec<u8>>) -> Self {
        Self { kind, flags, stream, payload: payload.into() }
    }

    /// The head of a POST to `path`, whose body follows.
    pub fn post(stream: u32, path: &str) -> Self {
        Self::new(HEADERS, END_HEADERS, stream, head(path))
    }

    pub fn data(stream: u32, body: impl Into<Vec<u8>>) -> Self {
        Self::new(DATA, END_STREAM, stream, body)
    }

    pub fn setting(name: u16, value: u32) -> Self {
        Self::new(SETTINGS, 0, 0, [&name.to_be_bytes()[..], &value.to_be_bytes()].concat())
    }

    pub fn window_update(stream: u32, bytes: u32) -> Self {
        Self::new(WINDOW_UPDATE, 0, stream, bytes.to_be_bytes())
    }

    pub fn ping() -> Self {
        Self::new(PING, 0, 0, [0; 8])
    }

    pub fn ends_stream(&self) -> bool {
        matches!(self.kind, DATA | HEADERS) && self.flags & END_STREAM != 0
    }

    pub fn bytes(&self) -> Vec<u8> {
        let length = u32::try_from(self.payload.len()).expect("a frame is short").to_be_bytes();
        let mut bytes = length[1..].to_vec();
        bytes.extend_from_slice(&[self.kind, self.flags]);
        bytes.extend_from_slice(&self.stream.to_be_bytes());
        bytes.extend_from_slice(&self.payload);
        bytes
    }
}

/// The headers of a POST, compressed as little as the format allows.
pub fn head(path: &str) -> Vec<u8> {
    // Indexed `:method: POST` and `:scheme: http`; then literals with indexed names, `:path`, `:authority`, `content-type`.
    let mut block = vec![0x83, 0x86];
    for (name, value) in [(&[0x04][..], path), (&[0x01], "test"), (&[0x0f, 0x10], "application/json")] {
        block.extend_from_slice(name);
        block.push(u8::try_from(value.len()).expect("a header is short"));
        block.extend_from_slice(value.as_bytes());
    }
    block
}

/// A connection of which every frame is the test's own.
#[derive(Debug)]
pub struct FrameConnection {
    stream: TcpStream,
}

impl FrameConnection {
    /// Connects and says nothing.
    pub fn connect(address: SocketAddr) -> Self {
        Self::try_connect(address).expect("the gateway listens")
    }

    /// Connects to a gateway that may have ended.
    pub fn try_connect(address: SocketAddr) -> std::io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream })
    }

    /// Sends the preface and one setting.
    pub fn greet(&mut self, setting: &Frame) -> &mut Self {
        self.send_bytes(PREFACE).send(setting)
    }

    /// Sends a frame; a connection that is closed already does not matter here.
    pub fn send(&mut self, frame: &Frame) -> &mut Self {
        self.send_bytes(&frame.bytes())
    }

    pub fn send_bytes(&mut self, bytes: &[u8]) -> &mut Self {
        let _closed = self.stream.write_all(bytes);
        self
    }

    /// Whether all bytes could be sent.
    pub fn try_send_bytes(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    /// Posts a whole request.
    pub fn post(&mut self, stream: u32, path: &str, body: impl Into<Vec<u8>>) -> &mut Self {
        self.send(&Frame::post(stream, path)).send(&Frame::data(stream, body))
    }

    /// The next frame, or `None` if the connection is closed instead. Settings and pings are acknowledged.
    pub fn next_frame(&mut self) -> Option<Frame> {
        let mut header = [0; 9];
        self.read_exactly(&mut header)?;
        let [high, middle, low, kind, flags, id @ ..] = header;
        let mut payload = vec![0; u32::from_be_bytes([0, high, middle, low]) as usize];
        self.read_exactly(&mut payload)?;
        let frame = Frame { kind, flags, stream: u32::from_be_bytes(id), payload };
        match (kind, flags & ACK) {
            (SETTINGS, 0) => drop(self.send(&Frame::new(SETTINGS, ACK, 0, []))),
            (PING, 0) => drop(self.send(&Frame::new(PING, ACK, 0, frame.payload.clone()))),
            _ => {}
        }
        Some(frame)
    }

    /// The next frame of this kind; others are skipped. `None` if the connection is closed instead.
    pub fn next_of(&mut self, kind: u8) -> Option<Frame> {
        std::iter::from_fn(|| self.next_frame()).find(|frame| frame.kind == kind)
    }

    /// The body of the reply on a stream, if it comes whole; every byte is acknowledged at once.
    pub fn body(&mut self, stream: u32) -> Option<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let frame = self.next_frame()?;
            let len = u32::try_from(frame.payload.len()).expect("a frame is short");
            if frame.kind == DATA && len > 0 {
                self.send(&Frame::window_update(0, len));
                if !frame.ends_stream() {
                    self.send(&Frame::window_update(frame.stream, len));
                }
            }
            if frame.stream != stream {
                continue;
            }
            match frame.kind {
                DATA => body.extend_from_slice(&frame.payload),
                RST_STREAM => return None,
                _ => {}
            }
            if frame.ends_stream() {
                return Some(body);
            }
        }
    }

    /// Whether the other side closes. Frames that still come are skipped.
    pub fn is_closed(&mut self) -> bool {
        while self.next_frame().is_some() {}
        true
    }

    fn read_exactly(&mut self, bytes: &mut [u8]) -> Option<()> {
        match self.stream.read_exact(bytes) {
            Ok(()) => Some(()),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                panic!("nothing came within {PATIENCE:?}, and the connection was not closed")
            }
            Err(_) => None,
        }
    }
}
