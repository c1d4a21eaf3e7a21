//! The people of the demo chain.
//!
//! Their keys are the first of the well-known mnemonic `test test test test test test test test test test test
//! junk`, which developer tools fill in by themselves. Everybody has them: they guard nothing.

use alloy_primitives::{Address, B256, address, b256};
use chain_builder::Signer;

/// Somebody who has ether from the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DemoAccount {
    /// Their name in the documents.
    pub name: &'static str,
    /// Their part on the chain.
    pub role: &'static str,
    /// Their private key.
    pub key: B256,
    /// Their address.
    pub address: Address,
}

/// Everyday traffic.
pub const ALICE: DemoAccount = DemoAccount {
    name: "Alice",
    role: "everyday traffic",
    key: b256!("ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"),
    address: address!("f39Fd6e51aad88F6F4ce6aB8827279cffFb92266"),
};

/// Everyday traffic, and recipient of payments.
pub const BOB: DemoAccount = DemoAccount {
    name: "Bob",
    role: "everyday traffic, and recipient of payments",
    key: b256!("59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d"),
    address: address!("70997970C51812dc3A010C7d01b50e0d17dc79C8"),
};

/// Fills blocks, and emits the many logs.
pub(crate) const CAROL: DemoAccount = DemoAccount {
    name: "Carol",
    role: "fills blocks, and emits the many logs",
    key: b256!("5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a"),
    address: address!("3C44CdDdB6a900fa2b585dd299e03d12FA4293BC"),
};

/// Delegates to the wallet contract (EIP-7702).
pub(crate) const DAVE: DemoAccount = DemoAccount {
    name: "Dave",
    role: "delegates to the contract Wallet (EIP-7702)",
    key: b256!("7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6"),
    address: address!("90F79bf6EB2c4f870365E785982E1f101E93b906"),
};

/// Creates the contracts and does nothing else, so that their addresses follow from their order.
pub const ERIN: DemoAccount = DemoAccount {
    name: "Erin",
    role: "creates the contracts",
    key: b256!("47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a"),
    address: address!("15d34AAf54267DB7D7c367839AAf71A00a2C6A65"),
};

/// Gets block rewards, fees and withdrawals.
pub(crate) const FRANK: DemoAccount = DemoAccount {
    name: "Frank",
    role: "gets block rewards, fees and withdrawals",
    key: b256!("8b3a350cf5c34c9194ca85829a2df0ec3153be0318b5e2d3348e872092edffba"),
    address: address!("9965507D1a55bcC2695C58ba16FB37d819B0A4dc"),
};

/// All accounts of the demo chain.
pub const ACCOUNTS: [DemoAccount; 6] = [ALICE, BOB, CAROL, DAVE, ERIN, FRANK];

impl DemoAccount {
    pub(super) fn signer(&self) -> Signer {
        Signer::from_seed(self.key)
    }
}
