//! Error patterns and their meanings, one row each. The first row that matches counts.
//!
//! Reverts come first: the text after "execution reverted:" is a contract's own, and may contain any of the patterns below. Then come
//! patterns of one kind of method, then texts, and last bare codes.

use super::Execution as E;

/// The meaning of a row, without its details.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PatternMeaning {
    Reverted,
    Stopped(E),
    BadParams,
    NoMethod,
    NoBlock,
    NoState,
    RangeTooWide,
    TooManyResults,
    QueryTimeout,
    RateLimited,
    Syncing,
    Unauthorised,
    Internal,
}

/// Methods that a pattern applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MethodKind {
    Any,
    /// Log queries.
    Logs,
    /// Simulations.
    Evm,
}

impl MethodKind {
    fn includes(self, method: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Logs => method == "eth_getLogs",
            Self::Evm => matches!(method, "eth_call" | "eth_estimateGas" | "eth_createAccessList"),
        }
    }
}

/// A pattern matches if the method is of its kind, the code is equal, and all its parts are in the text.
struct ErrorPattern {
    methods: MethodKind,
    code: Option<i64>,
    parts: &'static [&'static str],
    meaning: PatternMeaning,
}

const fn any(parts: &'static [&'static str], meaning: PatternMeaning) -> ErrorPattern {
    ErrorPattern { methods: MethodKind::Any, code: None, parts, meaning }
}

const fn logs(parts: &'static [&'static str], meaning: PatternMeaning) -> ErrorPattern {
    ErrorPattern { methods: MethodKind::Logs, code: None, parts, meaning }
}

const fn evm(parts: &'static [&'static str], meaning: PatternMeaning) -> ErrorPattern {
    ErrorPattern { methods: MethodKind::Evm, code: None, parts, meaning }
}

const fn code(code: i64, parts: &'static [&'static str], meaning: PatternMeaning) -> ErrorPattern {
    ErrorPattern { methods: MethodKind::Any, code: Some(code), parts, meaning }
}

const fn logs_code(code: i64, meaning: PatternMeaning) -> ErrorPattern {
    ErrorPattern { methods: MethodKind::Logs, code: Some(code), parts: &[], meaning }
}

pub(super) fn look_up(code: i64, text: &str, method: &str) -> PatternMeaning {
    let matches = |row: &&ErrorPattern| {
        row.methods.includes(method)
            && row.code.is_none_or(|wanted| wanted == code)
            && row.parts.iter().all(|part| text.contains(part))
    };
    ROWS.iter().find(matches).map_or(PatternMeaning::Internal, |row| row.meaning)
}

