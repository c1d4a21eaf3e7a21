//! The traits through which the server calls the gateway.

use std::fmt::Debug;
use std::sync::Arc;

use http::StatusCode;
use http::header::HeaderName;

use crate::connection::{Connection, RequestId};
use crate::head::RequestHead;
use crate::refused::Refused;
use crate::reply_parts::ReplyParts;
use crate::request_body::RequestBody;

/// Answers the requests of all connections.
pub trait Service: Debug + Send + Sync + 'static {
    type Reply: ServiceReply;

    /// Answers one request.
    fn answer<'s, 'a: 's, B: RequestBody<'a>>(
        self: &'s Arc<Self>,
        connection: &'s Connection,
        id: RequestId,
        head: &'s RequestHead<'_>,
        body: &'s mut B,
    ) -> impl Future<Output = Self::Reply> + Send;

    /// The reply to a request that cannot be parsed.
    fn refuse_request(
        &self,
        connection: &Connection,
        id: RequestId,
        refused: Refused,
    ) -> impl Future<Output = Self::Reply> + Send;

    /// The reply to a connection that is refused because there are too many.
    fn refuse_connection(&self, id: RequestId) -> Self::Reply;
}

/// A reply.
pub trait ServiceReply: Send {
    fn status(&self) -> StatusCode;

    fn body_len(&self) -> usize;

    /// Writes the headers, without those that frame the body.
    fn write_headers(&self, headers: &mut impl HeaderWriter);

    fn into_parts(self) -> ReplyParts;
}

/// Takes the headers of a reply.
pub trait HeaderWriter {
    fn header(&mut self, name: &HeaderName, value: &str);
}
