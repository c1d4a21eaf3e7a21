//! Frames of HTTP/2, written by hand so that they may break the rules.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;

pub(crate) const END_STREAM: u8 = 1;
pub(crate) const ACK: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;

pub(crate) const INITIAL_WINDOW_SIZE: u16 = 4;

/// The window that the protocol grants until a peer changes it.
pub(crate) const DEFAULT_WINDOW_BYTES: i64 = 65_535;

/// A frame that was received.
#[derive(Debug)]
pub(crate) struct OutgoingFrame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

impl OutgoingFrame {
    /// The big-endian number at an offset, as settings and window updates carry it.
    pub(crate) fn number_at(&self, offset: usize) -> Option<u32> {
        let bytes = self.payload.get(offset..offset + 4)?;
        Some(u32::from_be_bytes(bytes.try_into().ok()?))
    }

    /// The value of a setting that this frame carries.
    pub(crate) fn setting(&self, name: u16) -> Option<u32> {
        let at = self.payload.chunks_exact(6).position(|entry| entry[..2] == name.to_be_bytes())?;
        self.number_at(at * 6 + 2)
    }

    /// The frame that the protocol demands in return.
    pub(crate) fn acknowledgement(&self) -> Option<Vec<u8>> {
        match self.kind {
            SETTINGS if self.flags & ACK == 0 => Some(frame(SETTINGS, ACK, 0, &[])),
            PING if self.flags & ACK == 0 => Some(frame(PING, ACK, 0, &self.payload)),
            _ => None,
        }
    }
}

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(9 + payload.len());
    bytes.extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
    bytes.extend_from_slice(&[kind, flags]);
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

pub(crate) fn settings(entries: &[(u16, u32)]) -> Vec<u8> {
    let entry = |(name, value): &(u16, u32)| [&name.to_be_bytes()[..], &value.to_be_bytes()[..]].concat();
    frame(SETTINGS, 0, 0, &entries.iter().flat_map(entry).collect::<Vec<u8>>())
}

/// The preface and first settings of a connection.
pub(crate) fn opening(entries: &[(u16, u32)]) -> Vec<u8> {
    [PREFACE, &settings(entries)].concat()
}

/// The compressed headers of a POST, all as literals that are not remembered.
pub(crate) fn post_headers(path: &str, length: usize) -> Vec<u8> {
    let mut block = vec![0x83, 0x86]; // :method POST, :scheme http
    literal(&mut block, &[0x04], path); // :path
    literal(&mut block, &[0x01], "127.0.0.1"); // :authority
    literal(&mut block, &[0x0f, 0x10], "application/json"); // content-type
    literal(&mut block, &[0x0f, 0x0d], &length.to_string()); // content-length
    block
}

/// Names are indices of the static table; values are shorter than 127 bytes.
fn literal(block: &mut Vec<u8>, name: &[u8], value: &str) {
    block.extend_from_slice(name);
    block.push(value.len() as u8);
    block.extend_from_slice(value.as_bytes());
}

/// A whole POST on a stream of its own, for bodies that fit into one frame.
pub(crate) fn post(stream: u32, path: &str, body: &[u8]) -> Vec<u8> {
    let headers = frame(HEADERS, END_HEADERS, stream, &post_headers(path, body.len()));
    [headers, frame(DATA, END_STREAM, stream, body)].concat()
}

pub(crate) async fn read_frame(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<OutgoingFrame> {
    let mut head = [0; 9];
    stream.read_exact(&mut head).await?;
    let [a, b, c, kind, flags, d, e, f, g] = head;
    let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
    stream.read_exact(&mut payload).await?;
    Ok(OutgoingFrame { kind, flags, stream: u32::from_be_bytes([d, e, f, g]) & 0x7fff_ffff, payload })
}
