//! The actions of the transactions of a random chain.

use super::{BURNER, Era, FACTORY, Generator, LOGGER, OLD_FACTORY, RELAY, REVERTER, envelope::TestAction};
use crate::{
    asm::{Asm, op},
    contracts,
};
use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use rand::{Rng, seq::IndexedRandom};

/// Few, so that the same addresses are made again and again.
const SALTS: u8 = 3;

impl Generator {
    /// Adds one thing that happens to the draft, mostly by one transaction.
    pub(super) fn act(&mut self) {
        match self.rng.random_range(0..22) {
            0..=2 => self.transfer(),
            3 => self.transfer_to_self(),
            4 => self.touch_empty(),
            5 => self.deploy(),
            6 => self.deploy_badly(),
            7..=9 => self.write_slots(),
            10..=12 => self.emit_log(),
            13 => self.make_vessel(),
            14 => self.destroy_vessel(),
            15..=17 => self.destroy_and_make_again(),
            18 => self.revert(),
            19 => self.run_out_of_gas(),
            20 => self.relay(),
            _ => self.call_authority(),
        }
    }

    fn transfer(&mut self) {
        let to = self.any_address();
        let value = self.rng.random_range(0..1_000_000_000);
        self.send(TestAction::call(to, Bytes::new()).with_value(value));
    }

    fn transfer_to_self(&mut self) {
        let sender = self.senders.choose(&mut self.rng).expect("there are senders").clone();
        let value = self.rng.random_range(0..1000);
        self.send_from(&sender, TestAction::call(sender.address(), Bytes::new()).with_value(value));
    }

    /// Before EIP-161 this leaves an empty account; after it, it removes one that was left.
    fn touch_empty(&mut self) {
        let known = if self.rng.random_bool(0.5) { self.empty.choose(&mut self.rng).copied() } else { None };
        let to = known.unwrap_or_else(|| Address::from_word(B256::new(self.rng.random())));
        if known.is_none() {
            self.empty.push(to);
        }
        if self.rng.random_bool(0.5) {
            self.send(TestAction::call(to, Bytes::new()));
        } else {
            self.send(TestAction::call(RELAY, contracts::relayed(to, false, &[])));
        }
    }

    fn deploy(&mut self) {
        let value = self.rng.random_range(0..1000);
        self.send(TestAction::create(contracts::vessel_init()).with_value(value));
    }

    /// Creations that fail, that give nothing, and that cannot pay for their code.
    fn deploy_badly(&mut self) {
        let message = match self.rng.random_range(0..4) {
            0 => TestAction::create(Asm::new().ops(&[op::INVALID]).finish()),
            1 => TestAction::create(Bytes::new()),
            2 => TestAction::create(contracts::reverter()),
            // Enough to run the constructor, too little for 200 gas per byte of code.
            _ => TestAction::create(contracts::vessel_init()).with_gas(110_000),
        };
        self.send(message);
    }

    fn any_vessel(&mut self) -> Address {
        *self.vessels.choose(&mut self.rng).expect("one is there from the start")
    }

    /// Small slots and values, so that writes meet, change nothing, and clear.
    fn pairs(&mut self) -> Vec<(U256, U256)> {
        (0..self.rng.random_range(1..5))
            .map(|_| {
                let slot = U256::from(self.rng.random_range(0..6));
                let slot = if self.rng.random_bool(0.1) { !slot } else { slot };
                let large = self.rng.random_bool(0.2);
                let value = U256::from(self.rng.random_range(0..4));
                (slot, if large { keccak256(value.to_be_bytes::<32>()).into() } else { value })
            })
            .collect()
    }

    fn write_slots(&mut self) {
        let vessel = self.any_vessel();
        let pairs = self.pairs();
        self.send(TestAction::call(vessel, contracts::write(&pairs)));
    }

    fn emit_log(&mut self) {
        let data = self.log_data();
        self.send(TestAction::call(LOGGER, data));
    }

    fn log_data(&mut self) -> Bytes {
        let count = self.rng.random_range(0..=4);
        let topics: Vec<B256> =
            (0..count).map(|_| B256::with_last_byte(self.rng.random_range(0..5))).collect();
        let data: Vec<u8> = (0..self.rng.random_range(0..70)).map(|_| self.rng.random()).collect();
        contracts::log(&topics, &data)
    }

    fn any_salt(&mut self) -> B256 {
        B256::with_last_byte(self.rng.random_range(0..SALTS))
    }

    /// Sometimes one that self-destructs in the same transaction, which is all that Cancun left of it.
    fn make_vessel(&mut self) {
        let salt = self.any_salt();
        let destroy_at_once = self.rng.random_bool(0.4);
        let factory = if self.rng.random_bool(0.7) { FACTORY } else { OLD_FACTORY };
        let value = self.rng.random_range(0..100);
        self.send(TestAction::call(factory, contracts::make_vessel(salt, destroy_at_once)).with_value(value));
    }

    fn destroy_vessel(&mut self) {
        let salted = contracts::vessel_address(FACTORY, self.any_salt());
        let vessel = if self.rng.random_bool(0.5) { salted } else { self.any_vessel() };
        let beneficiary = if self.rng.random_bool(0.2) { vessel } else { self.any_address() };
        self.send(TestAction::call(vessel, contracts::destroy(beneficiary)));
    }

    /// Makes, destroys, makes and fills a vessel at the same address, in one block.
    fn destroy_and_make_again(&mut self) {
        if self.draft.era < Era::Constantinople {
            return self.destroy_vessel();
        }
        let salt = self.any_salt();
        let vessel = contracts::vessel_address(FACTORY, salt);
        let make = TestAction::call(FACTORY, contracts::make_vessel(salt, false));
        let beneficiary = self.any_address();
        let pairs = self.pairs();
        self.send(make.clone());
        self.send(TestAction::call(vessel, contracts::write(&pairs)));
        self.send(TestAction::call(vessel, contracts::destroy(beneficiary)));
        if self.rng.random_bool(0.7) {
            self.send(make.with_value(5));
            let pairs = self.pairs();
            self.send(TestAction::call(vessel, contracts::write(&pairs)));
        }
    }

    fn revert(&mut self) {
        let data = match self.rng.random_range(0..3) {
            0 => Bytes::new(),
            1 => contracts::revert_reason("not today"),
            _ => Bytes::from_static(&[0xde, 0xad, 0xbe, 0xef]),
        };
        self.send(TestAction::call(REVERTER, data));
    }

    fn run_out_of_gas(&mut self) {
        self.send(TestAction::call(BURNER, Bytes::new()).with_gas(90_000));
    }

    /// Calls whose effects stay, and calls whose effects are undone with their caller.
    fn relay(&mut self) {
        let fail = self.rng.random_bool(0.3);
        let (target, data) = match self.rng.random_range(0..4) {
            0 => (LOGGER, self.log_data()),
            1 => (REVERTER, contracts::revert_reason("swallowed")),
            2 => (self.any_vessel(), contracts::destroy(RELAY)),
            _ => (self.any_vessel(), contracts::write(&self.pairs())),
        };
        self.send(TestAction::call(RELAY, contracts::relayed(target, fail, &data)));
    }

    /// Calls an account that may have lent itself to a contract (EIP-7702).
    fn call_authority(&mut self) {
        let authority = self.authorities.choose(&mut self.rng).expect("there are some").address();
        let data = if self.rng.random_bool(0.5) { contracts::write(&self.pairs()) } else { self.log_data() };
        self.send(TestAction::call(authority, data));
    }
}
