//! How long one operation on the database may take.

use std::time::Duration;

use tokio::time::timeout;

use crate::failure::StoreFailure;

/// How long a statement may take with all waiting; longer than the limits that PostgreSQL and SQLite are given, so that those
/// report their reason.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(15);

/// Waits for an operation no longer than [`OPERATION_TIMEOUT`]: a server that hangs keeps its connections open.
pub(crate) async fn within_timeout<T, E: Into<StoreFailure>>(
    operation: impl Future<Output = Result<T, E>>,
) -> Result<T, StoreFailure> {
    match timeout(OPERATION_TIMEOUT, operation).await {
        Ok(done) => done.map_err(Into::into),
        Err(_) => Err(StoreFailure::Unavailable(format!("no answer within {OPERATION_TIMEOUT:?}"))),
    }
}
