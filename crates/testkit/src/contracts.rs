//! The contracts of the made-up chains, as bytecode.

use crate::asm::{Asm, call_data, init_code, op, selector, words};
use alloy_primitives::{Address, B256, Bytes, U256, keccak256};

/// Given one word of call data, self-destructs in favour of that address; otherwise takes the call data as pairs of
/// slot and value and writes them.
pub(crate) fn vessel() -> Bytes {
    Asm::new()
        .ops(&[op::CALLDATASIZE])
        .push(32)
        .ops(&[op::EQ])
        .jump_if("destroy")
        .push(0)
        .label("next")
        .ops(&[op::CALLDATASIZE, op::DUP2, op::LT, op::ISZERO])
        .jump_if("done")
        .ops(&[op::DUP1])
        .push(32)
        .ops(&[op::ADD, op::CALLDATALOAD, op::DUP2, op::CALLDATALOAD, op::SSTORE])
        .push(64)
        .ops(&[op::ADD])
        .jump("next")
        .label("destroy")
        .push(0)
        .ops(&[op::CALLDATALOAD, op::SELFDESTRUCT])
        .label("done")
        .ops(&[op::STOP])
        .finish()
}

/// Creates a [`vessel`] that already has storage: where it was born in slot 0, and 7 in slot 1.
pub(crate) fn vessel_init() -> Bytes {
    let setup = Asm::new().ops(&[op::NUMBER]).push(0).ops(&[op::SSTORE]).push(7).push(1).ops(&[op::SSTORE]);
    init_code(setup, &vessel())
}

/// Call data that makes a [`vessel`] write.
pub fn write(pairs: &[(U256, U256)]) -> Bytes {
    words(&pairs.iter().flat_map(|(slot, value)| [*slot, *value]).collect::<Vec<_>>())
}

/// Call data that makes a [`vessel`] self-destruct.
pub(crate) fn destroy(beneficiary: Address) -> Bytes {
    words(&[beneficiary.into_word().into()])
}

/// Emits a log with 0 to 4 topics. Call data: their number, four topics, then the data of the log.
pub(crate) fn logger() -> Bytes {
    let mut asm =
        Asm::new().push(160).ops(&[op::CALLDATASIZE, op::SUB]).push(160).push(0).ops(&[op::CALLDATACOPY]);
    let branches = ["log0", "log1", "log2", "log3", "log4"];
    for (topics, branch) in branches.into_iter().enumerate().skip(1) {
        asm = asm.push(0).ops(&[op::CALLDATALOAD]).push(topics as u64).ops(&[op::EQ]).jump_if(branch);
    }
    for (topics, branch) in branches.into_iter().enumerate() {
        asm = asm.label(branch);
        for topic in (1..=topics as u64).rev() {
            asm = asm.push(32 * topic).ops(&[op::CALLDATALOAD]);
        }
        asm =
            asm.push(160).ops(&[op::CALLDATASIZE, op::SUB]).push(0).ops(&[op::LOG0 + topics as u8, op::STOP]);
    }
    asm.finish()
}

/// Call data for the [`logger`].
pub fn log(topics: &[B256], data: &[u8]) -> Bytes {
    let mut head = [U256::ZERO; 5];
    head[0] = U256::from(topics.len());
    for (place, topic) in head[1..].iter_mut().zip(topics) {
        *place = (*topic).into();
    }
    [&words(&head)[..], data].concat().into()
}

/// Makes vessels by `CREATE2`, with the first word of call data as salt, or by `CREATE`. If the second word is not
/// zero, the vessel self-destructs in favour of the caller in the same transaction.
pub fn factory(create2: bool) -> Bytes {
    let init = vessel_init();
    let length = init.len() as u64;
    let copied = Asm::new().push(length).push_offset("init").push(0).ops(&[op::CODECOPY]);
    let created = if create2 {
        copied.push(0).ops(&[op::CALLDATALOAD]).push(length).push(0).ops(&[op::CALLVALUE, op::CREATE2])
    } else {
        copied.push(length).push(0).ops(&[op::CALLVALUE, op::CREATE])
    };
    created
        .push(32)
        .ops(&[op::CALLDATALOAD, op::ISZERO])
        .jump_if("done")
        .ops(&[op::CALLER])
        .push(0)
        .ops(&[op::MSTORE])
        // Output, input of 32 bytes, no value, the vessel from below, and some gas.
        .push(0)
        .push(0)
        .push(32)
        .push(0)
        .push(0)
        .ops(&[op::DUP6])
        .push(50_000)
        .ops(&[op::CALL, op::POP])
        .label("done")
        .ops(&[op::STOP])
        .data("init", &init)
        .finish()
}

/// Call data for a [`factory`].
pub(crate) fn make_vessel(salt: B256, destroy_at_once: bool) -> Bytes {
    words(&[salt.into(), U256::from(destroy_at_once)])
}

/// Where a `CREATE2` factory puts the vessel of a salt.
pub(crate) fn vessel_address(factory: Address, salt: B256) -> Address {
    factory.create2(salt, keccak256(vessel_init()))
}

/// Calls the address in the first word with the call data after the second word and its own value, swallows whatever
/// happens, writes the outcome to slot 0, and fails if the second word is not zero.
pub(crate) fn relay() -> Bytes {
    Asm::new()
        .push(64)
        .ops(&[op::CALLDATASIZE, op::SUB])
        .push(64)
        .push(0)
        .ops(&[op::CALLDATACOPY])
        .push(0)
        .push(0)
        .push(64)
        .ops(&[op::CALLDATASIZE, op::SUB])
        .push(0)
        .ops(&[op::CALLVALUE])
        .push(0)
        .ops(&[op::CALLDATALOAD])
        .push(100_000)
        .ops(&[op::CALL])
        .push(0)
        .ops(&[op::SSTORE])
        .push(32)
        .ops(&[op::CALLDATALOAD])
        .jump_if("fail")
        .ops(&[op::STOP])
        .label("fail")
        .ops(&[op::INVALID])
        .finish()
}

