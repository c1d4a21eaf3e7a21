//! Proven block data: whichever node delivered it, it is what the hash of its block commits to.
//!
//! A block is proven in three parts, because most calls need only the first: the body against the block's hash, uncles
//! and receipts against the header in the body. Members of a delivery that no hash commits to (`from`, prices, indices,
//! sizes, members that we do not know) are not read. Everything here is a pure function of bytes.

mod account; // accounts, storage and code
mod body; // header, transactions and withdrawals
mod header; // a header alone
mod location; // which block a node says that a transaction is in
mod receipts; // receipts and their logs
mod uncles; // headers of uncles

#[cfg(test)]
mod tests;

pub use crate::proof_failure::{ProofFailure, Unproven};
pub use crate::raw::SignedTransaction;
pub use account::{AccountProof, ProvenAccount, prove_code};
pub use body::ProvenBody;
pub(crate) use body::is_root_of_nothing;
pub use header::{FeeFields, ProvenHeader, prove_header};
pub use location::{LocationClaim, PendingTransaction};
pub use receipts::{ProvenReceipts, TransactionReceipt};
pub use uncles::{ProvenUncles, UNCLES_MAX};
