//! The block and the state as the caller wants them to be.

use crate::{chain::Rules, state::Account};
use alloy_consensus::Header;
use alloy_evm::EvmEnv;
use alloy_primitives::{
    Address, B256, Bytes, U256, keccak256,
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

/// The price of blob gas in a block that has no say in it: the least that there is.
const LEAST_BLOB_GAS_PRICE: u128 = 1;

/// What a caller wants to be different.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// Accounts.
    pub state: Option<StateOverride>,
    /// The block.
    pub block: Option<BlockOverrides>,
}

/// Why overrides cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OverrideError {
    /// Both ways to say what an account's storage holds.
    #[error("account {0} has both 'state' and 'stateDiff'")]
    BothStateAndDiff(Address),
    /// Only precompiles can be moved.
    #[error("account {0} is not a precompile")]
    NotAPrecompile(Address),
    /// A precompile cannot be moved to an account that is overridden itself.
    #[error("account {0} is already overridden")]
    AlreadyOverridden(Address),
    /// A block's beacon root takes effect at its start, before any message.
    #[error("block override \"beaconRoot\" is not supported for this RPC method")]
    BeaconRoot,
}

/// The EVM's view of a block, with what the caller wants to be different.
///
/// The fork follows the overridden number and time.
pub(super) fn block_env(
    rules: Rules<'_>,
    header: &Header,
    overrides: Option<&BlockOverrides>,
) -> Result<EvmEnv, OverrideError> {
    let mut env = match overrides {
        Some(overrides) => overridden_env(rules, header, overrides)?,
        None => rules.evm_env(header),
    };
    let cfg = &mut env.cfg_env;
    // A message is no transaction: nobody signed it, and it takes no room in the block.
    cfg.disable_nonce_check = true;
    cfg.disable_eip3607 = true;
    cfg.disable_block_gas_limit = true;
    cfg.tx_gas_limit_cap = Some(u64::MAX);
    // A block that was put behind a fork may lack what that fork brought.
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
    rules: Rules<'_>,
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

/// What is different from the source, by where it is looked up.
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

    /// An account as it is to be, given what the source has.
    pub(super) fn account(&self, address: Address, account: Option<AccountInfo>) -> Option<AccountInfo> {
        let Some(overlaid) = self.accounts.get(&address) else { return account };
        let mut account = account.unwrap_or_else(|| Account::default().into());
        account.nonce = overlaid.nonce.unwrap_or(account.nonce);
        account.balance = overlaid.balance.unwrap_or(account.balance);
        if let Some((hash, code)) = &overlaid.code {
            account.code_hash = *hash;
            account.code = Some(code.clone());
        }
        Some(account)
    }

    /// A slot as it is to be, if it is to be different.
    pub(super) fn storage(&self, address: Address, slot: U256) -> Option<U256> {
        let overlaid = self.accounts.get(&address)?;
        let value = overlaid.storage.get(&slot).copied();
        value.or_else(|| overlaid.storage_complete.then_some(U256::ZERO))
    }

    /// The hash that a block is to have, if it is to be different.
    pub(super) fn block_hash(&self, number: u64) -> Option<B256> {
        self.block_hashes.get(&number).copied()
    }

    /// The usual address of the precompile that answers at an address now; none if it is an account.
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

/// Any bytes can be code. What looks like a delegation but is none is run, and fails at its first byte.
pub(crate) fn bytecode(code: Bytes) -> Bytecode {
    Bytecode::new_raw_checked(code.clone()).unwrap_or_else(|_| Bytecode::new_legacy(code))
}

/// Which precompile answers where: an override takes the precompile away from its address, a move puts it
/// elsewhere.
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
