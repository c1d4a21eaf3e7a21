use super::*;
use alloy_primitives::keccak256;
use alloy_sol_types::{SolCall, SolEvent};
use contracts::abi::{Chatter, Clock, Doomed, Early, Load, Token, Tour, Wallet};
use serde_json::Value;

#[test]
fn keys_and_addresses_belong_together() {
    for account in accounts::ACCOUNTS {
        assert_eq!(account.signer().address(), account.address, "{}", account.name);
    }
}

#[test]
fn the_interfaces_are_those_of_the_artefacts() {
    let calls: &[(&str, [u8; 4], contracts::Contract)] = &[
        (Early::addCall::SIGNATURE, Early::addCall::SELECTOR, contracts::EARLY),
        (Early::failCall::SIGNATURE, Early::failCall::SELECTOR, contracts::EARLY),
        (Doomed::endCall::SIGNATURE, Doomed::endCall::SELECTOR, contracts::DOOMED),
        (Tour::bumpCall::SIGNATURE, Tour::bumpCall::SELECTOR, contracts::TOUR),
        (Tour::announceCall::SIGNATURE, Tour::announceCall::SELECTOR, contracts::TOUR),
        (Tour::failWithReasonCall::SIGNATURE, Tour::failWithReasonCall::SELECTOR, contracts::TOUR),
        (Tour::spinCall::SIGNATURE, Tour::spinCall::SELECTOR, contracts::TOUR),
        (Token::transferCall::SIGNATURE, Token::transferCall::SELECTOR, contracts::TOKEN),
        (Token::balanceOfCall::SIGNATURE, Token::balanceOfCall::SELECTOR, contracts::TOKEN),
        (Load::consumeCall::SIGNATURE, Load::consumeCall::SELECTOR, contracts::LOAD),
        (Clock::lookCall::SIGNATURE, Clock::lookCall::SELECTOR, contracts::CLOCK),
        (Wallet::executeCall::SIGNATURE, Wallet::executeCall::SELECTOR, contracts::WALLET),
        (Wallet::pingCall::SIGNATURE, Wallet::pingCall::SELECTOR, contracts::WALLET),
        (Chatter::sayCall::SIGNATURE, Chatter::sayCall::SELECTOR, contracts::CHATTER),
    ];
    for (signature, selector, contract) in calls {
        assert!(signatures(contract, "function").contains(&(*signature).to_owned()), "{signature}");
        assert_eq!(keccak256(signature)[..4], *selector, "{signature}");
    }
    for topic in facts::topics() {
        let events = signatures(&topic.contract, "event");
        assert!(events.contains(&topic.signature.to_owned()), "{} is not in {events:?}", topic.signature);
    }
    assert_eq!(Token::Transfer::SIGNATURE, "Transfer(address,address,uint256)");
}

/// The signatures of a kind in the ABI of a contract.
fn signatures(contract: &contracts::Contract, kind: &str) -> Vec<String> {
    let artifact: Value = serde_json::from_str(contract.artifact()).unwrap();
    let entries = artifact["abi"].as_array().unwrap().iter().filter(|entry| entry["type"] == kind);
    entries.map(|entry| format!("{}({})", entry["name"].as_str().unwrap(), types(&entry["inputs"]))).collect()
}

fn types(inputs: &Value) -> String {
    let types = inputs.as_array().unwrap().iter().map(|input| {
        let name = input["type"].as_str().unwrap();
        match name.strip_prefix("tuple") {
            Some(array) => format!("({}){array}", types(&input["components"])),
            None => name.to_owned(),
        }
    });
    types.collect::<Vec<_>>().join(",")
}
