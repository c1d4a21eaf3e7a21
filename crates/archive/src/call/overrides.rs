//! Overrides of the block and of the state.

use crate::{
    chain::BlockRules,
    state::{AccountState, bytecode},
};
use alloy_consensus::Header;
use alloy_evm::EvmEnv;
use alloy_primitives::{
    Address, B256, U256, keccak256,
    map::{AddressMap, B256Map, U256Map},
};
use alloy_rpc_types_eth::{
    BlockOverrides,
    state::{AccountOverride, StateOverride},
};
use revm::{
    context_interface::block::BlobExcessGasAndPrice,
    precompile::{PrecompileSpecId, Precompiles},
    primitives::hardfork::SpecId,
    state::{AccountInfo, Bytecode},
};
use std::collections::BTreeMap;

/// The blob gas price of a block whose header does not state one: the minimum of the protocol.
const LEAST_BLOB_GAS_PRICE: u128 = 1;

/// The overrides of one call.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    pub state: Option<StateOverride>,
    pub block: Option<BlockOverrides>,
}

/// Why overrides cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OverrideError {
    #[error("account {0} has both 'state' and 'stateDiff'")]
    BothStateAndDiff(Address),
    #[error("account {0} is not a precompile")]
    NotAPrecompile(Address),
    #[error("account {0} is already overridden")]
    AlreadyOverridden(Address),
    /// A block's beacon root takes effect at its start, before any message.
    #[error("block override \"beaconRoot\" is not supported for this RPC method")]
    BeaconRoot,
}

/// Returns the EVM's view of a block with its overrides.
///
/// The fork follows the overridden number and time.
pub(super) fn block_env(
    rules: BlockRules<'_>,
    header: &Header,
    overrides: Option<&BlockOverrides>,
) -> Result<EvmEnv, OverrideError> {
    let mut env = match overrides {
        Some(overrides) => overridden_env(rules, header, overrides)?,
        None => rules.evm_env(header),
    };
    let cfg = &mut env.cfg_env;
    // A message is not a transaction: it has no signature, and it does not count against the block gas limit.
    cfg.disable_nonce_check = true;
    cfg.disable_eip3607 = true;
    cfg.disable_block_gas_limit = true;
    cfg.tx_gas_limit_cap = Some(u64::MAX);
    // An overridden number or time may put the block after a fork whose header fields it lacks.
    if cfg.spec.is_enabled_in(SpecId::MERGE) {
        env.block_env.prevrandao.get_or_insert(header.mix_hash);
    }
    if cfg.spec.is_enabled_in(SpecId::CANCUN) {
        env.block_env
            .blob_excess_gas_and_price
            .get_or_insert(BlobExcessGasAndPrice { excess_blob_gas: 0, blob_gasprice: LEAST_BLOB_GAS_PRICE });
    }
    Ok(env)
}

fn overridden_env(
    rules: BlockRules<'_>,
    header: &Header,
    overrides: &BlockOverrides,
) -> Result<EvmEnv, OverrideError> {
    if overrides.beacon_root.is_some() {
        return Err(OverrideError::BeaconRoot);
    }
    let mut header = header.clone();
    header.number = overrides.number.map_or(header.number, |number| number.saturating_to());
    header.timestamp = overrides.time.unwrap_or(header.timestamp);
    header.gas_limit = overrides.gas_limit.unwrap_or(header.gas_limit);
    header.beneficiary = overrides.coinbase.unwrap_or(header.beneficiary);
    header.mix_hash = overrides.random.unwrap_or(header.mix_hash);
    if let Some(base_fee) = overrides.base_fee {
        header.base_fee_per_gas = Some(base_fee.saturating_to());
    }
    let mut env = rules.evm_env(&header);
    let block = &mut env.block_env;
    block.number = overrides.number.unwrap_or(block.number);
    block.difficulty = overrides.difficulty.unwrap_or(block.difficulty);
    if let Some(price) = overrides.blob_base_fee {
        let excess_blob_gas = block.blob_excess_gas_and_price.map_or(0, |blob| blob.excess_blob_gas);
        let blob_gasprice = price.saturating_to();
        block.blob_excess_gas_and_price = Some(BlobExcessGasAndPrice { excess_blob_gas, blob_gasprice });
    }
    Ok(env)
}

