//! Patterns and their meaning, one row each; the first row that fits counts.
//!
//! Reverts come first: what follows "execution reverted:" are a contract's words, and they may be any of the patterns
//! below. Then what is particular to a kind of method, then what is said in words, and last what only a code says.

use super::Execution as E;

/// The meaning of a row, without its details.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Says {
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

/// Calls that a row is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum About {
    Anything,
    /// Log queries.
    Logs,
    /// Simulations.
    Evm,
}

impl About {
    fn includes(self, method: &str) -> bool {
        match self {
            Self::Anything => true,
            Self::Logs => method == "eth_getLogs",
            Self::Evm => matches!(method, "eth_call" | "eth_estimateGas" | "eth_createAccessList"),
        }
    }
}

/// A row fits if the call is of its kind, the code is its code, and all of its parts are in the text.
struct Row {
    about: About,
    code: Option<i64>,
    parts: &'static [&'static str],
    says: Says,
}

const fn any(parts: &'static [&'static str], says: Says) -> Row {
    Row { about: About::Anything, code: None, parts, says }
}

const fn logs(parts: &'static [&'static str], says: Says) -> Row {
    Row { about: About::Logs, code: None, parts, says }
}

const fn evm(parts: &'static [&'static str], says: Says) -> Row {
    Row { about: About::Evm, code: None, parts, says }
}

const fn code(code: i64, parts: &'static [&'static str], says: Says) -> Row {
    Row { about: About::Anything, code: Some(code), parts, says }
}

const fn logs_code(code: i64, says: Says) -> Row {
    Row { about: About::Logs, code: Some(code), parts: &[], says }
}

pub(super) fn look_up(code: i64, text: &str, method: &str) -> Says {
    let fits = |row: &&Row| {
        row.about.includes(method)
            && row.code.is_none_or(|wanted| wanted == code)
            && row.parts.iter().all(|part| text.contains(part))
    };
    ROWS.iter().find(fits).map_or(Says::Internal, |row| row.says)
}

