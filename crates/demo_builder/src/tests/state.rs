use super::*;
use alloy_primitives::{Address, U256, b256, keccak256};
use archive::StateSource as _;

impl Demo {
    fn slot(&self, contract: contracts::Contract, position: B256, number: u64) -> U256 {
        self.snapshot.state_at(number).storage(contract.address(), position.into()).unwrap()
    }

    fn balance(&self, address: Address, number: u64) -> U256 {
        let account = self.snapshot.state_at(number).account(address).unwrap();
        account.map_or(U256::ZERO, |account| account.balance)
    }
}

#[test]
fn a_simple_variable_and_a_mapping_can_be_read() {
    let demo = Demo::new();
    let created = demo.block("create-tour");
    for slot in facts::slots() {
        let at_head = demo.slot(slot.contract, slot.position, HEAD_NUMBER);
        assert!(!at_head.is_zero(), "{}", slot.about);
        assert_eq!(demo.slot(slot.contract, slot.position, created - 1), U256::ZERO, "{}", slot.about);
        match slot.constant {
            Some(value) => assert_eq!(at_head, U256::from(value), "{}", slot.about),
            None => {
                assert_ne!(at_head, demo.slot(slot.contract, slot.position, created + 2), "{}", slot.about);
            }
        }
    }
}

#[test]
fn the_slot_of_a_mapping_is_the_hash_of_key_and_position() {
    // The well-known example: key 0x391694e7e0b0cce554cb130d723a9d27458f9298 in the mapping at position 1.
    let key = "391694e7e0b0cce554cb130d723a9d27458f9298".parse().unwrap();
    let expected = b256!("6661e9d6d8b923d5bbaab1b96e1dd51ff6ea2a93520fdc9eb75d059238b8c5e9");
    assert_eq!(facts::mapping_slot(key, 1), expected);
}

#[test]
fn the_tokens_of_everybody_are_the_supply() {
    let demo = Demo::new();
    for number in [demo.block("create-token"), demo.block("token-transfers"), HEAD_NUMBER] {
        let balance = |address| demo.slot(contracts::TOKEN, facts::mapping_slot(address, 0), number);
        let sum: U256 = accounts::ACCOUNTS.iter().map(|account| balance(account.address)).sum();
        assert_eq!(sum, contracts::TOKEN_SUPPLY, "block {number}");
    }
}

#[test]
fn self_destruction_removes_contracts_until_cancun() {
    let demo = Demo::new();
    let cases = [
        ("end-doomed-1", contracts::DOOMED_EARLY, true),
        ("end-doomed-2", contracts::DOOMED, true),
        ("end-doomed-3", contracts::DOOMED_LATE, false),
    ];
    for (name, contract, gone) in cases {
        let (address, ended) = (contract.address(), demo.block(name));
        assert!(demo.balance(address, ended - 1) > U256::ZERO, "{name}");
        assert_eq!(demo.balance(address, ended), U256::ZERO, "{name}");
        let account = demo.snapshot.state_at(ended).account(address).unwrap();
        assert_eq!(account.is_none(), gone, "{name}");
        assert_eq!(demo.slot(contract, B256::ZERO, ended).is_zero(), gone, "{name}");
    }
}

#[test]
fn dave_delegates_to_the_wallet() {
    let demo = Demo::new();
    let delegated = demo.block("delegation");
    let code = |number| demo.snapshot.state_at(number).code_of(accounts::DAVE.address).unwrap();
    assert!(code(delegated - 1).is_empty());
    let expected = [&[0xef, 0x01, 0x00], contracts::WALLET.address().as_slice()].concat();
    assert_eq!(code(delegated)[..], expected);
    assert_eq!(code(HEAD_NUMBER)[..], expected);
}

#[test]
fn everybody_has_ether_and_the_head_has_the_newest_state() {
    let demo = Demo::new();
    let ether = U256::from(10).pow(U256::from(18));
    for account in accounts::ACCOUNTS {
        assert_eq!(demo.balance(account.address, 0), U256::from(10_000) * ether, "{}", account.name);
        assert!(demo.balance(account.address, HEAD_NUMBER) > U256::from(5_000) * ether, "{}", account.name);
    }
    let empty = keccak256([]);
    let erin = demo.snapshot.state_at(HEAD_NUMBER).account(accounts::ERIN.address).unwrap().unwrap();
    assert_eq!((erin.nonce, erin.code_hash), (contracts::CONTRACTS.len() as u64, empty));
}
