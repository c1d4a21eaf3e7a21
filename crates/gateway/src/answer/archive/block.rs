//! Blocks and uncles.

use super::{
    json::{Json, Object},
    proceed, transaction,
};
use crate::answer::{Budget, Failure};
use alloy_consensus::Header;
use alloy_eips::eip4895::Withdrawals;
use alloy_primitives::B256;
use alloy_rlp::Encodable;
use archive::{BlockData, Snapshot};

/// Length of the RLP of two empty lists: what the body of an uncle adds to its size.
const EMPTY_BODY_BYTES: usize = 2;

/// Writes a block, with its transactions or only their hashes.
pub(super) fn write(
    snapshot: &Snapshot,
    budget: &Budget,
    block: &BlockData,
    full: bool,
    json: &mut Json<'_>,
) -> Result<(), Failure> {
    let mut object = json.object();
    write_header(&block.header, block.place.hash, &mut object);
    object.member("totalDifficulty").quantity_u256(block.place.total_difficulty);
    object.member("size").quantity(u64::from(block.place.size));
    if full {
        let transactions = snapshot.transactions(block.header.number)?;
        let mut outcome = Ok(());
        object.member("transactions").list(&transactions, |json, data| {
            if outcome.is_ok() {
                transaction::write(data, json);
                outcome = proceed(budget, json);
            }
        });
        outcome?;
    } else {
        let hashes = snapshot.transaction_hashes(&block.place)?;
        object.member("transactions").list(&hashes, |json, hash| json.data(hash.as_slice()));
    }
    let uncles = block.uncles.iter().map(Header::hash_slow);
    object.member("uncles").list(uncles, |json, hash| json.data(hash.as_slice()));
    if let Some(withdrawals) = &block.withdrawals {
        write_withdrawals(withdrawals, &mut object.member("withdrawals"));
    }
    object.end();
    Ok(())
}

/// Writes an uncle: a header that has neither transactions nor uncles of its own.
pub(super) fn write_uncle(uncle: &Header, json: &mut Json<'_>) {
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