#[rustfmt::skip]
static ROWS: &[Row] = &[
    // Reverts. Code 3 is geth's, reth's, Erigon's, anvil's and zkSync's; the others have only words.
    code(3, &[], Says::Reverted),
    evm(&["execution reverted"], Says::Reverted),                          // geth, Besu, Nethermind, hosted services
    evm(&["vm execution error", "reverted"], Says::Reverted),              // Parity, Nethermind: data "Reverted 0x…"
    evm(&["vm execution error", "revert"], Says::Reverted),                // Nethermind: data "revert"
    evm(&["vm exception while processing transaction: revert"], Says::Reverted), // ganache, hardhat
    evm(&["reverted with reason string"], Says::Reverted),                 // hardhat
    evm(&["reverted with custom error"], Says::Reverted),                  // hardhat
    evm(&["reverted with panic code"], Says::Reverted),                    // hardhat
    evm(&["reverted without a reason"], Says::Reverted),                   // hardhat
    evm(&["transaction reverted"], Says::Reverted),                        // hardhat, Besu
    evm(&["always failing transaction"], Says::Reverted),                  // old geth
    evm(&["execution failed: revert"], Says::Reverted),                    // Moonbeam
    evm(&["evm error: revert"], Says::Reverted),                           // anvil without data

    // Simulations that stop otherwise, or do not begin.
    evm(&["gas required exceeds allowance"], Says::Stopped(E::GasAllowance { most: None })), // geth, anvil, reth
    evm(&["gas required exceeds block gas limit"], Says::Stopped(E::GasAllowance { most: None })), // Besu
    evm(&["cannot estimate gas, gas spent exceeded"], Says::Stopped(E::GasAllowance { most: None })), // Nethermind
    evm(&["intrinsic gas too low"], Says::Stopped(E::IntrinsicGas)),       // geth, reth, Erigon, anvil
    evm(&["intrinsic gas too high"], Says::Stopped(E::IntrinsicGas)),      // anvil: what the call has is too little
    evm(&["intrinsic gas exceeds gas limit"], Says::Stopped(E::IntrinsicGas)), // Besu
    evm(&["intrinsic_gas_exceeds"], Says::Stopped(E::IntrinsicGas)),       // Besu
    evm(&["gas limit below intrinsic gas"], Says::Stopped(E::IntrinsicGas)), // Nethermind
    evm(&["floor data gas"], Says::Stopped(E::IntrinsicGas)),              // geth, since Prague
    evm(&["not enough gas for transaction validation"], Says::Stopped(E::OutOfGas)), // zkSync
    evm(&["fee cap less than block base fee"], Says::Stopped(E::FeeCapBelowBaseFee)), // Erigon
    evm(&["less than block base fee"], Says::Stopped(E::FeeCapBelowBaseFee)), // geth, reth, anvil
    evm(&["lower than block base fee"], Says::Stopped(E::FeeCapBelowBaseFee)),
    evm(&["less than the block's base fee"], Says::Stopped(E::FeeCapBelowBaseFee)),
    evm(&["less than block's base fee"], Says::Stopped(E::FeeCapBelowBaseFee)),
    evm(&["below the current base fee"], Says::Stopped(E::FeeCapBelowBaseFee)), // Besu
    evm(&["max fee per gas less than"], Says::Stopped(E::FeeCapBelowBaseFee)), // zkSync
    evm(&["miner premium is negative"], Says::Stopped(E::FeeCapBelowBaseFee)), // Nethermind
    evm(&["higher than max fee per gas"], Says::Stopped(E::TipAboveFeeCap)), // geth
    evm(&["tip higher than fee cap"], Says::Stopped(E::TipAboveFeeCap)),   // Erigon
    evm(&["max_priority_fee_per_gas", "greater than", "max_fee_per_gas"], Says::Stopped(E::TipAboveFeeCap)), // anvil
    evm(&["priority fee", "greater than max fee"], Says::Stopped(E::TipAboveFeeCap)), // reth, zkSync
    evm(&["max priority fee per gas cannot be greater"], Says::Stopped(E::TipAboveFeeCap)), // Besu
    evm(&["insufficient funds"], Says::Stopped(E::InsufficientFunds)),     // geth, reth, Erigon, anvil
    evm(&["insufficient balance"], Says::Stopped(E::InsufficientFunds)),
    evm(&["insufficient sender balance"], Says::Stopped(E::InsufficientFunds)), // Nethermind
    evm(&["insufficient max fee per gas for sender balance"], Says::Stopped(E::InsufficientFunds)), // Nethermind
    evm(&["upfront cost exceeds account balance"], Says::Stopped(E::InsufficientFunds)), // Besu
    evm(&["upfront_cost_exceeds_balance"], Says::Stopped(E::InsufficientFunds)), // Besu
    evm(&["exceeds balance"], Says::Stopped(E::InsufficientFunds)),
    evm(&["not enough balance"], Says::Stopped(E::InsufficientFunds)),     // zkSync
    evm(&["lack of funds"], Says::Stopped(E::InsufficientFunds)),          // reth's EVM
    evm(&["lackoffund"], Says::Stopped(E::InsufficientFunds)),
    evm(&["nonce too low"], Says::Stopped(E::NonceTooLow)),
    evm(&["nonce too high"], Says::Stopped(E::NonceTooHigh)),
    evm(&["nonce is too low"], Says::Stopped(E::NonceTooLow)),
    evm(&["nonce is too high"], Says::Stopped(E::NonceTooHigh)),
    evm(&["wrong transaction nonce"], Says::Stopped(E::NonceTooLow)),      // Nethermind
    evm(&["sender not an eoa"], Says::Stopped(E::SenderNotEoa)),
    evm(&["sender has deployed code"], Says::Stopped(E::SenderNotEoa)),    // Nethermind
    evm(&["not an externally owned account"], Says::Stopped(E::SenderNotEoa)),
    evm(&["initcode size"], Says::Stopped(E::InitcodeSize)),
    evm(&["init code size"], Says::Stopped(E::InitcodeSize)),
    evm(&["createinitcodesizelimit"], Says::Stopped(E::InitcodeSize)),     // anvil
    evm(&["code size", "exceed"], Says::Stopped(E::CodeSize)),
    evm(&["createcontractsizelimit"], Says::Stopped(E::CodeSize)),         // anvil
    evm(&["address collision"], Says::Stopped(E::AddressCollision)),
    evm(&["createcollision"], Says::Stopped(E::AddressCollision)),         // anvil
    evm(&["out of gas"], Says::Stopped(E::OutOfGas)),                      // geth, Parity
    evm(&["memoryoog"], Says::Stopped(E::OutOfGas)),                       // anvil
    evm(&["outofgas"], Says::Stopped(E::OutOfGas)),                        // Nethermind, anvil
    evm(&["out-of-gas"], Says::Stopped(E::OutOfGas)),
    evm(&["out_of_gas"], Says::Stopped(E::OutOfGas)),
    evm(&["insufficient_gas"], Says::Stopped(E::OutOfGas)),                // Besu
    evm(&["gas uint64 overflow"], Says::Stopped(E::OutOfGas)),
    evm(&["invalid opcode"], Says::Stopped(E::InvalidOpcode)),             // geth, reth
    evm(&["invalid_operation"], Says::Stopped(E::InvalidOpcode)),          // Besu
    evm(&["bad instruction"], Says::Stopped(E::InvalidOpcode)),            // Parity
    evm(&["badinstruction"], Says::Stopped(E::InvalidOpcode)),             // Nethermind
    evm(&["invalidfeopcode"], Says::Stopped(E::InvalidOpcode)),            // anvil
    evm(&["opcodenotfound"], Says::Stopped(E::InvalidOpcode)),             // anvil
    evm(&["notactivated"], Says::Stopped(E::InvalidOpcode)),               // anvil
    evm(&["invalid jump"], Says::Stopped(E::InvalidJump)),
    evm(&["invalidjump"], Says::Stopped(E::InvalidJump)),                  // Nethermind, anvil
    evm(&["bad jump destination"], Says::Stopped(E::InvalidJump)),         // Parity
    evm(&["stack underflow"], Says::Stopped(E::StackUnderflow)),
    evm(&["stackunderflow"], Says::Stopped(E::StackUnderflow)),
    evm(&["stack limit reached"], Says::Stopped(E::StackOverflow)),
    evm(&["stackoverflow"], Says::Stopped(E::StackOverflow)),
    evm(&["stack overflow"], Says::Stopped(E::StackOverflow)),
    evm(&["write protection"], Says::Stopped(E::WriteProtection)),
    evm(&["statechangeduringstaticcall"], Says::Stopped(E::WriteProtection)), // anvil
    evm(&["staticcallviolation"], Says::Stopped(E::WriteProtection)),      // Nethermind
    evm(&["static call violation"], Says::Stopped(E::WriteProtection)),
    evm(&["call depth exceeded"], Says::Stopped(E::CallDepth)),
    evm(&["calltoodeep"], Says::Stopped(E::CallDepth)),                    // anvil
    evm(&["execution aborted (timeout"], Says::Stopped(E::Timeout)),       // geth, Erigon, reth
    evm(&["execution timeout"], Says::Stopped(E::Timeout)),                // hosted services
    evm(&["evm timeout"], Says::Stopped(E::Timeout)),
    evm(&["call was cancelled due to timeout"], Says::Stopped(E::Timeout)), // Nethermind
    evm(&["exceeds block gas limit"], Says::Stopped(E::GasAboveLimit)),
    evm(&["exceeds the block's gas limit"], Says::Stopped(E::GasAboveLimit)),
    evm(&["caller gas limit exceeds"], Says::Stopped(E::GasAboveLimit)),   // reth
    evm(&["gas limit is too high"], Says::Stopped(E::GasAboveLimit)),      // zkSync
    evm(&["gas limit too high"], Says::Stopped(E::GasAboveLimit)),

    // Log queries: results first, because a text about results often advises a smaller range.
    logs(&["invalid block range"], Says::BadParams),                       // geth: from above to
    logs(&["beyond current head"], Says::NoBlock),                         // geth
    logs(&["query returned more than"], Says::TooManyResults),             // Infura, zkSync, Nethermind's data
    logs(&["log response size exceeded"], Says::TooManyResults),           // Alchemy
    logs(&["query exceeds max results"], Says::TooManyResults),            // reth
    logs(&["exceeds max results"], Says::TooManyResults),
    logs(&["exceeds max logs"], Says::TooManyResults),
    logs(&["logs matched by query exceeds limit"], Says::TooManyResults),  // Arbitrum
    logs(&["too many logs"], Says::TooManyResults),
    logs(&["too many results"], Says::TooManyResults),
    logs(&["number of logs"], Says::TooManyResults),
    logs(&["response size should not greater than"], Says::TooManyResults), // Polygon, BSC
    logs(&["response size exceed"], Says::TooManyResults),
    logs(&["response is too big"], Says::TooManyResults),                  // jsonrpsee: reth, zkSync
    logs(&["response too large"], Says::TooManyResults),
    logs(&["backend response too large"], Says::TooManyResults),           // proxyd
    logs(&["is bigger than range limit"], Says::RangeTooWide),             // Thirdweb, Tenderly
    logs(&["exceeds limit of"], Says::RangeTooWide),                       // Infura: "range N exceeds limit of M"
    logs(&["exceeds the limit of"], Says::RangeTooWide),                   // Ronin
    logs(&["block range should work"], Says::RangeTooWide),                // Alchemy
    logs(&["limited to", "range"], Says::RangeTooWide),                    // QuickNode, 1RPC
    logs(&["block range limit"], Says::RangeTooWide),                      // Chainstack
    logs(&["range is too"], Says::RangeTooWide),                           // Ankr: "block range is too wide"
    logs(&["range too"], Says::RangeTooWide),                              // Cloudflare, Base, zkEVM
    logs(&["range exceed"], Says::RangeTooWide),
    logs(&["range limit exceeded"], Says::RangeTooWide),
    logs(&["maximum block range"], Says::RangeTooWide),                    // BSC, Immutable
    logs(&["max block range"], Says::RangeTooWide),                        // reth: "query exceeds max block range N"
    logs(&["maximum rpc range"], Says::RangeTooWide),                      // Besu: "Requested range exceeds maximum RPC range limit"
    logs(&["blocks distance"], Says::RangeTooWide),                        // Cronos, Kava
    logs(&["too many blocks"], Says::RangeTooWide),                        // Avalanche
    logs(&["range is larger than"], Says::RangeTooWide),
    logs(&["block range"], Says::RangeTooWide),
    logs(&["up to a", "block"], Says::RangeTooWide),
    logs(&["query timeout exceeded"], Says::QueryTimeout),                 // Infura
    logs(&["query timed out"], Says::QueryTimeout),
    logs(&["context deadline exceeded"], Says::QueryTimeout),
    logs(&["request timed out"], Says::QueryTimeout),                      // geth
    logs(&["request timeout"], Says::QueryTimeout),                        // zkSync
    logs(&["timed out"], Says::QueryTimeout),
    logs(&["timeout"], Says::QueryTimeout),

    // Too often.
    code(429, &[], Says::RateLimited),                                     // Alchemy and others, in a reply with status 200
    code(-32029, &[], Says::RateLimited),
    code(-32007, &["limit"], Says::RateLimited),                           // QuickNode: "50/second request limit reached"
    code(-32012, &["limited to"], Says::RateLimited),                      // QuickNode: credits
    any(&["rate limit"], Says::RateLimited),
    any(&["rate-limit"], Says::RateLimited),
    any(&["ratelimit"], Says::RateLimited),
    any(&["request rate exceeded"], Says::RateLimited),                    // Infura
    any(&["request count exceeded"], Says::RateLimited),                   // Infura, per day
    any(&["too many requests"], Says::RateLimited),
    any(&["compute units per second"], Says::RateLimited),                 // Alchemy
    any(&["request limit reached"], Says::RateLimited),                    // QuickNode
    any(&["request limit exceeded"], Says::RateLimited),
    any(&["requests per second"], Says::RateLimited),
    any(&["exceeded the rps limit"], Says::RateLimited),                   // Chainstack
    any(&["requests limited to"], Says::RateLimited),
    any(&["capacity exceeded"], Says::RateLimited),
    any(&["capacity limit"], Says::RateLimited),                           // Alchemy, per month
    any(&["quota"], Says::RateLimited),
    any(&["call rate"], Says::RateLimited),
    any(&["throttl"], Says::RateLimited),
    any(&["over capacity"], Says::RateLimited),
    any(&["under too much load"], Says::RateLimited),

    // It does not want us.
    code(401, &[], Says::Unauthorised),
    code(403, &[], Says::Unauthorised),
    any(&["unauthorized"], Says::Unauthorised),                            // Ankr, dRPC
    any(&["unauthorised"], Says::Unauthorised),
    any(&["must be authenticated"], Says::Unauthorised),                   // Alchemy
    any(&["must authenticate"], Says::Unauthorised),
    any(&["authentication"], Says::Unauthorised),
    any(&["invalid project id"], Says::Unauthorised),                      // Infura
    any(&["project id required"], Says::Unauthorised),                     // Infura
    any(&["rejected due to project id settings"], Says::Unauthorised),     // Infura
    any(&["invalid api key"], Says::Unauthorised),
    any(&["invalid token"], Says::Unauthorised),
    any(&["api key", "not"], Says::Unauthorised),
    any(&["forbidden"], Says::Unauthorised),
    any(&["payment required"], Says::Unauthorised),
    any(&["free tier"], Says::Unauthorised),

    // It does not have the method.
    code(-32601, &[], Says::NoMethod),
    any(&["does not exist/is not available"], Says::NoMethod),             // geth
    any(&["method", "not found"], Says::NoMethod),
    any(&["method", "not supported"], Says::NoMethod),
    any(&["method", "not available"], Says::NoMethod),
    any(&["method", "not allowed"], Says::NoMethod),
    any(&["method", "not enabled"], Says::NoMethod),                       // Besu
    any(&["method", "not implemented"], Says::NoMethod),                   // zkSync
    any(&["method", "disabled"], Says::NoMethod),
    any(&["method", "not whitelisted"], Says::NoMethod),
    any(&["unsupported method"], Says::NoMethod),                          // Alchemy
    any(&["is not included in your current plan"], Says::NoMethod),
    any(&["namespace is not enabled"], Says::NoMethod),                    // Nethermind
    any(&["argument must be a string"], Says::NoMethod),                   // EthereumJS: not with a block hash (EIP-1898)
    any(&["cannot be converted to a bigint"], Says::NoMethod),             // EthereumJS: eth_feeHistory with fractions
    code(-32004, &[], Says::NoMethod),

    // The state is gone, or was never there.
    any(&["missing trie node"], Says::NoState),                            // geth, Erigon, BSC
    any(&["historical state", "not available"], Says::NoState),            // geth with path scheme, anvil's origin
    any(&["historical state"], Says::NoState),
    any(&["required historical state unavailable"], Says::NoState),        // geth
    any(&["state histories haven't been fully indexed"], Says::NoState),   // geth
    any(&["maximum proof window"], Says::NoState),                         // reth
    any(&["block must be within"], Says::NoState),                         // Erigon
    any(&["root hash mismatch"], Says::NoState),                           // Erigon: eth_getProof of an older block
    any(&["state at block", "pruned"], Says::NoState),                     // reth
    any(&["state is pruned"], Says::NoState),
    any(&["state has been pruned"], Says::NoState),
    any(&["pruned history"], Says::NoState),                               // geth: "pruned history unavailable"
    any(&["history pruned"], Says::NoState),
    any(&["state already pruned"], Says::NoState),                         // Besu, Erigon
    any(&["old data not available due to pruning"], Says::NoState),        // Erigon
    any(&["data is pruned"], Says::NoState),                               // Nethermind
    any(&["is pruned"], Says::NoState),                                    // zkSync: "Block with such an ID is pruned"
    any(&["state not available"], Says::NoState),
    any(&["state unavailable"], Says::NoState),
    any(&["state is not available"], Says::NoState),                       // Erigon, geth: "state X is not available"
    any(&["state", "is not available"], Says::NoState),
    any(&["no state available"], Says::NoState),                           // Nethermind: "No state available for block"
    any(&["incorrect state root"], Says::NoState),                         // Nethermind
    any(&["stateroot"], Says::NoState),
    any(&["world state unavailable"], Says::NoState),                      // Besu
    any(&["world state root does not exist"], Says::NoState),
    any(&["no historical rpc"], Says::NoState),                            // OP: pre-Bedrock
    any(&["state recreation"], Says::NoState),                             // Arbitrum
    any(&["archive", "require"], Says::NoState),                           // hosted services: archive requests need a plan
    any(&["archive node"], Says::NoState),
    any(&["archival"], Says::NoState),
    any(&["failed to load state"], Says::NoState),
    any(&["failed to get account"], Says::NoState),                        // anvil, when its origin has lost it

    // It is not there yet.
    any(&["still syncing"], Says::Syncing),
    any(&["node is syncing"], Says::Syncing),
    any(&["is not synced"], Says::Syncing),
    any(&["not fully synced"], Says::Syncing),
    any(&["sync in progress"], Says::Syncing),
    any(&["initial sync"], Says::Syncing),
    any(&["node is behind"], Says::Syncing),
    any(&["still indexing"], Says::Syncing),                               // reth, geth
    any(&["indexing is in progress"], Says::Syncing),                      // geth: "transaction indexing is in progress"
    any(&["starting up"], Says::Syncing),
    any(&["not ready"], Says::Syncing),

    // It does not have the block.
    any(&["header not found"], Says::NoBlock),                             // geth, reth
    any(&["header for hash not found"], Says::NoBlock),                    // geth
    any(&["hash", "not currently canonical"], Says::NoBlock),              // geth
    any(&["is not currently canonical"], Says::NoBlock),
    any(&["not canonical"], Says::NoBlock),
    any(&["unknown block"], Says::NoBlock),                                // geth, Besu, anvil
    any(&["block not found"], Says::NoBlock),                              // Erigon, Besu, reth
    any(&["block", "not found"], Says::NoBlock),
    any(&["blocknotfound"], Says::NoBlock),
    any(&["blockoutofrange"], Says::NoBlock),                              // anvil
    any(&["block_not_found"], Says::NoBlock),
    any(&["block height", "but requested was"], Says::NoBlock),            // anvil: BlockOutOfRangeError
    any(&["block is ahead of"], Says::NoBlock),
    any(&["block", "does not exist"], Says::NoBlock),
    any(&["block", "doesn't exist"], Says::NoBlock),                       // zkSync
    any(&["cannot be found"], Says::NoBlock),                              // Nethermind
    any(&["could not be found"], Says::NoBlock),                           // Nethermind
    any(&["head block"], Says::NoBlock),                                   // geth: range extends beyond current head block
    any(&["beyond current head"], Says::NoBlock),
    any(&["after last accepted block"], Says::NoBlock),                    // Avalanche
    any(&["block number", "higher than"], Says::NoBlock),
    any(&["greater than current height"], Says::NoBlock),                  // EthereumJS
    any(&["not found in db"], Says::NoBlock),                              // EthereumJS: "value for 0x… not found in DB"
    any(&["future block"], Says::NoBlock),
    any(&["no block with that"], Says::NoBlock),
    any(&["latest block", "requested"], Says::NoBlock),                    // Erigon
    any(&["cannot query unfinalized data"], Says::NoBlock),                // Avalanche
    any(&["genesis is not traceable"], Says::NoBlock),
    code(-32001, &["not found"], Says::NoBlock),                           // EIP-1474: resource not found

    // What only a code says.
    any(&["parse error"], Says::Internal),
    any(&["timed out"], Says::Internal),
    any(&["timeout"], Says::Internal),
    logs_code(-32614, Says::RangeTooWide),                                 // QuickNode
    logs_code(-32047, Says::RangeTooWide),                                 // Cloudflare
    logs_code(-32005, Says::TooManyResults),                               // BSC: "limit exceeded"
    code(-32005, &[], Says::RateLimited),                                  // EIP-1474: limit exceeded
    code(-32602, &[], Says::BadParams),
    code(-32600, &[], Says::BadParams),
    any(&["invalid argument"], Says::BadParams),
    any(&["missing value for required argument"], Says::BadParams),
    any(&["invalid params"], Says::BadParams),
    any(&["invalid block range"], Says::BadParams),
    any(&["cannot unmarshal"], Says::BadParams),
    evm(&["vm execution error"], Says::Stopped(E::Failed)),                // Parity, Nethermind
    evm(&["evm error"], Says::Stopped(E::Failed)),                         // anvil
    code(-32015, &[], Says::Stopped(E::Failed)),                           // Parity, Nethermind
];
