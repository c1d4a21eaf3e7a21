//! By which rules a block runs: those of a public network, or those of the genesis file that the operator names.
//!
//! Private chains use the chain ids of public networks. The rules of a network are used only for the chain with its block 0, and only
//! for headers that have the members of the fork that the rules name.

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
pub(crate) struct ChainRules {
    configured: Option<ConfiguredChain>,
    /// The public network that was looked up last, by its chain id.
    public: Mutex<Option<(u64, Option<Arc<ChainSpec>>)>>,
    other_network: RepeatedWarning,
}

struct ConfiguredChain {
    spec: Arc<ChainSpec>,
    genesis_hash: B256,
    other_genesis: RepeatedWarning,
}

impl ChainRules {
    /// Reads `[network] genesis`, where it is set.
    pub(crate) fn open(network: &Network) -> Result<Self, String> {
        let configured = network.genesis.as_deref().map(|path| read(path, network.chain_id)).transpose()?;
        Ok(Self { configured, public: Mutex::default(), other_network: RepeatedWarning::default() })
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
            None => self.is_public(chain_id, chain).then(|| self.public(chain_id))??,
        };
        Some(spec).filter(|spec| spec.covers(header))
    }

    /// Whether the accounts of block 0 are known, because it is that of the genesis file.
    pub(super) fn has_genesis(&self, hash: B256) -> bool {
        self.configured.as_ref().is_some_and(|configured| configured.genesis_hash == hash)
    }

    /// Whether the nodes show the genesis block of the public network with this chain id.
    fn is_public(&self, chain_id: u64, chain: &CanonicalChain) -> bool {
        let Some(expected) = ChainSpec::genesis_of_network(chain_id) else { return false };
        let shown = chain.genesis().map(|genesis| genesis.hash);
        if shown != Some(expected)
            && let Some(calls) = self.other_network.count(Instant::now())
        {
            let shown = shown.map(|hash| hash.to_string());
            tracing::warn!(
                chain_id,
                shown,
                %expected,
                calls,
                "the nodes do not show the genesis block of the public network with their chain id; calls are confirmed, not \
                 proven: name the genesis file of the chain in [network] genesis"
            );
        }
        shown == Some(expected)
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
