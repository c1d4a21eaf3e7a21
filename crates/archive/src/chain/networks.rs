//! The rules of public networks, by chain id.

use super::ChainSpec;
use alloy_consensus::constants::{
    HOLESKY_GENESIS_HASH, HOODI_GENESIS_HASH, MAINNET_GENESIS_HASH, SEPOLIA_GENESIS_HASH,
};
use alloy_eips::eip7840::BlobParams;
use alloy_genesis::{ChainConfig, Genesis};
use alloy_primitives::{B256, U256};

/// When the forks of a network came into force: by block up to London, by time from Shanghai on.
struct NetworkForks {
    chain_id: u64,
    genesis: B256,
    homestead: u64,
    dao: Option<u64>,
    tangerine: u64,
    spurious_dragon: u64,
    byzantium: u64,
    /// With Petersburg.
    constantinople: u64,
    istanbul: u64,
    berlin: u64,
    london: u64,
    terminal_total_difficulty: u128,
    shanghai: u64,
    cancun: u64,
    prague: u64,
    osaka: u64,
    blobs_1: u64,
    blobs_2: u64,
}

/// A network that has had all forks by block since its genesis.
const YOUNG: NetworkForks = NetworkForks {
    chain_id: 0,
    genesis: B256::ZERO,
    homestead: 0,
    dao: None,
    tangerine: 0,
    spurious_dragon: 0,
    byzantium: 0,
    constantinople: 0,
    istanbul: 0,
    berlin: 0,
    london: 0,
    terminal_total_difficulty: 0,
    shanghai: 0,
    cancun: 0,
    prague: 0,
    osaka: 0,
    blobs_1: 0,
    blobs_2: 0,
};

const MAINNET: NetworkForks = NetworkForks {
    chain_id: 1,
    genesis: MAINNET_GENESIS_HASH,
    homestead: 1_150_000,
    dao: Some(1_920_000),
    tangerine: 2_463_000,
    spurious_dragon: 2_675_000,
    byzantium: 4_370_000,
    constantinople: 7_280_000,
    istanbul: 9_069_000,
    berlin: 12_244_000,
    london: 12_965_000,
    terminal_total_difficulty: 58_750_000_000_000_000_000_000,
    shanghai: 1_681_338_455,
    cancun: 1_710_338_135,
    prague: 1_746_612_311,
    osaka: 1_764_798_551,
    blobs_1: 1_765_290_071,
    blobs_2: 1_767_747_671,
};

const SEPOLIA: NetworkForks = NetworkForks {
    chain_id: 11_155_111,
    genesis: SEPOLIA_GENESIS_HASH,
    terminal_total_difficulty: 17_000_000_000_000_000,
    shanghai: 1_677_557_088,
    cancun: 1_706_655_072,
    prague: 1_741_159_776,
    osaka: 1_760_427_360,
    blobs_1: 1_761_017_184,
    blobs_2: 1_761_607_008,
    ..YOUNG
};

const HOLESKY: NetworkForks = NetworkForks {
    chain_id: 17_000,
    genesis: HOLESKY_GENESIS_HASH,
    shanghai: 1_696_000_704,
    cancun: 1_707_305_664,
    prague: 1_740_434_112,
    osaka: 1_759_308_480,
    blobs_1: 1_759_800_000,
    blobs_2: 1_760_389_824,
    ..YOUNG
};

const HOODI: NetworkForks = NetworkForks {
    chain_id: 560_048,
    genesis: HOODI_GENESIS_HASH,
    prague: 1_742_999_832,
    osaka: 1_761_677_592,
    blobs_1: 1_762_365_720,
    blobs_2: 1_762_955_544,
    ..YOUNG
};

impl ChainSpec {
    /// The rules of a public network: mainnet, Sepolia, Holesky or Hoodi. Its genesis state is left out.
    pub fn of_network(chain_id: u64) -> Option<Self> {
        let network = NetworkForks::of(chain_id)?;
        Self::from_genesis(Genesis { config: network.config(), ..Genesis::default() }).ok()
    }

    /// The hash of block 0 of a public network, of which the rules are known. Other chains use the same chain ids.
    pub fn genesis_of_network(chain_id: u64) -> Option<B256> {
        NetworkForks::of(chain_id).map(|network| network.genesis)
    }

