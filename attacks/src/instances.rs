//! Three gateways that share PostgreSQL and Redis, and what happens to callers when one part after the other fails.
//!
//! Callers offer five times the credits of their account all the time and count every reply. At the end the usage in the
//! store must be what they have counted.

mod gateways; // the processes and their command line
mod load; // callers that count every reply

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use testkit::postgres::PostgresServer;
use testkit::redis::RedisServer;
use tokio::time::{Instant, sleep};

use self::gateways::Gateways;
use self::load::{CallCounts, CallLoad};

/// Credits of one `eth_chainId`.
const CALL_CREDITS: u64 = 5;

/// How many times the limit callers offer.
const OFFERED: u64 = 5;

/// How long limits and revocations have to take effect before they are measured.
const SETTLING: Duration = Duration::from_secs(5);

/// The share of the limit by which three gateways may miss it.
const ACCURACY: f64 = 0.02;

/// The most that all gateways together may grant while Redis is gone, as a multiple of the limit.
const WITHOUT_REDIS: f64 = 1.2;

/// How long a revocation may take on any gateway.
const REVOCATION_MAX: Duration = Duration::from_secs(1);

/// The usage that the end of a gateway may lose.
const LOST_USAGE: Duration = Duration::from_secs(1);

#[derive(Debug, clap::Args)]
pub(crate) struct InstancesArguments {
    /// The gateway's program.
    #[arg(long, default_value = "target/release/chaingate")]
    gateway: PathBuf,

    /// How long each phase is measured.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(2..=600))]
    seconds: u64,

    /// Calls per second that the account may make over all gateways.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(10..=100_000))]
    calls_per_second: u64,
}

/// Measures, and fails if a limit is exceeded.
pub(crate) fn run(arguments: &InstancesArguments, folder: &Path) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    match runtime.and_then(|runtime| runtime.block_on(FailureTrial::run(arguments, folder))) {
        Ok(exceeded) if exceeded.is_empty() => {
            println!("all limits are kept");
            ExitCode::SUCCESS
        }
        Ok(exceeded) => {
            println!("exceeded:\n  {}", exceeded.join("\n  "));
            ExitCode::FAILURE
        }
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// One run with all its phases.
struct FailureTrial<'a> {
    arguments: &'a InstancesArguments,
    postgres: PostgresServer,
    redis: RedisServer,
    gateways: Gateways,
    load: CallLoad,
    exceeded: Vec<String>,
}

impl<'a> FailureTrial<'a> {
    async fn run(arguments: &'a InstancesArguments, folder: &Path) -> io::Result<Vec<String>> {
        let missing = |what: &str| io::Error::other(format!("{what} is not installed"));
        let postgres = PostgresServer::start().ok_or_else(|| missing("PostgreSQL"))?;
        let redis = RedisServer::start().ok_or_else(|| missing("Redis"))?;
        let credits = arguments.calls_per_second * CALL_CREDITS;
        let shared = format!(
            "[store]\nurl = \"{}\"\n[shared]\nredis_url = \"{}\"\n[plans.trial]\ncredits_per_second = {credits}\n",
            postgres.url(),
            redis.url()
        );
        let gateways = Gateways::start(&arguments.gateway, folder, &shared)?;
        gateways.command(&["accounts", "create", "--name", "load", "--plan", "trial"])?;
        let key = gateways.create_key("load", "load")?;
        gateways.wait_for_key(&key)?;
        let offered = u32::try_from(arguments.calls_per_second * OFFERED).unwrap_or(u32::MAX);
        let load = CallLoad::start(&gateways.addresses(), &key, offered);
        let mut trial = Self { arguments, postgres, redis, gateways, load, exceeded: Vec::new() };
        trial.phases().await?;
        trial.finish().await
    }

    async fn phases(&mut self) -> io::Result<()> {
        sleep(SETTLING).await;
        self.accuracy("all parts run").await;
        self.revocation().await?;
        self.store_outages().await?;
        self.redis_outage().await?;
        self.gateway_killed().await
    }

    fn duration(&self) -> Duration {
        Duration::from_secs(self.arguments.seconds)
    }

    fn require(&mut self, is_kept: bool, message: impl FnOnce() -> String) {
        if !is_kept {
            self.exceeded.push(message());
        }
    }

    /// Returns the calls granted in a time, as a multiple of the limit.
    fn granted(&self, (counts, elapsed): (CallCounts, Duration)) -> f64 {
        counts.answered as f64 / (self.arguments.calls_per_second as f64 * elapsed.as_secs_f64())
    }

