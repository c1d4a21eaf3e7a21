//! Transactions, each type with the members that it has.

use super::json::{Json, Object};
use alloy_consensus::{Transaction as _, Typed2718};
use alloy_eips::{eip2930::AccessList, eip7702::SignedAuthorization};
use alloy_primitives::{Address, B256, Signature, U256};
use archive::{InBlock, Transaction, TransactionData};

/// A transaction and where it stands.
#[derive(Clone, Copy, Debug)]
pub struct MinedTransaction<'a> {
    pub transaction: &'a Transaction,
    pub hash: B256,
    pub sender: Address,
    pub index: u32,
    pub block: InBlock,
}

impl<'a> From<&'a TransactionData> for MinedTransaction<'a> {
    fn from(data: &'a TransactionData) -> Self {
        let TransactionData { transaction, hash, sender, index, block } = data;
        Self { transaction, hash: *hash, sender: *sender, index: *index, block: *block }
    }
}

/// Writes a transaction that stands in a block.
pub fn write_transaction(mined: &MinedTransaction<'_>, json: &mut Json<'_>) {
    let mut object = json.object();
    write_place(mined, &mut object);
    let price = mined.transaction.effective_gas_price(mined.block.base_fee);
    write_content(mined.transaction, mined.hash, mined.sender, price, &mut object);
    object.end();
}

/// Writes a pending transaction. Its `gasPrice` is the most that it would pay, because the actual price is not known yet.
pub fn write_pending_transaction(transaction: &Transaction, sender: Address, json: &mut Json<'_>) {
    let mut object = json.object();
    for member in ["blockHash", "blockNumber", "transactionIndex"] {
        object.member(member).raw(b"null");
    }
    write_content(transaction, *transaction.tx_hash(), sender, transaction.max_fee_per_gas(), &mut object);
    object.end();
}

fn write_content(
    transaction: &Transaction,
    hash: B256,
    sender: Address,
    gas_price: u128,
    object: &mut Object<'_>,
) {
    object.member("from").data(sender.as_slice());
    object.member("gas").quantity(transaction.gas_limit());
    object.member("gasPrice").quantity_u128(gas_price);
    if transaction.is_dynamic_fee() {
        object.member("maxFeePerGas").quantity_u128(transaction.max_fee_per_gas());
        let priority = transaction.max_priority_fee_per_gas().unwrap_or(0);
        object.member("maxPriorityFeePerGas").quantity_u128(priority);
    }
    if let Some(fee) = transaction.max_fee_per_blob_gas() {
        object.member("maxFeePerBlobGas").quantity_u128(fee);
    }
    object.member("hash").data(hash.as_slice());
    object.member("input").data(transaction.input());
    object.member("nonce").quantity(transaction.nonce());
    match transaction.to() {
        Some(address) => object.member("to").data(address.as_slice()),
        None => {
            object.member("to").raw(b"null");
        }
    }
    object.member("value").quantity_u256(transaction.value());
    object.member("type").quantity(u64::from(transaction.ty()));
    if let Some(access_list) = transaction.access_list() {
        write_access_list(access_list, &mut object.member("accessList"));
    }
    if let Some(chain_id) = transaction.chain_id() {
        object.member("chainId").quantity(chain_id);
    }
    if let Some(hashes) = transaction.blob_versioned_hashes() {
        object.member("blobVersionedHashes").list(hashes, |json, hash| json.data(hash.as_slice()));
    }
    if let Some(authorizations) = transaction.authorization_list() {
        object.member("authorizationList").list(authorizations, |json, item| write_authorization(item, json));
    }
    write_signature(transaction, object);
}

fn write_place(mined: &MinedTransaction<'_>, object: &mut Object<'_>) {
    object.member("blockHash").data(mined.block.hash.as_slice());
    object.member("blockNumber").quantity(mined.block.number);
    object.member("blockTimestamp").quantity(mined.block.timestamp);
    object.member("transactionIndex").quantity(u64::from(mined.index));
}

fn write_access_list(access_list: &AccessList, json: &mut Json<'_>) {
    json.list(access_list.iter(), |json, item| {
        let mut object = json.object();
        object.member("address").data(item.address.as_slice());
        object.member("storageKeys").list(&item.storage_keys, |json, key| json.data(key.as_slice()));
        object.end();
    });
}

fn write_authorization(authorization: &SignedAuthorization, json: &mut Json<'_>) {
    let mut object = json.object();
    object.member("chainId").quantity_u256(authorization.chain_id);
    object.member("address").data(authorization.address.as_slice());
    object.member("nonce").quantity(authorization.nonce);
    object.member("yParity").quantity(u64::from(authorization.y_parity()));
    object.member("r").quantity_u256(authorization.r());
    object.member("s").quantity_u256(authorization.s());
    object.end();
}

/// A legacy transaction has its `v` as it was signed, the others the parity alone, and once more by its name.
fn write_signature(transaction: &Transaction, object: &mut Object<'_>) {
    let signature: &Signature = transaction.signature();
    let parity = u64::from(signature.v());
    let legacy = matches!(transaction, Transaction::Legacy(_));
    let v = match (legacy, transaction.chain_id()) {
        (true, Some(chain_id)) => U256::from(chain_id) * U256::from(2) + U256::from(35 + parity),
        (true, None) => U256::from(27 + parity),
        (false, _) => U256::from(parity),
    };
    object.member("v").quantity_u256(v);
    object.member("r").quantity_u256(signature.r());
    object.member("s").quantity_u256(signature.s());
    if !legacy {
        object.member("yParity").quantity(parity);
    }
}
