//! The embedded chain: every block that it holds was executed and proven against its header.
//!
//! Synchronous and typed. It knows no network, no JSON-RPC and no callers. Only this crate imports revm and
//! the key-value store.
//!
//! In the order in which a block passes through:

mod blockfile; // bytes of RLP and era1 files → blocks
mod chain; // genesis.json → the rules at each block
mod check; // a block against its parent, before execution
mod eip1283; // the price of SSTORE between Constantinople and Petersburg
mod execute; // a block → receipts and state changes
mod import; // the pipeline that ties the steps together
mod logs; // the exact log index
mod rows; // every row of the file
mod state; // what a block changes, over what was there before
mod store; // the file on disk
mod tables; // every table of the file
mod trie; // state roots at the price of what changed

// beside it, for blocks that others execute:

mod kept_blocks; // proven blocks in a file of their own

// and in which it is read again:

mod call; // run a message at a block
mod estimate; // the least gas with which a message succeeds
mod partial; // a state of which only parts are known
mod read; // block data, receipts, state as of a block

pub mod build; // assembles valid blocks: the demo chain, tests, benchmarks

pub use blockfile::{BlockFile, BlockFileError, BlockFileFault};
pub use call::{
    CallError, CallLimits, Deadline, Halt, OverrideError, Overrides, Refusal, Stop, call, revert_message,
};
pub use chain::{Block, ChainSpec, GenesisError, Rules, Transaction};
pub use check::{BlockFault, TransactionFault, UncleFault, next_base_fee};
pub use estimate::estimate;
pub use execute::{
    Executed, ExecutionFault, Receipt, RootAfter, SystemFault, TransactionRejection, execute_block,
};
pub use import::{BadBlock, ImportError, Progress, RawRecordsError, Watch};
pub use kept_blocks::{
    BLOCKS_FILE, BlockParts, EncodedBlock, KeptBlocks, KeptBody, KeptChainId, KeptHeader, KeptLimits,
    KeptOpenError, KeptReceipts, KeptSnapshot,
};
pub use logs::{LogFilter, LogRef};
pub use partial::{ContractCode, KnownState, MissingState, PartialState, Reads, StateParts};
pub use read::{
    BlockData, BlockId, FoundLogs, InBlock, LogLimits, LogsError, ReceiptData, Snapshot, StateAt,
    TransactionData,
};
pub use rows::{BlockPlace, CorruptRow, Outcome, ReceiptRow, Recipient};
pub use state::{Account, AccountChange, Changes, StateSource};
pub use store::{ARCHIVE_FILE, Archive, OpenError, REPLACEABLE_BLOCKS_MIN, StoreError};
