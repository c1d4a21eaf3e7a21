//! Nodes that are watched, before the answer step says within which limits they are asked.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use archive::{Archive, BlocksFile};
use methods::{Checkpoint, Network, NetworkFamily};
use nodes::{BlockId, ChainFamily, Endpoint, NodeRole, PartnerQuota, PartnerTerms, Pool, PoolInspection};
use resources::{DiskHealth, Supervisor};
use sources::SnapshotSource;

use super::follower::{ExecutedChain, FollowedChain, Follower};
use super::integrity::IntegrityPolicy;
use super::settings::{self, FollowMode, PoolConfig, StateMode};
use super::state::ChainRules;

/// Nodes that are watched, and what the configuration says about their chain.
pub struct StartedPool {
    pub(super) pool: Arc<Pool>,
    pub(super) follower: Option<Follower>,
    pub(super) rules: ChainRules,
    pub(super) integrity: IntegrityPolicy,
    pub(super) state: StateMode,
    pub(super) family: ChainFamily,
    pub(super) call_timeout: Duration,
    pub(super) supervisor: Supervisor,
    pub(super) disk: DiskHealth,
}

impl StartedPool {
    /// Begins to watch the nodes. Calls `before_files` before files are opened that only one process can open.
    pub fn start(
        config: &PoolConfig,
        network: &Network,
        data_dir: &Path,
        supervisor: &Supervisor,
        before_files: impl FnOnce(&Pool) -> Result<(), String>,
    ) -> Result<Self, String> {
        let disk = DiskHealth::new(data_dir);
        let rules = ChainRules::open(network)?;
        let settings = pool_settings(config, network)?;
        let family = settings.family;
        let pool = Pool::start(settings, supervisor);
        let pool = pool.map_err(|error| error.to_string())?;
        before_files(&pool)?;
        let follower = match config.follow.mode {
            FollowMode::Off | FollowMode::Full => None,
            FollowMode::Blocks => {
                let (supervisor, disk) = (supervisor.clone(), disk.clone());
                let followed = FollowedChain::open(data_dir, config.follow, network, supervisor, disk)?;
                Some(Follower::Stored(Arc::new(followed)))
            }
        };
        let state = config.state;
        tracing::info!(
            state = state.name(),
            nodes = config.nodes.len(),
            "state of the nodes is verified as [integrity] state says"
        );
        let integrity = IntegrityPolicy::new(config.integrity);
        let call_timeout = config.call_timeout;
        let supervisor = supervisor.clone();
        Ok(Self { pool, follower, rules, integrity, state, family, call_timeout, supervisor, disk })
    }

    /// Adds an archive that follows the nodes, and who answers from it.
    pub fn with_archive(self, archive: Arc<Archive>, source: Arc<dyn SnapshotSource>) -> Self {
        let executed = ExecutedChain::new(archive, source, self.supervisor.clone(), self.disk.clone());
        Self { follower: Some(Follower::Executed(Arc::new(executed))), ..self }
    }

    /// The health of the disk that it writes to.
    pub fn disk(&self) -> &DiskHealth {
        &self.disk
    }

    /// The supervisor of the tasks beside requests.
    pub fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    /// The file of stored blocks, if the gateway stores any.
    pub fn blocks_file(&self) -> Option<&Arc<BlocksFile>> {
        Some(self.follower.as_ref()?.stored_chain()?.file())
    }

    /// The archive that follows the nodes, if there is one.
    pub fn executed_chain(&self) -> Option<&Arc<ExecutedChain>> {
        self.follower.as_ref()?.executed_chain()
    }
}

impl std::fmt::Debug for StartedPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StartedPool").field("pool", &self.pool).finish_non_exhaustive()
    }
}

/// Asks every node and partner of a configuration once what it is and has.
pub async fn inspect_nodes(config: &PoolConfig, network: &Network) -> Result<PoolInspection, String> {
    Ok(Pool::inspect(pool_settings(config, network)?).await)
}

fn pool_settings(config: &PoolConfig, network: &Network) -> Result<nodes::PoolSettings, String> {
    let family = match network.families.as_slice() {
        [NetworkFamily::Zksync] => ChainFamily::Zksync,
        _ => ChainFamily::Ethereum,
    };
    Ok(nodes::PoolSettings {
        nodes: all_node_settings(config)?,
        family,
        view: nodes::ViewSettings {
            quorum: config.quorum.and_then(|quorum| usize::try_from(quorum).ok()),
            checkpoint: network.checkpoint.map(checkpoint),
            stale_after: config.head_stall,
            rollback_after: config.rollback_after,
        },
        watch: nodes::WatchSettings {
            chain_id: network.chain_id,
            genesis: network.genesis_hash,
            checkpoint: network.checkpoint.map(checkpoint),
            check_headers: family == ChainFamily::Ethereum,
            poll_every: config.poll_interval,
            ..nodes::WatchSettings::default()
        },
        reply_memory_bytes: config.reply_memory_bytes,
        confirmed_for: config.confirmed_for,
    })
}

fn checkpoint(checkpoint: Checkpoint) -> BlockId {
    BlockId { number: checkpoint.number, hash: checkpoint.hash }
}

/// All nodes and partners.
pub(super) fn all_node_settings(config: &PoolConfig) -> Result<Vec<nodes::NodeSettings>, String> {
    let own = config.nodes.iter().map(|node| node_settings(node, NodeRole::Own));
    let partners = config.partners.iter().map(|partner| node_settings(&partner.remote, role(partner)));
    own.chain(partners).collect()
}

fn role(partner: &settings::PartnerConfig) -> NodeRole {
    let (calls_per_second, calls_per_day) = (partner.calls_per_second, partner.calls_per_day);
    let quota = PartnerQuota { calls_per_second, calls_per_day };
    NodeRole::Partner(Box::new(PartnerTerms::new(partner.methods.clone(), quota)))
}

fn node_settings(remote: &settings::NodeEndpoint, role: NodeRole) -> Result<nodes::NodeSettings, String> {
    let named = |error: nodes::EndpointError| match &remote.name {
        Some(name) => format!("node {name}: {error}"),
        None => format!("a node: {error}"),
    };
    let mut endpoint = Endpoint::parse(&remote.url).map_err(named)?.with_http2(remote.http2);
    for (name, value) in &remote.headers {
        endpoint = endpoint.with_header(name, value).map_err(named)?;
    }
    let heads = remote.ws_url.as_deref().map(Endpoint::parse_websocket).transpose().map_err(named)?;
    Ok(nodes::NodeSettings { name: remote.name.clone(), endpoint, heads, role })
}
