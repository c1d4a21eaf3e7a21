//! Notifications of PostgreSQL about changes. They only save time: whoever misses one finds the change by polling.

use std::fmt;

use sqlx::PgPool;
use sqlx::postgres::PgListener;

use crate::failure::StoreFailure;
use crate::operation_timeout::within_timeout;

/// The channel on which every change is announced.
pub(crate) const CHANNEL: &str = "chaingate_changes";

/// A connection that waits for notifications.
pub struct ChangeListener {
    listener: PgListener,
}

impl fmt::Debug for ChangeListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ChangeListener")
    }
}

impl ChangeListener {
    pub(crate) async fn start(pool: &PgPool) -> Result<Self, StoreFailure> {
        let start = async {
            let mut listener = PgListener::connect_with(pool).await?;
            // The owner decides when to connect again, because it also knows whether the database is back.
            listener.eager_reconnect(false);
            listener.listen(CHANNEL).await.map(|()| listener)
        };
        within_timeout(start).await.map(|listener| Self { listener })
    }

    /// Waits until a change is announced. After an error the connection is lost, and a new listener is needed.
    pub async fn changed(&mut self) -> Result<(), StoreFailure> {
        match self.listener.try_recv().await? {
            Some(_) => Ok(()),
            None => Err(StoreFailure::Unavailable("the connection for notifications is lost".to_owned())),
        }
    }
}