    /// The blob parameters of a public network at a time. `None` before Osaka, where the fork tells them, and for other chains.
    pub fn scheduled_blob_params(chain_id: u64, timestamp: u64) -> Option<BlobParams> {
        let network = NetworkForks::of(chain_id)?;
        let schedule = [
            (network.blobs_2, BlobParams::bpo2()),
            (network.blobs_1, BlobParams::bpo1()),
            (network.osaka, BlobParams::osaka()),
        ];
        schedule.into_iter().find(|(since, _)| timestamp >= *since).map(|(_, params)| params)
    }
}

impl NetworkForks {
    fn of(chain_id: u64) -> Option<Self> {
        [MAINNET, SEPOLIA, HOLESKY, HOODI].into_iter().find(|network| network.chain_id == chain_id)
    }

    fn config(&self) -> ChainConfig {
        ChainConfig {
            chain_id: self.chain_id,
            homestead_block: Some(self.homestead),
            dao_fork_block: self.dao,
            dao_fork_support: self.dao.is_some(),
            eip150_block: Some(self.tangerine),
            eip155_block: Some(self.spurious_dragon),
            eip158_block: Some(self.spurious_dragon),
            byzantium_block: Some(self.byzantium),
            constantinople_block: Some(self.constantinople),
            petersburg_block: Some(self.constantinople),
            istanbul_block: Some(self.istanbul),
            berlin_block: Some(self.berlin),
            london_block: Some(self.london),
            terminal_total_difficulty: Some(U256::from(self.terminal_total_difficulty)),
            shanghai_time: Some(self.shanghai),
            cancun_time: Some(self.cancun),
            prague_time: Some(self.prague),
            osaka_time: Some(self.osaka),
            bpo1_time: Some(self.blobs_1),
            bpo2_time: Some(self.blobs_2),
            ..ChainConfig::default()
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests say what went wrong by failing")]
mod tests {
    use super::*;
    use alloy_consensus::Header;
    use alloy_hardforks::{EthereumHardfork, EthereumHardforks, ForkCondition};

    /// The schedule is written here and by others; both must say the same.
    #[test]
    fn the_schedules_are_those_that_others_publish() {
        let published = [
            (1, EthereumHardfork::mainnet().to_vec()),
            (11_155_111, EthereumHardfork::sepolia().to_vec()),
            (17_000, EthereumHardfork::holesky().to_vec()),
            (560_048, EthereumHardfork::hoodi().to_vec()),
        ];
        for (chain_id, forks) in published {
            let chain = ChainSpec::of_network(chain_id).unwrap();
            let merged = chain.rules_at(&Header::default());
            for (fork, condition) in forks {
                use EthereumHardfork as Fork;
                let is_ice_age = matches!(
                    fork,
                    Fork::MuirGlacier | Fork::ArrowGlacier | Fork::GrayGlacier | Fork::Dao | Fork::Frontier
                );
                // The total difficulty ends proof of work, and later forks show in their headers.
                if is_ice_age || fork == Fork::Paris || fork == Fork::Amsterdam {
                    continue;
                }
                let ours = merged.ethereum_fork_activation(fork);
                assert!(is_same(ours, condition), "{chain_id} {fork:?}: {ours:?}, {condition:?}");
            }
        }
        assert!(ChainSpec::of_network(1_337).is_none());
    }

    fn is_same(ours: ForkCondition, published: ForkCondition) -> bool {
        // A fork of the first block may be written in either way.
        let start = |condition| matches!(condition, ForkCondition::Block(0) | ForkCondition::Timestamp(0));
        ours == published || start(ours) && start(published)
    }

    #[test]
    fn blob_parameters_are_those_of_the_network() {
        let mainnet = ChainSpec::of_network(1).unwrap();
        let update_fraction = |time| mainnet.blob_params_at(time).map(|params| params.update_fraction);
        assert_eq!(update_fraction(1_710_338_134), None);
        assert_eq!(update_fraction(1_710_338_135), Some(BlobParams::cancun().update_fraction));
        assert_eq!(update_fraction(1_746_612_311), Some(BlobParams::prague().update_fraction));
        assert_eq!(update_fraction(1_800_000_000), Some(BlobParams::bpo2().update_fraction));
    }
}