    async fn accuracy(&mut self, when: &str) {
        let measured = self.load.count_for(self.duration()).await;
        let granted = self.granted(measured);
        println!("{when}: {granted:.3} of the limit granted, {} failed", measured.0.failed);
        self.require((granted - 1.0).abs() <= ACCURACY, || {
            format!("{when}: {granted:.3} of the limit is granted, {ACCURACY} off is allowed")
        });
        self.require(measured.0.failed == 0, || format!("{when}: {} calls failed", measured.0.failed));
    }

    /// How long a revoked key is still accepted by any gateway.
    async fn revocation(&mut self) -> io::Result<()> {
        let mut slowest = Duration::ZERO;
        self.gateways.command(&["accounts", "create", "--name", "revoked", "--plan", "custom"])?;
        for number in 0..5 {
            let name = format!("key-{number}");
            let created = self.gateways.create_key_with_id("revoked", &name)?;
            self.gateways.wait_for_key(&created.key)?;
            let started = Instant::now();
            self.gateways.command(&["keys", "revoke", &created.id])?;
            self.gateways.wait_until_refused(&created.key)?;
            slowest = slowest.max(started.elapsed());
        }
        println!("revocation: all gateways refuse after at most {slowest:.0?}, the command included");
        self.require(slowest <= REVOCATION_MAX, || format!("a revocation took {slowest:.0?}"));
        Ok(())
    }

    async fn store_outages(&mut self) -> io::Result<()> {
        let before = self.load.total();
        for _ in 0..2 {
            self.postgres.kill();
            sleep(self.duration() / 4).await;
            self.postgres.restart();
            sleep(self.duration() / 4).await;
        }
        let counts = self.load.total().since(before);
        println!("PostgreSQL killed twice and back: {} answered, {} failed", counts.answered, counts.failed);
        self.require(counts.failed == 0, || format!("without PostgreSQL {} calls failed", counts.failed));
        sleep(SETTLING).await;
        Ok(())
    }

    async fn redis_outage(&mut self) -> io::Result<()> {
        self.redis.kill();
        let measured = self.load.count_for(self.duration()).await;
        let granted = self.granted(measured);
        println!("without Redis: {granted:.3} of the limit granted, {} failed", measured.0.failed);
        self.require(granted <= WITHOUT_REDIS && granted > 0.0, || {
            format!("without Redis {granted:.3} of the limit is granted")
        });
        self.require(measured.0.failed == 0, || format!("without Redis {} calls failed", measured.0.failed));
        self.redis.restart();
        sleep(SETTLING).await;
        self.accuracy("Redis is back").await;
        Ok(())
    }

    async fn gateway_killed(&mut self) -> io::Result<()> {
        let others = |counts: Vec<CallCounts>| counts[1].plus(counts[2]);
        let before = others(self.load.counts());
        self.gateways.kill(0);
        sleep(self.duration() / 2).await;
        let address = self.gateways.start_again(0)?;
        self.load.set_address(0, address);
        let counts = others(self.load.counts()).since(before);
        println!("one gateway killed and started again: {} calls to the others failed", counts.failed);
        self.require(counts.failed == 0, || format!("{} calls to other gateways failed", counts.failed));
        sleep(SETTLING).await;
        self.accuracy("the gateway is back").await;
        Ok(())
    }

    /// Compares the usage in the store with what the callers have counted.
    async fn finish(mut self) -> io::Result<Vec<String>> {
        let counts = self.load.stop().await;
        let total = counts.iter().copied().fold(CallCounts::default(), CallCounts::plus);
        let usage = self.gateways.settled_usage("load", total.answered + total.refused)?;
        let lost = (total.answered + total.refused) as i64 - usage.calls() as i64;
        println!(
            "callers counted {} answered and {} refused calls, the store has {} and {}: {lost} lost",
            total.answered, total.refused, usage.answered, usage.refused
        );
        let offered = self.arguments.calls_per_second * OFFERED / 3;
        let lost_max = (offered as f64 * LOST_USAGE.as_secs_f64()) as i64;
        if lost > lost_max {
            self.exceeded.push(format!("{lost} calls are not in the store, at most {lost_max} may be lost"));
        }
        // The store also counts replies that no longer reached their callers: at most one for each connection.
        if usage.answered as i64 - total.answered as i64 > total.failed as i64 {
            self.exceeded.push("the store has more calls than were made".to_owned());
        }
        Ok(self.exceeded)
    }
}
