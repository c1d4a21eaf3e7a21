//! By which rules a block runs: those of a public network, or those of the genesis file that the operator names.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use alloy_consensus::Header;
use alloy_primitives::B256;
use archive::ChainSpec;
use methods::Network;
use nodes::CanonicalChain;
use parking_lot::Mutex;
use resources::RepeatedWarning;

/// The rules of the chain that the nodes are of, if they are known.
pub(in crate::remote) struct ChainRules {
    configured: Option<ConfiguredChain>,
    /// The public network that was looked up last, by its chain id.
    public: Mutex<Option<(u64, Option<Arc<ChainSpec>>)>>,
}

struct ConfiguredChain {
    spec: Arc<ChainSpec>,
    genesis_hash: B256,
    other_genesis: RepeatedWarning,
}

impl ChainRules {
    /// Reads `[network] genesis`, where it is set.
    pub(in crate::remote) fn open(network: &Network) -> Result<Self, String> {
        let configured = network.genesis.as_deref().map(|path| read(path, network.chain_id)).transpose()?;
        Ok(Self { configured, public: Mutex::default() })
    }

    /// The rules at the block with this header, on the chain with this id.
    pub(super) fn at(
        &self,
        chain_id: u64,
        chain: &CanonicalChain,
        header: &Header,
    ) -> Option<Arc<ChainSpec>> {
        let spec = match &self.configured {
            Some(configured) => configured.is_of(chain_id, chain).then(|| Arc::clone(&configured.spec))?,
            None => self.public(chain_id)?,
        };
        Some(spec).filter(|spec| spec.covers(header))
    }

    fn public(&self, chain_id: u64) -> Option<Arc<ChainSpec>> {
        let mut public = self.public.lock();
        match &*public {
            Some((id, spec)) if *id == chain_id => spec.clone(),
            _ => {
                let spec = ChainSpec::of_network(chain_id).map(Arc::new);
                *public = Some((chain_id, spec.clone()));
                spec
            }
        }
    }
}

impl ConfiguredChain {
    /// Whether the nodes are of this chain, as far as they show their genesis block.
    fn is_of(&self, chain_id: u64, chain: &CanonicalChain) -> bool {
        let is_same = |hash: B256| {
            let is_same = hash == self.genesis_hash;
            if !is_same && let Some(calls) = self.other_genesis.count(Instant::now()) {
                tracing::warn!(%hash, expected = %self.genesis_hash, calls, "the nodes have another genesis block than [network] genesis");
            }
            is_same
        };
        self.spec.chain_id() == chain_id && chain.genesis().is_none_or(|genesis| is_same(genesis.hash))
    }
}

fn read(path: &Path, chain_id: Option<u64>) -> Result<ConfiguredChain, String> {
    let shown = path.display();
    let text = fs::read_to_string(path)
        .map_err(|error| format!("[network] genesis: cannot read {shown}: {error}"))?;
    let spec = ChainSpec::from_json(&text).map_err(|error| format!("[network] genesis: {shown}: {error}"))?;
    match chain_id.filter(|chain_id| *chain_id != spec.chain_id()) {
        Some(other) => {
            let own = spec.chain_id();
            Err(format!("[network] genesis: {shown} is of the chain {own}, but chain_id is {other}"))
        }
        None => {
            let genesis_hash = spec.genesis_header().hash_slow();
            Ok(ConfiguredChain {
                spec: Arc::new(spec),
                genesis_hash,
                other_genesis: RepeatedWarning::default(),
            })
        }
    }
}
