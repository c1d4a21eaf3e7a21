//! HTTP/1.1 as a plain client writes and reads it.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// Larger replies are not expected from the demo chain.
const REPLY_BYTES_MAX: usize = 64 << 20;

#[derive(Debug)]
pub(crate) struct HttpReply {
    pub(crate) status: u16,
    /// The head in lower case.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl HttpReply {
    pub(crate) fn is_last(&self) -> bool {
        self.head.contains("\r\nconnection: close")
    }
}

/// The head of a POST. `headers` are further lines, each with its line end.
pub(crate) fn post_head(path: &str, headers: &str, length: usize) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n{headers}Content-Length: {length}\r\n\r\n"
    )
}

pub(crate) fn post(path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let mut request = post_head(path, headers, body.len()).into_bytes();
    request.extend_from_slice(body);
    request
}

/// Reads one reply whose length is stated.
pub(crate) async fn read_reply(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<HttpReply> {
    let mut received = Vec::with_capacity(4 << 10);
    let end = loop {
        if let Some(end) = received.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(&mut received).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    };
    let head = String::from_utf8_lossy(&received[..end]).to_ascii_lowercase();
    let mut body = received.split_off(end);
    let length = length(&head).ok_or_else(|| invalid("a reply without a length"))?;
    if length > REPLY_BYTES_MAX {
        return Err(invalid("a reply that is too long"));
    }
    body.reserve_exact(length.saturating_sub(body.len()));
    while body.len() < length {
        if stream.read_buf(&mut body).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    Ok(HttpReply { status: status.ok_or_else(|| invalid("a reply without a status"))?, head, body })
}

/// The stated length of a body.
pub(crate) fn length(head: &str) -> Option<usize> {
    let line = head.lines().find_map(|line| line.strip_prefix("content-length:"))?;
    line.trim().parse().ok()
}

fn invalid(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}
