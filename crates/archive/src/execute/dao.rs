//! The irregular state change of the DAO fork (EIP-779): it comes before the first transaction of the fork block.

use crate::state::{StateSource, WorkingState};
use alloy_evm::eth::dao_fork::{DAO_HARDFORK_ACCOUNTS, DAO_HARDFORK_BENEFICIARY};
use alloy_primitives::U256;

/// Moves the balances of the DAO, its children and their extra-balance accounts to the refund contract.
///
/// All these accounts exist afterwards, also those that did not before, unless empty accounts are deleted (EIP-158).
pub(super) fn drain<S: StateSource>(state: &mut WorkingState<S>, delete_empty: bool) -> Result<(), S::Error> {
    let mut drained = U256::ZERO;
    for address in DAO_HARDFORK_ACCOUNTS {
        drained = drained.saturating_add(state.balance(address)?);
        state.set_balance(address, U256::ZERO, delete_empty)?;
    }
    let refund = state.balance(DAO_HARDFORK_BENEFICIARY)?.saturating_add(drained);
    state.set_balance(DAO_HARDFORK_BENEFICIARY, refund, delete_empty)
}
