//! Results as JSON text. Whoever holds the chain hands over consensus data, and the same data gives the same bytes.

mod block; // blocks and uncles
mod fees; // what gas costs
mod json; // text from binary
mod log; // logs
mod receipt; // receipts
mod transaction; // transactions

pub use block::{BlockFields, write_block, write_block_header, write_uncle};
pub use fees::{
    BlockFees, FeeHistory, HISTORY_BLOCKS_MAX, PriorityFee, Reward, SUGGESTION_BLOCKS, Suggested, rewards_at,
    suggested_priority_fee,
};
pub use json::Json;
pub use log::{LOG_BYTES_TYPICAL, LogFields, LogWriter};
pub use receipt::write_receipt;
pub use transaction::{MinedTransaction, write_pending_transaction, write_transaction};
