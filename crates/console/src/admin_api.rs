//! The service that the operator's listener calls for requests under `/admin`.

use bytes::Bytes;
use callers::administration::Administration;
use futures_util::future::{BoxFuture, FutureExt as _};
use gateway::{AdminService, OperatorPeer};
use http::{Request, Response};

use crate::admin_token::AdminToken;
use crate::guard::AdminGuard;
use crate::router::{AdminRouter, OPENAPI_PATH, response_of};
use crate::routes::reload::ReloadConfiguration;

/// The admin API behind its token.
#[derive(Debug)]
pub struct AdminApi {
    guard: AdminGuard,
    router: AdminRouter,
}

impl AdminApi {
    pub fn new(token: AdminToken, administration: Administration) -> Self {
        Self { guard: AdminGuard::new(token), router: AdminRouter::new(administration) }
    }

    /// Lets the API make the gateway read its configuration again.
    pub fn with_reload(self, reload: ReloadConfiguration) -> Self {
        Self { router: self.router.with_reload(reload), ..self }
    }

    async fn guarded(&self, request: Request<Bytes>) -> Response<Bytes> {
        // The document describes the API and contains nothing of this gateway.
        if request.uri().path() == OPENAPI_PATH {
            return self.router.answer(request, "anyone").await;
        }
        let peer = request.extensions().get::<OperatorPeer>().map(|peer| peer.0);
        let has_body = !request.body().is_empty();
        match self.guard.check(request.method(), request.headers(), has_body, peer) {
            Ok(actor) => self.router.answer(request, &actor.0).await,
            Err(refused) => response_of(refused).await,
        }
    }
}

impl AdminService for AdminApi {
    fn answer(&self, request: Request<Bytes>) -> BoxFuture<'_, Response<Bytes>> {
        self.guarded(request).boxed()
    }
}

#[cfg(test)]
mod tests;
