//! `eth_call` and `eth_estimateGas` on the demo chain.

use alloy_primitives::{U256, hex};
use alloy_sol_types::{SolCall, SolError};
use demo_builder::accounts::{ALICE, BOB};
use demo_builder::contracts::{CLOCK, TOUR, abi::Tour};
use serde_json::{Value, json};

use crate::gateway_under_test::{Gateway, call};

/// Runs a function of Tour in the newest block.
fn tour(gateway: &Gateway, call: &impl SolCall) -> Value {
    let data = hex::encode_prefixed(call.abi_encode());
    let message = json!({ "from": ALICE.address, "to": TOUR.address(), "input": data });
    gateway.call("eth_call", &json!([message, "latest"]).to_string())
}

fn run(gateway: &Gateway, method: &str, message: Value) -> Value {
    gateway.call(method, &json!([message, "latest"]).to_string())
}

fn told(json: &Value) -> String {
    format!("{} {}", json["error"]["code"], json["error"]["message"].as_str().unwrap_or("no error"))
}

#[test]
fn every_way_to_revert_has_its_text_and_its_data() {
    let gateway = Gateway::on_demo_chain("");
    let reverted = |call: &dyn Fn() -> Value, message: &str, data: &str| {
        let error = call()["error"].clone();
        assert_eq!((&error["code"], &error["message"]), (&json!(3), &json!(message)));
        assert!(error["data"].as_str().unwrap().starts_with(data), "{error}");
    };
    let run = |call: Vec<u8>| {
        let message = json!({ "to": TOUR.address(), "data": hex::encode_prefixed(call) });
        run(&gateway, "eth_call", message)
    };
    let reason = Tour::failWithReasonCall {}.abi_encode();
    reverted(&|| run(reason.clone()), "execution reverted: the tour ends here", "0x08c379a0");
    let custom = hex::encode_prefixed(Tour::NotEnough::SELECTOR);
    let error = Tour::failWithErrorCall { wanted: U256::from(9) }.abi_encode();
    reverted(&|| run(error.clone()), "execution reverted", &custom);
    let panics = [
        (Tour::failWithAssertCall {}.abi_encode(), "assert(false)"),
        (Tour::failWithOverflowCall {}.abi_encode(), "arithmetic underflow or overflow"),
        (Tour::failWithDivisionCall { divisor: U256::ZERO }.abi_encode(), "division or modulo by zero"),
        (
            Tour::failWithIndexCall { index: U256::from(3) }.abi_encode(),
            "out-of-bounds access of an array or bytesN",
        ),
    ];
    for (call, name) in panics {
        reverted(&|| run(call.clone()), &format!("execution reverted: {name}"), "0x4e487b71");
    }
    let silent = tour(&gateway, &Tour::failWithoutReasonCall {});
    assert_eq!(silent["error"], json!({"code": 3, "message": "execution reverted", "data": "0x"}));
    let estimated = json!({ "to": TOUR.address(), "data": hex::encode_prefixed(&reason) });
    let estimated = self::run(&gateway, "eth_estimateGas", estimated);
    assert_eq!(told(&estimated), "3 execution reverted: the tour ends here");
}

#[test]
fn other_failures_have_the_usual_texts() {
    let gateway = Gateway::on_demo_chain("");
    let spin = hex::encode_prefixed(Tour::spinCall {}.abi_encode());
    let spinning = |gas: &str| json!({ "to": TOUR.address(), "data": spin, "gas": gas });
    assert_eq!(told(&run(&gateway, "eth_call", spinning("0x186a0"))), "-32000 out of gas");
    assert_eq!(
        told(&run(&gateway, "eth_estimateGas", spinning("0x186a0"))),
        "-32000 gas required exceeds allowance (100000)"
    );
    assert_eq!(told(&tour(&gateway, &Tour::failWithInvalidCall {})), "-32000 invalid opcode: INVALID");
    let low = json!({ "to": BOB.address, "gas": "0x4e20" });
    assert_eq!(told(&run(&gateway, "eth_call", low)), "-32000 intrinsic gas too low: have 20000, want 21000");
    let poor = json!({ "from": CLOCK.address(), "to": BOB.address, "value": "0x1" });
    let poor = told(&run(&gateway, "eth_call", poor));
    assert!(poor.starts_with("-32000 insufficient funds for gas * price + value: address 0x"), "{poor}");
    let cheap = json!({ "from": ALICE.address, "to": BOB.address, "maxFeePerGas": "0x1" });
    let cheap = told(&run(&gateway, "eth_call", cheap));
    assert!(cheap.starts_with("-32000 max fee per gas less than block base fee: address 0x"), "{cheap}");
    let elsewhere = json!({ "to": BOB.address, "chainId": "0x1" });
    let elsewhere = told(&run(&gateway, "eth_call", elsewhere));
    assert!(elsewhere.starts_with("-32000 chainId does not match"), "{elsewhere}");
}

#[test]
fn a_call_beyond_its_time_says_how_long_that_is() {
    let gateway = Gateway::on_demo_chain("call_timeout_ms = 1000\ncall_gas_multiple = 1_000_000_000");
    let spin = hex::encode_prefixed(Tour::spinCall {}.abi_encode());
    let spinning = json!({ "to": TOUR.address(), "data": spin });
    assert_eq!(told(&run(&gateway, "eth_call", spinning)), "-32000 execution aborted (timeout = 1s)");
}

