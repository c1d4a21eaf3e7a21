//! Blockchain tests in the JSON format of Ethereum's official suites (`ethereum/tests` and
//! `execution-spec-tests`): a genesis, blocks that a chain must accept or refuse, and the state after them.
//!
//! A test runs against a real archive. An archive holds one chain without reorganisations, so a block beside the
//! chain is imported into an archive of its own, after the blocks that it builds on.

mod branches; // the blocks of a test, and archives that hold some of them
mod fixture; // JSON → a test
mod folder; // all tests below a folder
mod network; // the name of a network → its forks
mod selection; // tests of our own

pub use fixture::{BlockchainTest, ExpectedAccount, TestBlock};
pub use folder::{Summary, official_tests, run_folder};
pub use selection::selection;

use alloy_primitives::U256;
use archive::StateSource;
use branches::Branches;

/// The outcome of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Every block was accepted or refused as it must be, and the state after them is right.
    Passed,
    /// The archive refuses such chains as a whole, with this reason.
    Unsupported(String),
    /// A block was accepted whose only fault is its seal or its difficulty, which imports do not check.
    Unchecked(String),
    /// Something is not as it must be.
    Failed(String),
}

/// Words in the name of an exception that say that a seal or the formula of the difficulty is at fault.
const UNCHECKED_EXCEPTIONS: [&str; 6] = ["DIFFICULTY", "POW", "SEAL", "MIXHASH", "INVALIDNONCE", "FUTURE"];

/// Words in the names of tests with such a fault that are too old to name exceptions.
const UNCHECKED_TESTS: [&str; 3] = ["wrongDifficulty", "wrongMixHash", "wrongNonce"];

/// Runs one test.
pub fn run(test: &BlockchainTest) -> Verdict {
    if test.has_strange_genesis() {
        return Verdict::Unsupported("block 0 has something that no genesis file can state".into());
    }
    let config = match network::chain_config(&test.network, &test.config) {
        Ok(config) => config,
        Err(reason) => return Verdict::Unsupported(reason),
    };
    let mut branches = match Branches::new(test.genesis(config)) {
        Ok(branches) => branches,
        Err(branches::GenesisRefused(reason)) => return Verdict::Failed(format!("genesis: {reason}")),
    };
    if branches.genesis_hash() != test.genesis_hash {
        let (expected, found) = (test.genesis_hash, branches.genesis_hash());
        return Verdict::Failed(format!("genesis hash: expected {expected}, found {found}"));
    }
    let mut unchecked = None;
    for (index, block) in test.blocks.iter().enumerate() {
        match (branches.import(&block.rlp), &block.refused_for) {
            (Ok(_), None) | (Err(_), Some(_)) => {}
            (Err(reason), None) => return Verdict::Failed(format!("blocks[{index}] was refused: {reason}")),
            (Ok(_), Some(exception)) if is_unchecked(test, exception) => {
                unchecked = Some(format!("blocks[{index}]: {exception}"));
            }
            (Ok(_), Some(exception)) => {
                return Verdict::Failed(format!("blocks[{index}] was accepted in spite of {exception:?}"));
            }
        }
    }
    match (check_end(test, &mut branches), unchecked) {
        (Err(reason), _) => Verdict::Failed(reason),
        (Ok(()), Some(what)) => Verdict::Unchecked(what),
        (Ok(()), None) => Verdict::Passed,
    }
}

fn is_unchecked(test: &BlockchainTest, exception: &str) -> bool {
    let exception = exception.to_uppercase();
    UNCHECKED_EXCEPTIONS.iter().any(|word| exception.contains(word))
        || UNCHECKED_TESTS.contains(&test.name.as_str())
}

/// Checks that the last block is there, and that the state after it is right.
fn check_end(test: &BlockchainTest, branches: &mut Branches) -> Result<(), String> {
    let archive = branches.archive_at(test.last_block_hash)?;
    let snapshot = archive.snapshot();
    let text = |error: archive::StoreError| error.to_string();
    let number = snapshot.number_of(test.last_block_hash).map_err(text)?;
    let number = number.ok_or("the last block is not in the archive")?;
    if let Some(expected) = test.post_state_root {
        let found = snapshot.header(number).map_err(text)?.map(|header| header.state_root);
        if found != Some(expected) {
            return Err(format!("state root after the last block: expected {expected}, found {found:?}"));
        }
    }
    let state = snapshot.state_at(number);
    for (address, expected) in &test.post_state {
        let account = state.account(*address).map_err(text)?.ok_or(format!("{address} does not exist"))?;
        let code = state.code_of(*address).map_err(text)?;
        if (account.nonce, account.balance, &code) != (expected.nonce, expected.balance, &expected.code) {
            return Err(format!("{address}: expected {expected:?}, found {account:?} with code {code}"));
        }
        for (slot, expected) in &expected.storage {
            let found = state.storage(*address, *slot).map_err(text)?;
            if found != *expected {
                let slot = *slot;
                return Err(format!("{address}, slot {slot}: expected {expected}, found {found}"));
            }
        }
    }
    Ok(())
}

/// A number as the fixtures write it: hexadecimal, and `0x` for zero.
fn quantity(text: &str) -> Result<U256, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    U256::from_str_radix(digits, 16).map_err(|error| format!("{text:?} is no number: {error}"))
}
