//! The rows of the tables, byte by byte. `docs/storage-format.md` says the same in prose.
//!
//! Reading never trusts a row: what does not fit is [`CorruptRow`], never a panic.

use crate::state::AccountState;
use alloy_consensus::Header;
use alloy_eips::eip4895::Withdrawals;
use alloy_primitives::{Address, B256, Bloom, KECCAK256_EMPTY, U256};
use alloy_rlp::{Decodable, Encodable};
use alloy_trie::EMPTY_ROOT_HASH;

/// A row that cannot be read. The file is damaged, or was written by something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a row of the table `{table}` is damaged")]
pub struct CorruptRow {
    pub table: &'static str,
}

/// Places of transactions and logs are below this: the key of a log's data uses the bit above.
const ORDINALS_END: u64 = 1 << 63;

/// Takes a row apart from the front.
struct Fields<'a> {
    rest: &'a [u8],
    table: &'static str,
}

impl<'a> Fields<'a> {
    fn new(row: &'a [u8], table: &'static str) -> Self {
        Self { rest: row, table }
    }

    fn corrupt(&self) -> CorruptRow {
        CorruptRow { table: self.table }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], CorruptRow> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or_else(|| self.corrupt())?;
        self.rest = rest;
        Ok(*head)
    }

    fn bytes(&mut self, length: usize) -> Result<&'a [u8], CorruptRow> {
        let (head, rest) = self.rest.split_at_checked(length).ok_or_else(|| self.corrupt())?;
        self.rest = rest;
        Ok(head)
    }

    fn u8(&mut self) -> Result<u8, CorruptRow> {
        Ok(self.array::<1>()?[0])
    }

    fn u32(&mut self) -> Result<u32, CorruptRow> {
        self.array().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, CorruptRow> {
        self.array().map(u64::from_be_bytes)
    }

    /// Reads the place of a transaction or a log among all of them. Counts can be added to it.
    fn ordinal(&mut self) -> Result<u64, CorruptRow> {
        let ordinal = self.u64()?;
        if ordinal < ORDINALS_END { Ok(ordinal) } else { Err(self.corrupt()) }
    }

    /// Reads a number that a leading byte marks as present or absent.
    fn optional_u64(&mut self) -> Result<Option<u64>, CorruptRow> {
        match (self.u8()?, self.u64()?) {
            (0, _) => Ok(None),
            (1, number) => Ok(Some(number)),
            _ => Err(self.corrupt()),
        }
    }

    fn u128(&mut self) -> Result<u128, CorruptRow> {
        self.array().map(u128::from_be_bytes)
    }

    fn hash(&mut self) -> Result<B256, CorruptRow> {
        self.array().map(B256::new)
    }

    fn address(&mut self) -> Result<Address, CorruptRow> {
        self.array().map(Address::new)
    }

    fn u256(&mut self) -> Result<U256, CorruptRow> {
        self.array::<32>().map(U256::from_be_bytes)
    }

    fn end(&self) -> Result<(), CorruptRow> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.corrupt()) }
    }
}

/// The facts about a block that are stored besides its header: among others where its transactions and logs are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockSummary {
    pub hash: B256,
    /// Difficulty of this block and all before it.
    pub total_difficulty: U256,
    pub timestamp: u64,
    /// The header's base fee, from London on.
    pub base_fee: Option<u64>,
    /// Length of the block's RLP in bytes.
    pub size: u32,
    pub first_transaction: u64,
    pub transactions: u32,
    pub first_log: u64,
    pub logs: u32,
}

/// A row of `blocks`: its summary, then the RLP of header, uncles and withdrawals, each behind its length.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockRow<'a> {
    pub(crate) summary: BlockSummary,
    header: &'a [u8],
    uncles: &'a [u8],
    withdrawals: &'a [u8],
}

impl<'a> BlockRow<'a> {
    const TABLE: &'static str = "blocks";

    pub(crate) fn read(row: &'a [u8]) -> Result<Self, CorruptRow> {
        let mut fields = Fields::new(row, Self::TABLE);
        let summary = BlockSummary {
            hash: fields.hash()?,
            total_difficulty: fields.u256()?,
            timestamp: fields.u64()?,
            base_fee: fields.optional_u64()?,
            size: fields.u32()?,
            first_transaction: fields.ordinal()?,
            transactions: fields.u32()?,
            first_log: fields.ordinal()?,
            logs: fields.u32()?,
        };
        let mut part = || {
            let length = fields.u32()?;
            fields.bytes(length as usize)
        };
        let (header, uncles, withdrawals) = (part()?, part()?, part()?);
        fields.end()?;
        Ok(Self { summary, header, uncles, withdrawals })
    }

    pub(crate) fn header(&self) -> Result<Header, CorruptRow> {
        decode_rlp(self.header, Self::TABLE)
    }

    pub(crate) fn uncles(&self) -> Result<Vec<Header>, CorruptRow> {
        decode_rlp(self.uncles, Self::TABLE)
    }