/// The overridden state, by address.
#[derive(Debug, Default)]
pub(super) struct Overlay {
    accounts: AddressMap<OverlaidAccount>,
    block_hashes: BTreeMap<u64, B256>,
    precompiles: AddressMap<Option<Address>>,
}

#[derive(Debug, Default)]
struct OverlaidAccount {
    nonce: Option<u64>,
    balance: Option<U256>,
    code: Option<(B256, Bytecode)>,
    storage: U256Map<U256>,
    /// Slots that are not known here are zero, whatever the source says.
    storage_complete: bool,
}

impl Overlay {
    pub(super) fn new(overrides: Overrides, spec: SpecId) -> Result<Self, OverrideError> {
        let block_hashes = overrides.block.and_then(|block| block.block_hash).unwrap_or_default();
        let mut overlay = Self { block_hashes, ..Self::default() };
        if let Some(state) = overrides.state {
            overlay.precompiles = moved_precompiles(&state, spec)?;
            for (address, account) in state {
                overlay.accounts.insert(address, OverlaidAccount::new(address, account)?);
            }
        }
        Ok(overlay)
    }

    /// Applies the overrides of an account to what the source has.
    pub(super) fn account(&self, address: Address, account: Option<AccountInfo>) -> Option<AccountInfo> {
        let Some(overlaid) = self.accounts.get(&address) else { return account };
        let mut account = account.unwrap_or_else(|| AccountState::default().into());
        account.nonce = overlaid.nonce.unwrap_or(account.nonce);
        account.balance = overlaid.balance.unwrap_or(account.balance);
        if let Some((hash, code)) = &overlaid.code {
            account.code_hash = *hash;
            account.code = Some(code.clone());
        }
        Some(account)
    }

    /// Returns the overridden value of a slot.
    pub(super) fn storage(&self, address: Address, slot: U256) -> Option<U256> {
        let overlaid = self.accounts.get(&address)?;
        let value = overlaid.storage.get(&slot).copied();
        value.or_else(|| overlaid.storage_complete.then_some(U256::ZERO))
    }

    /// Returns the overridden hash of a block.
    pub(super) fn block_hash(&self, number: u64) -> Option<B256> {
        self.block_hashes.get(&number).copied()
    }

    /// Returns the original address of the precompile that is called at an address, or `None` if it is an account.
    pub(super) fn precompile(&self, address: Address) -> Option<Address> {
        self.precompiles.get(&address).copied().unwrap_or(Some(address))
    }
}

impl OverlaidAccount {
    fn new(address: Address, account: AccountOverride) -> Result<Self, OverrideError> {
        let (storage, storage_complete) = match (account.state, account.state_diff) {
            (Some(_), Some(_)) => return Err(OverrideError::BothStateAndDiff(address)),
            (Some(all), None) => (all, true),
            (None, some) => (some.unwrap_or_default(), false),
        };
        Ok(Self {
            nonce: account.nonce,
            balance: account.balance,
            code: account.code.map(|code| (keccak256(&code), bytecode(code))),
            storage: words(storage),
            storage_complete,
        })
    }
}

fn words(storage: B256Map<B256>) -> U256Map<U256> {
    storage.into_iter().map(|(slot, value)| (slot.into(), value.into())).collect()
}

/// Returns the address of each precompile after moves; an override without a move removes its precompile.
fn moved_precompiles(
    state: &StateOverride,
    spec: SpecId,
) -> Result<AddressMap<Option<Address>>, OverrideError> {
    let usual = Precompiles::new(PrecompileSpecId::from_spec_id(spec));
    let mut moved = AddressMap::default();
    for (address, account) in state {
        if usual.contains(address) {
            moved.insert(*address, None);
        }
        let Some(target) = account.move_precompile_to else { continue };
        if !usual.contains(address) {
            return Err(OverrideError::NotAPrecompile(*address));
        }
        if state.contains_key(&target) {
            return Err(OverrideError::AlreadyOverridden(target));
        }
        moved.insert(target, Some(*address));
    }
    Ok(moved)
}
