//! A block of our own with every type of transaction, written as JSON by alloy's types.
//!
//! Nobody signs here: any `r` and `s` are the signature of someone, and who that is can be computed.

use alloy_consensus::transaction::{Recovered, SignerRecoverable};
use alloy_consensus::{
    EthereumTxEnvelope, Header, Receipt, ReceiptEnvelope, SignableTransaction, TxEip1559, TxEip2930,
    TxEip4844, TxEip7702, TxEnvelope, TxLegacy, proofs,
};
use alloy_eips::eip2930::{AccessList, AccessListItem};
use alloy_eips::eip4895::{Withdrawal, Withdrawals};
use alloy_eips::eip7702::{Authorization, SignedAuthorization};
use alloy_primitives::{
    Address, B256, Bytes, Log, LogData, Sealable, Signature, TxKind, U256, keccak256, logs_bloom,
};
use alloy_rpc_types_eth as rpc;

use crate::BlockId;

pub(crate) struct Sample {
    pub(crate) id: BlockId,
    pub(crate) full: String,
    pub(crate) transactions: Vec<String>,
    pub(crate) transaction_hashes: Vec<B256>,
    pub(crate) receipts: String,
    pub(crate) receipt: Vec<String>,
}

type Envelope = EthereumTxEnvelope<TxEip4844>;

pub(super) fn word(seed: u64) -> B256 {
    keccak256(seed.to_be_bytes())
}

pub(super) fn address(seed: u64) -> Address {
    Address::from_word(word(seed))
}

/// Signs with the first signature from `seed` on that anyone could have made.
fn sign<T: SignableTransaction<Signature> + Clone>(transaction: T, seed: u64) -> Envelope
where
    Envelope: From<alloy_consensus::Signed<T>>,
{
    let signature = |seed| Signature::new(word(seed).into(), U256::from(seed), seed % 2 == 1);
    let candidates = (seed..).map(|seed| Envelope::from(transaction.clone().into_signed(signature(seed))));
    candidates.into_iter().find(|signed| signed.recover_signer_unchecked().is_ok()).unwrap()
}

fn transactions() -> Vec<Envelope> {
    let (to, input) = (address(1), Bytes::from_static(b"\x12\x34\x56"));
    let item = AccessListItem { address: address(2), storage_keys: vec![word(3), word(4)] };
    let access_list = AccessList(vec![item]);
    let authorization = Authorization { chain_id: U256::from(5), address: address(6), nonce: 7 };
    let authorization = SignedAuthorization::new_unchecked(authorization, 1, U256::from(8), U256::from(9));
    let (chain_id, value) = (0x1234, U256::from(10_u64.pow(18)));
    let (max_fee_per_gas, max_priority_fee_per_gas) = (0x77359400, 0x3b9aca00);
    vec![
        sign(
            TxLegacy { nonce: 1, gas_price: 0x4a817c800, gas_limit: 0x5208, value, ..Default::default() },
            11,
        ),
        sign(
            TxLegacy {
                chain_id: Some(chain_id),
                to: TxKind::Call(to),
                input: input.clone(),
                ..Default::default()
            },
            22,
        ),
        sign(
            TxEip2930 {
                chain_id,
                nonce: 3,
                gas_price: 7,
                to: TxKind::Call(to),
                access_list: access_list.clone(),
                ..Default::default()
            },
            33,
        ),
        sign(
            TxEip1559 {
                chain_id,
                max_fee_per_gas,
                max_priority_fee_per_gas,
                value,
                input: input.clone(),
                ..Default::default()
            },
            44,
        ),
        sign(
            TxEip4844 {
                chain_id,
                max_fee_per_gas,
                to,
                blob_versioned_hashes: vec![word(5)],
                max_fee_per_blob_gas: 6,
                ..Default::default()
            },
            55,
        ),
        sign(
            TxEip7702 {
                chain_id,
                max_fee_per_gas,
                to,
                access_list,
                authorization_list: vec![authorization],
                input,
                ..Default::default()
            },
            66,
        ),
    ]
}

fn log(seed: u64, topics: u64) -> Log {
    let topics = (0..topics).map(|place| word(seed + place)).collect();
    Log { address: address(seed), data: LogData::new_unchecked(topics, Bytes::from(word(seed).to_vec())) }
}

fn receipts(transactions: &[Envelope]) -> Vec<ReceiptEnvelope> {
    let receipt = |index: usize| {
        let logs =
            (0..index as u64 % 4).map(|place| log(1_000 + 10 * index as u64 + place, place + 1)).collect();
        let cumulative_gas_used = 50_000 * (index as u64 + 1);
        Receipt { status: (index != 2).into(), cumulative_gas_used, logs }.with_bloom()
    };
    let envelope = |(index, transaction): (usize, &Envelope)| match transaction {
        Envelope::Legacy(_) => ReceiptEnvelope::Legacy(receipt(index)),
        Envelope::Eip2930(_) => ReceiptEnvelope::Eip2930(receipt(index)),
        Envelope::Eip1559(_) => ReceiptEnvelope::Eip1559(receipt(index)),
        Envelope::Eip4844(_) => ReceiptEnvelope::Eip4844(receipt(index)),
        Envelope::Eip7702(_) => ReceiptEnvelope::Eip7702(receipt(index)),
    };
    transactions.iter().enumerate().map(envelope).collect()
}