    pub(crate) fn withdrawals(&self) -> Result<Option<Withdrawals>, CorruptRow> {
        if self.withdrawals.is_empty() {
            return Ok(None);
        }
        decode_rlp(self.withdrawals, Self::TABLE).map(Some)
    }

    pub(crate) fn write(
        summary: &BlockSummary,
        header: &Header,
        uncles: &[Header],
        withdrawals: Option<&Withdrawals>,
    ) -> Vec<u8> {
        let mut row = Vec::with_capacity(1024);
        row.extend_from_slice(summary.hash.as_slice());
        row.extend_from_slice(&summary.total_difficulty.to_be_bytes::<32>());
        row.extend_from_slice(&summary.timestamp.to_be_bytes());
        row.push(u8::from(summary.base_fee.is_some()));
        row.extend_from_slice(&summary.base_fee.unwrap_or(0).to_be_bytes());
        row.extend_from_slice(&summary.size.to_be_bytes());
        row.extend_from_slice(&summary.first_transaction.to_be_bytes());
        row.extend_from_slice(&summary.transactions.to_be_bytes());
        row.extend_from_slice(&summary.first_log.to_be_bytes());
        row.extend_from_slice(&summary.logs.to_be_bytes());
        append_part(&mut row, |row| header.encode(row));
        append_part(&mut row, |row| alloy_rlp::encode_list(uncles, row));
        append_part(&mut row, |row| {
            if let Some(withdrawals) = withdrawals {
                withdrawals.encode(row);
            }
        });
        row
    }
}

fn append_part(row: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let at = row.len();
    row.extend_from_slice(&[0; 4]);
    write(row);
    let length = u32::try_from(row.len() - at - 4).expect("a part of a block is far below 4 GiB");
    row[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

fn decode_rlp<T: Decodable>(mut bytes: &[u8], table: &'static str) -> Result<T, CorruptRow> {
    let value = T::decode(&mut bytes).map_err(|_| CorruptRow { table })?;
    if bytes.is_empty() { Ok(value) } else { Err(CorruptRow { table }) }
}

/// A row of `transactions`: hash, sender, EIP-2718 encoding.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TransactionRow<'a> {
    pub(crate) hash: B256,
    pub(crate) sender: Address,
    pub(crate) encoded: &'a [u8],
}

impl<'a> TransactionRow<'a> {
    pub(crate) const TABLE: &'static str = "transactions";

    pub(crate) fn read(row: &'a [u8]) -> Result<Self, CorruptRow> {
        let mut fields = Fields::new(row, Self::TABLE);
        Ok(Self { hash: fields.hash()?, sender: fields.address()?, encoded: fields.rest })
    }

    pub(crate) fn corrupt(&self) -> CorruptRow {
        CorruptRow { table: Self::TABLE }
    }

    pub(crate) fn write(&self, row: &mut Vec<u8>) {
        row.clear();
        row.extend_from_slice(self.hash.as_slice());
        row.extend_from_slice(self.sender.as_slice());
        row.extend_from_slice(self.encoded);
    }
}

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionOutcome {
    /// Whether it succeeded, from Byzantium on.
    Status(bool),
    /// The state root after it, before Byzantium.
    Root(B256),
}

/// The recipient of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recipient {
    Called(Address),
    /// It created, or would have created, a contract at this address.
    Created(Address),
}

/// A row of `receipts`: everything of a receipt but its logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiptRow {
    /// The EIP-2718 type of the transaction; zero for a legacy one.
    pub transaction_type: u8,
    pub outcome: TransactionOutcome,
    /// Gas used in the block up to and including this transaction.
    pub cumulative_gas_used: u64,
    /// Gas used by this transaction alone.
    pub gas_used: u64,
    /// The price that the sender paid per gas.
    pub effective_gas_price: u128,
    pub from: Address,
    pub to: Recipient,
    /// Blob gas it used; zero unless it carried blobs.
    pub blob_gas_used: u64,
    /// The price that it paid per blob gas.
    pub blob_gas_price: u128,
    pub first_log: u64,
    pub logs: u32,
    /// The bloom over its logs. Computing it takes longer than all the rest of a receipt.
    pub bloom: Bloom,
}

impl ReceiptRow {
    pub(crate) fn read(row: &[u8]) -> Result<Self, CorruptRow> {
        let mut fields = Fields::new(row, "receipts");
        let transaction_type = fields.u8()?;
        let outcome_kind = fields.u8()?;
        let root = fields.hash()?;
        let outcome = match outcome_kind {
            0 => TransactionOutcome::Status(false),
            1 => TransactionOutcome::Status(true),
            2 => TransactionOutcome::Root(root),
            _ => return Err(fields.corrupt()),
        };
        let (cumulative_gas_used, gas_used) = (fields.u64()?, fields.u64()?);
        let (effective_gas_price, from) = (fields.u128()?, fields.address()?);
        let to = match (fields.u8()?, fields.address()?) {
            (0, address) => Recipient::Called(address),
            (1, address) => Recipient::Created(address),
            _ => return Err(fields.corrupt()),
        };
        let (blob_gas_used, blob_gas_price) = (fields.u64()?, fields.u128()?);
        let (first_log, logs) = (fields.ordinal()?, fields.u32()?);
        let bloom = if logs > 0 { Bloom::new(fields.array()?) } else { Bloom::ZERO };
        fields.end()?;
        Ok(Self {
            transaction_type,
            outcome,
            cumulative_gas_used,
            gas_used,
            effective_gas_price,
            from,
            to,
            blob_gas_used,
            blob_gas_price,
            first_log,
            logs,
            bloom,
        })
    }