/// `NUMBER, PUSH0, MSTORE, 32, PUSH0, RETURN`, with another first instruction.
fn returns(instruction: &str) -> String {
    format!("0x{instruction}5f5260205ff3")
}

#[test]
fn from_defaults_to_the_zero_address_and_the_base_fee_to_zero() {
    let gateway = Gateway::on_demo_chain("");
    let word = |instruction: &str, more: Value| {
        let mut message = json!({ "data": returns(instruction) });
        message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let result = run(&gateway, "eth_call", message)["result"].as_str().unwrap().to_owned();
        U256::from_str_radix(&result[2..], 16).unwrap()
    };
    let (caller, base_fee, gas_left) = ("33", "48", "5a");
    assert_eq!(word(caller, json!({})), U256::ZERO);
    assert_eq!(word(caller, json!({ "from": ALICE.address })), U256::from_be_slice(ALICE.address.as_slice()));
    assert_eq!(word(base_fee, json!({})), U256::ZERO);
    let paid = json!({ "from": ALICE.address, "maxFeePerGas": "0x174876e800", "gas": "0x186a0" });
    assert!(word(base_fee, paid) > U256::ZERO);
    let head = gateway.call("eth_getBlockByNumber", r#"["latest",false]"#);
    let limit = u64::from_str_radix(&head["result"]["gasLimit"].as_str().unwrap()[2..], 16).unwrap();
    let capped = word(gas_left, json!({}));
    assert!(capped <= U256::from(10 * limit) && capped > U256::from(9 * limit), "{capped}");
    assert_eq!(word(gas_left, json!({ "gas": "0xffffffffffffffffffff" })), capped, "lowered without a word");
}

/// Init code that reverts with `Error(string)` and a reason of so many zero bytes.
fn long_reason(bytes: u32) -> String {
    let [_, length @ ..] = bytes.to_be_bytes();
    let [_, end @ ..] = (bytes + 68).to_be_bytes();
    let (length, end) = (hex::encode(length), hex::encode(end));
    format!("0x6308c379a060e01b5f52602060045262{length}60245262{end}5ffd")
}

/// A reason had no limit, and each of its bytes became six in the message: 12.5 MB of data were 100 MB of JSON, written on the
/// thread of the connection. In a batch the room for it stayed, could not be charged, and the whole batch was 503.
#[test]
fn a_long_reason_is_only_in_the_data() {
    const BYTES: u32 = 2_000_000;
    let gateway = Gateway::on_demo_chain("batch_reply_bytes_max = 1000000\nmemory_bytes_max = 16000000");
    let short = run(&gateway, "eth_call", json!({ "data": long_reason(2) }));
    assert_eq!(short["error"]["message"], "execution reverted: \0\0");
    let long = call("eth_call", &json!([{ "data": long_reason(BYTES) }]).to_string());
    let reply = gateway.post(&long);
    assert_eq!(reply.status, 200);
    assert_eq!(told(&reply.json()), "3 execution reverted");
    assert_eq!(reply.json()["error"]["data"].as_str().unwrap().len(), 2 + 2 * (BYTES as usize + 68));
    let batch = gateway.post(format!("[{long},{}]", call("eth_chainId", "[]")));
    assert_eq!(batch.status, 200);
    assert_eq!(told(&batch.json()[0]), "-32003 response too large");
    assert_eq!(batch.json()[1]["result"], gateway.call("eth_chainId", "[]")["result"]);
}

#[test]
fn overrides_change_state_and_block_for_one_call() {
    let gateway = Gateway::on_demo_chain("");
    let answer = "0x85bb7d69"; // answer()
    let call = json!({ "to": TOUR.address(), "data": answer });
    let run = |state: Value, block: Value, call: &Value| {
        gateway.call("eth_call", &json!([call, "latest", state, block]).to_string())["result"].clone()
    };
    assert_eq!(run(json!(null), json!(null), &call), json!(format!("0x{:064x}", 1234)));
    let slot = format!("0x{:064x}", 0);
    let diff = json!({ TOUR.address().to_string(): { "stateDiff": { slot: format!("0x{:064x}", 7) } } });
    assert_eq!(run(diff, json!(null), &call), json!(format!("0x{:064x}", 7)));
    let number = json!({ "data": returns("43") });
    assert_eq!(run(json!(null), json!({ "number": "0x1234" }), &number), json!(format!("0x{:064x}", 0x1234)));
    let poor = json!({ "from": CLOCK.address(), "to": BOB.address, "value": "0x1" });
    let rich = json!({ CLOCK.address().to_string(): { "balance": "0xde0b6b3a7640000" } });
    let params = json!([poor, "latest", rich]).to_string();
    assert!(gateway.call("eth_estimateGas", &params)["result"].is_string());
}

#[test]
fn an_estimate_is_enough_and_a_transfer_costs_21000() {
    let gateway = Gateway::on_demo_chain("");
    let transfer = json!({ "from": ALICE.address, "to": BOB.address, "value": "0x1" });
    assert_eq!(run(&gateway, "eth_estimateGas", transfer)["result"], "0x5208");
    let bump = hex::encode_prefixed(Tour::bumpCall {}.abi_encode());
    let mut message = json!({ "from": ALICE.address, "to": TOUR.address(), "data": bump });
    let estimate = run(&gateway, "eth_estimateGas", message.clone())["result"].clone();
    message["gas"] = estimate;
    assert!(run(&gateway, "eth_call", message)["result"].is_string());
}
