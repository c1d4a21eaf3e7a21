//! The live view of the gateway, once, every second, and with each change of the chain.

use std::convert::Infallible;
use std::sync::Arc;

use askama::Template;
use axum::body::Body;
use axum::response::IntoResponse;
use bytes::Bytes;
use futures_util::stream;
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use tokio::sync::{OwnedSemaphorePermit, watch};

use crate::pages::NavigationItem;
use crate::pages::live::{LivePage, LiveStatus};
use crate::web::operator_session::OperatorSession;
use crate::web::page_error::{PageError, PageResult};
use crate::web::reply;
use crate::web::web_request::WebRequest;

pub(in crate::web) async fn page(request: WebRequest<OperatorSession>) -> PageResult {
    let status = LiveStatus::clone(&request.site.live.borrow());
    reply::page(&LivePage { frame: request.frame(NavigationItem::Live, "Live").await?, status })
}

/// Server-sent events: one status per second and change of the chain, until the browser goes away or the gateway stops.
pub(in crate::web) async fn events(request: WebRequest<OperatorSession>) -> PageResult {
    let Ok(permit) = Arc::clone(&request.site.live_streams).try_acquire_owned() else {
        return Err(PageError::Status(503));
    };
    let watched = WatchedStatus {
        status: request.site.live.subscribe(),
        stopping: request.site.stopping.subscribe(),
        request,
        _permit: permit,
    };
    let events = stream::unfold(watched, next_event);
    let event_stream = HeaderValue::from_static("text/event-stream");
    Ok(([(CONTENT_TYPE, event_stream)], Body::from_stream(events)).into_response())
}

struct WatchedStatus {
    request: WebRequest<OperatorSession>,
    status: watch::Receiver<Arc<LiveStatus>>,
    stopping: watch::Receiver<bool>,
    _permit: OwnedSemaphorePermit,
}

impl WatchedStatus {
    /// Whether the session has not ended since the stream began. While the store is down, nobody can end it.
    async fn is_still_allowed(&self) -> bool {
        let token = &self.request.browser_token.0;
        self.request.site.people.is_operator_session(token).await.unwrap_or(true)
    }
}

async fn next_event(mut watched: WatchedStatus) -> Option<(Result<Bytes, Infallible>, WatchedStatus)> {
    tokio::select! {
        _ = watched.stopping.wait_for(|stopping| *stopping) => return None,
        changed = watched.status.changed() => changed.ok()?,
    }
    if !watched.is_still_allowed().await {
        return None;
    }
    let status = Arc::clone(&watched.status.borrow_and_update());
    let data = status.render().ok()?;
    // Each line of an event needs the name of its field.
    let data: String = data.lines().map(|line| format!("data: {line}\n")).collect();
    Some((Ok(Bytes::from(format!("event: status\n{data}\n"))), watched))
}
