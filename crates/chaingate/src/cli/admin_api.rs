//! The admin API of the gateway that `chaingate serve` starts.

use std::net::SocketAddr;
use std::sync::Arc;

use callers::FeedHandle;
use console::{AddressFile, AdminApi, AdminToken, AdminTokenError, AnnouncedListener, ReloadConfiguration};
use gateway::AdminService;

use crate::config::Config;

/// Opens the admin API. It is missing where the data directory cannot be written; a token that others can read keeps the
/// gateway from starting.
pub(super) fn open(
    config: &Config,
    feed: FeedHandle,
    reload: ReloadConfiguration,
) -> Result<Option<Arc<dyn AdminService>>, String> {
    match AdminToken::load_or_create(&config.admin_token_path()) {
        Ok(token) => {
            let api = AdminApi::new(token, config.administration().with_feed(feed)).with_reload(reload);
            Ok(Some(Arc::new(api)))
        }
        Err(error @ AdminTokenError::NotCreated { .. }) => {
            tracing::warn!(%error, "serving without the admin API");
            Ok(None)
        }
        Err(error) => Err(error.to_string()),
    }
}

/// Tells commands where the admin API is, until the value is dropped. Without it, commands change the store themselves, which
/// takes effect a moment later.
pub(super) fn announce(config: &Config, operator: SocketAddr) -> Option<AddressFile> {
    if !operator.ip().is_loopback() {
        tracing::warn!(
            %operator,
            "the operator address, with the admin API, can be reached from other machines without encryption; \
             use a loopback address, or a network that only operators can reach"
        );
    }
    let written = AddressFile::write(&config.data_dir, AnnouncedListener::Admin, operator);
    let logged = written.inspect_err(|error| {
        tracing::warn!(%error, "cannot write admin-address; commands about accounts and keys use the store directly");
    });
    logged.ok()
}
