//! The contracts of the demo chain: their addresses and their interfaces.
//!
//! Their sources and artefacts are in `contracts/` at the root of the repository; `contracts/build` makes the
//! artefacts from the sources.

use super::accounts::{ALICE, ERIN};
use alloy_primitives::{Address, Bytes, U256};
use alloy_sol_types::SolValue as _;

macro_rules! artifact {
    ($name:literal) => {
        include_str!(concat!("../../../contracts/artifacts/", $name, ".json"))
    };
}

/// A contract that Erin created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contract {
    /// Its name in the documents.
    pub name: &'static str,
    /// Its purpose.
    pub about: &'static str,
    /// The number of contracts that Erin had created before.
    nonce: u64,
    artifact: &'static str,
}

/// A counter from the first days.
pub(crate) const EARLY: Contract =
    Contract { name: "Early", about: "a counter from Frontier on", nonce: 0, artifact: artifact!("Early") };

/// Destroyed when destruction still removed a contract from its first to its last byte.
pub(crate) const DOOMED_EARLY: Contract = Contract {
    name: "Doomed (1)",
    about: "created and self-destructed in Tangerine Whistle: gone",
    nonce: 1,
    artifact: artifact!("Doomed"),
};

/// Storage, failures and events.
pub const TOUR: Contract =
    Contract { name: "Tour", about: "storage, failures and events", nonce: 2, artifact: artifact!("Tour") };

/// An ERC-20 token.
pub const TOKEN: Contract =
    Contract { name: "Token", about: "an ERC-20 token", nonce: 3, artifact: artifact!("Token") };

/// Fills blocks.
pub const LOAD: Contract = Contract {
    name: "Load",
    about: "uses gas, so that blocks are full and base fees move",
    nonce: 4,
    artifact: artifact!("Load"),
};

/// Created in London and destroyed after the merge.
pub(crate) const DOOMED: Contract = Contract {
    name: "Doomed (2)",
    about: "created in London, self-destructed in Paris: gone",
    nonce: 5,
    artifact: artifact!("Doomed"),
};

/// Destroyed when destruction no longer removes a contract (EIP-6780).
pub(crate) const DOOMED_LATE: Contract = Contract {
    name: "Doomed (3)",
    about: "created in Shanghai, self-destructed in Cancun: only its ether went (EIP-6780)",
    nonce: 6,
    artifact: artifact!("Doomed"),
};

/// Returns the properties of the block that it runs in.
pub const CLOCK: Contract = Contract {
    name: "Clock",
    about: "what a contract sees of the block that it runs in",
    nonce: 7,
    artifact: artifact!("Clock"),
};

/// The contract that Dave delegates to.
pub(crate) const WALLET: Contract = Contract {
    name: "Wallet",
    about: "several calls in one transaction; Dave delegates to it",
    nonce: 8,
    artifact: artifact!("Wallet"),
};

/// Emits the many logs.
pub const CHATTER: Contract = Contract {
    name: "Chatter",
    about: "more logs than one query may return",
    nonce: 9,
    artifact: artifact!("Chatter"),
};

/// Created while the chain was recorded as a layer 2 would.
pub(crate) const DOOMED_RAW: Contract = Contract {
    name: "Doomed (4)",
    about: "created in a block with raw records, never destroyed",
    nonce: 10,
    artifact: artifact!("Doomed"),
};

/// All contracts, in the order of their creation.
#[cfg(test)]
pub(crate) const CONTRACTS: [Contract; 11] =
    [EARLY, DOOMED_EARLY, TOUR, TOKEN, LOAD, DOOMED, DOOMED_LATE, CLOCK, WALLET, CHATTER, DOOMED_RAW];

/// The supply of the token, in its smallest unit: a million tokens. All of it was Alice's at first.
pub(crate) const TOKEN_SUPPLY: U256 = U256::from_limbs([0x1bce_cced_a100_0000, 0xd3c2, 0, 0]);

impl Contract {
    /// Its address.
    pub fn address(&self) -> Address {
        ERIN.address.create(self.nonce)
    }

    /// Its ABI, compiler and bytecode, as JSON.
    #[cfg(test)]
    pub(crate) fn artifact(&self) -> &'static str {
        self.artifact
    }

    /// The data of the creating transaction: the bytecode, and the arguments of the constructor.
    pub(super) fn init_code(&self) -> Bytes {
        let code = bytecode(self.artifact);
        if *self != TOKEN {
            return code;
        }
        let arguments = (ALICE.address, TOKEN_SUPPLY).abi_encode_params();
        [&code[..], &arguments].concat().into()
    }
}

/// A contract whose creation fails.
pub(super) fn unborn() -> Bytes {
    bytecode(artifact!("Unborn"))
}

fn bytecode(artifact: &str) -> Bytes {
    let artifact: serde_json::Value =
        serde_json::from_str(artifact).expect("contracts/build writes artefacts as JSON");
    let code = artifact["bytecode"].as_str().and_then(|code| code.parse().ok());
    code.expect("contracts/build puts hex bytecode into every artefact")
}

/// The interfaces of the contracts. A test compares them with the artefacts.
pub mod abi {
    #![allow(missing_docs, reason = "the sources in contracts/ say what everything does")]

    alloy_sol_types::sol! {
        #[derive(Debug)]
        interface Early {
            event Counted(address indexed by, uint256 count);
            function add() external;
            function fail() external;
        }

        #[derive(Debug)]
        interface Doomed {
            function end(address heir) external;
        }

        #[derive(Debug)]
        interface Tour {
            error NotEnough(uint256 wanted, uint256 available);
            event One(uint256 value);
            event Two(address indexed by, uint256 value);
            event Three(address indexed by, uint256 indexed count, uint256 value);
            event Four(address indexed by, uint256 indexed count, uint256 indexed value, string text);
            function bump() external returns (uint256);
            function announce(uint256 value) external;
            function failWithReason() external;
            function failWithoutReason() external;
            function failWithError(uint256 wanted) external view;
            function failWithAssert() external view;
            function failWithOverflow() external view returns (uint256);
            function failWithDivision(uint256 divisor) external view returns (uint256);
            function failWithIndex(uint256 index) external pure returns (uint256);
            function failWithInvalid() external pure;
            function spin() external view returns (uint256);
        }

        #[derive(Debug)]
        interface Token {
            event Transfer(address indexed from, address indexed to, uint256 value);
            event Approval(address indexed owner, address indexed spender, uint256 value);
            function balanceOf(address owner) external view returns (uint256);
            function transfer(address to, uint256 value) external returns (bool);
            function approve(address spender, uint256 value) external returns (bool);
            function transferFrom(address from, address to, uint256 value) external returns (bool);
        }

        #[derive(Debug)]
        interface Load {
            function consume(uint256 memoryBytes) external pure returns (uint256);
        }

        #[derive(Debug)]
        interface Clock {
            function look() external;
        }

        #[derive(Debug)]
        interface Wallet {
            struct Call {
                address to;
                uint256 value;
                bytes data;
            }
            event Executed(address indexed owner, uint256 calls);
            function execute(Call[] calldata calls) external payable;
            function ping() external;
        }

        #[derive(Debug)]
        interface Chatter {
            event Said(uint256 indexed number, address indexed by, uint256 inBlock);
            function say(uint256 times) external;
        }
    }
}
