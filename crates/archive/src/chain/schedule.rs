//! Blob parameters by timestamp: EIP-7840, EIP-7892.

use super::GenesisError;
use alloy_eips::{
    eip7594::MAX_BLOBS_PER_TX_FUSAKA,
    eip7840::{BLOB_BASE_COST, BlobParams},
};
use alloy_genesis::ChainConfig;

/// Far more blobs than any network will carry, few enough that blob gas never overflows.
const BLOBS_PER_BLOCK_MAX: u64 = 1 << 20;

/// Blob parameters that hold from a timestamp on.
#[derive(Debug, Clone)]
pub(super) struct BlobFork {
    pub(super) from: u64,
    pub(super) params: BlobParams,
}

/// The blob parameters of the chain by their first timestamp, oldest first.
///
/// A fork that `blobSchedule` leaves out keeps what its name means on mainnet.
pub(super) fn blob_schedule(config: &ChainConfig) -> Result<Vec<BlobFork>, GenesisError> {
    let named = [
        ("cancun", config.cancun_time, Some(BlobParams::cancun())),
        ("prague", config.prague_time, Some(BlobParams::prague())),
        ("osaka", config.osaka_time, Some(BlobParams::osaka())),
        ("bpo1", config.bpo1_time, Some(BlobParams::bpo1())),
        ("bpo2", config.bpo2_time, Some(BlobParams::bpo2())),
        ("bpo3", config.bpo3_time, None),
        ("bpo4", config.bpo4_time, None),
        ("bpo5", config.bpo5_time, None),
    ];
    let mut schedule = Vec::new();
    for (fork, time, usual) in named {
        let Some(from) = time else { continue };
        let stated = config.blob_schedule.get(fork).copied();
        let params = stated.or(usual).ok_or(GenesisError::BlobScheduleMissing { fork })?;
        let params = with_osaka_rules(params, config, from);
        check_params(fork, params)?;
        schedule.push(BlobFork { from, params });
    }
    schedule.sort_by_key(|fork| fork.from);
    Ok(schedule)
}

/// `blobSchedule` has no words for the reserve price (EIP-7918) and for the limit per transaction (EIP-7594);
/// both hold from Osaka on.
fn with_osaka_rules(params: BlobParams, config: &ChainConfig, from: u64) -> BlobParams {
    if config.osaka_time.is_none_or(|osaka| from < osaka) {
        return params;
    }
    params.with_blob_base_cost(BLOB_BASE_COST).with_max_blobs_per_tx(MAX_BLOBS_PER_TX_FUSAKA)
}

fn check_params(fork: &'static str, params: BlobParams) -> Result<(), GenesisError> {
    let (target, max) = (params.target_blob_count, params.max_blob_count);
    let refuse = |expected, found| Err(GenesisError::BlobSchedule { fork, expected, found });
    if params.update_fraction == 0 {
        return refuse("a number above 0", "baseFeeUpdateFraction is 0".into());
    }
    if max == 0 || max > BLOBS_PER_BLOCK_MAX {
        return refuse("between 1 and 1048576", format!("max is {max}"));
    }
    if target > max {
        return refuse("at most max", format!("target is {target} and max {max}"));
    }
    Ok(())
}
