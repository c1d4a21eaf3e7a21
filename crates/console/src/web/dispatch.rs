//! From a request to its handler: the host, the origin, the session, the access of the route, and the token of the form.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::RawPathParams;
use axum::extract::rejection::RawPathParamsRejection;
use axum::response::Response;
use axum::routing::{MethodFilter, on};
use callers::people::{self, ActiveSession, Visitor};
use http::header::{self, HeaderValue};
use http::{HeaderMap, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use tokio::time::timeout;
use tower_service::Service as _;

use super::form_fields::FormFields;
use super::operator_session::OperatorSession;
use super::own_path;
use super::page_error::{PageError, PageResult, RETRY_S, Refusal};
use super::reply;
use super::routes::{ROUTES, RouteHandler, WebRoute};
use super::site::ConsoleSite;
use super::user_limits::UserPermit;
use super::web_request::{BrowserToken, WebRequest};
use crate::pages::NavigationItem;
use crate::pages::error::ErrorPage;
use crate::pages::usage::percent_encoded;
use crate::path_value::contains_nul;

/// Bytes of a form. Some public keys and long lists of addresses have tens of kilobytes.
const FORM_BYTES_MAX: usize = 64 << 10;

/// How long a form may take to arrive.
const FORM_TIMEOUT: Duration = Duration::from_secs(10);

type PathValues = Result<RawPathParams, RawPathParamsRejection>;

/// The address at the other end of the connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConsolePeer(pub(super) SocketAddr);

/// The console as a service: all routes behind the checks that every request has to pass.
#[derive(Clone, Debug)]
pub(super) struct Dispatch {
    site: Arc<ConsoleSite>,
    router: Router,
}

impl Dispatch {
    pub(super) fn new(site: Arc<ConsoleSite>) -> Self {
        let mut router = Router::new();
        for route in ROUTES {
            let site = Arc::clone(&site);
            let handler = move |values: PathValues, request: Request<Body>| {
                let site = Arc::clone(&site);
                async move {
                    match path_values(values, request.uri()) {
                        Ok(values) => answer(site, route, values, request).await,
                        Err(status) => failed(site, request, status).await,
                    }
                }
            };
            let filter = if route.method == Method::POST { MethodFilter::POST } else { MethodFilter::GET };
            router = router.route(route.path, on(filter, handler));
        }
        let (missing, wrong) = (Arc::clone(&site), Arc::clone(&site));
        let router = router
            .fallback(move |request| failed(Arc::clone(&missing), request, 404))
            .method_not_allowed_fallback(move |request| failed(Arc::clone(&wrong), request, 405));
        Self { site, router }
    }

    pub(super) async fn respond(&self, request: Request<Body>) -> Response {
        let response = if self.allows_host_of(&request) {
            // A router is always ready, so nothing has to be polled before the call.
            let answered: Result<Response, Infallible> = self.router.clone().call(request).await;
            match answered {
                Ok(response) => response,
            }
        } else {
            let text = "this host name is not allowed; see url in the section [console]\n";
            reply::plain(StatusCode::FORBIDDEN, text)
        };
        self.site.secured(response)
    }

    /// A page of another name for this address could read the console (DNS rebinding).
    fn allows_host_of(&self, request: &Request<Body>) -> bool {
        let mut hosts = request.headers().get_all(header::HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
        let in_target = request.uri().authority().is_none_or(|target| self.site.hosts.allow(target.as_str()));
        in_target && host.to_str().is_ok_and(|host| self.site.hosts.allow(host))
    }
}

/// The decoded parts of the path that the route names, or the status of an address that names nothing: text that is not UTF-8,
/// or that has a NUL byte.
fn path_values(values: PathValues, address: &Uri) -> Result<Vec<(String, String)>, u16> {
    let values = values.map_err(|_| 404_u16)?;
    if contains_nul(address.path()) {
        return Err(404);
    }
    if address.query().is_some_and(contains_nul) {
        return Err(400);
    }
    Ok(values.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

async fn failed(site: Arc<ConsoleSite>, request: Request<Body>, status: u16) -> Response {
    let (head, _) = request.into_parts();
    let visitor = visitor(&site, &head);
    let session = session(&site, &head.headers, &visitor).await.ok().flatten();
    error_page(&site, session.as_ref(), PageError::Status(status))
}

async fn answer(
    site: Arc<ConsoleSite>,
    route: &'static WebRoute,
    path_values: Vec<(String, String)>,
    request: Request<Body>,
) -> Response {
    let (head, body) = request.into_parts();
    let visitor = visitor(&site, &head);
    let session = match route.needs_session() {
        true => session(&site, &head.headers, &visitor).await,
        false => Ok(None),
    };
    let session = match session {
        Ok(session) => session,
        Err(error) => return error_page(&site, None, error),
    };
    let (token, new_cookie) = match browser_token(&site, &head.headers, session.is_some()) {
        Ok(token) => token,
        Err(error) => return error_page(&site, session.as_ref(), error),
    };
    let form = match read_form(&site, &head, body).await {
        Ok(form) => form,
        Err(error) => return error_page(&site, session.as_ref(), error),
    };
    let request = WebRequest {
        site: Arc::clone(&site),
        session: session.clone(),
        target: head.uri.path_and_query().map_or("/", |target| target.as_str()).to_owned(),
        path: head.uri.path().to_owned(),
        path_values,
        query: FormFields::parse(head.uri.query().unwrap_or_default()),
        form,
        visitor,
        browser_token: BrowserToken(token),
    };
    let answered = run(route, request, head.method == Method::POST).await;
    let mut response = answered.unwrap_or_else(|error| error_page(&site, session.as_ref(), error));
    // Only pages have forms; files are kept by browsers and proxies, and must not carry a cookie.
    let is_page = |value: &HeaderValue| value.as_bytes().starts_with(b"text/html");
    let is_page = response.headers().get(header::CONTENT_TYPE).is_some_and(is_page);
    if let Some(cookie) = new_cookie.filter(|_| is_page) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

/// Runs the handler, if the route is for whoever asks.
async fn run(route: &WebRoute, request: WebRequest<Option<ActiveSession>>, is_change: bool) -> PageResult {
    match &route.handler {
        RouteHandler::Anyone(handler) => {
            check_form(&request, is_change).await?;
            handler(request).await
        }
        RouteHandler::SignedIn(handler) => {
            let (request, _permit) = in_turn(request, is_change, Some).await?;
            handler(request).await
        }
        RouteHandler::Operator(handler) => {
            let (request, _permit) = in_turn(request, is_change, OperatorSession::of).await?;
            handler(request).await
        }
    }
}

/// The request of somebody who is signed in, when earlier ones of the same user are answered. `admit` is `None` for people who may
/// not use the route.
async fn in_turn<S>(
    request: WebRequest<Option<ActiveSession>>,
    is_change: bool,
    admit: fn(ActiveSession) -> Option<S>,
) -> Result<(WebRequest<S>, UserPermit), PageError> {
    let Some(session) = request.session.clone() else { return Err(to_sign_in(&request, is_change)) };
    let email = session.email().to_owned();
    let mut admitted = admit(session).ok_or(PageError::Status(403))?;
    check_form(&request, is_change).await?;
    let limits = &request.site.user_limits;
    if is_change && !limits.allow_change(&email) {
        return Err(PageError::TooManyRequests { wait_s: RETRY_S });
    }
    let permit = limits.begin_request(&email).await?;
    if permit.has_waited {
        // Somebody may have ended the session, blocked the user or taken a role away meanwhile.
        let session = request.site.people.session(&request.browser_token.0, &request.visitor).await?;
        let session = session.ok_or_else(|| to_sign_in(&request, is_change))?;
        admitted = admit(session).ok_or(PageError::Status(403))?;
    }
    Ok((request.with_session(admitted), permit))
}

/// A form of another site, or of another browser, does not know the token.
async fn check_form<S>(request: &WebRequest<S>, is_change: bool) -> Result<(), PageError> {
    let (people, token) = (&request.site.people, &request.browser_token.0);
    match !is_change || people.is_form_token(token, request.form.get("csrf")).await? {
        true => Ok(()),
        false => Err(PageError::Status(403)),
    }
}

fn to_sign_in<S>(request: &WebRequest<S>, is_change: bool) -> PageError {
    let next = if is_change { "/" } else { own_path::or_start(&request.target) };
    PageError::Redirect(match next {
        "/" => "/sign-in".to_owned(),
        next => format!("/sign-in?next={}", percent_encoded(next)),
    })
}

fn visitor(site: &ConsoleSite, head: &http::request::Parts) -> Visitor {
    let peer = head.extensions.get::<ConsolePeer>().map(|peer| peer.0);
    let peer = peer.unwrap_or_else(|| SocketAddr::from(([0, 0, 0, 0], 0)));
    let browser = head.headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok());
    Visitor {
        address: (site.client_address)(peer, &head.headers),
        browser: browser.unwrap_or_default().to_owned(),
    }
}

async fn session(
    site: &ConsoleSite,
    headers: &HeaderMap,
    visitor: &Visitor,
) -> Result<Option<ActiveSession>, PageError> {
    match site.cookies.session(headers) {
        None => Ok(None),
        Some(token) => Ok(site.people.session(&token, visitor).await?),
    }
}

/// The text that forms are bound to: the token of the session, or that of a cookie which the browser has or gets now.
fn browser_token(
    site: &ConsoleSite,
    headers: &HeaderMap,
    is_signed_in: bool,
) -> Result<(String, Option<HeaderValue>), PageError> {
    if is_signed_in && let Some(token) = site.cookies.session(headers) {
        return Ok((token, None));
    }
    if let Some(token) = site.cookies.form(headers) {
        return Ok((token, None));
    }
    let token = people::random_token()?;
    let cookie = site.cookies.set_form(&token);
    Ok((token, cookie))
}

/// Reads the form of a change, which a page of this site must have sent.
async fn read_form(
    site: &ConsoleSite,
    head: &http::request::Parts,
    body: Body,
) -> Result<FormFields, PageError> {
    if head.method != Method::POST {
        return Ok(FormFields::default());
    }
    if !allows_origin(site, &head.headers) {
        return Err(PageError::Status(403));
    }
    let content_type = head.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        return Err(PageError::Status(400));
    }
    match timeout(FORM_TIMEOUT, Limited::new(body, FORM_BYTES_MAX).collect()).await {
        Ok(Ok(body)) => Ok(FormFields::parse(&String::from_utf8_lossy(&body.to_bytes()))),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(PageError::Status(413)),
        Ok(Err(_)) | Err(_) => Err(PageError::Status(400)),
    }
}

/// Browsers send `Origin` with every form, and newer ones `Sec-Fetch-Site`. Programs send neither.
fn allows_origin(site: &ConsoleSite, headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let is_own = |origin: &HeaderValue| {
        let origin = origin.to_str().unwrap_or_default();
        match &site.configured_url {
            Some(url) if url.ends_with(&format!("//{host}")) => origin.eq_ignore_ascii_case(url),
            _ => site.hosts.allow_origin(origin, host),
        }
    };
    let is_same_site = |site: &HeaderValue| matches!(site.as_bytes(), b"same-origin" | b"none");
    // Of several values, a proxy in front may have checked any.
    headers.get_all(header::ORIGIN).iter().all(is_own)
        && headers.get_all("sec-fetch-site").iter().all(is_same_site)
}

fn error_page(site: &ConsoleSite, session: Option<&ActiveSession>, error: PageError) -> Response {
    let status = match &error {
        PageError::Redirect(path) => {
            let redirected = reply::redirect(path);
            return redirected.unwrap_or_else(|_| reply::plain(StatusCode::INTERNAL_SERVER_ERROR, "error\n"));
        }
        PageError::Status(status) => *status,
        PageError::TooManyRequests { .. } => 429,
        PageError::InvalidValue(_) => 400,
        PageError::InvalidLink => 404,
        PageError::Failed { status, reason } => {
            if let Some(requests) = site.failures.count(Instant::now()) {
                tracing::warn!(reason, requests, "the console cannot answer");
            }
            *status
        }
    };
    let retry_after_s = match &error {
        PageError::TooManyRequests { wait_s } => Some(*wait_s),
        _ => None,
    };
    let title = if matches!(error, PageError::InvalidLink) { "Link" } else { "Error" };
    let frame = site.frame_with(String::new(), session, NavigationItem::None, title, None);
    let page = match error {
        PageError::InvalidValue(message) => ErrorPage::invalid_value(frame, &message),
        PageError::InvalidLink => ErrorPage::invalid_link(frame),
        _ => ErrorPage::of_status(frame, status),
    };
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let rendered = reply::refused_with(Refusal { status, retry_after_s }, &page);
    rendered.unwrap_or_else(|_| reply::plain(status, "the console cannot make this page\n"))
}
