//! Watches the received frames of an HTTP/2 connection.
//!
//! `h2` does not report an incomplete head, and does not limit frames that cost work without requesting anything (window
//! updates, pings, settings, priorities). Only the header of each frame is read here.

use resources::{BucketRate, MonoTime, TokenBucket};

use crate::policy::{DATA_BYTES_MIN, REQUEST_FRAMES, RESET_FRAMES, SENT_BYTES_PER_FRAME};

/// The connection preface of HTTP/2.
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Watches the received frames of one connection.
#[derive(Debug)]
pub(crate) struct FrameWatch {
    /// Missing bytes of the connection preface.
    preface_left: usize,
    /// The received part of the header of the next frame.
    header: [u8; HEADER_BYTES],
    header_len: usize,
    /// Missing bytes of the current frame.
    payload_left: usize,
    is_data: bool,
    /// Whether more frames of the current head follow.
    in_head: bool,
    /// Since when a head, or a frame other than DATA, is incomplete.
    unfinished_since: Option<MonoTime>,
    budget: FrameBudget,
}

/// A connection sent too many frames that request nothing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FrameFlood;

const HEADER_BYTES: usize = 9;

const DATA: u8 = 0x0;
const HEADERS: u8 = 0x1;
const RST_STREAM: u8 = 0x3;
const CONTINUATION: u8 = 0x9;
const END_HEADERS: u8 = 0x4;

impl FrameWatch {
    pub(crate) fn new(preface_bytes: usize) -> Self {
        Self {
            preface_left: preface_bytes,
            header: [0; HEADER_BYTES],
            header_len: 0,
            payload_left: 0,
            is_data: false,
            in_head: false,
            unfinished_since: None,
            budget: FrameBudget::new(),
        }
    }

    /// Reads received bytes. `sent` are the bytes of replies sent on the connection so far. A connection that floods is closed:
    /// the rest of its bytes is not read.
    pub(crate) fn feed(&mut self, bytes: &[u8], now: MonoTime, sent: u64) -> Result<(), FrameFlood> {
        self.budget.earn_by_replies(sent);
        let preface = self.preface_left.min(bytes.len());
        self.preface_left -= preface;
        let mut rest = &bytes[preface..];
        while !rest.is_empty() {
            rest = self.read_part(rest, now)?;
            if !self.is_unfinished() {
                self.unfinished_since = None;
            }
        }
        if self.is_unfinished() {
            self.unfinished_since.get_or_insert(now);
        }
        Ok(())
    }

    /// Since when a head, or a frame other than DATA, is incomplete. Bodies have a timeout of their own.
    pub(crate) fn unfinished_since(&self) -> Option<MonoTime> {
        self.unfinished_since
    }

    fn is_unfinished(&self) -> bool {
        self.in_head || self.header_len > 0 || (self.payload_left > 0 && !self.is_data)
    }

    /// Reads a part of a frame; returns the bytes after it.
    fn read_part<'a>(&mut self, bytes: &'a [u8], now: MonoTime) -> Result<&'a [u8], FrameFlood> {
        if self.payload_left > 0 {
            let taken = self.payload_left.min(bytes.len());
            self.payload_left -= taken;
            return Ok(&bytes[taken..]);
        }
        let taken = (HEADER_BYTES - self.header_len).min(bytes.len());
        self.header[self.header_len..][..taken].copy_from_slice(&bytes[..taken]);
        self.header_len += taken;
        if self.header_len == HEADER_BYTES {
            self.header_len = 0;
            self.begin_frame(now)?;
        }
        Ok(&bytes[taken..])
    }

    fn begin_frame(&mut self, now: MonoTime) -> Result<(), FrameFlood> {
        let [high, middle, low, kind, flags, ..] = self.header;
        self.payload_left = u32::from_be_bytes([0, high, middle, low]) as usize;
        self.is_data = kind == DATA;
        if kind == HEADERS || kind == CONTINUATION {
            self.in_head = flags & END_HEADERS == 0;
        }
        match kind {
            HEADERS => self.budget.frames.put(REQUEST_FRAMES),
            DATA if self.payload_left >= DATA_BYTES_MIN => {}
            RST_STREAM => self.budget.spend(RESET_FRAMES, now)?,
            _ => self.budget.spend(1, now)?,
        }
        Ok(())
    }
}

/// Limits the frames of a connection that request nothing. Requests and the bytes of replies earn frames that belong to them.
#[derive(Debug)]
struct FrameBudget {
    frames: TokenBucket,
    sent: u64,
}

/// Idle connections send a few pings and settings a minute.
const FRAME_RATE: BucketRate = BucketRate { per_second: 100, capacity: 1_000 };

impl FrameBudget {
    fn new() -> Self {
        Self { frames: TokenBucket::full(FRAME_RATE), sent: 0 }
    }

