//! All paths of the console, and who may use them. Tests try every row without a session, with an expired one, as
//! developers and as an operator.

use std::fmt;

use callers::people::ActiveSession;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::Method;

use super::handlers::{
    accounts, audit, configuration, entry, files, keys, live, overview, try_it, usage, user,
};
use super::operator_session::OperatorSession;
use super::page_error::PageResult;
use super::web_request::WebRequest;

type Handler<S> = fn(WebRequest<S>) -> BoxFuture<'static, PageResult>;

/// A path of the console.
pub struct WebRoute {
    pub method: Method,
    /// With the names of its variable parts in braces.
    pub path: &'static str,
    pub(super) handler: RouteHandler,
}

impl fmt::Debug for WebRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} for {:?}", self.method, self.path, self.access())
    }
}

/// Who may use a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Anyone,
    SignedIn,
    Operator,
}

/// The handler of a route. Its type says who may use it: a handler for users cannot run without a session.
pub(super) enum RouteHandler {
    Anyone(Handler<Option<ActiveSession>>),
    SignedIn(Handler<ActiveSession>),
    Operator(Handler<OperatorSession>),
}

impl WebRoute {
    pub fn access(&self) -> Access {
        match self.handler {
            RouteHandler::Anyone(_) => Access::Anyone,
            RouteHandler::SignedIn(_) => Access::SignedIn,
            RouteHandler::Operator(_) => Access::Operator,
        }
    }

    /// Files are the same for everybody, so they are served while the store is down.
    pub(super) fn needs_session(&self) -> bool {
        self.path != ASSETS
    }
}

/// The path of the files that pages load.
const ASSETS: &str = "/assets/{name}";

/// A row of [`ROUTES`].
macro_rules! route {
    ($method:ident $path:literal $access:ident $handler:path) => {
        WebRoute {
            method: Method::$method,
            path: $path,
            handler: RouteHandler::$access(|request| $handler(request).boxed()),
        }
    };
}

#[rustfmt::skip]
pub static ROUTES: &[WebRoute] = &[
    route!(GET  "/sign-in"                  Anyone   entry::sign_in_page),
    route!(POST "/sign-in"                  Anyone   entry::sign_in),
    route!(GET  "/sign-up"                  Anyone   entry::sign_up_page),
    route!(POST "/sign-up"                  Anyone   entry::sign_up),
    route!(GET  "/link/{token}"             Anyone   entry::link_page),
    route!(POST "/link/{token}"             Anyone   entry::use_link),
    route!(GET  "/assets/{name}"            Anyone   files::asset),
    route!(GET  "/"                         SignedIn overview::page),
    route!(GET  "/keys"                     SignedIn keys::list),
    route!(POST "/keys"                     SignedIn keys::create),
    route!(GET  "/keys/{id}"                SignedIn keys::details),
    route!(POST "/keys/{id}/rename"         SignedIn keys::rename),
    route!(POST "/keys/{id}/rotate"         SignedIn keys::rotate),
    route!(POST "/keys/{id}/revoke"         SignedIn keys::revoke),
    route!(POST "/keys/{id}/settings"       SignedIn keys::change_settings),
    route!(GET  "/usage"                    SignedIn usage::page),
    route!(GET  "/usage.csv"                SignedIn usage::csv),
    route!(GET  "/try"                      SignedIn try_it::page),
    route!(GET  "/settings"                 SignedIn user::settings),
    route!(POST "/settings/password"        SignedIn user::change_password),
    route!(POST "/sessions/{id}/end"        SignedIn user::end_session),
    route!(POST "/sign-out"                 SignedIn user::sign_out),
    route!(GET  "/live"                     Operator live::page),
    route!(GET  "/live/events"              Operator live::events),
    route!(GET  "/accounts"                 Operator accounts::list),
    route!(POST "/accounts"                 Operator accounts::create),
    route!(GET  "/accounts/{name}"          Operator accounts::details),
    route!(GET  "/accounts/{name}/users"    Operator accounts::users),
    route!(GET  "/accounts/{name}/keys"     Operator keys::list),
    route!(POST "/accounts/{name}/keys"     Operator keys::create),
    route!(GET  "/accounts/{name}/keys/{id}" Operator keys::details),
    route!(POST "/accounts/{name}/keys/{id}/rename" Operator keys::rename),
    route!(POST "/accounts/{name}/keys/{id}/rotate" Operator keys::rotate),
    route!(POST "/accounts/{name}/keys/{id}/revoke" Operator keys::revoke),
    route!(POST "/accounts/{name}/keys/{id}/settings" Operator keys::change_settings),
    route!(GET  "/accounts/{name}/usage"    Operator usage::page),
    route!(GET  "/accounts/{name}/usage.csv" Operator usage::csv),
    route!(POST "/accounts/{name}/plan"     Operator accounts::change_plan),
    route!(POST "/accounts/{name}/suspend"  Operator accounts::suspend),
    route!(POST "/accounts/{name}/resume"   Operator accounts::resume),
    route!(POST "/accounts/{name}/invite"   Operator accounts::invite),
    route!(POST "/accounts/{name}/reset"    Operator accounts::reset_password),
    route!(POST "/accounts/{name}/block"    Operator accounts::block_user),
    route!(POST "/accounts/{name}/unblock"  Operator accounts::unblock_user),
    route!(GET  "/audit"                    Operator audit::page),
    route!(GET  "/configuration"            Operator configuration::page),
];
