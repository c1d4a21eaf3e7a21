//! The connection to Redis. It is opened when it is needed, and every step of it has a deadline.

use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisResult, Script};

use super::exchange::{INSTANCES_KEY, ScriptItem};
use crate::policy::{ITEMS_PER_CALL_MAX, REDIS_ANSWER_MAX};

/// The description of this instance in each call of the script.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reporter<'a> {
    pub(super) instance: &'a str,
    pub(super) sequence: u64,
    /// Whether the instance ends, so that others get what it held.
    pub(super) is_ending: bool,
}

/// The answer of the script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ScriptReply {
    pub(super) instances: u64,
    /// Whether limits are divided. Otherwise instances keep what they use, because others may not have reported yet.
    pub(super) is_settled: bool,
    /// The rate for each item; `None` if a later report was seen.
    pub(super) rates: Vec<Option<u64>>,
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
        let rates = replies.into_iter().flat_map(|reply| reply.rates).collect();
        Ok(ScriptReply { instances, is_settled, rates })
    }

    /// How long it takes to connect and to run a script, which not every user may do.
    pub(super) async fn inspect(&self) -> RedisResult<Duration> {
        let asked_at = Instant::now();
        let mut connection = self.connect().await?;
        let _one: i64 = Script::new("return 1").invoke_async(&mut connection).await?;
        Ok(asked_at.elapsed())
    }

    async fn connect(&self) -> RedisResult<MultiplexedConnection> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(REDIS_ANSWER_MAX))
            .set_response_timeout(Some(REDIS_ANSWER_MAX));
        self.client.get_multiplexed_async_connection_with_config(&config).await
    }

    async fn call(
        &self,
        mut connection: MultiplexedConnection,
        Reporter { instance, sequence, is_ending }: Reporter<'_>,
        items: &[ScriptItem],
    ) -> RedisResult<ScriptReply> {
        let mut call = self.script.key(INSTANCES_KEY);
        call.arg(instance).arg(sequence).arg(u8::from(is_ending));
        for ScriptItem { key, arguments } in items {
            call.key(key).arg(arguments);
        }
        let numbers: Vec<i64> = call.invoke_async(&mut connection).await?;
        let instances = numbers.first().and_then(|&live| u64::try_from(live).ok()).unwrap_or_default();
        let is_settled = numbers.get(1) == Some(&1);
        let rates = numbers.get(2..).unwrap_or_default().iter();
        let mut rates: Vec<_> = rates.map(|&rate| u64::try_from(rate).ok()).collect();
        // A reply that is too short does not come from this script; items without an answer stay as they are.
        rates.resize(items.len(), None);
        Ok(ScriptReply { instances, is_settled, rates })
    }
}
