//! The body of an HTTP/2 request.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use h2::RecvStream;
use resources::{AccountMemory, ChargedBuffer, MemoryCharge};
use tokio::time::timeout;

use crate::connection_state::{ConnectionState, RunningRequest};
use crate::policy::{DISCARD_TIME, DISCARDED_BYTES_MAX};
use crate::refused::Refused;
use crate::request_body::{ReceivedBody, RequestBody};

pub(super) struct Http2Body {
    incoming: RecvStream,
    /// Timeout of the body. On HTTP/1 the socket applies it; here each stream has its own.
    time: Duration,
    /// Memory of the request without its body.
    request_bytes: usize,
    /// The charge for `request_bytes`, until the reply is sent.
    request_charge: MemoryCharge,
    state: Arc<ConnectionState>,
    /// Set when the body is complete, until the reply is sent.
    running: Option<RunningRequest>,
}

impl Http2Body {
    pub(super) fn new(
        incoming: RecvStream,
        time: Duration,
        request_bytes: usize,
        state: Arc<ConnectionState>,
    ) -> Self {
        let request_charge = MemoryCharge::default();
        Self { incoming, time, request_bytes, request_charge, state, running: None }
    }

    /// Whether the state of the request is charged to the account or counted for the connection.
    pub(super) fn is_charged(&self) -> bool {
        self.request_charge.bytes() > 0
    }

    /// Reads and discards the rest of the body, within limits.
    ///
    /// A stream that is answered before its body has arrived ends with a reset, and some clients (curl 7.88) then report an
    /// error instead of the reply.
    pub(super) async fn discard(&mut self) {
        let discard = async {
            let mut left = DISCARDED_BYTES_MAX;
            while let Ok(Some(piece)) = self.next().await
                && piece.len() <= left
            {
                left -= piece.len();
            }
        };
        // After the timeout, the stream is reset behind its reply.
        let _timed_out = timeout(DISCARD_TIME, discard).await.is_err();
    }

    /// The next piece of data. Trailers are ignored.
    async fn next(&mut self) -> Result<Option<Bytes>, Refused> {
        match self.incoming.data().await {
            None => Ok(None),
            Some(Err(_)) => Err(Refused::Broken),
            Some(Ok(piece)) => {
                self.incoming.flow_control().release_capacity(piece.len()).map_err(|_| Refused::Broken)?;
                Ok(Some(piece))
            }
        }
    }

    async fn read_whole(
        &mut self,
        bytes_max: usize,
        memory: AccountMemory<'_>,
    ) -> Result<ChargedBuffer, Refused> {
        let mut whole = ChargedBuffer::default();
        while let Some(piece) = self.next().await? {
            if whole.bytes().len() + piece.len() > bytes_max {
                return Err(Refused::TooLarge);
            }
            whole.reserve(memory, piece.len(), bytes_max)?;
            whole.bytes_mut().extend_from_slice(&piece);
        }
        Ok(whole)
    }
}

impl<'a> RequestBody<'a> for Http2Body {
    async fn read(
        &mut self,
        bytes_max: usize,
        memory: AccountMemory<'_>,
    ) -> Result<ReceivedBody<'a>, Refused> {
        memory.grow(&mut self.request_charge, self.request_bytes)?;
        let read = timeout(self.time, self.read_whole(bytes_max, memory)).await;
        let received = read.unwrap_or(Err(Refused::TooSlow))?;
        self.running = Some(RunningRequest::start(Arc::clone(&self.state)));
        Ok(received.into())
    }

    /// The body of a refused request is discarded after its reply is computed.
    async fn skip(&mut self) {}

    /// The task of a stream that the caller resets is dropped, and the answer with it.
    async fn run_while_connected<T: Send>(
        &mut self,
        answer: Pin<&mut (impl Future<Output = T> + Send)>,
    ) -> Result<T, Refused> {
        Ok(answer.await)
    }
}
