//! What the gateway does now, once and every second.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use tokio::sync::{OwnedSemaphorePermit, watch};

use crate::pages::NavigationItem;
use crate::pages::live::{LivePage, LiveStatus};
use crate::web::operator_session::OperatorSession;
use crate::web::page_error::PageError;
use crate::web::reply;
use crate::web::site::ConsoleSite;
use crate::web::web_request::WebRequest;

pub(in crate::web) async fn page(
    site: Arc<ConsoleSite>,
    request: WebRequest,
    operator: OperatorSession,
) -> Result<Response, PageError> {
    let status = LiveStatus::clone(&site.live.borrow());
    let session = operator.session();
    let frame = site.frame(&request, Some(session), NavigationItem::Live, "Live").await?;
    reply::page(&LivePage { frame, status })
}

/// Server-sent events: one status per second, until the browser goes away or the gateway stops.
pub(in crate::web) async fn events(
    site: Arc<ConsoleSite>,
    request: WebRequest,
    _: OperatorSession,
) -> Result<Response, PageError> {
    let Ok(permit) = Arc::clone(&site.live_streams).try_acquire_owned() else {
        return Err(PageError::Status(503));
    };
    let watched = WatchedStatus {
        status: site.live.subscribe(),
        stopping: site.stopping.subscribe(),
        site,
        request,
        _permit: permit,
    };
    let events = stream::unfold(watched, next_event);
    let event_stream = HeaderValue::from_static("text/event-stream");
    Ok(([(CONTENT_TYPE, event_stream)], Body::from_stream(events)).into_response())
}

struct WatchedStatus {
    site: Arc<ConsoleSite>,
    request: WebRequest,
    status: watch::Receiver<Arc<LiveStatus>>,
    stopping: watch::Receiver<bool>,
    _permit: OwnedSemaphorePermit,
}

impl WatchedStatus {
    /// Whether the session has not ended since the stream began. While the store is down, nobody can end it.
    async fn is_still_allowed(&self) -> bool {
        self.site.people.is_operator_session(&self.request.browser_token.0).await.unwrap_or(true)
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
    let data = status.event_data().ok()?;
    // Each line of an event needs the name of its field.
    let data: String = data.lines().map(|line| format!("data: {line}\n")).collect();
    Some((Ok(Bytes::from(format!("event: status\n{data}\n"))), watched))
}