    fn earn_by_replies(&mut self, sent: u64) {
        self.frames.put(sent.saturating_sub(self.sent) / SENT_BYTES_PER_FRAME);
        self.sent = sent;
    }

    fn spend(&mut self, frames: u64, now: MonoTime) -> Result<(), FrameFlood> {
        self.frames.take(frames, now).map_err(|_| FrameFlood)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const PING: u8 = 0x6;
    const WINDOW_UPDATE: u8 = 0x8;

    fn frame(kind: u8, flags: u8, payload: usize) -> Vec<u8> {
        let mut frame = vec![0, (payload >> 8) as u8, payload as u8, kind, flags, 0, 0, 0, 1];
        frame.resize(HEADER_BYTES + payload, 0);
        frame
    }

    fn at(seconds: u64) -> MonoTime {
        MonoTime::default().after(Duration::from_secs(seconds))
    }

    /// Feeds each piece one second after the one before; returns since when something is unfinished.
    fn unfinished(pieces: &[&[u8]]) -> Option<MonoTime> {
        let mut watch = FrameWatch::new(0);
        for (second, piece) in pieces.iter().enumerate() {
            watch.feed(piece, at(second as u64), 0).unwrap();
        }
        watch.unfinished_since()
    }

    #[test]
    fn a_head_is_unfinished_until_its_last_frame() {
        let (begin, end) = (frame(HEADERS, 0, 20), frame(CONTINUATION, END_HEADERS, 5));
        let more = frame(CONTINUATION, 0, 1);
        assert_eq!(unfinished(&[&frame(HEADERS, END_HEADERS, 20)]), None);
        assert_eq!(unfinished(&[&begin[..4]]), Some(at(0)));
        assert_eq!(unfinished(&[&begin[..15]]), Some(at(0)));
        assert_eq!(unfinished(&[&begin]), Some(at(0)));
        assert_eq!(
            unfinished(&[&begin, &more, &more, &end[..10]]),
            Some(at(0)),
            "the time does not start again"
        );
        assert_eq!(unfinished(&[&begin, &end]), None);
        let next = [&end[..], &begin[..3]].concat();
        assert_eq!(unfinished(&[&begin, &next]), Some(at(1)), "another head has its own time");
    }

    #[test]
    fn an_incomplete_body_is_not_an_unfinished_head() {
        assert_eq!(unfinished(&[&frame(DATA, 0, 100)[..50]]), None);
        assert_eq!(unfinished(&[&frame(PING, 0, 8)[..12]]), Some(at(0)));
    }

    #[test]
    fn frames_may_arrive_in_any_pieces() {
        let frames = [frame(HEADERS, 0, 3), frame(CONTINUATION, END_HEADERS, 0), frame(DATA, 0, 70)].concat();
        for size in 1..frames.len() {
            let mut watch = FrameWatch::new(2);
            watch.feed(b"pr", at(0), 0).unwrap();
            frames.chunks(size).for_each(|piece| watch.feed(piece, at(0), 0).unwrap());
            assert_eq!((watch.unfinished_since(), watch.payload_left), (None, 0), "{size}");
        }
    }

    /// How many times `frames` may be sent at once.
    fn at_once(frames: &[u8], sent_by_each: u64) -> usize {
        let mut watch = FrameWatch::new(0);
        (1..10_000).find(|&count| watch.feed(frames, at(0), sent_by_each * count).is_err()).unwrap_or(10_000)
            as usize
    }

    #[test]
    fn frames_that_request_nothing_are_limited() {
        for kind in [WINDOW_UPDATE, PING, 0x2, 0x4, 0x42, DATA] {
            assert_eq!(at_once(&frame(kind, 0, 8), 0), 1_001, "{kind}");
        }
        let reset = [frame(HEADERS, END_HEADERS, 20), frame(RST_STREAM, 0, 4)].concat();
        assert!(at_once(&reset, 0) < 1_000);
    }

    #[test]
    fn frames_of_requests_and_replies_are_not_limited() {
        let update = frame(WINDOW_UPDATE, 0, 4);
        let request =
            [frame(HEADERS, END_HEADERS, 20), frame(DATA, 1, 40), update.clone(), update.clone()].concat();
        assert_eq!(at_once(&request, 0), 10_000);
        assert_eq!(at_once(&frame(DATA, 0, 100), 0), 10_000);
        assert_eq!(at_once(&update, 16 << 10), 10_000);
    }

    #[test]
    fn the_budget_recovers_with_time() {
        let mut watch = FrameWatch::new(0);
        let ping = frame(PING, 0, 8);
        (0..1_000).for_each(|_| watch.feed(&ping, at(0), 0).unwrap());
        (0..100).for_each(|_| watch.feed(&ping, at(1), 0).unwrap());
        assert_eq!(watch.feed(&ping, at(1), 0), Err(FrameFlood));
    }
}
