//! The seam to whatever answers the requests.

use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use http::header::HeaderName;

use crate::connection::{Connection, RequestId};
use crate::head::Head;
use crate::refused::Refused;
use crate::request_body::Body;

/// Answers the requests of all connections.
pub trait Service: Debug + Send + Sync + 'static {
    type Reply: ServiceReply;

    /// Answers one request.
    fn answer<'s, 'a: 's, B: Body<'a>>(
        self: &'s Arc<Self>,
        connection: &'s Connection,
        id: RequestId,
        head: &'s Head<'_>,
        body: &'s mut B,
    ) -> impl Future<Output = Self::Reply> + Send;

    /// The reply to what is no request that could be answered.
    fn refuse_request(
        &self,
        connection: &Connection,
        id: RequestId,
        refused: Refused,
    ) -> impl Future<Output = Self::Reply> + Send;

    /// The reply for a connection that there is no place for.
    fn refuse_connection(&self, id: RequestId) -> Self::Reply;
}

/// A reply, as the server sends it.
pub trait ServiceReply: Send {
    fn status(&self) -> StatusCode;

    /// Bytes of its body.
    fn body_len(&self) -> usize;

    /// The lines of its head, without those that tell where the reply ends.
    fn head(&self, lines: &mut impl Lines);

    /// Its body, in at most three pieces.
    fn into_parts(self) -> [Bytes; 3];
}

/// Where the lines of a head are put down.
pub trait Lines {
    fn line(&mut self, name: &HeaderName, value: &str);
}
