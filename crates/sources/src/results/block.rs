//! Blocks and uncles.

use super::json::{Json, Object};
use alloy_consensus::Header;
use alloy_eips::eip4895::Withdrawals;
use alloy_primitives::{B256, U256};
use alloy_rlp::Encodable;

/// Length of the RLP of two empty lists: what the body of an uncle adds to its size.
const EMPTY_BODY_BYTES: usize = 2;

/// A block but for its transactions.
#[derive(Clone, Copy, Debug)]
pub struct BlockFields<'a> {
    pub header: &'a Header,
    pub hash: B256,
    /// Difficulty of this block and all before it. No header commits to it, so it is known only where all
    /// headers are.
    pub total_difficulty: Option<U256>,
    /// Length of the block's RLP in bytes.
    pub size: u64,
    pub uncles: &'a [Header],
    pub withdrawals: Option<&'a Withdrawals>,
}

/// Writes a block; `write_transactions` writes the list of its transactions or of their hashes.
pub fn write_block<E>(
    block: &BlockFields<'_>,
    json: &mut Json<'_>,
    write_transactions: impl FnOnce(&mut Json<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut object = json.object();
    write_header(block.header, block.hash, &mut object);
    if let Some(total_difficulty) = block.total_difficulty {
        object.member("totalDifficulty").quantity_u256(total_difficulty);
    }
    object.member("size").quantity(block.size);
    write_transactions(&mut object.member("transactions"))?;
    let uncles = block.uncles.iter().map(Header::hash_slow);
    object.member("uncles").list(uncles, |json, hash| json.data(hash.as_slice()));
    if let Some(withdrawals) = block.withdrawals {
        write_withdrawals(withdrawals, &mut object.member("withdrawals"));
    }
    object.end();
    Ok(())
}

/// Writes the header of a block with this hash.
pub fn write_block_header(header: &Header, hash: B256, json: &mut Json<'_>) {
    let mut object = json.object();
    write_header(header, hash, &mut object);
    object.end();
}

/// Writes an uncle: a header that has neither transactions nor uncles of its own.
pub fn write_uncle(uncle: &Header, json: &mut Json<'_>) {
    let mut object = json.object();
    write_header(uncle, uncle.hash_slow(), &mut object);
    object.member("totalDifficulty").raw(b"null");
    let content = uncle.length() + EMPTY_BODY_BYTES;
    let size = alloy_rlp::length_of_length(content) + content;
    object.member("size").quantity(size as u64);
    object.member("uncles").raw(b"[]");
    object.end();
}

fn write_header(header: &Header, hash: B256, object: &mut Object<'_>) {
    object.member("number").quantity(header.number);
    object.member("hash").data(hash.as_slice());
    object.member("parentHash").data(header.parent_hash.as_slice());
    object.member("nonce").data(header.nonce.as_slice());
    object.member("mixHash").data(header.mix_hash.as_slice());
    object.member("sha3Uncles").data(header.ommers_hash.as_slice());
    object.member("logsBloom").data(header.logs_bloom.as_slice());
    object.member("transactionsRoot").data(header.transactions_root.as_slice());
    object.member("stateRoot").data(header.state_root.as_slice());
    object.member("receiptsRoot").data(header.receipts_root.as_slice());
    object.member("miner").data(header.beneficiary.as_slice());
    object.member("difficulty").quantity_u256(header.difficulty);
    object.member("extraData").data(&header.extra_data);
    object.member("gasLimit").quantity(header.gas_limit);
    object.member("gasUsed").quantity(header.gas_used);
    object.member("timestamp").quantity(header.timestamp);
    write_later_members(header, object);
}

/// The members that came with London and the forks after it.
fn write_later_members(header: &Header, object: &mut Object<'_>) {
    let quantities = [
        ("baseFeePerGas", header.base_fee_per_gas),
        ("blobGasUsed", header.blob_gas_used),
        ("excessBlobGas", header.excess_blob_gas),
        ("slotNumber", header.slot_number),
    ];
    let hashes = [
        ("withdrawalsRoot", header.withdrawals_root),
        ("parentBeaconBlockRoot", header.parent_beacon_block_root),
        ("requestsHash", header.requests_hash),
        ("blockAccessListHash", header.block_access_list_hash),
    ];
    for (name, value) in quantities {
        if let Some(value) = value {
            object.member(name).quantity(value);
        }
    }
    for (name, value) in hashes {
        if let Some(value) = value {
            object.member(name).data(value.as_slice());
        }
    }
}

fn write_withdrawals(withdrawals: &Withdrawals, json: &mut Json<'_>) {
    json.list(withdrawals.iter(), |json, withdrawal| {
        let mut object = json.object();
        object.member("index").quantity(withdrawal.index);
        object.member("validatorIndex").quantity(withdrawal.validator_index);
        object.member("address").data(withdrawal.address.as_slice());
        object.member("amount").quantity(withdrawal.amount);
        object.end();
    });
}