/// Call data for the [`relay`].
pub(crate) fn relayed(target: Address, fail: bool, data: &[u8]) -> Bytes {
    [&words(&[target.into_word().into(), U256::from(fail)])[..], data].concat().into()
}

/// Writes to slot 0, emits a log, and then reverts with whatever data it was called with.
pub(crate) fn reverter() -> Bytes {
    Asm::new()
        .push(1)
        .push(0)
        .ops(&[op::SSTORE])
        .push(0)
        .push(0)
        .ops(&[op::LOG0, op::CALLDATASIZE])
        .push(0)
        .push(0)
        .ops(&[op::CALLDATACOPY, op::CALLDATASIZE])
        .push(0)
        .ops(&[op::REVERT])
        .finish()
}

/// Revert data as Solidity's `revert("…")` gives it.
pub(crate) fn revert_reason(reason: &str) -> Bytes {
    let mut data = call_data("Error(string)", &[U256::from(32), U256::from(reason.len())]).to_vec();
    data.extend_from_slice(reason.as_bytes());
    data.resize(4 + 64 + reason.len().next_multiple_of(32), 0);
    data.into()
}

/// Runs until its gas is gone.
pub(crate) fn burner() -> Bytes {
    Asm::new().label("again").jump("again").finish()
}

/// The event of [`token`].
pub(crate) fn transfer_topic() -> B256 {
    keccak256("Transfer(address,address,uint256)")
}

/// A token with `balanceOf(address)` and `transfer(address,uint256)`, whose balances are Solidity's mapping at slot 0.
/// Balances wrap around, so everybody can always send.
pub fn token() -> Bytes {
    Asm::new()
        .push(0)
        .ops(&[op::CALLDATALOAD])
        .push_word(U256::from(1).checked_shl(224).expect("a word has 256 bits").into())
        .ops(&[op::SWAP1, op::DIV])
        .ops(&[op::DUP1])
        .push(selector_number("balanceOf(address)"))
        .ops(&[op::EQ])
        .jump_if("balance")
        .push(selector_number("transfer(address,uint256)"))
        .ops(&[op::EQ])
        .jump_if("transfer")
        .push(0)
        .push(0)
        .ops(&[op::REVERT])
        .label("balance")
        .push(4)
        .ops(&[op::CALLDATALOAD])
        .push(0)
        .ops(&[op::MSTORE])
        .push(64)
        .push(0)
        .ops(&[op::KECCAK256, op::SLOAD])
        .push(0)
        .ops(&[op::MSTORE])
        .push(32)
        .push(0)
        .ops(&[op::RETURN])
        .label("transfer")
        .ops(&token_transfer().finish())
        .finish()
}

/// Takes from the caller, gives to the first argument, tells the world, and returns true.
fn token_transfer() -> Asm {
    let amount = |asm: Asm| asm.push(36).ops(&[op::CALLDATALOAD]);
    let to = |asm: Asm| asm.push(4).ops(&[op::CALLDATALOAD]);
    let slot = |asm: Asm| asm.push(0).ops(&[op::MSTORE]).push(64).push(0).ops(&[op::KECCAK256]);
    let taken = slot(amount(Asm::new()).ops(&[op::CALLER]));
    // Stack: amount, slot. The balance less the amount goes back to the slot.
    let taken = taken.ops(&[op::SWAP1, op::DUP2, op::SLOAD, op::SUB, op::SWAP1, op::SSTORE]);
    let given = slot(to(amount(taken)));
    let given = given.ops(&[op::SWAP1, op::DUP2, op::SLOAD, op::ADD, op::SWAP1, op::SSTORE]);
    let told = amount(given).push(0).ops(&[op::MSTORE]);
    let told = to(told).ops(&[op::CALLER]).push_word(transfer_topic());
    let told = told.push(32).push(0).ops(&[op::LOG0 + 3]);
    told.push(1).push(0).ops(&[op::MSTORE]).push(32).push(0).ops(&[op::RETURN])
}

fn selector_number(signature: &str) -> u64 {
    u64::from(u32::from_be_bytes(selector(signature)))
}

/// The slot of somebody's balance in a [`token`].
pub fn token_balance_slot(holder: Address) -> U256 {
    keccak256([holder.into_word().as_slice(), &[0; 32]].concat()).into()
}

/// Emits as many logs as the first word of call data says. The topics of log `g`, counted over the contract's life:
/// [`counter_topic`], `g % rare`, `g % common`, `g`.
pub fn counter(rare: u64, common: u64) -> Bytes {
    Asm::new()
        .push(0)
        .ops(&[op::SLOAD, op::DUP1])
        .push(0)
        .ops(&[op::CALLDATALOAD, op::ADD, op::SWAP1])
        // Stack: where to stop, where we are.
        .label("next")
        .ops(&[op::DUP2, op::DUP2, op::LT, op::ISZERO])
        .jump_if("done")
        .ops(&[op::DUP1])
        .push(common)
        .ops(&[op::DUP2, op::MOD])
        .push(rare)
        .ops(&[op::DUP3, op::MOD])
        .push_word(counter_topic())
        .push(32)
        .push(0)
        .ops(&[op::LOG0 + 4])
        .push(1)
        .ops(&[op::ADD])
        .jump("next")
        .label("done")
        .push(0)
        .ops(&[op::SSTORE, op::STOP])
        .finish()
}

/// The event of [`counter`].
pub(crate) fn counter_topic() -> B256 {
    keccak256("Counted(uint256,uint256,uint256)")
}
