//! How long one operation on the database may take.

use tokio::time::timeout;

use crate::failure::StoreFailure;
use crate::policy::OPERATION_TIMEOUT;

/// Waits for an operation no longer than [`OPERATION_TIMEOUT`]: a server that hangs keeps its connections open.
pub(crate) async fn within_timeout<T, E: Into<StoreFailure>>(
    operation: impl Future<Output = Result<T, E>>,
) -> Result<T, StoreFailure> {
    match timeout(OPERATION_TIMEOUT, operation).await {
        Ok(done) => done.map_err(Into::into),
        Err(_) => Err(StoreFailure::Unavailable(format!("no answer within {OPERATION_TIMEOUT:?}"))),
    }
}
