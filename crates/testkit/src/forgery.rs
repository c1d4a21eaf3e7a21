//! Lies of nodes, each of which leaves the rest of a node's answers as they are. All nodes with the same forgery tell the
//! same lie, so that they support each other.

mod blocks;
mod errors;
mod heads;
mod logs;
mod receipts;
mod state;
mod transactions;

use serde_json::{Value, json};

/// The kind of answers that a forgery changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForgedSubject {
    Receipts,
    Transactions,
    Logs,
    Blocks,
    /// The head, `safe`, `finalized`, and the identity of the chain.
    Heads,
    /// Data that no block contains: accounts, storage, simulations, fees.
    State,
    /// Errors in place of answers.
    Errors,
}

/// Asks the node behind the liar: method and parameters to result.
type TrueNode<'a> = &'a dyn Fn(&str, Value) -> Value;

macro_rules! forgeries {
    ($($(#[$about:meta])* $name:ident: $subject:ident,)*) => {
        /// A change that a lying node makes to its answers.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Forgery {
            $($(#[$about])* $name,)*
        }

        impl Forgery {
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            pub fn subject(self) -> ForgedSubject {
                match self {
                    $(Self::$name => ForgedSubject::$subject,)*
                }
            }
        }
    };
}

forgeries! {
    /// A receipt says the opposite of what happened.
    ReceiptStatus: Receipts,
    /// A receipt is of a type that nobody knows.
    ReceiptType: Receipts,
    ReceiptSender: Receipts,
    ReceiptRecipient: Receipts,
    ReceiptContract: Receipts,
    ReceiptGasPrice: Receipts,
    ReceiptGas: Receipts,
    ReceiptBlobGas: Receipts,
    ReceiptIndex: Receipts,
    /// Numbers of a receipt are the greatest of 64 bits.
    ReceiptHugeNumbers: Receipts,
    /// The receipts of a block are gone.
    NoReceipts: Receipts,
    /// The last receipt of a block is gone.
    ReceiptDropped: Receipts,
    /// Receipts are null.
    ReceiptNull: Receipts,
    /// The receipts of a block have changed places.
    ReceiptsSwapped: Receipts,
    /// A transaction that does not exist has a receipt in an old block.
    ReceiptInvented: Receipts,
    /// The logs of a receipt are gone, and its bloom with them.
    LogsDropped: Receipts,
    /// The last log of a receipt is gone, and its bloom is that of the others.
    LogDroppedWithBloom: Receipts,
    /// A receipt has one more log, and its bloom includes it.
    LogAddedWithBloom: Receipts,

    TransactionIndex: Transactions,
    /// A transaction is of a type that nobody knows.
    TransactionType: Transactions,
    /// A transaction of an unknown type has another value, and no signature.
    TransactionTypeAndValue: Transactions,
    /// A transaction has no signature.
    Unsigned: Transactions,
    TransactionValue: Transactions,
    TransactionInput: Transactions,
    TransactionNonce: Transactions,
    TransactionHash: Transactions,
    TransactionSender: Transactions,
    TransactionPrice: Transactions,
    TransactionTimestamp: Transactions,
    /// Numbers of a transaction are the greatest of 64 bits.
    TransactionHugeNumbers: Transactions,
    /// Another signed transaction stands in the place of the one that is asked for.
    TransactionReplaced: Transactions,
    /// A transaction that does not exist is in an old block.
    TransactionInvented: Transactions,
    /// A mined transaction is said to be pending.
    Pending: Transactions,
    /// Transactions and receipts are said to be in the first block.
    OtherBlock: Transactions,
    /// Transactions and receipts are not there.
    NoTransactions: Transactions,

    LogData: Logs,
    LogAddress: Logs,
    LogTopics: Logs,
    LogTransaction: Logs,
    LogBlock: Logs,
    LogTimestamp: Logs,
    LogIndex: Logs,
    /// Numbers of a log are the greatest of 64 bits.
    LogHugeNumbers: Logs,
    /// Logs are said to have been reorganised away.
    LogRemoved: Logs,
    /// Log queries find nothing.
    NoLogs: Logs,
    /// The first log that a query finds is gone.
    LogDropped: Logs,
    /// Log queries find more than there is.
    LogInvented: Logs,
    /// Log queries find nothing, and receipts have no logs.
    NoLogsAnywhere: Logs,

    /// Transactions of a block have changed places.
    Swapped: Blocks,
    /// Transactions of a block are gone.
    NoneListed: Blocks,
    /// The last transaction of a block is gone.
    LastNotListed: Blocks,
    /// A block lists its first transaction twice.
    ListedTwice: Blocks,
    /// Lists of transaction hashes have other hashes.
    HashList: Blocks,
    /// A block has the transactions of the one before it.
    OtherTransactions: Blocks,
    Withdrawals: Blocks,
    WithdrawalAmount: Blocks,
    BlockSize: Blocks,
    TotalDifficulty: Blocks,
    BlockTimestamp: Blocks,
    BlockStateRoot: Blocks,
    BlockMiner: Blocks,
    /// Values of the header stand under the names of later members, which leaves its hash as it is.
    MovedMembers: Blocks,
    /// Another extra data, with the hash that the header then has.
    BlockRehashed: Blocks,
    /// Numbers of a header are the greatest of 64 bits, with the hash that it then has.
    BlockHugeNumbers: Blocks,
    /// The block before the one that is asked for.
    BlockBefore: Blocks,
    /// Blocks are null.
    BlockNull: Blocks,
    /// A block hash that does not exist has a block.
    BlockInvented: Blocks,
    UncleList: Blocks,
    /// Uncles are other headers.
    Uncle: Blocks,
    UncleNull: Blocks,
    UncleInvented: Blocks,
    Counts: Blocks,
    CountsNull: Blocks,
    /// Every object says more than it should.
    ExtraMembers: Blocks,

    /// The head is said to be far ahead.
    HeadAhead: Heads,
    /// The head has the greatest number of 64 bits, with the hash that it then has.
    HeadHugeNumber: Heads,
    /// The head has the greatest number and time that are believed, with the hash that it then has.
    HeadLargestNumber: Heads,
    /// The head stays a few blocks behind.
    HeadBehind: Heads,
    /// The head is a block that nobody else has, with the true head as its parent.
    HeadForged: Heads,
    /// The newest block lists other transactions, beside its true header.
    HeadTransactions: Heads,
    /// `safe` and `finalized` are the head.
    MarksAtHead: Heads,
    /// `safe` and `finalized` are the first block.
    MarksAtGenesis: Heads,
    /// `safe` and `finalized` are blocks that nobody else has.
    MarksForged: Heads,
    /// `safe` and `finalized` have the greatest number of 64 bits, with the hash that they then have.
    MarksHugeNumber: Heads,
    MarksNull: Heads,
    ChainId: Heads,
    /// Another first block, with the hash that its header then has.
    Genesis: Heads,
    Syncing: Heads,

    StorageValue: State,
    StorageZero: State,
    Balance: State,
    Nonce: State,
    Code: State,
    CodeGone: State,
    CallResult: State,
    CallEmpty: State,
    /// Simulations are said to revert.
    FalseRevert: State,
    /// Simulations that revert have results.
    RevertHidden: State,
    /// A revert has another reason.
    RevertReason: State,
    FalseInsufficientFunds: State,
    FalseOutOfGas: State,
    EstimateLow: State,
    EstimateHigh: State,
    GasPrice: State,
    PriorityFee: State,
    FeeHistoryBaseFees: State,
    FeeHistoryRewards: State,
    FeeHistoryEmpty: State,
    /// Proofs of accounts and slots have other values.
    ProofValues: State,
    RawTransactions: State,

    /// Log queries are said to find too many logs.
    TooManyResults: Errors,
    /// Log queries are said to be limited to one block.
    RangeLimit: Errors,
    LogTimeout: Errors,
    /// State is said to be gone.
    NoState: Errors,
    /// Blocks are said to be unknown wherever state is asked for.
    NoHeader: Errors,
    /// Methods about blocks and receipts are said not to exist.
    NoMethod: Errors,
    /// Parameters are said to be wrong.
    InvalidParams: Errors,
    /// Everything but the head is an internal error.
    InternalError: Errors,
}

impl Forgery {
    /// The forgery with this name, in any case.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|forgery| format!("{forgery:?}").eq_ignore_ascii_case(name))
    }

    /// Changes the reply to a call. But for lies about heads, questions about the newest block are answered truly, so that the
    /// node stays in the pool.
    pub(crate) fn apply(self, node: TrueNode<'_>, call: &Value, reply: &mut Value) {
        if self.subject() == ForgedSubject::Heads {
            return self.forge_heads(node, call, reply);
        }
        if call["params"][0] == "latest" && call["method"] == "eth_getBlockByNumber" {
            return;
        }
        if self.subject() == ForgedSubject::Errors {
            return self.forge_error(call, reply);
        }
        if self.forge_state(call, reply) {
            return;
        }
        if let Some(result) = reply.get_mut("result") {
            self.forge_block_data(node, call, result);
        }
    }

    fn forge_block_data(self, node: TrueNode<'_>, call: &Value, result: &mut Value) {
        match call["method"].as_str().unwrap_or_default() {
            "eth_getLogs" => self.forge_logs(result),
            "eth_getBlockReceipts" => self.forge_receipts(result),
            "eth_getTransactionReceipt" => self.forge_single_receipt(node, call, result),
            "eth_getTransactionByHash"
            | "eth_getTransactionByBlockHashAndIndex"
            | "eth_getTransactionByBlockNumberAndIndex" => self.forge_single_transaction(node, call, result),
            "eth_getBlockByHash" | "eth_getBlockByNumber" => self.forge_whole_block(node, call, result),
            "eth_getUncleByBlockHashAndIndex" | "eth_getUncleByBlockNumberAndIndex" => {
                self.forge_uncle(node, result);
            }
            "eth_getUncleCountByBlockHash"
            | "eth_getUncleCountByBlockNumber"
            | "eth_getBlockTransactionCountByHash"
            | "eth_getBlockTransactionCountByNumber" => match self {
                Self::Counts => *result = json!("0x63"),
                Self::CountsNull => *result = Value::Null,
                _ => {}
            },
            _ => {}
        }
    }
}

fn list_of<'a>(object: &'a mut Value, name: &str) -> Option<&'a mut Vec<Value>> {
    object.get_mut(name)?.as_array_mut()
}

/// Sets a member of an object; other values stay as they are.
fn set(object: &mut Value, member: &str, value: &str) {
    if let Some(members) = object.as_object_mut() {
        members.insert(member.to_owned(), json!(value));
    }
}

/// Sets those of these members that an object has to the greatest number of 64 bits.
fn set_huge(object: &mut Value, names: &[&str]) {
    let Some(members) = object.as_object_mut() else { return };
    for name in names {
        if let Some(member) = members.get_mut(*name) {
            *member = json!(format!("{:#x}", u64::MAX));
        }
    }
}

fn flip(object: &mut Value, member: &str) {
    if let Some(value) = object.get_mut(member) {
        *value = json!(if *value == "0x1" { "0x0" } else { "0x1" });
    }
}

fn address() -> String {
    format!("0x{}", "ab".repeat(20))
}

fn hash() -> String {
    format!("0x{}", "ab".repeat(32))
}
