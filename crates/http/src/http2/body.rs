//! The body of an HTTP/2 request.

use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use h2::RecvStream;
use resources::{AccountMemory, ChargedBuffer, MemoryCharge};
use tokio::time::timeout;

use crate::refused::Refused;
use crate::request_body::{Body, ReceivedBody};

/// A body that comes in on a stream of its own.
pub(super) struct StreamBody {
    incoming: RecvStream,
    /// How long it may take. On HTTP/1 the connection watches that; here every stream has its own time.
    time: Duration,
    /// What the request takes beside its body.
    request_bytes: usize,
    /// The charge for that, until the reply is sent.
    request_charge: MemoryCharge,
}

/// What is read and thrown away of a refused request's body, so that the reply is not followed by a reset.
const DISCARDED_BYTES_MAX: usize = 64 << 10;

/// How long a caller may take to send the rest of a body that is thrown away.
const DISCARD_TIME: Duration = Duration::from_secs(1);

impl StreamBody {
    pub(super) fn new(incoming: RecvStream, time: Duration, request_bytes: usize) -> Self {
        Self { incoming, time, request_bytes, request_charge: MemoryCharge::default() }
    }

    /// Whether the account or the connection has memory for the state of the request.
    pub(super) fn is_charged(&self) -> bool {
        self.request_charge.bytes() > 0
    }

    /// Reads what is left of the body and throws it away, within limits.
    ///
    /// A stream that is answered before its body has come ends with a reset, and some clients (curl 7.88) then report an
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
        // What does not come in time is not waited for, and the stream is reset behind its reply.
        let _late = timeout(DISCARD_TIME, discard).await.is_err();
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

impl<'a> Body<'a> for StreamBody {
    async fn read(
        &mut self,
        bytes_max: usize,
        memory: AccountMemory<'_>,
    ) -> Result<ReceivedBody<'a>, Refused> {
        memory.grow(&mut self.request_charge, self.request_bytes)?;
        let read = timeout(self.time, self.read_whole(bytes_max, memory)).await;
        read.unwrap_or(Err(Refused::TooSlow)).map(ReceivedBody::from)
    }

    /// The rest of a refused request's body is thrown away once its reply is made.
    async fn skip(&mut self) {}

    /// A stream that its caller resets is dropped, and its answer with it.
    async fn attend<T: Send>(
        &mut self,
        answer: Pin<&mut (impl Future<Output = T> + Send)>,
    ) -> Result<T, Refused> {
        Ok(answer.await)
    }
}
