//! HTTP messages with a known length.

use std::io::{self, Read, Write};
use std::net::TcpStream;

pub(super) fn write(stream: &mut TcpStream, status: u16, body: &[u8]) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status} Said\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), body].concat())
}

/// A request or a reply.
pub(super) struct Message {
    /// In small letters.
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

/// The next request or reply; `None` when the other side has gone.
pub(super) fn read_message(stream: &mut TcpStream, unread: &mut Vec<u8>) -> io::Result<Option<Message>> {
    let end = loop {
        if let Some(at) = unread.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        if !read_more(stream, unread)? {
            return Ok(None);
        }
    };
    let head = String::from_utf8_lossy(&unread[..end]).to_ascii_lowercase();
    unread.drain(..end);
    let length = head.split("\r\n").find_map(|line| line.strip_prefix("content-length:"));
    let length: usize = length.and_then(|length| length.trim().parse().ok()).unwrap_or(0);
    while unread.len() < length {
        if !read_more(stream, unread)? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(Some(Message { head, body: unread.drain(..length).collect() }))
}

fn read_more(stream: &mut TcpStream, unread: &mut Vec<u8>) -> io::Result<bool> {
    let mut buffer = [0; 16 << 10];
    match stream.read(&mut buffer) {
        Ok(length) => {
            unread.extend_from_slice(&buffer[..length]);
            Ok(length > 0)
        }
        // A read with a timeout is interrupted when the process was stopped and goes on.
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(true),
        Err(error) => Err(error),
    }
}
