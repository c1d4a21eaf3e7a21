//! The embedded chain: every block that it holds was executed and proven against its header.
//!
//! The API is synchronous and typed. The crate does not know the network, JSON-RPC or callers. Only this crate imports revm
//! and the key-value store.
//!
//! `answers` reads it, `chaingate` imports blocks into it, and `demo` makes one:
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let archive = archive::Archive::open("/var/lib/chaingate".as_ref())?;
//! let snapshot = archive.snapshot();
//! let head = snapshot.block(snapshot.head())?;
//! # Ok(())
//! # }
//! ```

// The path of a block, in order:

mod blockfile; // bytes of RLP and era1 files → blocks
mod chain; // genesis.json → the rules at each block
mod check; // a block against its parent, before execution
mod eip1283; // the price of SSTORE between Constantinople and Petersburg
mod execute; // a block → receipts and state changes
mod write; // rows of proven blocks
mod import; // the pipeline that ties the steps together
mod logs; // the exact log index
mod rows; // every row of the file
mod state; // what a block changes, over what was there before
mod store; // the file on disk
mod table_list; // work that is the same for every table
mod tables; // every table of the file
mod copy; // a file made of the rows of another one that is in use
mod verify; // everything in a file is read, and what cannot be read is named
mod trie; // state roots at the price of what changed

// Blocks that were executed elsewhere:

mod blocks_file; // proven blocks in a file of their own

// Reads:

mod call; // run a message at a block
mod estimate; // the least gas with which a message succeeds
mod partial; // a state of which only parts are known
mod archive; // an archive that is open
mod damage; // what damaged rows mean to callers
mod read; // block data, receipts, state as of a block

pub use blockfile::{BLOCK_BYTES_MAX, BlockFile, BlockFileError, BlockFileFault};
pub use blocks_file::{
    BLOCKS_FILE, BlockParts, BlocksFile, BlocksFileLimits, BlocksFileOpenError, BlocksFileSnapshot,
    EncodedBlock, RemovedDamage, StoredBody, StoredChainId, StoredHeader,
};
pub use call::{CallError, CallLimits, Deadline, Overrides, StopReason, call};
pub use chain::{
    Block, BlockRules, ChainSpec, GenesisError, Transaction, next_base_fee, next_excess_blob_gas,
};
pub use check::{Ancestry, BlockFault, check_block};
pub use copy::{CopyProgress, ReceiveError, SendError};
pub use estimate::estimate;
pub use execute::{BlockExecutionResult, ExecutionFault, Receipt, RootAfter, execute_block};
pub use import::{BadBlock, ImportError, ImportObserver, ImportProgress, NoProgress, RawRecordsError};
pub use logs::{LogFilter, LogRef};
pub use partial::{ContractCode, KnownState, PartialState, StateParts, StateReads};
pub use read::{FoundLogs, InBlock, LogLimits, LogsError, ReceiptData, Snapshot, TransactionData};
pub use rows::{BlockSummary, CorruptRow, ReceiptRow, Recipient, TransactionOutcome};
// Sources of state hand over code in this form.
pub use archive::{ARCHIVE_FILE, Archive};
pub use revm::state::Bytecode;
pub use state::{AccountChange, AccountState, StateChanges, StateSource};
pub use store::{OpenError, REPLACEABLE_BLOCKS_MIN, StoreError};
pub use verify::DamagedRange;
