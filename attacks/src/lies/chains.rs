//! The chains that nodes tell of, each in a gateway of its own that serves them from an archive.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use archive::Archive;
use testkit::heavy::{self, HeavyChain};
use testkit::matrix::{StateTrust, TrueChain};
use testkit::proofs::ProvableStates;

use crate::gateway::{GatewayProcess, GatewayStart, LogTarget};

/// Where the gateways take the calls of the honest account.
pub(crate) const PATH: &str = "/v3/honest-caller-0000000000000000000";

/// Blocks of the long chain. The gateway knows the newest 256 of them by watching.
const LONG_BLOCKS: u64 = 300;

/// Blocks of each chain that are asked about.
const BLOCKS_ASKED: u64 = 48;

/// The blocks of the long chain that the gateway does not know by watching are below this one.
pub(super) const OLD_BELOW: u64 = 40;

/// Chains, and the nodes that have them.
pub(super) struct LieChains {
    /// A short one with blocks of every kind.
    pub(super) demo: TrueChain,
    /// One with old blocks, whose nodes prove state.
    pub(super) long: TrueChain,
    /// The rules of the long one.
    pub(super) long_genesis: PathBuf,
    /// A node of another chain with the same first block as the long one.
    pub(super) fork: SocketAddr,
    _nodes: [GatewayProcess; 3],
}

impl LieChains {
    pub(super) fn start(program: &Path, folder: &Path) -> io::Result<Self> {
        let demo = serve(program, &folder.join("demo"), "", None)?;
        let network = "[network]\nname = \"long\"\n";
        let long_blocks = heavy::transaction_heavy(LONG_BLOCKS, 2);
        let fork_blocks = heavy::transaction_heavy(LONG_BLOCKS, 3);
        let long = serve(program, &folder.join("long"), network, Some(&long_blocks))?;
        let fork = serve(program, &folder.join("fork"), network, Some(&fork_blocks))?;
        let long_genesis = folder.join("long").join("genesis.json");
        std::fs::write(&long_genesis, long_blocks.genesis_json())?;
        Ok(Self {
            demo: TrueChain::read("demo", demo.public, PATH, BLOCKS_ASKED),
            long: TrueChain::read("long", long.public, PATH, BLOCKS_ASKED)
                .with_proofs(ProvableStates::of(&long_blocks.genesis, &long_blocks.blocks)),
            long_genesis,
            fork: fork.public,
            _nodes: [demo, long, fork],
        })
    }
}

impl LieChains {
    /// The chains with which state can be verified in this way.
    pub(super) fn of(&self, trust: StateTrust) -> Vec<&TrueChain> {
        match trust {
            StateTrust::Trusted | StateTrust::Confirmed => vec![&self.demo, &self.long],
            StateTrust::Proven => vec![&self.long],
        }
    }
}

/// A node with these blocks, or with the demo chain.
fn serve(
    program: &Path,
    folder: &Path,
    config: &str,
    blocks: Option<&HeavyChain>,
) -> io::Result<GatewayProcess> {
    let data = folder.join("data");
    std::fs::create_dir_all(&data)?;
    if let Some(chain) = blocks {
        let archive = Archive::open_or_create(&data, &chain.genesis_json()).map_err(io::Error::other)?;
        let blocks: Vec<_> = chain.blocks.iter().map(|built| built.block.clone()).collect();
        archive.import_blocks(blocks, &mut archive::NoProgress).map_err(io::Error::other)?;
    }
    let log = LogTarget::File;
    GatewayProcess::start(&GatewayStart {
        program,
        folder,
        config,
        open_files_max: None,
        log,
        log_level: "warn",
    })
}
