use super::*;
use accounts::{ALICE, ERIN};
use alloy_primitives::{Address, Bytes, U256};
use alloy_rpc_types_eth::TransactionRequest;
use alloy_sol_types::{Panic, PanicKind, Revert, SolCall, SolError};
use archive::{CallError, CallLimits, Overrides, call, estimate};
use contracts::{CLOCK, EARLY, TOKEN, TOUR, abi};

impl Demo {
    fn call(&self, to: Address, data: impl Into<Bytes>, number: u64) -> Result<Bytes, CallError> {
        let snapshot = &self.snapshot;
        let header = snapshot.header(number).unwrap().unwrap();
        let rules = snapshot.chain().rules_at(&header);
        call(snapshot.state_at(number), rules, &header, request(to, data), Overrides::default(), &limits())
    }

    fn reverted_with(&self, call: &impl SolCall) -> Bytes {
        match self.call(TOUR.address(), call.abi_encode(), HEAD_NUMBER) {
            Err(CallError::Reverted { data }) => data,
            other => panic!("not reverted: {other:?}"),
        }
    }
}

fn request(to: Address, data: impl Into<Bytes>) -> TransactionRequest {
    TransactionRequest::default().from(ALICE.address).to(to).input(data.into().into())
}

fn limits() -> CallLimits {
    CallLimits { gas_cap: 10_000_000, memory_bytes_max: 64 << 20, deadline: None, cancel: None }
}

#[test]
fn calls_revert_in_every_way() {
    let demo = Demo::new();
    let panic = |kind: PanicKind| Panic { code: U256::from(kind as u32) }.abi_encode();
    let reason = demo.reverted_with(&abi::Tour::failWithReasonCall {});
    assert_eq!(reason, Revert::from("the tour ends here").abi_encode());
    assert_eq!(demo.reverted_with(&abi::Tour::failWithAssertCall {}), panic(PanicKind::Assert));
    assert_eq!(demo.reverted_with(&abi::Tour::failWithOverflowCall {}), panic(PanicKind::UnderOverflow));
    let by_zero = abi::Tour::failWithDivisionCall { divisor: U256::ZERO };
    assert_eq!(demo.reverted_with(&by_zero), panic(PanicKind::DivisionByZero));
    let beyond = abi::Tour::failWithIndexCall { index: U256::from(3) };
    assert_eq!(demo.reverted_with(&beyond), panic(PanicKind::ArrayOutOfBounds));
    let custom = abi::Tour::failWithErrorCall { wanted: U256::from(99) };
    assert!(demo.reverted_with(&custom).starts_with(&abi::Tour::NotEnough::SELECTOR));
    assert_eq!(demo.reverted_with(&abi::Tour::failWithoutReasonCall {}), Bytes::new());
    for halts in [abi::Tour::failWithInvalidCall::SELECTOR, abi::Tour::spinCall::SELECTOR] {
        let halted = demo.call(TOUR.address(), halts.to_vec(), HEAD_NUMBER).unwrap_err();
        assert!(matches!(halted, CallError::Halted(_)), "{halted}");
    }
}

#[test]
fn calls_see_the_state_of_their_block() {
    let demo = Demo::new();
    let balance = |address, number| {
        let call = abi::Token::balanceOfCall { owner: address };
        let output = demo.call(TOKEN.address(), call.abi_encode(), number).unwrap();
        abi::Token::balanceOfCall::abi_decode_returns(&output).unwrap()
    };
    assert_eq!(balance(ALICE.address, demo.block("create-token")), contracts::TOKEN_SUPPLY);
    assert!(balance(ALICE.address, HEAD_NUMBER) < contracts::TOKEN_SUPPLY);
    assert_eq!(balance(ERIN.address, HEAD_NUMBER), U256::ZERO);

    let word = |contract: contracts::Contract, signature: &str, number| {
        let selector = alloy_primitives::keccak256(signature)[..4].to_vec();
        U256::from_be_slice(&demo.call(contract.address(), selector, number).unwrap()[..32])
    };
    assert_eq!(word(TOUR, "answer()", HEAD_NUMBER), U256::from(1234));
    assert_eq!(word(CLOCK, "read()", 200), U256::from(200));
    assert_eq!(word(CLOCK, "chain()", HEAD_NUMBER), U256::from(CHAIN_ID));
    assert_eq!(word(EARLY, "count()", 4), U256::from(2));
}

#[test]
fn gas_can_be_estimated() {
    let demo = Demo::new();
    let snapshot = &demo.snapshot;
    let header = snapshot.header(HEAD_NUMBER).unwrap().unwrap();
    let rules = snapshot.chain().rules_at(&header);
    let bump = request(TOUR.address(), abi::Tour::bumpCall {}.abi_encode());
    let gas = estimate(snapshot.state_at(HEAD_NUMBER), rules, &header, bump, Overrides::default(), &limits());
    assert!((21_000..60_000).contains(&gas.unwrap()));
}