#[rustfmt::skip]
static ROWS: &[ErrorPattern] = &[
    // Reverts. Code 3 is geth's, reth's, Erigon's, anvil's and zkSync's; the others have only words.
    evm(&["vm exception while processing transaction: invalid opcode"], PatternMeaning::Stopped(E::InvalidOpcode)), // hardhat, with code 3
    code(3, &[], PatternMeaning::Reverted),
    evm(&["execution reverted"], PatternMeaning::Reverted),                          // geth, Besu, Nethermind, hosted services
    evm(&["vm execution error", "reverted"], PatternMeaning::Reverted),              // Parity, Nethermind: data "Reverted 0x…"
    evm(&["vm execution error", "revert"], PatternMeaning::Reverted),                // Nethermind: data "revert"
    evm(&["vm exception while processing transaction: revert"], PatternMeaning::Reverted), // ganache, hardhat
    evm(&["reverted with reason string"], PatternMeaning::Reverted),                 // hardhat
    evm(&["reverted with custom error"], PatternMeaning::Reverted),                  // hardhat
    evm(&["reverted with panic code"], PatternMeaning::Reverted),                    // hardhat
    evm(&["reverted without a reason"], PatternMeaning::Reverted),                   // hardhat
    evm(&["transaction reverted"], PatternMeaning::Reverted),                        // hardhat, Besu
    evm(&["always failing transaction"], PatternMeaning::Reverted),                  // old geth
    evm(&["execution failed: revert"], PatternMeaning::Reverted),                    // Moonbeam
    evm(&["evm error: revert"], PatternMeaning::Reverted),                           // anvil without data

    // Simulations that stop otherwise, or do not begin.
    evm(&["gas required exceeds allowance"], PatternMeaning::Stopped(E::GasAllowance { most: None })), // geth, anvil, reth
    evm(&["gas required exceeds block gas limit"], PatternMeaning::Stopped(E::GasAllowance { most: None })), // Besu
    evm(&["cannot estimate gas, gas spent exceeded"], PatternMeaning::Stopped(E::GasAllowance { most: None })), // Nethermind
    evm(&["intrinsic gas too low"], PatternMeaning::Stopped(E::IntrinsicGas)),       // geth, reth, Erigon, anvil
    evm(&["intrinsic gas too high", "callgascost"], PatternMeaning::Stopped(E::IntrinsicGas)), // anvil: what the call has is too little
    evm(&["intrinsic gas too high"], PatternMeaning::Stopped(E::GasAboveLimit { most: None })), // reth: above its cap or the block gas limit
    evm(&["intrinsic gas exceeds gas limit"], PatternMeaning::Stopped(E::IntrinsicGas)), // Besu
    evm(&["intrinsic_gas_exceeds"], PatternMeaning::Stopped(E::IntrinsicGas)),       // Besu
    evm(&["requires at least", "gas but got"], PatternMeaning::Stopped(E::IntrinsicGas)), // hardhat
    evm(&["gas limit below intrinsic gas"], PatternMeaning::Stopped(E::IntrinsicGas)), // Nethermind
    evm(&["floor data gas"], PatternMeaning::Stopped(E::IntrinsicGas)),              // geth, since Prague
    evm(&["not enough gas for transaction validation"], PatternMeaning::Stopped(E::OutOfGas)), // zkSync
    evm(&["fee cap less than block base fee"], PatternMeaning::Stopped(E::FeeCapBelowBaseFee)), // Erigon
    evm(&["less than block base fee"], PatternMeaning::Stopped(E::FeeCapBelowBaseFee)), // geth, reth, anvil
    evm(&["lower than block base fee"], PatternMeaning::Stopped(E::FeeCapBelowBaseFee)),
    evm(&["less than the block's base fee"], PatternMeaning::Stopped(E::FeeCapBelowBaseFee)),
    evm(&["less than block's base fee"], PatternMeaning::Stopped(E::FeeCapBelowBaseFee)),
    evm(&["below the current base fee"], PatternMeaning::Stopped(E::FeeCapBelowBaseFee)), // Besu
    evm(&["below current base fee"], PatternMeaning::Stopped(E::FeeCapBelowBaseFee)), // Besu
    evm(&["max fee per gas less than"], PatternMeaning::Stopped(E::FeeCapBelowBaseFee)), // zkSync
    evm(&["miner premium is negative"], PatternMeaning::Stopped(E::FeeCapBelowBaseFee)), // Nethermind
    evm(&["higher than max fee per gas"], PatternMeaning::Stopped(E::TipAboveFeeCap)), // geth
    evm(&["tip higher than fee cap"], PatternMeaning::Stopped(E::TipAboveFeeCap)),   // Erigon
    evm(&["max_priority_fee_per_gas", "greater than", "max_fee_per_gas"], PatternMeaning::Stopped(E::TipAboveFeeCap)), // anvil
    evm(&["priority fee", "greater than max fee"], PatternMeaning::Stopped(E::TipAboveFeeCap)), // reth, zkSync
    evm(&["exceeds max fee per gas"], PatternMeaning::Stopped(E::TipAboveFeeCap)),   // Besu
    evm(&["max priority fee per gas cannot be greater"], PatternMeaning::Stopped(E::TipAboveFeeCap)), // Besu
    evm(&["insufficient funds"], PatternMeaning::Stopped(E::InsufficientFunds)),     // geth, reth, Erigon, anvil
    evm(&["insufficient balance"], PatternMeaning::Stopped(E::InsufficientFunds)),
    evm(&["insufficient sender balance"], PatternMeaning::Stopped(E::InsufficientFunds)), // Nethermind
    evm(&["insufficient max fee per gas for sender balance"], PatternMeaning::Stopped(E::InsufficientFunds)), // Nethermind
    evm(&["upfront cost exceeds account balance"], PatternMeaning::Stopped(E::InsufficientFunds)), // Besu
    evm(&["upfront_cost_exceeds_balance"], PatternMeaning::Stopped(E::InsufficientFunds)), // Besu
    evm(&["exceeds balance"], PatternMeaning::Stopped(E::InsufficientFunds)),
    evm(&["not enough balance"], PatternMeaning::Stopped(E::InsufficientFunds)),     // zkSync
    evm(&["lack of funds"], PatternMeaning::Stopped(E::InsufficientFunds)),          // reth's EVM
    evm(&["lackoffund"], PatternMeaning::Stopped(E::InsufficientFunds)),
    evm(&["nonce too low"], PatternMeaning::Stopped(E::NonceTooLow)),
    evm(&["nonce too high"], PatternMeaning::Stopped(E::NonceTooHigh)),
    evm(&["nonce is too low"], PatternMeaning::Stopped(E::NonceTooLow)),
    evm(&["nonce is too high"], PatternMeaning::Stopped(E::NonceTooHigh)),
    evm(&["wrong transaction nonce"], PatternMeaning::Stopped(E::NonceTooLow)),      // Nethermind
    evm(&["not an eoa"], PatternMeaning::Stopped(E::SenderNotEoa)),                  // reth
    evm(&["sender not an eoa"], PatternMeaning::Stopped(E::SenderNotEoa)),
    evm(&["sender has deployed code"], PatternMeaning::Stopped(E::SenderNotEoa)),    // Nethermind
    evm(&["not an externally owned account"], PatternMeaning::Stopped(E::SenderNotEoa)),
    evm(&["initcode size"], PatternMeaning::Stopped(E::InitcodeSize)),
    evm(&["init code size"], PatternMeaning::Stopped(E::InitcodeSize)),
    evm(&["createinitcodesizelimit"], PatternMeaning::Stopped(E::InitcodeSize)),     // anvil
    evm(&["code size", "exceed"], PatternMeaning::Stopped(E::CodeSize)),
    evm(&["createcontractsizelimit"], PatternMeaning::Stopped(E::CodeSize)),         // anvil
    evm(&["address collision"], PatternMeaning::Stopped(E::AddressCollision)),
    evm(&["createcollision"], PatternMeaning::Stopped(E::AddressCollision)),         // anvil
    evm(&["out of gas"], PatternMeaning::Stopped(E::OutOfGas)),                      // geth, Parity
    evm(&["memoryoog"], PatternMeaning::Stopped(E::OutOfGas)),                       // anvil
    evm(&["outofgas"], PatternMeaning::Stopped(E::OutOfGas)),                        // Nethermind, anvil
    evm(&["out-of-gas"], PatternMeaning::Stopped(E::OutOfGas)),
    evm(&["out_of_gas"], PatternMeaning::Stopped(E::OutOfGas)),
    evm(&["insufficient_gas"], PatternMeaning::Stopped(E::OutOfGas)),                // Besu
    evm(&["ran out of gas"], PatternMeaning::Stopped(E::OutOfGas)),                  // hardhat
    evm(&["out of memory"], PatternMeaning::Stopped(E::OutOfGas)),                   // reth
    evm(&["gas uint64 overflow"], PatternMeaning::Stopped(E::OutOfGas)),
    evm(&["invalid opcode"], PatternMeaning::Stopped(E::InvalidOpcode)),             // geth, reth
    evm(&["invalid_operation"], PatternMeaning::Stopped(E::InvalidOpcode)),          // Besu
    evm(&["bad instruction"], PatternMeaning::Stopped(E::InvalidOpcode)),            // Parity
    evm(&["badinstruction"], PatternMeaning::Stopped(E::InvalidOpcode)),             // Nethermind
    evm(&["invalidfeopcode"], PatternMeaning::Stopped(E::InvalidOpcode)),            // anvil
    evm(&["opcodenotfound"], PatternMeaning::Stopped(E::InvalidOpcode)),             // anvil
    evm(&["notactivated"], PatternMeaning::Stopped(E::InvalidOpcode)),               // anvil
    evm(&["invalid jump"], PatternMeaning::Stopped(E::InvalidJump)),
    evm(&["invalidjump"], PatternMeaning::Stopped(E::InvalidJump)),                  // Nethermind, anvil
    evm(&["bad jump destination"], PatternMeaning::Stopped(E::InvalidJump)),         // Parity
    evm(&["stack underflow"], PatternMeaning::Stopped(E::StackUnderflow)),
    evm(&["stackunderflow"], PatternMeaning::Stopped(E::StackUnderflow)),
    evm(&["stack limit reached"], PatternMeaning::Stopped(E::StackOverflow)),
    evm(&["stackoverflow"], PatternMeaning::Stopped(E::StackOverflow)),
    evm(&["stack overflow"], PatternMeaning::Stopped(E::StackOverflow)),
    evm(&["write protection"], PatternMeaning::Stopped(E::WriteProtection)),
    evm(&["statechangeduringstaticcall"], PatternMeaning::Stopped(E::WriteProtection)), // anvil
    evm(&["staticcallviolation"], PatternMeaning::Stopped(E::WriteProtection)),      // Nethermind
    evm(&["static call violation"], PatternMeaning::Stopped(E::WriteProtection)),
    evm(&["call depth exceeded"], PatternMeaning::Stopped(E::CallDepth)),
    evm(&["calltoodeep"], PatternMeaning::Stopped(E::CallDepth)),                    // anvil
    evm(&["execution aborted (timeout"], PatternMeaning::Stopped(E::Timeout)),       // geth, Erigon, reth
    evm(&["execution timeout"], PatternMeaning::Stopped(E::Timeout)),                // hosted services
    evm(&["evm timeout"], PatternMeaning::Stopped(E::Timeout)),
    evm(&["call was cancelled due to timeout"], PatternMeaning::Stopped(E::Timeout)), // Nethermind
    evm(&["exceeds block gas limit"], PatternMeaning::Stopped(E::GasAboveLimit { most: None })),
    evm(&["exceeds the block's gas limit"], PatternMeaning::Stopped(E::GasAboveLimit { most: None })),
    evm(&["caller gas limit exceeds"], PatternMeaning::Stopped(E::GasAboveLimit { most: None })),   // reth
    evm(&["gas limit is too high"], PatternMeaning::Stopped(E::GasAboveLimit { most: None })),      // zkSync
    evm(&["gas limit cap exceeded"], PatternMeaning::Stopped(E::GasAboveLimit { most: None })), // Besu
    evm(&["block gas limit exceeded"], PatternMeaning::Stopped(E::GasAboveLimit { most: None })), // Nethermind
    evm(&["txgaslimitcapexceeded"], PatternMeaning::Stopped(E::GasAboveLimit { most: None })), // Nethermind
    evm(&["transaction gas limit", "greater than the cap"], PatternMeaning::Stopped(E::GasAboveLimit { most: None })), // hardhat
    evm(&["gas limit is greater than the cap"], PatternMeaning::Stopped(E::GasAboveLimit { most: None })), // reth's EVM
    evm(&["gas limit too high"], PatternMeaning::Stopped(E::GasAboveLimit { most: None })),

    // Log queries: results first, because a text about results often advises a smaller range.
    logs(&["beyond latest executed block"], PatternMeaning::NoBlock),                // Erigon: the range is ahead of what it has executed
    logs(&["block range is in the future"], PatternMeaning::NoBlock),                // Nethermind
    logs(&["> latest ("], PatternMeaning::NoBlock),                                  // Erigon: "begin (N) > latest (M)"
    logs(&[") < begin ("], PatternMeaning::BadParams),                               // Erigon: "end (N) < begin (M)"
    logs(&["invalid block range"], PatternMeaning::BadParams),                       // geth: from above to
    logs(&["beyond current head"], PatternMeaning::NoBlock),                         // geth
    logs(&["query returned more than"], PatternMeaning::TooManyResults),             // Infura, zkSync, Nethermind's data
    logs(&["log response size exceeded"], PatternMeaning::TooManyResults),           // Alchemy
    logs(&["query exceeds max results"], PatternMeaning::TooManyResults),            // reth
    logs(&["exceeds max results"], PatternMeaning::TooManyResults),
    logs(&["exceeds max logs"], PatternMeaning::TooManyResults),
    logs(&["logs matched by query exceeds limit"], PatternMeaning::TooManyResults),  // Arbitrum
    logs(&["too many logs"], PatternMeaning::TooManyResults),
    logs(&["too many results"], PatternMeaning::TooManyResults),
    logs(&["number of logs"], PatternMeaning::TooManyResults),
    logs(&["response size should not greater than"], PatternMeaning::TooManyResults), // Polygon, BSC
    logs(&["response size exceed"], PatternMeaning::TooManyResults),
    logs(&["response is too big"], PatternMeaning::TooManyResults),                  // jsonrpsee: reth, zkSync
    logs(&["response too large"], PatternMeaning::TooManyResults),
    logs(&["backend response too large"], PatternMeaning::TooManyResults),           // proxyd
    logs(&["is bigger than range limit"], PatternMeaning::RangeTooWide),             // Thirdweb, Tenderly
    logs(&["exceeds limit of"], PatternMeaning::RangeTooWide),                       // Infura: "range N exceeds limit of M"
    logs(&["exceeds the limit of"], PatternMeaning::RangeTooWide),                   // Ronin
    logs(&["block range should work"], PatternMeaning::RangeTooWide),                // Alchemy
    logs(&["limited to", "range"], PatternMeaning::RangeTooWide),                    // QuickNode, 1RPC
    logs(&["block range limit"], PatternMeaning::RangeTooWide),                      // Chainstack
    logs(&["range is too"], PatternMeaning::RangeTooWide),                           // Ankr: "block range is too wide"
    logs(&["range too"], PatternMeaning::RangeTooWide),                              // Cloudflare, Base, zkEVM
    logs(&["range exceed"], PatternMeaning::RangeTooWide),
    logs(&["range limit exceeded"], PatternMeaning::RangeTooWide),
    logs(&["maximum block range"], PatternMeaning::RangeTooWide),                    // BSC, Immutable
    logs(&["max block range"], PatternMeaning::RangeTooWide),                        // reth: "query exceeds max block range N"
    logs(&["maximum rpc range"], PatternMeaning::RangeTooWide),                      // Besu: "Requested range exceeds maximum RPC range limit"
    logs(&["blocks distance"], PatternMeaning::RangeTooWide),                        // Cronos, Kava
    logs(&["too many blocks"], PatternMeaning::RangeTooWide),                        // Avalanche
    logs(&["range is larger than"], PatternMeaning::RangeTooWide),
    logs(&["block range"], PatternMeaning::RangeTooWide),
    logs(&["up to a", "block"], PatternMeaning::RangeTooWide),
    logs(&["query timeout exceeded"], PatternMeaning::QueryTimeout),                 // Infura
    logs(&["query timed out"], PatternMeaning::QueryTimeout),
    logs(&["context deadline exceeded"], PatternMeaning::QueryTimeout),
    logs(&["request timed out"], PatternMeaning::QueryTimeout),                      // geth
    logs(&["request timeout"], PatternMeaning::QueryTimeout),                        // zkSync
    logs(&["timed out"], PatternMeaning::QueryTimeout),
    logs(&["timeout"], PatternMeaning::QueryTimeout),

    // Too often.
    code(429, &[], PatternMeaning::RateLimited),                                     // Alchemy and others, in a reply with status 200
    code(-32029, &[], PatternMeaning::RateLimited),
    code(-32007, &["limit"], PatternMeaning::RateLimited),                           // QuickNode: "50/second request limit reached"
    code(-32012, &["limited to"], PatternMeaning::RateLimited),                      // QuickNode: credits
    any(&["rate limit"], PatternMeaning::RateLimited),
    any(&["rate-limit"], PatternMeaning::RateLimited),
    any(&["ratelimit"], PatternMeaning::RateLimited),
    any(&["request rate exceeded"], PatternMeaning::RateLimited),                    // Infura
    any(&["request count exceeded"], PatternMeaning::RateLimited),                   // Infura, per day
    any(&["too many requests"], PatternMeaning::RateLimited),
    any(&["compute units per second"], PatternMeaning::RateLimited),                 // Alchemy
    any(&["request limit reached"], PatternMeaning::RateLimited),                    // QuickNode
    any(&["request limit exceeded"], PatternMeaning::RateLimited),
    any(&["requests per second"], PatternMeaning::RateLimited),
    any(&["exceeded the rps limit"], PatternMeaning::RateLimited),                   // Chainstack
    any(&["requests limited to"], PatternMeaning::RateLimited),
    any(&["capacity exceeded"], PatternMeaning::RateLimited),
    any(&["capacity limit"], PatternMeaning::RateLimited),                           // Alchemy, per month
    any(&["quota"], PatternMeaning::RateLimited),
    any(&["call rate"], PatternMeaning::RateLimited),
    any(&["throttl"], PatternMeaning::RateLimited),
    any(&["over capacity"], PatternMeaning::RateLimited),
    any(&["under too much load"], PatternMeaning::RateLimited),

    // It does not want us.
    code(401, &[], PatternMeaning::Unauthorised),
    code(403, &[], PatternMeaning::Unauthorised),
    any(&["unauthorized"], PatternMeaning::Unauthorised),                            // Ankr, dRPC
    any(&["unauthorised"], PatternMeaning::Unauthorised),
    any(&["must be authenticated"], PatternMeaning::Unauthorised),                   // Alchemy
    any(&["must authenticate"], PatternMeaning::Unauthorised),
    any(&["authentication"], PatternMeaning::Unauthorised),
    any(&["invalid project id"], PatternMeaning::Unauthorised),                      // Infura
    any(&["project id required"], PatternMeaning::Unauthorised),                     // Infura
    any(&["rejected due to project id settings"], PatternMeaning::Unauthorised),     // Infura
    any(&["invalid api key"], PatternMeaning::Unauthorised),
    any(&["invalid token"], PatternMeaning::Unauthorised),
    any(&["api key", "not"], PatternMeaning::Unauthorised),
    any(&["forbidden"], PatternMeaning::Unauthorised),
    any(&["payment required"], PatternMeaning::Unauthorised),
    any(&["free tier"], PatternMeaning::Unauthorised),

    // It does not have the method.
    code(-32602, &["invalid block param"], PatternMeaning::NoMethod),                // Besu: estimates take no block hash
    code(-32700, &["cannot wrap a \"object\""], PatternMeaning::NoMethod),           // Ganache: not with a block hash (EIP-1898)
    code(-32602, &["8 byte hex string"], PatternMeaning::NoMethod),                  // hardhat: not with a block hash as text
    code(-32601, &[], PatternMeaning::NoMethod),
    any(&["does not exist/is not available"], PatternMeaning::NoMethod),             // geth
    any(&["method", "not found"], PatternMeaning::NoMethod),
    any(&["method", "not supported"], PatternMeaning::NoMethod),
    any(&["method", "not available"], PatternMeaning::NoMethod),
    any(&["method", "not allowed"], PatternMeaning::NoMethod),
    any(&["method", "not enabled"], PatternMeaning::NoMethod),                       // Besu
    any(&["method", "not implemented"], PatternMeaning::NoMethod),                   // zkSync
    any(&["method", "disabled"], PatternMeaning::NoMethod),
    any(&["method", "not whitelisted"], PatternMeaning::NoMethod),
    any(&["unsupported method"], PatternMeaning::NoMethod),                          // Alchemy
    any(&["is not included in your current plan"], PatternMeaning::NoMethod),
    any(&["namespace is not enabled"], PatternMeaning::NoMethod),                    // Nethermind
    any(&["argument must be a string"], PatternMeaning::NoMethod),                   // EthereumJS: not with a block hash (EIP-1898)
    any(&["cannot be converted to a bigint"], PatternMeaning::NoMethod),             // EthereumJS: eth_feeHistory with fractions
    code(-32004, &[], PatternMeaning::NoMethod),

    // The state is gone, or was never there.
    any(&["has not been executed yet"], PatternMeaning::NoBlock),                    // reth: newer than what it has executed
    any(&["pending", "is not available"], PatternMeaning::Syncing),                  // geth without a miner
    any(&["missingtrienode"], PatternMeaning::NoState),                              // Nethermind: the exception is in the data
    any(&["state history", "indexed"], PatternMeaning::NoState),                     // geth
    any(&["state histories are not available"], PatternMeaning::NoState),            // geth
    any(&["history has been pruned"], PatternMeaning::NoState),                      // Erigon, hosted BSC
    any(&["history has expired"], PatternMeaning::NoState),                          // reth
    any(&["no state found"], PatternMeaning::NoState),                               // reth
    any(&["insufficient changesets"], PatternMeaning::NoState),                      // reth: proofs
    any(&["change set for", "does not exist"], PatternMeaning::NoState),             // reth
    any(&["neither stored nor reproducible"], PatternMeaning::NoState),              // Nethermind: receipts
    any(&["receipt not available for"], PatternMeaning::NoState),                    // Nethermind: receipts
    any(&["receipts length mismatch"], PatternMeaning::NoState),                     // geth: receipts
    any(&["missing trie node"], PatternMeaning::NoState),                            // geth, Erigon, BSC
    any(&["historical state", "not available"], PatternMeaning::NoState),            // geth with path scheme, anvil's origin
    any(&["historical state"], PatternMeaning::NoState),
    any(&["required historical state unavailable"], PatternMeaning::NoState),        // geth
    any(&["state histories haven't been fully indexed"], PatternMeaning::NoState),   // geth
    any(&["maximum proof window"], PatternMeaning::NoState),                         // reth
    any(&["block must be within"], PatternMeaning::NoState),                         // Erigon
    any(&["root hash mismatch"], PatternMeaning::NoState),                           // Erigon: eth_getProof of an older block
    any(&["state at block", "pruned"], PatternMeaning::NoState),                     // reth
    any(&["state is pruned"], PatternMeaning::NoState),
    any(&["state has been pruned"], PatternMeaning::NoState),
    any(&["pruned history"], PatternMeaning::NoState),                               // geth: "pruned history unavailable"
    any(&["history pruned"], PatternMeaning::NoState),
    any(&["state already pruned"], PatternMeaning::NoState),                         // Besu, Erigon
    any(&["old data not available due to pruning"], PatternMeaning::NoState),        // Erigon
    any(&["data is pruned"], PatternMeaning::NoState),                               // Nethermind
    any(&["is pruned"], PatternMeaning::NoState),                                    // zkSync: "Block with such an ID is pruned"
    any(&["state not available"], PatternMeaning::NoState),
    any(&["state unavailable"], PatternMeaning::NoState),
    any(&["data before", "is not available"], PatternMeaning::NoState),              // Erigon: logs
    any(&["state is not available"], PatternMeaning::NoState),                       // Erigon, geth: "state X is not available"
    any(&["state", "is not available"], PatternMeaning::NoState),
    any(&["no state available"], PatternMeaning::NoState),                           // Nethermind: "No state available for block"
    any(&["incorrect state root"], PatternMeaning::NoState),                         // Nethermind
    any(&["stateroot"], PatternMeaning::NoState),
    any(&["world state unavailable"], PatternMeaning::NoState),                      // Besu
    any(&["world state root does not exist"], PatternMeaning::NoState),
    any(&["no historical rpc"], PatternMeaning::NoState),                            // OP: pre-Bedrock
    any(&["state recreation"], PatternMeaning::NoState),                             // Arbitrum
    any(&["archive", "require"], PatternMeaning::NoState),                           // hosted services: archive requests need a plan
    any(&["archive node"], PatternMeaning::NoState),
    any(&["archival"], PatternMeaning::NoState),
    any(&["failed to load state"], PatternMeaning::NoState),
    any(&["failed to get account"], PatternMeaning::NoState),                        // anvil, when its origin has lost it

    // It is not there yet.
    any(&["still initializing"], PatternMeaning::Syncing),                           // Erigon
    any(&["indexing is not yet complete"], PatternMeaning::Syncing),                 // Erigon
    any(&["not yet in sync"], PatternMeaning::Syncing),                              // Besu: the transaction pool
    any(&["incorrect head block"], PatternMeaning::Syncing),                         // Nethermind without a head
    any(&["still syncing"], PatternMeaning::Syncing),
    any(&["node is syncing"], PatternMeaning::Syncing),
    any(&["is not synced"], PatternMeaning::Syncing),
    any(&["not fully synced"], PatternMeaning::Syncing),
    any(&["sync in progress"], PatternMeaning::Syncing),
    any(&["initial sync"], PatternMeaning::Syncing),
    any(&["node is behind"], PatternMeaning::Syncing),
    any(&["still indexing"], PatternMeaning::Syncing),                               // reth, geth
    any(&["indexing is in progress"], PatternMeaning::Syncing),                      // geth: "transaction indexing is in progress"
    any(&["starting up"], PatternMeaning::Syncing),
    any(&["not ready"], PatternMeaning::Syncing),

    // It does not have the block.
    any(&["could not find the", "in cache or db"], PatternMeaning::NoBlock),         // Erigon
    any(&["is in the future"], PatternMeaning::NoBlock),                             // Erigon: proofs
    any(&["block body is missing"], PatternMeaning::NoBlock),                        // geth
    any(&["invalid block tag", "latest block number"], PatternMeaning::NoBlock),     // hardhat
    any(&["blockhash", "cannot be found"], PatternMeaning::NoBlock),                 // hardhat
    any(&["resource not found"], PatternMeaning::NoBlock),                           // anvil: an unknown block hash
    any(&["header not found"], PatternMeaning::NoBlock),                             // geth, reth
    any(&["header for hash not found"], PatternMeaning::NoBlock),                    // geth
    any(&["hash", "not currently canonical"], PatternMeaning::NoBlock),              // geth
    any(&["is not currently canonical"], PatternMeaning::NoBlock),
    any(&["not canonical"], PatternMeaning::NoBlock),
    any(&["unknown block"], PatternMeaning::NoBlock),                                // geth, Besu, anvil
    any(&["block not found"], PatternMeaning::NoBlock),                              // Erigon, Besu, reth
    any(&["block", "not found"], PatternMeaning::NoBlock),
    any(&["blocknotfound"], PatternMeaning::NoBlock),
    any(&["blockoutofrange"], PatternMeaning::NoBlock),                              // anvil
    any(&["block_not_found"], PatternMeaning::NoBlock),
    any(&["block height", "but requested was"], PatternMeaning::NoBlock),            // anvil: BlockOutOfRangeError
    any(&["block is ahead of"], PatternMeaning::NoBlock),
    any(&["block", "does not exist"], PatternMeaning::NoBlock),
    any(&["block", "doesn't exist"], PatternMeaning::NoBlock),                       // zkSync
    any(&["cannot be found"], PatternMeaning::NoBlock),                              // Nethermind
    any(&["could not be found"], PatternMeaning::NoBlock),                           // Nethermind
    any(&["head block"], PatternMeaning::NoBlock),                                   // geth: range extends beyond current head block
    any(&["beyond current head"], PatternMeaning::NoBlock),
    any(&["after last accepted block"], PatternMeaning::NoBlock),                    // Avalanche
    any(&["block number", "higher than"], PatternMeaning::NoBlock),
    any(&["greater than current height"], PatternMeaning::NoBlock),                  // EthereumJS
    any(&["not found in db"], PatternMeaning::NoBlock),                              // EthereumJS: "value for 0x… not found in DB"
    any(&["future block"], PatternMeaning::NoBlock),
    any(&["no block with that"], PatternMeaning::NoBlock),
    any(&["latest block", "requested"], PatternMeaning::NoBlock),                    // Erigon
    any(&["cannot query unfinalized data"], PatternMeaning::NoBlock),                // Avalanche
    any(&["genesis is not traceable"], PatternMeaning::NoBlock),
    code(-32001, &["not found"], PatternMeaning::NoBlock),                           // EIP-1474: resource not found

    // Errors that only a code tells apart.
    any(&["parse error"], PatternMeaning::Internal),
    any(&["timed out"], PatternMeaning::Internal),
    any(&["timeout"], PatternMeaning::Internal),
    logs_code(-32614, PatternMeaning::RangeTooWide),                                 // QuickNode
    logs_code(-32047, PatternMeaning::RangeTooWide),                                 // Cloudflare
    logs_code(-32005, PatternMeaning::TooManyResults),                               // BSC: "limit exceeded"
    code(-32005, &[], PatternMeaning::RateLimited),                                  // EIP-1474: limit exceeded
    code(-32602, &[], PatternMeaning::BadParams),
    code(-32600, &[], PatternMeaning::BadParams),
    any(&["invalid argument"], PatternMeaning::BadParams),
    any(&["missing value for required argument"], PatternMeaning::BadParams),
    any(&["invalid params"], PatternMeaning::BadParams),
    any(&["invalid block range"], PatternMeaning::BadParams),
    any(&["cannot unmarshal"], PatternMeaning::BadParams),
    evm(&["processing could not be completed"], PatternMeaning::Stopped(E::Failed)), // Besu
    evm(&["vm execution error"], PatternMeaning::Stopped(E::Failed)),                // Parity, Nethermind
    evm(&["evm error"], PatternMeaning::Stopped(E::Failed)),                         // anvil
    code(-32015, &[], PatternMeaning::Stopped(E::Failed)),                           // Parity, Nethermind
];