fn header(transactions: &[Envelope], receipts: &[ReceiptEnvelope], withdrawals: &[Withdrawal]) -> Header {
    let logs: Vec<Log> = receipts.iter().flat_map(|receipt| receipt.logs().to_vec()).collect();
    Header {
        parent_hash: word(1),
        beneficiary: address(2),
        state_root: word(3),
        transactions_root: proofs::calculate_transaction_root(transactions),
        receipts_root: proofs::calculate_receipt_root(receipts),
        logs_bloom: logs_bloom(&logs),
        number: 0x123456,
        gas_limit: 30_000_000,
        gas_used: 300_000,
        timestamp: 1_700_000_000,
        extra_data: Bytes::from_static(b"extra"),
        mix_hash: word(4),
        base_fee_per_gas: Some(7),
        withdrawals_root: Some(proofs::calculate_withdrawals_root(withdrawals)),
        blob_gas_used: Some(0x20000),
        excess_blob_gas: Some(0x40000),
        parent_beacon_block_root: Some(word(5)),
        requests_hash: Some(word(6)),
        ..Header::default()
    }
}

fn rpc_transaction(envelope: &Envelope, id: BlockId, index: u64) -> rpc::Transaction {
    let sender = envelope.recover_signer_unchecked().unwrap();
    rpc::Transaction {
        inner: Recovered::new_unchecked(TxEnvelope::from(envelope.clone()), sender),
        block_hash: Some(id.hash),
        block_number: Some(id.number),
        transaction_index: Some(index),
        effective_gas_price: Some(9),
        block_timestamp: None,
    }
}

/// Every block, with its transactions, as alloy's types write it.
pub(crate) fn rpc_block(
    header: &Header,
    transactions: &[Envelope],
    uncles: Vec<B256>,
    withdrawals: Option<Withdrawals>,
) -> [String; 2] {
    let id = BlockId { number: header.number, hash: header.hash_slow() };
    let whole = transactions.iter().enumerate().map(|(index, tx)| rpc_transaction(tx, id, index as u64));
    let full = rpc::BlockTransactions::Full(whole.collect());
    let hashes = rpc::BlockTransactions::Hashes(transactions.iter().map(|tx| *tx.tx_hash()).collect());
    [full, hashes].map(|transactions| {
        let header =
            rpc::Header::from_consensus(header.clone().seal_slow(), Some(U256::from(1)), Some(U256::from(2)));
        let block =
            rpc::Block { header, uncles: uncles.clone(), transactions, withdrawals: withdrawals.clone() };
        serde_json::to_string(&block).unwrap()
    })
}

fn rpc_receipt(
    receipt: &ReceiptEnvelope,
    hash: B256,
    id: BlockId,
    index: usize,
    next_log: &mut u64,
) -> rpc::TransactionReceipt {
    let inner = receipt.clone().map_logs(|inner| {
        *next_log += 1;
        rpc::Log {
            inner,
            block_hash: Some(id.hash),
            block_number: Some(id.number),
            block_timestamp: Some(1_700_000_000),
            transaction_hash: Some(hash),
            transaction_index: Some(index as u64),
            log_index: Some(*next_log - 1),
            removed: false,
        }
    });
    rpc::TransactionReceipt {
        inner,
        transaction_hash: hash,
        transaction_index: Some(index as u64),
        block_hash: Some(id.hash),
        block_number: Some(id.number),
        gas_used: 50_000,
        effective_gas_price: 9,
        blob_gas_used: None,
        blob_gas_price: None,
        from: address(1),
        to: None,
        contract_address: None,
    }
}

pub(crate) fn sample() -> Sample {
    let transactions = transactions();
    let receipts = receipts(&transactions);
    let withdrawals = vec![Withdrawal { index: 1, validator_index: 2, address: address(3), amount: 4 }];
    let header = header(&transactions, &receipts, &withdrawals);
    let id = BlockId { number: header.number, hash: header.hash_slow() };
    let [full, _] = rpc_block(&header, &transactions, vec![], Some(Withdrawals::new(withdrawals)));
    let transaction_hashes: Vec<_> = transactions.iter().map(|tx| *tx.tx_hash()).collect();
    let (mut next_log, mut written) = (0, Vec::new());
    for (index, receipt) in receipts.iter().enumerate() {
        written.push(rpc_receipt(receipt, transaction_hashes[index], id, index, &mut next_log));
    }
    let write = |index: usize| {
        serde_json::to_string(&rpc_transaction(&transactions[index], id, index as u64)).unwrap()
    };
    Sample {
        id,
        full,
        transactions: (0..transactions.len()).map(write).collect(),
        transaction_hashes,
        receipts: serde_json::to_string(&written).unwrap(),
        receipt: written.iter().map(|receipt| serde_json::to_string(receipt).unwrap()).collect(),
    }
}
