//! A reply may come in any pieces.

use std::time::Duration;

use proptest::prelude::*;
use resources::AccountId;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::node::*;
use crate::call::{Fault, RpcReply};
use crate::transport::batch_policy::QueueKind;
use crate::transport::call_queue::CallQueue;
use crate::transport::http_reply::{NodeHttpReply, ReplyFormat};
use crate::transport::http1::{ExchangeError, Http1};
use crate::transport::receive::ReceiveContext;
use crate::transport::setup::EndpointSetup;
use crate::transport::stats::ConnectionGuard;
use crate::transport::{Endpoint, EndpointLimits, ReplyBuffers};

const ID: u64 = 7;

/// The replies that are read from these bytes when they come in pieces that end at these places.
fn heard(wire: &[u8], ends: &[usize]) -> Result<NodeHttpReply, ExchangeError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (ours, mut theirs) = tokio::io::duplex(1 << 20);
        let pieces: Vec<Vec<u8>> = pieces(wire, ends);
        tokio::spawn(async move {
            let mut request = [0; 4];
            theirs.read_exact(&mut request).await.unwrap();
            for piece in pieces {
                theirs.write_all(&piece).await.unwrap();
                tokio::task::yield_now().await;
            }
        });
        let endpoint = Endpoint::parse("http://node").unwrap();
        let memory = ReplyBuffers::new(64 << 20).for_endpoint(1);
        let setup = EndpointSetup::new(endpoint, EndpointLimits::default(), None, memory.clone());
        let until = tokio::time::Instant::now() + Duration::from_secs(10);
        let (limits, account) = (EndpointLimits::default(), AccountId::NONE);
        let context = ReceiveContext { limits: &limits, memory: &memory, account, until };
        let queue = std::sync::Arc::new(CallQueue::new(setup.into(), QueueKind::Heavy));
        let mut connection = Http1::new(Box::new(ours), ConnectionGuard::new(&queue.counters));
        let exchange = connection.exchange(b"POST", &context);
        tokio::time::timeout(Duration::from_secs(10), exchange).await.unwrap()
    })
}

fn pieces(wire: &[u8], ends: &[usize]) -> Vec<Vec<u8>> {
    let mut ends: Vec<usize> = ends.iter().map(|end| end % (wire.len() + 1)).collect();
    ends.extend([0, wire.len()]);
    ends.sort_unstable();
    ends.windows(2).map(|pair| wire[pair[0]..pair[1]].to_vec()).collect()
}

fn chunked(body: &str, sizes: &[usize]) -> Vec<u8> {
    let mut wire = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    for piece in pieces(body.as_bytes(), sizes).iter().filter(|piece| !piece.is_empty()) {
        wire.extend(format!("{:x}\r\n", piece.len()).bytes());
        wire.extend(piece);
        wire.extend(b"\r\n");
    }
    wire.extend(b"0\r\n\r\n");
    wire
}

fn reply(answer: Result<NodeHttpReply, ExchangeError>) -> Result<RpcReply, Fault> {
    let replies = answer.unwrap().read(ID, 1, &ReplyFormat::default());
    replies.map_or(Err(Fault::Garbled), |mut replies| replies.remove(0))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_pieces_give_the_same_reply(
        text in "[a-z]{0,300}",
        many in prop_oneof![Just(1usize), Just(100)],
        ends in prop::collection::vec(0usize..40_000, 0..12),
        sizes in prop::collection::vec(0usize..40_000, 0..6),
    ) {
        let value = format!("\"{}\"", text.repeat(many));
        let body = result(ID, &value);
        prop_assert_eq!(reply(heard(&ok(&body), &ends)), said(&value));
        prop_assert_eq!(reply(heard(&chunked(&body, &sizes), &ends)), said(&value));
        let until_close = format!("HTTP/1.1 200 OK\r\n\r\n{body}");
        prop_assert_eq!(reply(heard(until_close.as_bytes(), &ends)), said(&value));
    }

    #[test]
    fn a_reply_that_is_cut_anywhere_is_none(text in "[a-z]{0,50}", cut in 1usize..200, chunks: bool) {
        let body = result(ID, &format!("\"{text}\""));
        let wire = if chunks { chunked(&body, &[9]) } else { ok(&body) };
        let cut = wire.len() - cut.min(wire.len());
        prop_assert_eq!(heard(&wire[..cut], &[]).unwrap_err(), ExchangeError::Fault(Fault::Closed));
    }

    #[test]
    fn no_bytes_make_it_panic(noise: Vec<u8>, start in prop_oneof![
        Just(""), Just("HTTP/1.1 200 OK\r\n"), Just("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"),
        Just("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n"), Just("HTTP/1.1 200 OK\r\n\r\n[{\"id\":7,"),
    ]) {
        let wire = [start.as_bytes(), &noise].concat();
        if let Ok(answer) = heard(&wire, &[]) {
            let _ = answer.read(ID, 1, &ReplyFormat::default());
            let _ = answer.read(ID, 2, &ReplyFormat::default());
        }
    }
}

#[test]
fn every_single_split_gives_the_same_reply() {
    let body = result(ID, "[1,{\"a\":null}]");
    for wire in [ok(&body), chunked(&body, &[5, 17])] {
        for end in 0..wire.len() {
            assert_eq!(reply(heard(&wire, &[end])), said("[1,{\"a\":null}]"), "{end}");
        }
    }
}
