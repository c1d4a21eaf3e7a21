//! The order of forks, checked as geth does: each fork builds on the ones before it.

use super::GenesisError;
use alloy_genesis::{ChainConfig, Genesis};

/// One fork of the configuration.
struct Fork {
    key: &'static str,
    at: Option<u64>,
    /// Whether later forks may be scheduled without it.
    optional: bool,
}

fn required(key: &'static str, at: Option<u64>) -> Fork {
    Fork { key, at, optional: false }
}

fn optional(key: &'static str, at: Option<u64>) -> Fork {
    Fork { key, at, optional: true }
}

/// Refuses a genesis whose forks cannot be followed.
pub(super) fn check_order(genesis: &Genesis) -> Result<(), GenesisError> {
    let config = &genesis.config;
    for (fork, time) in [("amsterdamTime", config.amsterdam_time), ("bogotaTime", config.bogota_time)] {
        if time.is_some() {
            return Err(GenesisError::UnknownFork { fork });
        }
    }
    check_sequence(&by_block(config))?;
    check_sequence(&by_time(config))?;
    check_merge(genesis)
}

fn by_block(config: &ChainConfig) -> [Fork; 14] {
    [
        required("homesteadBlock", config.homestead_block),
        optional("daoForkBlock", config.dao_fork_block),
        required("eip150Block", config.eip150_block),
        required("eip155Block", config.eip155_block),
        required("eip158Block", config.eip158_block),
        required("byzantiumBlock", config.byzantium_block),
        required("constantinopleBlock", config.constantinople_block),
        // Where it is left out it comes with Constantinople.
        optional("petersburgBlock", config.petersburg_block),
        required("istanbulBlock", config.istanbul_block),
        optional("muirGlacierBlock", config.muir_glacier_block),
        required("berlinBlock", config.berlin_block),
        required("londonBlock", config.london_block),
        optional("arrowGlacierBlock", config.arrow_glacier_block),
        optional("grayGlacierBlock", config.gray_glacier_block),
    ]
}

fn by_time(config: &ChainConfig) -> [Fork; 9] {
    [
        required("shanghaiTime", config.shanghai_time),
        required("cancunTime", config.cancun_time),
        required("pragueTime", config.prague_time),
        required("osakaTime", config.osaka_time),
        optional("bpo1Time", config.bpo1_time),
        optional("bpo2Time", config.bpo2_time),
        optional("bpo3Time", config.bpo3_time),
        optional("bpo4Time", config.bpo4_time),
        optional("bpo5Time", config.bpo5_time),
    ]
}

fn check_sequence(forks: &[Fork]) -> Result<(), GenesisError> {
    let mut earlier: Option<(&'static str, u64)> = None;
    let mut missing: Option<&'static str> = None;
    for fork in forks {
        let Some(at) = fork.at else {
            if !fork.optional {
                missing = missing.or(Some(fork.key));
            }
            continue;
        };
        if let Some(missing) = missing {
            return Err(GenesisError::ForkMissing { missing, later: fork.key });
        }
        if let Some((earlier, earlier_at)) = earlier.filter(|(_, earlier_at)| *earlier_at > at) {
            return Err(GenesisError::ForkOrder { earlier, earlier_at, later: fork.key, later_at: at });
        }
        earlier = Some((fork.key, at));
    }
    Ok(())
}

/// Forks by time need London and the end of proof of work before them.
fn check_merge(genesis: &Genesis) -> Result<(), GenesisError> {
    let config = &genesis.config;
    if let Some(shanghai) = config.shanghai_time {
        let fork = "shanghaiTime";
        let Some(london) = config.london_block else {
            return Err(GenesisError::ForkMissing { missing: "londonBlock", later: fork });
        };
        if config.terminal_total_difficulty.is_none() {
            return Err(GenesisError::NeverMerged { fork });
        }
        if shanghai <= genesis.timestamp && london > 0 {
            let earlier = "londonBlock";
            return Err(GenesisError::ForkOrder {
                earlier,
                earlier_at: london,
                later: fork,
                later_at: shanghai,
            });
        }
    }
    check_engine(genesis)
}

/// Other engines pay no block rewards and put signatures into the extra data.
///
/// A chain that leaves them with its first block is fine.
fn check_engine(genesis: &Genesis) -> Result<(), GenesisError> {
    let config = &genesis.config;
    let merged_at_once = config.terminal_total_difficulty.is_some_and(|end| end <= genesis.difficulty);
    match (&config.clique, &config.parlia) {
        (Some(_), _) if !merged_at_once => Err(GenesisError::Engine { engine: "clique" }),
        (_, Some(_)) => Err(GenesisError::Engine { engine: "parlia" }),
        _ => Ok(()),
    }
}
