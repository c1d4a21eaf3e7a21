//! Errors as nodes and services give them, each with its meaning.

use super::Execution as E;
use super::Meaning::{
    BadParams, Internal, NoBlock, NoMethod, NoState, QueryTimeout, RateLimited, Syncing, Unauthorised,
};
use super::*;

const CALL: &str = "eth_call";
const ESTIMATE: &str = "eth_estimateGas";
const LOGS: &str = "eth_getLogs";
const STORAGE: &str = "eth_getStorageAt";
const RECEIPTS: &str = "eth_getBlockReceipts";

/// Code, message, data as JSON text ("" for none), method, meaning.
type Row = (i64, &'static str, &'static str, &'static str, Meaning);

fn reverted(data: &'static [u8]) -> Meaning {
    Meaning::Reverted { data: Some(Bytes::from_static(data)) }
}

const BARE: Meaning = Meaning::Reverted { data: None };

fn stopped(execution: Execution) -> Meaning {
    Meaning::Execution(execution)
}

fn wide(most: u64) -> Meaning {
    Meaning::RangeTooWide { most: Some(most) }
}

const WIDE: Meaning = Meaning::RangeTooWide { most: None };

const MANY: Meaning = Meaning::TooManyResults;

#[rustfmt::skip]
fn reverts() -> Vec<Row> {
    const DATA: &[u8] = &[0xde, 0xad, 0xbe, 0xef];
    vec![
        (3, "execution reverted", r#""0xdeadbeef""#, CALL, reverted(DATA)),
        (3, "execution reverted: Ownable: caller is not the owner", r#""0xDEADBEEF""#, CALL, reverted(DATA)),
        (3, "execution reverted", r#""0x""#, CALL, reverted(&[])),
        (3, "execution reverted", "", CALL, BARE),
        (3, "execution reverted: rate limit exceeded", r#""0xdeadbeef""#, ESTIMATE, reverted(DATA)),
        (3, "execution reverted: missing trie node", "", CALL, BARE),
        (3, "execution reverted: header not found", r#""0xdeadbeef""#, CALL, reverted(DATA)),
        (3, "execution reverted: revert: ERC20: transfer amount exceeds balance", r#""0xdeadbeef""#, CALL, reverted(DATA)),
        (3, "execution reverted: custom error 0xdeadbeef", r#""0xdeadbeef""#, CALL, reverted(DATA)),
        (3, "execution reverted: Error function_selector = 0x, data = 0x", r#""0xdeadbeef""#, CALL, reverted(DATA)),
        (3, "Failed to call", r#"{"data":"0xdeadbeef"}"#, CALL, reverted(DATA)),
        (-32000, "execution reverted", "", CALL, BARE),
        (-32000, "execution reverted: out of gas", "", CALL, BARE),
        (-32000, "execution reverted: 0xdeadbeef", "", CALL, reverted(DATA)),
        (-32000, "execution reverted: 0xdead", "", CALL, BARE),
        (-32000, "Execution reverted", r#""0xdeadbeef""#, CALL, reverted(DATA)),
        (-32000, "Execution reverted (ERC20: insufficient balance)", r#""0xdeadbeef""#, ESTIMATE, reverted(DATA)),
        (-32603, "execution reverted", r#""0xdeadbeef""#, CALL, reverted(DATA)),
        (-32015, "VM execution error.", r#""Reverted 0xdeadbeef""#, CALL, reverted(DATA)),
        (-32015, "VM execution error.", r#""Reverted 0x""#, CALL, reverted(&[])),
        (-32015, "VM execution error.", r#""revert""#, CALL, BARE),
        (-32015, "execution reverted: nope", r#""0xdeadbeef""#, CALL, reverted(DATA)),
        (-32016, "The execution failed due to an exception. VM execution error.", r#""Reverted""#, CALL, BARE),
        (-32603, "Error: VM Exception while processing transaction: reverted with reason string 'nope'", r#"{"message":"Error: VM Exception","txHash":"0x01","data":"0xdeadbeef"}"#, CALL, reverted(DATA)),
        (-32603, "VM Exception while processing transaction: reverted with custom error 'Nope()'", r#"{"data":{"data":"0xdeadbeef"}}"#, CALL, reverted(DATA)),
        (-32603, "VM Exception while processing transaction: reverted with panic code 0x11", "", CALL, BARE),
        (-32000, "VM Exception while processing transaction: revert nope", r#"{"0xaa00":{"error":"revert","return":"0xdeadbeef"}}"#, CALL, reverted(DATA)),
        (-32603, "EVM error: Revert", "", CALL, BARE),
        (-32000, "gas required exceeds allowance (10000000) or always failing transaction", "", ESTIMATE, BARE),
        (3, "execution reverted", r#""not hex""#, CALL, BARE),
        (3, "execution reverted", r#"{"data":{"data":{"data":{"data":{"data":{"data":"0xdeadbeef"}}}}}}"#, CALL, BARE),
    ]
}

#[rustfmt::skip]
fn executions() -> Vec<Row> {
    let allowance = |most| stopped(E::GasAllowance { most });
    vec![
        (-32000, "gas required exceeds allowance (30000000)", "", ESTIMATE, allowance(Some(30_000_000))),
        (-32000, "gas required exceeds allowance (0)", "", ESTIMATE, allowance(Some(0))),
        (-32000, "gas required exceeds allowance", "", ESTIMATE, allowance(None)),
        (-32000, "Gas required exceeds block gas limit", "", ESTIMATE, allowance(None)),
        (-32015, "Cannot estimate gas, gas spent exceeded transaction and block gas limit or transaction gas limit cap", "", ESTIMATE, allowance(None)),
        (-32000, "out of gas", "", CALL, stopped(E::OutOfGas)),
        (-32000, "out of gas: gas required exceeds: 25000", "", CALL, stopped(E::OutOfGas)),
        (-32003, "Out of gas: gas required exceeds allowance: 100000", "", CALL, allowance(None)),
        (-32015, "VM execution error.", r#""OutOfGas""#, CALL, stopped(E::OutOfGas)),
        (-32603, "EVM error: OutOfGas", "", CALL, stopped(E::OutOfGas)),
        (-32000, "Halted: INSUFFICIENT_GAS", "", CALL, stopped(E::OutOfGas)),
        (-32000, "invalid opcode: INVALID", "", CALL, stopped(E::InvalidOpcode)),
        (-32000, "invalid opcode: opcode 0xef not defined", "", CALL, stopped(E::InvalidOpcode)),
        (-32015, "VM execution error.", r#""Bad instruction fe""#, CALL, stopped(E::InvalidOpcode)),
        (-32015, "VM execution error.", r#""BadInstruction""#, CALL, stopped(E::InvalidOpcode)),
        (-32603, "EVM error InvalidFEOpcode", "", CALL, stopped(E::InvalidOpcode)),
        (-32000, "INVALID_OPERATION", "", CALL, stopped(E::InvalidOpcode)),
        (-32000, "invalid jump destination", "", CALL, stopped(E::InvalidJump)),
        (-32015, "VM execution error.", r#""Bad jump destination 0x1f""#, CALL, stopped(E::InvalidJump)),
        (-32603, "EVM error: InvalidJump", "", CALL, stopped(E::InvalidJump)),
        (-32000, "stack underflow (0 <=> 1)", "", CALL, stopped(E::StackUnderflow)),
        (-32000, "stack limit reached 1024 (1023)", "", CALL, stopped(E::StackOverflow)),
        (-32015, "VM execution error.", r#""StackOverflow""#, CALL, stopped(E::StackOverflow)),
        (-32000, "write protection", "", CALL, stopped(E::WriteProtection)),
        (-32603, "EVM error: StateChangeDuringStaticCall", "", CALL, stopped(E::WriteProtection)),
        (-32000, "max call depth exceeded", "", CALL, stopped(E::CallDepth)),
        (-32000, "max code size exceeded", "", CALL, stopped(E::CodeSize)),
        (-32000, "max initcode size exceeded: code size 49153 limit 49152", "", CALL, stopped(E::InitcodeSize)),
        (-32000, "contract address collision", "", CALL, stopped(E::AddressCollision)),
        (-32000, "insufficient funds for gas * price + value: address 0x01 have 0 want 1", "", CALL, stopped(E::InsufficientFunds)),
        (-32000, "err: insufficient funds for gas * price + value: address 0x01 have 0 want 1 (supplied gas 50000000)", "", CALL, stopped(E::InsufficientFunds)),
        (-32000, "insufficient funds for transfer", "", ESTIMATE, stopped(E::InsufficientFunds)),
        (-32003, "Insufficient funds for gas * price + value", "", ESTIMATE, stopped(E::InsufficientFunds)),
        (-32015, "insufficient sender balance", "", CALL, stopped(E::InsufficientFunds)),
        (-32004, "Upfront cost exceeds account balance", "", CALL, stopped(E::InsufficientFunds)),
        (-32000, "transaction up-front cost 0x10 exceeds balance 0x0 (UPFRONT_COST_EXCEEDS_BALANCE)", "", CALL, stopped(E::InsufficientFunds)),
        (3, "insufficient funds for gas + value. balance: 0", "", ESTIMATE, BARE),
        (-32000, "err: intrinsic gas too low: have 20000, want 21000 (supplied gas 20000)", "", CALL, stopped(E::IntrinsicGas)),
        (-32003, "Intrinsic gas exceeds gas limit", "", CALL, stopped(E::IntrinsicGas)),
        (-32000, "intrinsic gas too high -- CallGasCostMoreThanGasLimit", "", CALL, stopped(E::IntrinsicGas)),
        (-32602, "Invalid input: `max_priority_fee_per_gas` greater than `max_fee_per_gas`", "", CALL, stopped(E::TipAboveFeeCap)),
        (-32603, "EVM error MemoryOOG", "", CALL, stopped(E::OutOfGas)),
        (-32015, "gas limit below intrinsic gas", "", CALL, stopped(E::IntrinsicGas)),
        (-32000, "insufficient gas for floor data gas cost: have 21000, want 22000", "", CALL, stopped(E::IntrinsicGas)),
        (-32000, "err: max fee per gas less than block base fee: address 0x01, maxFeePerGas: 1, baseFee: 7 (supplied gas 1)", "", CALL, stopped(E::FeeCapBelowBaseFee)),
        (-32000, "fee cap less than block base fee: address 0x01, feeCap: 1 baseFee: 7", "", CALL, stopped(E::FeeCapBelowBaseFee)),
        (-32009, "Gas price below the current base fee", "", CALL, stopped(E::FeeCapBelowBaseFee)),
        (-32015, "miner premium is negative", "", CALL, stopped(E::FeeCapBelowBaseFee)),
        (-32000, "max priority fee per gas higher than max fee per gas: address 0x01", "", CALL, stopped(E::TipAboveFeeCap)),
        (-32000, "tip higher than fee cap: address 0x01, tip: 2, feeCap: 1", "", CALL, stopped(E::TipAboveFeeCap)),
        (-32003, "max priority fee per gas greater than max fee per gas", "", CALL, stopped(E::TipAboveFeeCap)),
        (-32000, "nonce too low: next nonce 5, tx nonce 4", "", CALL, stopped(E::NonceTooLow)),
        (-32000, "nonce too high: address 0x01, tx: 9 state: 5", "", CALL, stopped(E::NonceTooHigh)),
        (-32000, "sender not an eoa: address 0x01, len(code): 23", "", CALL, stopped(E::SenderNotEoa)),
        (-32000, "execution aborted (timeout = 5s)", "", CALL, stopped(E::Timeout)),
        (-32000, "EVM timeout", "", CALL, stopped(E::Timeout)),
        (-32003, "caller gas limit exceeds block gas limit", "", CALL, stopped(E::GasAboveLimit { most: None })),
        (-32603, "EVM error: PrecompileError", "", CALL, stopped(E::Failed)),
        (-32015, "VM execution error.", r#""Internal""#, CALL, stopped(E::Failed)),
    ]
}

#[rustfmt::skip]
fn ranges() -> Vec<Row> {
    vec![
        (-32602, "range 1000000 exceeds limit of 10000", "", LOGS, wide(10_000)),
        (-32600, "You can make eth_getLogs requests with up to a 500 block range. Based on your parameters, this block range should work: [0x123c9b2, 0x123cba5]", "", LOGS, wide(500)),
        (-32600, "You can make eth_getLogs requests with up to a 2K block range.", "", LOGS, wide(2_000)),
        (-32614, "eth_getLogs is limited to a 10,000 range", "", LOGS, wide(10_000)),
        (-32614, "eth_getLogs is limited", "", LOGS, WIDE),
        (-32602, "eth_getLogs is limited to 0 - 50 blocks range", "", LOGS, wide(50)),
        (-32600, "block range is too wide", "", LOGS, WIDE),
        (-32600, "block range too high", "", LOGS, WIDE),
        (-32047, "Invalid eth_getLogs request. 'fromBlock'-'toBlock' range too large. Max range: 800", "", LOGS, wide(800)),
        (-32000, "exceed maximum block range: 5000", "", LOGS, wide(5_000)),
        (-32000, "exceeded maximum block range: 5000", "", LOGS, wide(5_000)),
        (-32000, "block range too large, max range: 2000", "", LOGS, wide(2_000)),
        (-32602, "query exceeds max block range 100000", "", LOGS, wide(100_000)),
        (-32000, "Requested range exceeds maximum RPC range limit", "", LOGS, WIDE),
        (-32005, "Requested range exceeds maximum RPC range limit", "", LOGS, WIDE),
        (-32602, "invalid params", r#""range 20000 is bigger than range limit 2000""#, LOGS, wide(2_000)),
        (-32602, "invalid params", r#"{"error_id":"4ed9","payload":"range 9009594 is bigger than range limit 2000"}"#, LOGS, wide(2_000)),
        (-32602, "Invalid params", r#""requested block range 16777217 exceeds the limit of 200; narrow your fromBlock/toBlock""#, LOGS, wide(200)),
        (-32000, "requested too many blocks from 50331648 to 51380224, maximum is set to 2048", "", LOGS, wide(2_048)),
        (-32000, "maximum [from, to] blocks distance: 2000", "null", LOGS, wide(2_000)),
        (-32000, "block range is larger than max block range, block range = 5120, max block range = 5000", "", LOGS, wide(5_000)),
        (-32603, "Block range limit exceeded. See more details at the provider's pages", "", LOGS, WIDE),
        (-32602, "Block range limit exceeded: 100", "", LOGS, WIDE),
        (-32005, "query returned more than 10000 results. Try with this block range [0xBDE5F8, 0x102DBCC].", r#"{"from":"0xBDE5F8","limit":10000,"to":"0x102DBCC"}"#, LOGS, MANY),
        (-32005, "query returned more than 10000 results", r#"{"from":"0xBDE5F8","limit":10000,"to":"0x102DBCC"}"#, LOGS, MANY),
        (-32005, "query returned more than 10000 results", "", LOGS, MANY),
        (-32005, "query returned more than 1000 results", r#"{"host":"10.0.0.1","to":"latest"}"#, LOGS, MANY),
        (-32602, "Query returned more than 10000 results. Try with this block range [0x100000, 0x1000bb].", "", LOGS, MANY),
        (-32602, "invalid params", r#""Query returned more than 50000 results. Try with this block range [0x1000000, 0x1080000].""#, LOGS, MANY),
        (-32602, "Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range and no limit on the response size, or you can request any block range with a cap of 10K logs in the response. Based on your parameters and the response size limit, this block range should work: [0x0, 0xd043b8]", "", LOGS, MANY),
        (-32602, "query exceeds max results 20000, retry with the range 100-200", "", LOGS, MANY),
        (-32000, "logs matched by query exceeds limit of 10000", "", LOGS, MANY),
        (-32000, "query returned more than allowed number of logs, try with smaller block range", "", LOGS, MANY),
        (-32008, "Response is too big", r#""Exceeded max limit of 167772160""#, LOGS, MANY),
        (-32020, "backend response too large", "", LOGS, MANY),
        (-32000, "Response size is larger than 150MB limit: response size should not greater than 10000000 bytes", "", LOGS, MANY),
        (-32005, "limit exceeded", "", LOGS, MANY),
        (-32005, "query timeout exceeded", "", LOGS, QueryTimeout),
        (-32002, "request timed out", "", LOGS, QueryTimeout),
        (-32000, "context deadline exceeded", "", LOGS, QueryTimeout),
        (-32000, "Request timeout", "", LOGS, QueryTimeout),
        (-32602, "invalid block range params", "", LOGS, BadParams),
        (-32602, "block range extends beyond current head block", "", LOGS, NoBlock),
    ]
}

#[rustfmt::skip]
fn lacking() -> Vec<Row> {
    vec![
        (-32000, "missing trie node 3b1e (path ) state 0x3b1e is not available, not found", "", STORAGE, NoState),
        (-32000, "missing trie node 3b1e (path ) <nil>", "", CALL, NoState),
        (-32000, "historical state 3b1e is not available", "", STORAGE, NoState),
        (-32000, "historical state not available in path scheme yet", "", CALL, NoState),
        (-32000, "required historical state unavailable (reexec=128)", "", CALL, NoState),
        (-32602, "distance to target block exceeds maximum proof window", "", "eth_getProof", NoState),
        (-32000, "requested block is too old, block must be within 1000 blocks of the head block number (currently 3696916)", "", "eth_getProof", NoState),
        (4444, "pruned history unavailable", "", RECEIPTS, NoState),
        (-32000, "state at block #100 is pruned", "", CALL, NoState),
        (-32002, "No state available for block 0x01", "", CALL, NoState),
        (-32000, "World state unavailable", "", CALL, NoState),
        (-32000, "old data not available due to pruning", "", CALL, NoState),
        (-32000, "state is not available", "", STORAGE, NoState),
        (-32602, "Block with such an ID is pruned; the first retained block is 100", "", CALL, NoState),
        (-32602, "Archive requests require a personal token. Get one at: https://example.org", "", STORAGE, NoState),
        (-32000, "header not found", "", CALL, NoBlock),
        (-32001, "header not found", "", STORAGE, NoBlock),
        (-32000, "header for hash not found", "", STORAGE, NoBlock),
        (-32000, "hash 01ab is not currently canonical", "", STORAGE, NoBlock),
        (-32000, "unknown block", "", LOGS, NoBlock),
        (-39001, "Unknown block", "", RECEIPTS, NoBlock),
        (-32001, "block not found: hash 0x01", "", CALL, NoBlock),
        (-32001, "Block not found", "", CALL, NoBlock),
        (-32000, "block 0x10 not found", "", CALL, NoBlock),
        (-32602, "Block with such an ID doesn't exist yet", "", CALL, NoBlock),
        (-32602, "specified block greater than current height", "", STORAGE, NoBlock),
        (-32602, "specified `toBlock` greater than current height", "", LOGS, NoBlock),
        (-32602, "value for 0x01ab not found in DB", "", "eth_getTransactionByBlockHashAndIndex", NoBlock),
        (-32602, "BlockOutOfRangeError: block height is 10 but requested was 20", "", CALL, NoBlock),
        (-32001, "20 could not be found", "", CALL, NoBlock),
        (-32000, "cannot query unfinalized data", "", STORAGE, NoBlock),
        (-32000, "finalized block not found", "", STORAGE, NoBlock),
        (-32601, "the method eth_getBlockReceipts does not exist/is not available", "", RECEIPTS, NoMethod),
        (-32601, "Method not found", "", RECEIPTS, NoMethod),
        (-32604, "Method not enabled", "", RECEIPTS, NoMethod),
        (-32602, "invalid argument 2: argument must be a string", "", STORAGE, NoMethod),
        (-32602, "invalid argument 1: argument must be a string", "", CALL, NoMethod),
        (-32603, "The number 75.5 cannot be converted to a BigInt because it is not an integer", "", "eth_feeHistory", NoMethod),
        (-32600, "Unsupported method: eth_getBlockReceipts on ETH_MAINNET", "", RECEIPTS, NoMethod),
        (-32004, "method not supported on this network", "", RECEIPTS, NoMethod),
        (-32000, "the method eth_getBlockReceipts does not exist/is not available", "", RECEIPTS, NoMethod),
    ]
}

#[rustfmt::skip]
fn unwell() -> Vec<Row> {
    vec![
        (429, "Your app has exceeded its compute units per second capacity. If you have retries enabled, you can safely ignore this message.", "", LOGS, RateLimited),
        (-32005, "project ID request rate exceeded", r#"{"rate":{"allowed_rps":1,"backoff_seconds":30,"current_rps":1.4}}"#, LOGS, RateLimited),
        (-32005, "daily request count exceeded, request rate limited", r#"{"see":"https://example.org"}"#, LOGS, RateLimited),
        (-32012, "credits limited to 6000/sec", "", LOGS, RateLimited),
        (-32007, "50/second request limit reached - reduce calls per second or upgrade your account", "", CALL, RateLimited),
        (-32003, "daily request limit reached - upgrade your account", "", CALL, RateLimited),
        (-32097, "Rate limit exceeded", "", STORAGE, RateLimited),
        (-32016, "over rate limit", "", CALL, RateLimited),
        (-32090, "Too many requests, reason: call rate limit exhausted, retry in 10s", "", CALL, RateLimited),
        (-32005, "You've exceeded the RPS limit available on the current plan", "", CALL, RateLimited),
        (-32005, "limit exceeded", "", STORAGE, RateLimited),
        (-32000, "Monthly capacity limit exceeded.", "", CALL, RateLimited),
        (-32000, "Unauthorized: You must authenticate your request with an API key.", "", LOGS, Unauthorised),
        (-32600, "Must be authenticated!", "", CALL, Unauthorised),
        (-32002, "invalid project id", "", CALL, Unauthorised),
        (-32002, "rejected due to project ID settings", "", CALL, Unauthorised),
        (403, "Forbidden", "", CALL, Unauthorised),
        (-32000, "Node is syncing, try again later", "", STORAGE, Syncing),
        (-32000, "transaction indexing is in progress", "", "eth_getTransactionReceipt", Syncing),
        (-32603, "Internal error", "", CALL, Internal),
        (-32603, "Internal JSON-RPC error.", "", LOGS, Internal),
        (-32000, "leveldb: closed", "", STORAGE, Internal),
        (-32000, "request timed out", "", STORAGE, Internal),
        (-32700, "parse error", "", CALL, Internal),
        (-32000, "", "", STORAGE, Internal),
        (-32602, "invalid argument 0: hex string has length 62, want 64 for common.Hash", "", STORAGE, BadParams),
        (-32602, "missing value for required argument 1", "", STORAGE, BadParams),
        (-32602, "Invalid params", "", CALL, BadParams),
        (-32600, "Invalid Request", "", CALL, BadParams),
    ]
}

/// The answers of geth, Erigon, Nethermind, Besu, reth, Hardhat and Ganache to calls that they cannot serve, from their sources and threads.
#[rustfmt::skip]
fn by_make() -> Vec<Row> {
    vec![
        (-32000, "intrinsic gas too high", "", CALL, stopped(E::GasAboveLimit { most: None })),
        (-32005, "Transaction gas limit cap exceeded", "", CALL, stopped(E::GasAboveLimit { most: None })),
        (-32000, "Block gas limit exceeded", "", CALL, stopped(E::GasAboveLimit { most: None })),
        (-32000, "TxGasLimitCapExceeded: Gas limit 18446744073709551615 exceeded cap of 4294967295", "", CALL, stopped(E::GasAboveLimit { most: Some(4_294_967_295) })),
        (-32009, "Gas price below current base fee", "", CALL, stopped(E::FeeCapBelowBaseFee)),
        (-32000, "Max priority fee per gas exceeds max fee per gas", "", CALL, stopped(E::TipAboveFeeCap)),
        (-32003, "sender is not an EOA", "", CALL, stopped(E::SenderNotEoa)),
        (-32003, "out of memory: memory limit exceeded during memory expansion", "", CALL, stopped(E::OutOfGas)),
        (-32000, "Transaction processing could not be completed due to an exception", "", ESTIMATE, stopped(E::Failed)),
        (-32602, "Invalid block param (block not found)", "", ESTIMATE, NoMethod),
        (-32000, "requested block range [4096, 8192] is beyond latest executed block 4000 (node is still syncing)", "", LOGS, NoBlock),
        (-32602, "requested block range is in the future", "", LOGS, NoBlock),
        (-32602, "Block range 50000 exceeds the maximum of 10000 blocks per logs request. Use a narrower fromBlock/toBlock range or increase Receipt.MaxBlockDepth.", "", LOGS, wide(10_000)),
        (-32602, "query block range exceeds server limit, narrow your filter: 1000", "", LOGS, wide(1_000)),
        (-32602, "block range greater than 100 max", "", LOGS, wide(100)),
        (-32602, "query returns too many logs, narrow your filter: 20000", "", LOGS, MANY),
        (-32005, "Too many logs requested. Max logs per response is 20000.", "", LOGS, MANY),
        (-32603, "state at block #6 is not available, block has not been executed yet (latest executed: #5)", "", STORAGE, NoBlock),
        (-32603, "state at block #5 is pruned", "", STORAGE, NoState),
        (-32603, "block #5 is not available, history has expired (earliest available: #9)", "", RECEIPTS, NoState),
        (-32603, "no state found for block 0xab", "", STORAGE, NoState),
        (-32603, "insufficient changesets to revert to block #5. Available changeset range: 8..=9", "", "eth_getProof", NoState),
        (-32603, "account change set for address 0x01 at block #5 does not exist", "", STORAGE, NoState),
        (-32000, "history has been pruned for this block", "", STORAGE, NoState),
        (-32701, "History has been pruned for this block", "", LOGS, NoState),
        (-32603, "Internal error", r#""Nethermind.Trie.MissingTrieNodeException: Node A: P:2 is missing from the DB""#, STORAGE, NoState),
        (-32602, "Receipts for block 5 (0xab) are neither stored nor reproducible from state history.", "", RECEIPTS, NoState),
        (-32000, "state history is not fully indexed, requested: 5, indexed: 3", "", STORAGE, NoState),
        (-32000, "state history hasn't been indexed yet", "", STORAGE, NoState),
        (-32000, "state histories are not available", "", STORAGE, NoState),
        (-32000, "receipts length mismatch: 3 vs 0", "", RECEIPTS, NoState),
        (-32000, "header found, but block body is missing", "", RECEIPTS, NoBlock),
        (-32000, "could not find the header hash 0x01 in cache or db", "", ESTIMATE, NoBlock),
        (-32000, "block number is in the future latest=5 requested=6", "", "eth_getProof", NoBlock),
        (-32000, "pending state is not available", "", CALL, Syncing),
        (-32000, "pending block is not available", "", CALL, Syncing),
        (-32000, "node is still initializing", "", LOGS, Syncing),
        (-32000, "block 5 exists but transaction indexing is not yet complete, please try again later", "", LOGS, Syncing),
        (-32002, "Transaction pool not enabled. (Either txpool explicitly disabled, or node not yet in sync).", "", "eth_getTransactionCount", Syncing),
        (-32603, "Incorrect head block", "", STORAGE, Syncing),
        (-32000, "begin (9) > latest (5)", "", LOGS, NoBlock),
        (-32000, "state transitaion failed: seek with txNum=19 but data before txNum=26 is not available: blockNum=16, txNum=19", "", LOGS, NoState),
        (-32000, "getReceipt error: ReceiptsGen: PrepareEnv: bn=71, old data not available due to pruning", "", RECEIPTS, NoState),
        (-32000, "Receipt not available for From block 14319330.", "", LOGS, NoState),
        (-32602, "Requested range exceeds maximum RPC range limit", "", LOGS, WIDE),
        (-32000, "end (5) < begin (9)", "", LOGS, BadParams),
        (-32000, "transaction gas limit (600000000) is greater than the cap (16777216)", r#"{"message":"transaction gas limit (600000000) is greater than the cap (16777216)"}"#, CALL, stopped(E::GasAboveLimit { most: Some(16_777_216) })),
        (-32000, "transaction gas limit too high (cap: 16777216, tx: 50000000)", "", CALL, stopped(E::GasAboveLimit { most: Some(16_777_216) })),
        (-32000, "Transaction requires at least 21000 gas but got 16", "", CALL, stopped(E::IntrinsicGas)),
        (3, "VM Exception while processing transaction: invalid opcode", r#""0x""#, CALL, stopped(E::InvalidOpcode)),
        (-32000, "Transaction ran out of gas", r#"{"message":"Transaction ran out of gas","data":"0x"}"#, CALL, stopped(E::OutOfGas)),
        (-32700, "Cannot wrap a \"object\" as a json-rpc type", "", STORAGE, NoMethod),
        (-32700, "header not found", "", STORAGE, NoBlock),
        (-32700, "The method eth_getBlockReceipts does not exist/is not available", "", RECEIPTS, NoMethod),
        (-32004, "Method eth_getBlockReceipts is not supported", "", RECEIPTS, NoMethod),
        (-32000, "Received invalid block tag 65535. Latest block number is 7", "", STORAGE, NoBlock),
        (-32602, "blockHash cannot be found", "", LOGS, NoBlock),
        (-32001, "Resource not found", "", STORAGE, NoBlock),
    ]
}

#[test]
fn every_dialect_is_understood() {
    let rows = [reverts(), executions(), ranges(), lacking(), unwell(), by_make()].concat();
    assert!(rows.len() >= 120);
    let mut wrong = Vec::new();
    for (code, message, data, method, expected) in &rows {
        let data = (!data.is_empty()).then(|| bytes::Bytes::from_static(data.as_bytes()));
        let error = RpcError { code: *code, message: (*message).to_owned(), data };
        let meaning = read(&error, method);
        if meaning != *expected {
            wrong.push(format!("{code} {message}: {meaning:?} instead of {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn our_words_for_a_stop_are_those_that_clients_know() {
    assert_eq!(E::GasAllowance { most: Some(7) }.to_string(), "gas required exceeds allowance (7)");
    assert_eq!(E::GasAllowance { most: None }.to_string(), "gas required exceeds allowance");
    assert_eq!(E::OutOfGas.to_string(), "out of gas");
}

#[test]
fn neither_long_nor_odd_texts_hurt() {
    let texts = ["ü".repeat(5_000), "[".repeat(3_000), "exceeds limit of 99999999999999999999".to_owned()];
    for message in texts {
        for data in [None, Some("{"), Some("[[[["), Some(r#"{"from":"0x","to":"0xg"}"#)] {
            let data = data.map(|data| bytes::Bytes::from_static(data.as_bytes()));
            for method in [CALL, LOGS, STORAGE] {
                read(&RpcError { code: i64::MIN, message: message.clone(), data: data.clone() }, method);
            }
        }
    }
}