    pub(crate) fn write(&self, row: &mut Vec<u8>) {
        let (outcome_kind, root) = match self.outcome {
            TransactionOutcome::Status(success) => (u8::from(success), B256::ZERO),
            TransactionOutcome::Root(root) => (2, root),
        };
        let (to_kind, to) = match self.to {
            Recipient::Called(address) => (0, address),
            Recipient::Created(address) => (1, address),
        };
        row.clear();
        row.extend_from_slice(&[self.transaction_type, outcome_kind]);
        row.extend_from_slice(root.as_slice());
        row.extend_from_slice(&self.cumulative_gas_used.to_be_bytes());
        row.extend_from_slice(&self.gas_used.to_be_bytes());
        row.extend_from_slice(&self.effective_gas_price.to_be_bytes());
        row.extend_from_slice(self.from.as_slice());
        row.push(to_kind);
        row.extend_from_slice(to.as_slice());
        row.extend_from_slice(&self.blob_gas_used.to_be_bytes());
        row.extend_from_slice(&self.blob_gas_price.to_be_bytes());
        row.extend_from_slice(&self.first_log.to_be_bytes());
        row.extend_from_slice(&self.logs.to_be_bytes());
        if self.logs > 0 {
            row.extend_from_slice(self.bloom.as_slice());
        }
    }
}

/// A row of `accounts`: flags, nonce, balance without leading zeros behind its length, then code hash and
/// storage root where the flags say so. An empty row says that the account is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AccountRow {
    pub(crate) account: AccountState,
    pub(crate) storage_root: B256,
}

impl AccountRow {
    const TABLE: &'static str = "accounts";
    const HAS_CODE: u8 = 1;
    const HAS_STORAGE: u8 = 2;

    pub(crate) fn read(row: &[u8]) -> Result<Option<Self>, CorruptRow> {
        if row.is_empty() {
            return Ok(None);
        }
        let mut fields = Fields::new(row, Self::TABLE);
        let flags = fields.u8()?;
        if flags & !(Self::HAS_CODE | Self::HAS_STORAGE) != 0 {
            return Err(fields.corrupt());
        }
        let nonce = fields.u64()?;
        let length = fields.u8()?;
        let balance = U256::try_from_be_slice(fields.bytes(usize::from(length))?).ok_or(fields.corrupt())?;
        let code_hash = if flags & Self::HAS_CODE != 0 { fields.hash()? } else { KECCAK256_EMPTY };
        let storage_root = if flags & Self::HAS_STORAGE != 0 { fields.hash()? } else { EMPTY_ROOT_HASH };
        fields.end()?;
        Ok(Some(Self { account: AccountState { nonce, balance, code_hash }, storage_root }))
    }

    pub(crate) fn write(&self, row: &mut Vec<u8>) {
        let has_code = self.account.code_hash != KECCAK256_EMPTY;
        let has_storage = self.storage_root != EMPTY_ROOT_HASH;
        row.clear();
        row.push(u8::from(has_code) * Self::HAS_CODE + u8::from(has_storage) * Self::HAS_STORAGE);
        row.extend_from_slice(&self.account.nonce.to_be_bytes());
        let balance = self.account.balance.to_be_bytes_trimmed_vec();
        row.push(balance.len() as u8);
        row.extend_from_slice(&balance);
        if has_code {
            row.extend_from_slice(self.account.code_hash.as_slice());
        }
        if has_storage {
            row.extend_from_slice(self.storage_root.as_slice());
        }
    }
}

/// Key of `accounts`: the account as block `number` left it.
pub(crate) fn account_key(address: Address, number: u64) -> [u8; 28] {
    let mut key = [0; 28];
    key[..20].copy_from_slice(address.as_slice());
    key[20..].copy_from_slice(&number.to_be_bytes());
    key
}

/// Key of `storage`: the slot as block `number` left it.
pub(crate) fn storage_key(address: Address, slot: U256, number: u64) -> [u8; 60] {
    let mut key = [0; 60];
    key[..20].copy_from_slice(address.as_slice());
    key[20..52].copy_from_slice(&slot.to_be_bytes::<32>());
    key[52..].copy_from_slice(&number.to_be_bytes());
    key
}

pub(crate) fn read_storage_value(row: &[u8]) -> Result<U256, CorruptRow> {
    U256::try_from_be_slice(row).ok_or(CorruptRow { table: "storage" })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests say what went wrong by failing")]
mod tests;
