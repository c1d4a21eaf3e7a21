//! Deposit requests (EIP-6110): each log of the deposit contract is one request.
//!
//! The log is the ABI encoding of five byte strings of fixed lengths. Of all encodings that an ABI decoder reads,
//! only the one that the real contract emits is valid; a block with any other is not.

use super::{Receipt, SystemFault};
use alloy_eips::{eip6110::DEPOSIT_REQUEST_TYPE, eip7685::Requests};
use alloy_primitives::{Address, B256, U256, b256};

/// Hash of `DepositEvent(bytes,bytes,bytes,bytes,bytes)`.
const DEPOSIT_EVENT: B256 = b256!("649bbc62d0e31342afea4e5cd82d4049e7e1ee912fc0889aa790803be39038c5");

/// Length of the data of every valid log.
const LOG_BYTES: usize = 576;

const WORD_BYTES: usize = 32;

/// A byte string of the log.
struct DepositField {
    offset_name: &'static str,
    size_name: &'static str,
    /// Offset of its length, which its bytes follow.
    offset: usize,
    size: usize,
}

/// The byte strings in their order.
const FIELDS: [DepositField; 5] = [
    DepositField { offset_name: "pubkey offset", size_name: "pubkey size", offset: 160, size: 48 },
    DepositField {
        offset_name: "withdrawal credentials offset",
        size_name: "withdrawal credentials size",
        offset: 256,
        size: 32,
    },
    DepositField { offset_name: "amount offset", size_name: "amount size", offset: 320, size: 8 },
    DepositField { offset_name: "signature offset", size_name: "signature size", offset: 384, size: 96 },
    DepositField { offset_name: "index offset", size_name: "index size", offset: 512, size: 8 },
];

/// Appends the deposits in the logs of a block, if there are any.
pub(super) fn append_requests(
    contract: Address,
    receipts: &[Receipt],
    requests: &mut Requests,
) -> Result<(), SystemFault> {
    let mut deposits = Vec::new();
    for (transaction, receipt) in receipts.iter().enumerate() {
        for (log, found) in receipt.logs().iter().enumerate() {
            if found.address != contract || found.topics().first() != Some(&DEPOSIT_EVENT) {
                continue;
            }
            append_deposit(&found.data.data, &mut deposits).map_err(|mismatch| {
                let DepositMismatch { field, expected, found } = mismatch;
                SystemFault::DepositLog { transaction, log, field, expected, found }
            })?;
        }
    }
    if !deposits.is_empty() {
        requests.push_request_with_type(DEPOSIT_REQUEST_TYPE, deposits);
    }
    Ok(())
}

/// An error in a deposit log.
#[derive(Debug, PartialEq, Eq)]
struct DepositMismatch {
    field: &'static str,
    expected: usize,
    found: String,
}

fn append_deposit(data: &[u8], deposits: &mut Vec<u8>) -> Result<(), DepositMismatch> {
    if data.len() != LOG_BYTES {
        return Err(DepositMismatch { field: "length", expected: LOG_BYTES, found: data.len().to_string() });
    }
    for (index, field) in FIELDS.iter().enumerate() {
        expect_word(data, index * WORD_BYTES, field.offset_name, field.offset)?;
        expect_word(data, field.offset, field.size_name, field.size)?;
        let start = field.offset + WORD_BYTES;
        deposits.extend_from_slice(data.get(start..start + field.size).unwrap_or_default());
    }
    Ok(())
}

fn expect_word(data: &[u8], at: usize, field: &'static str, expected: usize) -> Result<(), DepositMismatch> {
    let word = data.get(at..at + WORD_BYTES).unwrap_or_default();
    let found = U256::try_from_be_slice(word).unwrap_or_default();
    if found == U256::from(expected) {
        return Ok(());
    }
    Err(DepositMismatch { field, expected, found: found.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log of the deposit contract, with bytes that tell the fields apart.
    fn valid_log() -> Vec<u8> {
        let mut data = vec![0; LOG_BYTES];
        for (index, field) in FIELDS.iter().enumerate() {
            data[index * WORD_BYTES..][..WORD_BYTES]
                .copy_from_slice(&U256::from(field.offset).to_be_bytes::<32>());
            data[field.offset..][..WORD_BYTES].copy_from_slice(&U256::from(field.size).to_be_bytes::<32>());
            data[field.offset + WORD_BYTES..][..field.size].fill(index as u8 + 1);
        }
        data
    }

    #[test]
    fn a_deposit_is_the_five_fields_one_after_another() {
        let mut deposits = Vec::new();
        append_deposit(&valid_log(), &mut deposits).unwrap();
        let expected =
            [(1, 48), (2, 32), (3, 8), (4, 96), (5, 8)].map(|(byte, size)| vec![byte; size]).concat();
        assert_eq!(deposits, expected);
    }

    /// An ABI decoder reads logs that are longer, or whose fields stand elsewhere; Ethereum does not.
    #[test]
    fn a_log_of_another_length_or_layout_is_refused() {
        let refused = |data: &[u8]| append_deposit(data, &mut Vec::new()).unwrap_err();
        for length in [0, 575, 577, 608] {
            let mut data = valid_log();
            data.resize(length, 0);
            let found = length.to_string();
            assert_eq!(refused(&data), DepositMismatch { field: "length", expected: LOG_BYTES, found });
        }
        for (index, field) in FIELDS.iter().enumerate() {
            for (at, name) in [(index * WORD_BYTES, field.offset_name), (field.offset, field.size_name)] {
                for byte in [at, at + WORD_BYTES - 1] {
                    let mut data = valid_log();
                    data[byte] ^= 1;
                    assert_eq!(refused(&data).field, name);
                }
            }
        }
    }
}
