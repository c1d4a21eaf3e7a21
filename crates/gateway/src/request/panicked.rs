//! A request that panicked outside of its calls → its reply. Nobody knows which of them was the reason, so each of them has the
//! error.

use std::panic::{AssertUnwindSafe, catch_unwind};

use http_server::{INLINE_BODY_BYTES_MAX, ReplyParts};
use jsonrpc::{Id, Request};

use super::calls::id_of;
use crate::errors::internal_error;
use crate::respond::Reply;

/// The reply to the calls of this body. Without a body, or if reading it was what panicked, nobody knows their ids; those of a
/// large body are not looked for, because reading it would delay other connections of the thread.
pub(super) fn panicked(text: Option<&[u8]>, batch_calls_max: usize) -> Reply {
    let text = text.filter(|text| text.len() <= INLINE_BODY_BYTES_MAX);
    let reply = || text.and_then(|text| of_calls(text, batch_calls_max));
    let reply = catch_unwind(AssertUnwindSafe(reply)).unwrap_or(None);
    reply.unwrap_or_else(|| Reply::error(Id::NULL, internal_error()))
}

fn of_calls(text: &[u8], batch_calls_max: usize) -> Option<Reply> {
    let items = match jsonrpc::parse_within(text, batch_calls_max).ok()? {
        Request::Single(item) => {
            return Some(id_of(&item).map_or_else(Reply::silent, |id| Reply::error(id, internal_error())));
        }
        Request::Batch(items) => items,
    };
    let mut out = vec![b'['];
    for id in items.iter().filter_map(id_of) {
        internal_error().write(&mut out, id);
        out.push(b',');
    }
    if out.pop_if(|last| *last == b',').is_none() {
        return Some(Reply::silent());
    }
    out.push(b']');
    Some(Reply::batch(ReplyParts::one(out), None))
}
