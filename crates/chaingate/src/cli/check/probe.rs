//! `chaingate check --probe`: asks every node, partner, the store and Redis, and says what is wrong with each.
//!
//! Nothing is changed, and addresses are shown without credentials. A command that begins is done within half a minute.

mod node_text; // what a node has shown, in words

use std::fmt;
use std::time::Duration;

use callers::RedisUrl;
use nodes::{NodeInspection, PoolInspection};
use remote::inspect_nodes;
use remote::settings::StateMode;
use resources::{counted, unix_seconds};
use store::{StoreInspection, StoreLocation};
use tokio::time::timeout;

use self::node_text::NodeNeeds;
use super::super::administration::{Table, utc_text, write};
use super::super::certificate::CertificateExpiry;
use super::super::new_runtime;
use crate::config::Config;

/// How long the store may take. Nodes and Redis have limits of their own.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);

/// One row of the table: a node, partner, store or other part, and its result.
#[derive(Debug)]
struct ProbedThing {
    kind: &'static str,
    name: String,
    result: ProbeResult,
    details: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProbeResult {
    Ok,
    /// The gateway serves without it.
    Warning,
    /// The gateway does not serve without it.
    Failed,
}

impl fmt::Display for ProbeResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Failed => "failed",
        })
    }
}

/// Prints a table of all things. It is an error if one fails that is needed.
pub(super) fn run(config: &Config) -> Result<(), String> {
    let probed = new_runtime()?.block_on(probe_all(config))?;
    let mut table = Table::new(&["WHAT", "NAME", "RESULT", "DETAILS"]);
    for ProbedThing { kind, name, result, details } in &probed {
        table.row([(*kind).to_owned(), name.clone(), result.to_string(), details.clone()]);
    }
    write(&table.text_or("nothing to probe"))?;
    let failed = probed.iter().filter(|thing| thing.result == ProbeResult::Failed).count();
    match failed {
        0 => Ok(()),
        failed => Err(format!("{} the gateway needs, and cannot use", counted(failed as u64, "thing"))),
    }
}

async fn probe_all(config: &Config) -> Result<Vec<ProbedThing>, String> {
    let (pool, store, redis) = tokio::join!(probe_nodes(config), probe_store(config), probe_redis(config));
    let mut things = pool?;
    things.push(store);
    things.extend(redis);
    things.extend(probe_certificate(config)?);
    Ok(things)
}

async fn probe_nodes(config: &Config) -> Result<Vec<ProbedThing>, String> {
    if config.remote.nodes.is_empty() {
        return Ok(Vec::new());
    }
    let PoolInspection { nodes, quorum } = inspect_nodes(&config.remote, &config.network).await?;
    let is_usable = |node: &&NodeInspection| !node.is_partner && node.shown.is_ok();
    let usable = nodes.iter().filter(is_usable).count();
    let newest_block = nodes.iter().filter_map(node_text::head_number).max().unwrap_or_default();
    let needs = NodeNeeds { newest_block, proofs: config.remote.state == StateMode::Prove };
    // Callers are served as long as a quorum can be used.
    let if_unusable = if usable >= quorum { ProbeResult::Warning } else { ProbeResult::Failed };
    let mut things: Vec<_> = nodes.iter().map(|node| probed_node(node, needs, if_unusable)).collect();
    if usable < quorum {
        let (name, result) = (String::new(), ProbeResult::Failed);
        let details =
            format!("only {} can be used, and the quorum is {quorum}", counted(usable as u64, "node"));
        things.push(ProbedThing { kind: "quorum", name, result, details });
    }
    Ok(things)
}

fn probed_node(node: &NodeInspection, needs: NodeNeeds, if_unusable: ProbeResult) -> ProbedThing {
    let (kind, if_unusable) =
        if node.is_partner { ("partner", ProbeResult::Warning) } else { ("node", if_unusable) };
    let (result, details) = match &node.shown {
        Err(reason) => (if_unusable, reason.clone()),
        Ok(found) => {
            let problems = node_text::problems(found, needs, node.heads_fault.as_ref());
            let result = if problems.is_empty() { ProbeResult::Ok } else { ProbeResult::Warning };
            let facts = node_text::facts(found, unix_seconds());
            (result, problems.into_iter().chain(facts).collect::<Vec<_>>().join("; "))
        }
    };
    ProbedThing { kind, name: node.name.clone(), result, details }
}

async fn probe_store(config: &Config) -> ProbedThing {
    let location = config.store_location();
    let inspected = timeout(STORE_TIMEOUT, store::inspect(&location)).await;
    let inspected = match inspected {
        Ok(inspected) => inspected.map_err(|failure| failure.to_string()),
        Err(_) => Err(format!("it does not answer within {STORE_TIMEOUT:?}: check whether it hangs")),
    };
    let if_unusable = if config.feed().is_required { ProbeResult::Failed } else { ProbeResult::Warning };
    let (result, details) = match inspected {
        Ok(found) => (ProbeResult::Ok, store_text(&location, &found)),
        Err(reason) => (if_unusable, reason),
    };
    ProbedThing { kind: "store", name: location.to_string(), result, details }
}

fn store_text(location: &StoreLocation, found: &StoreInspection) -> String {
    let StoreInspection { version, known_version, latency } = found;
    let Some(latency) = latency else { return "the file is made when the gateway starts".to_owned() };
    let version = match version {
        0 => "no tables, which the gateway makes when it starts".to_owned(),
        version if version < known_version => {
            format!("version {version}, which becomes {known_version} when the gateway starts")
        }
        version => format!("version {version}"),
    };
    let rights = if location.is_shared() { "may be read and written" } else { "can be written" };
    format!("{version}; {rights}; {latency:.1?} for a statement")
}

async fn probe_redis(config: &Config) -> Option<ProbedThing> {
    let redis: &RedisUrl = config.redis.as_ref()?;
    let (result, details) = match redis.inspect().await {
        Ok(latency) => (ProbeResult::Ok, format!("runs scripts; {latency:.1?} with connecting")),
        Err(error) => (
            ProbeResult::Warning,
            format!("cannot reach Redis: this instance keeps its part of each limit ({error})"),
        ),
    };
    Some(ProbedThing { kind: "redis", name: redis.address(), result, details })
}

/// The certificate of the listener for callers. One that has expired was refused before.
fn probe_certificate(config: &Config) -> Result<Option<ProbedThing>, String> {
    let Some(tls) = &config.listen.server.tls else { return Ok(None) };
    let expires_at = tls.expires_at().map_err(|error| error.to_string())?;
    let (result, details) = match CertificateExpiry::new(tls, expires_at, unix_seconds()) {
        CertificateExpiry::Later => (ProbeResult::Ok, format!("valid until {} UTC", utc_text(expires_at))),
        CertificateExpiry::Soon(text) => (ProbeResult::Warning, text),
        CertificateExpiry::Expired(text) => (ProbeResult::Failed, text),
    };
    Ok(Some(ProbedThing {
        kind: "certificate",
        name: tls.certificate.display().to_string(),
        result,
        details,
    }))
}
