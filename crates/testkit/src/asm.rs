//! A tiny assembler: enough of the EVM's language for contracts that are read here and nowhere else.
//!
//! Everything it emits runs on Frontier, unless an opcode itself is younger.

use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use std::collections::BTreeMap;

/// The opcodes in use, by their names in the yellow paper.
#[allow(missing_docs, reason = "the names are the documentation")]
pub mod op {
    pub const STOP: u8 = 0x00;
    pub const ADD: u8 = 0x01;
    pub const SUB: u8 = 0x03;
    pub(crate) const DIV: u8 = 0x04;
    pub(crate) const MOD: u8 = 0x06;
    pub const LT: u8 = 0x10;
    pub const EQ: u8 = 0x14;
    pub(crate) const ISZERO: u8 = 0x15;
    pub const KECCAK256: u8 = 0x20;
    pub const CALLER: u8 = 0x33;
    pub const CALLVALUE: u8 = 0x34;
    pub const CALLDATALOAD: u8 = 0x35;
    pub const CALLDATASIZE: u8 = 0x36;
    pub const CALLDATACOPY: u8 = 0x37;
    pub const CODECOPY: u8 = 0x39;
    pub const BLOCKHASH: u8 = 0x40;
    pub const NUMBER: u8 = 0x43;
    pub const POP: u8 = 0x50;
    pub const MSTORE: u8 = 0x52;
    pub const SLOAD: u8 = 0x54;
    pub const SSTORE: u8 = 0x55;
    pub const JUMP: u8 = 0x56;
    pub const JUMPI: u8 = 0x57;
    pub const JUMPDEST: u8 = 0x5b;
    pub(crate) const PUSH1: u8 = 0x60;
    pub const PUSH2: u8 = 0x61;
    pub const DUP1: u8 = 0x80;
    pub(crate) const DUP2: u8 = 0x81;
    pub(crate) const DUP3: u8 = 0x82;
    pub(crate) const DUP6: u8 = 0x85;
    pub const SWAP1: u8 = 0x90;
    pub const LOG0: u8 = 0xa0;
    pub const CREATE: u8 = 0xf0;
    pub const CALL: u8 = 0xf1;
    pub const RETURN: u8 = 0xf3;
    pub(crate) const CREATE2: u8 = 0xf5;
    pub const REVERT: u8 = 0xfd;
    pub const INVALID: u8 = 0xfe;
    pub(crate) const SELFDESTRUCT: u8 = 0xff;
}

/// Code that is being written.
#[derive(Debug, Clone, Default)]
pub struct Asm {
    code: Vec<u8>,
    labels: BTreeMap<&'static str, usize>,
    references: Vec<(usize, &'static str)>,
}

impl Asm {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends opcodes.
    pub fn ops(mut self, ops: &[u8]) -> Self {
        self.code.extend_from_slice(ops);
        self
    }

    /// Pushes a number, in as few bytes as it takes.
    pub fn push(mut self, value: u64) -> Self {
        let bytes = value.to_be_bytes();
        let zeros = (value.leading_zeros() / 8).min(7) as usize;
        self.push_bytes(&bytes[zeros..]);
        self
    }

    /// Pushes 32 bytes.
    pub(crate) fn push_word(mut self, word: B256) -> Self {
        self.push_bytes(word.as_slice());
        self
    }

    /// Pushes an address.
    pub(crate) fn push_address(mut self, address: Address) -> Self {
        self.push_bytes(address.as_slice());
        self
    }

    fn push_bytes(&mut self, bytes: &[u8]) {
        let length = u8::try_from(bytes.len()).expect("a push has at most 32 bytes");
        self.code.push(op::PUSH1 + length - 1);
        self.code.extend_from_slice(bytes);
    }

    /// A place to jump to.
    pub fn label(mut self, name: &'static str) -> Self {
        self.labels.insert(name, self.code.len());
        self.ops(&[op::JUMPDEST])
    }

    /// Jumps there.
    pub fn jump(self, name: &'static str) -> Self {
        self.push_offset(name).ops(&[op::JUMP])
    }

    /// Jumps there if the top of the stack is not zero.
    pub(crate) fn jump_if(self, name: &'static str) -> Self {
        self.push_offset(name).ops(&[op::JUMPI])
    }

    /// Pushes where in the code something begins: a label, or data.
    pub(crate) fn push_offset(mut self, name: &'static str) -> Self {
        self.references.push((self.code.len() + 1, name));
        self.ops(&[op::PUSH2, 0, 0])
    }

    /// Bytes that are not code, to be copied from.
    pub fn data(mut self, name: &'static str, bytes: &[u8]) -> Self {
        self.labels.insert(name, self.code.len());
        self.ops(bytes)
    }

    /// The code, with every reference filled in.
    pub fn finish(mut self) -> Bytes {
        for (at, name) in &self.references {
            let offset = *self.labels.get(name).expect("a label that exists");
            let offset = u16::try_from(offset).expect("code is shorter than 64 KiB");
            self.code[*at..at + 2].copy_from_slice(&offset.to_be_bytes());
        }
        self.code.into()
    }
}

/// Code that runs `setup` and then becomes `runtime`: what a creation carries.
pub fn init_code(setup: Asm, runtime: &[u8]) -> Bytes {
    let length = runtime.len() as u64;
    setup
        .push(length)
        .push_offset("runtime")
        .push(0)
        .ops(&[op::CODECOPY])
        .push(length)
        .push(0)
        .ops(&[op::RETURN])
        .data("runtime", runtime)
        .finish()
}

/// Call data: words one after another.
pub fn words(values: &[U256]) -> Bytes {
    values.iter().flat_map(|value| value.to_be_bytes::<32>()).collect::<Vec<u8>>().into()
}

/// The first four bytes of a function's signature hash.
pub fn selector(signature: &str) -> [u8; 4] {
    let hash = keccak256(signature);
    [hash[0], hash[1], hash[2], hash[3]]
}

/// Call data as Solidity has it: a selector and words.
pub fn call_data(signature: &str, values: &[U256]) -> Bytes {
    [&selector(signature)[..], &words(values)].concat().into()
}
