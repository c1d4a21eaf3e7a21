//! The contracts that the protocol itself calls, as a genesis allocates them.

use alloy_eips::{
    eip2935::{HISTORY_STORAGE_ADDRESS, HISTORY_STORAGE_CODE},
    eip4788::{BEACON_ROOTS_ADDRESS, BEACON_ROOTS_CODE},
    eip7002::{WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS, WITHDRAWAL_REQUEST_PREDEPLOY_CODE},
    eip7251::{CONSOLIDATION_REQUEST_PREDEPLOY_ADDRESS, CONSOLIDATION_REQUEST_PREDEPLOY_CODE},
    eip8282::{
        BUILDER_DEPOSIT_CONTRACT_ADDRESS, BUILDER_DEPOSIT_CONTRACT_CODE, BUILDER_EXIT_CONTRACT_ADDRESS,
        BUILDER_EXIT_CONTRACT_CODE,
    },
};
use alloy_genesis::GenesisAccount;
use alloy_primitives::{Address, Bytes, U256};

/// The contracts of EIP-4788 (Cancun), 2935, 7002, 7251 (Prague) and 8282 (Amsterdam) with their canonical code, for
/// the allocation of a genesis that reaches these forks.
pub fn system_contracts() -> [(Address, GenesisAccount); 6] {
    [
        (BEACON_ROOTS_ADDRESS, &BEACON_ROOTS_CODE),
        (HISTORY_STORAGE_ADDRESS, &HISTORY_STORAGE_CODE),
        (WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS, &WITHDRAWAL_REQUEST_PREDEPLOY_CODE),
        (CONSOLIDATION_REQUEST_PREDEPLOY_ADDRESS, &CONSOLIDATION_REQUEST_PREDEPLOY_CODE),
        (BUILDER_DEPOSIT_CONTRACT_ADDRESS, &BUILDER_DEPOSIT_CONTRACT_CODE),
        (BUILDER_EXIT_CONTRACT_ADDRESS, &BUILDER_EXIT_CONTRACT_CODE),
    ]
    .map(|(address, code)| (address, contract(code)))
}

fn contract(code: &Bytes) -> GenesisAccount {
    GenesisAccount {
        nonce: Some(1),
        balance: U256::ZERO,
        code: Some(code.clone()),
        ..GenesisAccount::default()
    }
}
