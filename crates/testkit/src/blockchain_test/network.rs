//! The forks of a network by its name: `London`, `BerlinToLondonAt5`, `ShanghaiToCancunAtTime15k`,
//! `ArrowGlacierToParisAtDiffC0000`.

use super::quantity;
use alloy_eips::eip7840::BlobParams;
use alloy_genesis::{ChainConfig, Genesis};
use serde_json::{Map, Value, json};

/// Names of forks with the key that they set, oldest first. Forks with an empty key change nothing that is checked.
const FORKS: [(&str, &[&str]); 27] = [
    ("Frontier", &[]),
    ("Homestead", &["homesteadBlock"]),
    ("Dao", &["daoForkBlock"]),
    ("EIP150", &["eip150Block"]),
    ("TangerineWhistle", &[]),
    ("EIP158", &["eip155Block", "eip158Block"]),
    ("SpuriousDragon", &[]),
    ("Byzantium", &["byzantiumBlock"]),
    ("Constantinople", &["constantinopleBlock"]),
    ("ConstantinopleFix", &["petersburgBlock"]),
    ("Petersburg", &[]),
    ("Istanbul", &["istanbulBlock"]),
    ("MuirGlacier", &["muirGlacierBlock"]),
    ("Berlin", &["berlinBlock"]),
    ("London", &["londonBlock"]),
    ("ArrowGlacier", &["arrowGlacierBlock"]),
    ("GrayGlacier", &["grayGlacierBlock"]),
    ("Paris", &["terminalTotalDifficulty"]),
    ("Merge", &[]),
    ("Shanghai", &["shanghaiTime"]),
    ("Cancun", &["cancunTime"]),
    ("Prague", &["pragueTime"]),
    ("Osaka", &["osakaTime"]),
    ("BPO1", &["bpo1Time"]),
    ("BPO2", &["bpo2Time"]),
    ("BPO3", &["bpo3Time"]),
    ("BPO4", &["bpo4Time"]),
];

/// Tests older than 2017 name no network; those of the folder `TestNetwork` are for this one.
pub(super) const TEST_NETWORK: &str = "FrontierToEIP150ByTestNetwork";

/// The rules of a network, with what a test says about it beside the name.
pub(super) fn chain_config(network: &str, stated: &Map<String, Value>) -> Result<ChainConfig, String> {
    let mut config = forks(network)?;
    let chain_id = stated.get("chainid").and_then(Value::as_str).map(quantity).transpose()?;
    config["chainId"] = chain_id.map_or(1, |id| id.saturating_to::<u64>()).into();
    let mut config: ChainConfig = read(json!({"config": config}))?;
    let schedule = stated.get("blobSchedule").and_then(Value::as_object).into_iter().flatten();
    for (fork, params) in schedule {
        let number = |key: &str| {
            let text = params.get(key).and_then(Value::as_str).unwrap_or_default();
            quantity(text).map(|number| number.saturating_to::<u64>())
        };
        let params = BlobParams {
            target_blob_count: number("target")?,
            max_blob_count: number("max")?,
            update_fraction: number("baseFeeUpdateFraction")?.into(),
            ..BlobParams::cancun()
        };
        config.blob_schedule.insert(fork.to_lowercase(), params);
    }
    Ok(config)
}

fn read(genesis: Value) -> Result<ChainConfig, String> {
    let mut genesis = genesis;
    genesis["alloc"] = json!({});
    let genesis: Result<Genesis, _> = serde_json::from_value(genesis);
    genesis.map(|genesis| genesis.config).map_err(|error| error.to_string())
}

/// The keys of `config` with their blocks and times.
fn forks(network: &str) -> Result<Value, String> {
    if network == TEST_NETWORK {
        return Ok(
            json!({"homesteadBlock": 5, "daoForkBlock": 8, "daoForkSupport": true, "eip150Block": 10}),
        );
    }
    let unknown = || format!("the network {network} is not known here");
    let (before, transition) = match network.split_once("To") {
        Some((before, rest)) => (before, Some(rest.split_once("At").ok_or_else(unknown)?)),
        None => (network, None),
    };
    let mut config = json!({});
    let first = index(before).ok_or_else(unknown)?;
    set_forks(&mut config, 0..=first, &json!(0));
    // The DAO fork is a matter of its own tests; everywhere else it never happens.
    if let Some(config) = config.as_object_mut() {
        config.remove("daoForkBlock");
    }
    // A genesis that leaves Petersburg out has it together with Constantinople.
    if network == "Constantinople" || network.contains("ToConstantinopleAt") {
        config["petersburgBlock"] = json!(u64::MAX);
    }
    let Some((after, at)) = transition else { return Ok(config) };
    let last = index(after).ok_or_else(unknown)?;
    if let Some(difficulty) = at.strip_prefix("Diff") {
        config["terminalTotalDifficulty"] = json!(quantity(difficulty)?.to_string());
        return Ok(config);
    }
    let at = json!(moment(at.strip_prefix("Time").unwrap_or(at)).ok_or_else(unknown)?);
    set_forks(&mut config, first + 1..=last, &at);
    config["daoForkSupport"] = (after == "Dao").into();
    Ok(config)
}

fn set_forks(config: &mut Value, forks: std::ops::RangeInclusive<usize>, at: &Value) {
    for (_, keys) in &FORKS[forks] {
        for key in *keys {
            config[*key] = at.clone();
        }
    }
}

fn index(name: &str) -> Option<usize> {
    FORKS.iter().position(|(fork, _)| *fork == name)
}

/// `5` or `15k`.
fn moment(text: &str) -> Option<u64> {
    match text.strip_suffix('k') {
        Some(thousands) => thousands.parse::<u64>().ok().map(|number| number * 1000),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::U256;

    fn at(network: &str) -> ChainConfig {
        let mut config = forks(network).expect("a network that is known");
        config["chainId"] = 1.into();
        read(json!({"config": config})).expect("a genesis")
    }

    #[test]
    fn names_of_networks_say_which_fork_is_when() {
        let dao = at("HomesteadToDaoAt5");
        assert_eq!((dao.homestead_block, dao.dao_fork_block, dao.dao_fork_support), (Some(0), Some(5), true));
        let london = at("BerlinToLondonAt5");
        assert_eq!(
            (london.berlin_block, london.london_block, london.dao_fork_block),
            (Some(0), Some(5), None)
        );
        let petersburg = at("ByzantiumToConstantinopleFixAt5");
        assert_eq!((petersburg.constantinople_block, petersburg.petersburg_block), (Some(5), Some(5)));
        let cancun = at("ShanghaiToCancunAtTime15k");
        assert_eq!(
            (cancun.shanghai_time, cancun.cancun_time, cancun.prague_time),
            (Some(0), Some(15_000), None)
        );
        assert_eq!(cancun.terminal_total_difficulty, Some(U256::ZERO));
        let paris = at("ArrowGlacierToParisAtDiffC0000");
        assert_eq!(paris.terminal_total_difficulty, Some(U256::from(0xC0000)));
        assert_eq!((paris.arrow_glacier_block, paris.gray_glacier_block), (Some(0), None));
        let constantinople = at("ByzantiumToConstantinopleAt5");
        assert_eq!(
            (constantinople.constantinople_block, constantinople.petersburg_block),
            (Some(5), Some(u64::MAX))
        );
        for unknown in ["Amsterdam", "London+1234", "BerlinToNowhereAt5", "LondonToParis"] {
            assert!(forks(unknown).is_err(), "{unknown}");
        }
    }
}
