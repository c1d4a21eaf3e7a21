//! The connection to Redis. It is opened when it is needed, and every step of it has a deadline.

use std::time::Duration;

use futures_util::future::try_join_all;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisResult, Script};

use super::exchange::{INSTANCES_KEY, ScriptItem};

/// Longer than a round trip over any network on which limits should be shared; later replies are useless.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// One call of the script blocks Redis for about a millisecond with so many items.
const ITEMS_PER_CALL_MAX: usize = 200;

/// What an instance says about itself in each call of the script.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reporter<'a> {
    pub(super) instance: &'a str,
    pub(super) sequence: u64,
    /// Instances that it knows of.
    pub(super) known: u64,
}

/// What the script has answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ScriptReply {
    pub(super) instances: u64,
    /// Whether limits are divided. Otherwise instances keep what they use, because others may not have reported yet.
    pub(super) is_settled: bool,
    /// Two numbers for each item.
    pub(super) values: Vec<(i64, i64)>,
}

pub(super) struct RedisLink {
    client: Client,
    connection: Option<MultiplexedConnection>,
    script: Script,
}

impl std::fmt::Debug for RedisLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisLink").field("is_open", &self.connection.is_some()).finish_non_exhaustive()
    }
}

impl RedisLink {
    pub(super) fn new(client: Client) -> Self {
        Self { client, connection: None, script: Script::new(include_str!("divide.lua")) }
    }

    /// Runs the script for all items. After a failure, the next call opens a new connection.
    pub(super) async fn exchange(
        &mut self,
        reporter: Reporter<'_>,
        items: &[ScriptItem],
    ) -> RedisResult<ScriptReply> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        let chunks = items.chunks(ITEMS_PER_CALL_MAX).chain(items.is_empty().then_some(items));
        let calls = chunks.map(|chunk| self.call(connection.clone(), reporter, chunk));
        let replies = try_join_all(calls).await?;
        self.connection = Some(connection);
        let instances = replies.iter().map(|reply| reply.instances).max().unwrap_or_default();
        let is_settled = replies.iter().all(|reply| reply.is_settled);
        let values = replies.into_iter().flat_map(|reply| reply.values).collect();
        Ok(ScriptReply { instances, is_settled, values })
    }

    async fn connect(&self) -> RedisResult<MultiplexedConnection> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(ANSWER_MAX))
            .set_response_timeout(Some(ANSWER_MAX));
        self.client.get_multiplexed_async_connection_with_config(&config).await
    }

    async fn call(
        &self,
        mut connection: MultiplexedConnection,
        Reporter { instance, sequence, known }: Reporter<'_>,
        items: &[ScriptItem],
    ) -> RedisResult<ScriptReply> {
        let mut call = self.script.key(INSTANCES_KEY);
        call.arg(instance).arg(sequence).arg(known);
        for ScriptItem { key, operation, arguments } in items {
            call.key(key).arg(*operation).arg(arguments);
        }
        let numbers: Vec<i64> = call.invoke_async(&mut connection).await?;
        let instances = numbers.first().and_then(|&live| u64::try_from(live).ok()).unwrap_or_default();
        let is_settled = numbers.get(1) == Some(&1);
        let mut values: Vec<_> =
            numbers.get(2..).unwrap_or_default().chunks_exact(2).map(|two| (two[0], two[1])).collect();
        // A reply that is too short does not come from this script; items without an answer stay as they are.
        values.resize(items.len(), (-1, -1));
        Ok(ScriptReply { instances, is_settled, values })
    }
}
