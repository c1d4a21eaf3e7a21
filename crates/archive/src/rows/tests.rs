//! Rows are read as they were written, and those that were cut, lengthened or mixed up are refused.

use super::*;
use alloy_eips::eip4895::Withdrawal;
use alloy_primitives::{B64, Bloom, Bytes};
use proptest::{collection::vec, option, prelude::*};

proptest! {
    #[test]
    fn a_block_row_reads_as_it_was_written(block in any_block()) {
        let Block { summary, header, uncles, withdrawals } = block;
        let row = BlockRow::write(&summary, &header, &uncles, withdrawals.as_ref());
        let read = BlockRow::read(&row).unwrap();
        prop_assert_eq!(read.summary, summary);
        prop_assert_eq!(read.header().unwrap(), header);
        prop_assert_eq!(read.uncles().unwrap(), uncles);
        prop_assert_eq!(read.withdrawals().unwrap(), withdrawals);
    }

    #[test]
    fn a_block_row_of_another_length_is_refused(block in any_block(), cut: prop::sample::Index) {
        let row = BlockRow::write(&block.summary, &block.header, &block.uncles, block.withdrawals.as_ref());
        refuses_other_lengths("blocks", &row, cut, |row| BlockRow::read(row).map(drop));
    }

    #[test]
    fn a_transaction_row_reads_as_it_was_written(hash in any_hash(), sender in any_address(), encoded: Vec<u8>) {
        let mut row = b"what the buffer held before".to_vec();
        TransactionRow { hash, sender, encoded: &encoded }.write(&mut row);
        let read = TransactionRow::read(&row).unwrap();
        prop_assert_eq!((read.hash, read.sender, read.encoded), (hash, sender, encoded.as_slice()));
    }

    #[test]
    fn a_receipt_row_reads_as_it_was_written(receipt in any_receipt()) {
        let mut row = b"what the buffer held before".to_vec();
        receipt.write(&mut row);
        prop_assert_eq!(ReceiptRow::read(&row), Ok(receipt));
    }

    #[test]
    fn a_receipt_row_of_another_length_is_refused(receipt in any_receipt(), cut: prop::sample::Index) {
        let mut row = Vec::new();
        receipt.write(&mut row);
        refuses_other_lengths("receipts", &row, cut, |row| ReceiptRow::read(row).map(drop));
    }

    #[test]
    fn an_account_row_reads_as_it_was_written(account in any_account()) {
        let mut row = b"what the buffer held before".to_vec();
        account.write(&mut row);
        prop_assert_eq!(AccountRow::read(&row), Ok(Some(account)));
    }

    #[test]
    fn an_account_row_of_another_length_is_refused(account in any_account(), cut: prop::sample::Index) {
        let mut row = Vec::new();
        account.write(&mut row);
        // Cut to nothing it would be the row of an account that is gone.
        let cut_row = &row[..1 + cut.index(row.len() - 1)];
        prop_assert_eq!(AccountRow::read(cut_row), Err(CorruptRow { table: "accounts" }));
        row.push(0);
        prop_assert_eq!(AccountRow::read(&row), Err(CorruptRow { table: "accounts" }));
    }

    #[test]
    fn no_bytes_make_a_reader_panic(row: Vec<u8>) {
        if let Ok(block) = BlockRow::read(&row) {
            let _ = (block.header(), block.uncles(), block.withdrawals());
        }
        let _ = (TransactionRow::read(&row).is_ok(), ReceiptRow::read(&row), AccountRow::read(&row));
        let _ = read_storage_value(&row);
    }

    /// The newest row that is not newer than a block is found by going backwards from that block's key.
    #[test]
    fn keys_of_one_account_and_slot_are_in_block_order(
        address in any_address(), slot in any_u256(), numbers: (u64, u64),
    ) {
        let (a, b) = numbers;
        prop_assert_eq!(account_key(address, a).cmp(&account_key(address, b)), a.cmp(&b));
        prop_assert_eq!(storage_key(address, slot, a).cmp(&storage_key(address, slot, b)), a.cmp(&b));
    }
}

#[test]
fn an_account_that_is_gone_is_an_empty_row() {
    assert_eq!(AccountRow::read(&[]), Ok(None));
}

#[test]
fn an_account_with_nothing_takes_ten_bytes() {
    let mut row = Vec::new();
    AccountRow { account: AccountState::default(), storage_root: EMPTY_ROOT_HASH }.write(&mut row);
    assert_eq!(row, [0; 10]);
}

#[test]
fn a_storage_value_has_at_most_32_bytes_and_none_for_zero() {
    assert_eq!(read_storage_value(&[]), Ok(U256::ZERO));
    assert_eq!(read_storage_value(&[1, 0]), Ok(U256::from(256)));
    assert_eq!(read_storage_value(&[0xff; 32]), Ok(U256::MAX));
    assert_eq!(read_storage_value(&[1; 33]), Err(CorruptRow { table: "storage" }));
}

#[test]
fn kinds_that_do_not_exist_are_refused() {
    let mut row = Vec::new();
    let receipt = ReceiptRow {
        transaction_type: 0,
        outcome: TransactionOutcome::Status(true),
        cumulative_gas_used: 0,
        gas_used: 0,
        effective_gas_price: 0,
        from: Address::ZERO,
        to: Recipient::Called(Address::ZERO),
        blob_gas_used: 0,
        blob_gas_price: 0,
        first_log: 0,
        logs: 0,
        bloom: Bloom::ZERO,
    };
    receipt.write(&mut row);
    const OUTCOME: usize = 1;
    const RECIPIENT: usize = 1 + 1 + 32 + 8 + 8 + 16 + 20;
    for (at, kinds) in [(OUTCOME, 3), (RECIPIENT, 2)] {
        let mut row = row.clone();
        row[at] = kinds;
        assert_eq!(ReceiptRow::read(&row), Err(CorruptRow { table: "receipts" }));
    }
    // Counting on from such a place would be an overflow.
    ReceiptRow { first_log: ORDINALS_END, ..receipt }.write(&mut row);
    assert_eq!(ReceiptRow::read(&row), Err(CorruptRow { table: "receipts" }));
}

#[test]
fn an_unknown_flag_of_an_account_is_refused() {
    let mut row = [0; 10];
    row[0] = 4;
    assert_eq!(AccountRow::read(&row), Err(CorruptRow { table: "accounts" }));
}

fn refuses_other_lengths(
    table: &'static str,
    row: &[u8],
    cut: prop::sample::Index,
    read: impl Fn(&[u8]) -> Result<(), CorruptRow>,
) {
    assert_eq!(read(&row[..cut.index(row.len())]), Err(CorruptRow { table }));
    assert_eq!(read(&[row, &[0]].concat()), Err(CorruptRow { table }));
}

#[derive(Debug)]
struct Block {
    summary: BlockSummary,
    header: Header,
    uncles: Vec<Header>,
    withdrawals: Option<Withdrawals>,
}

fn any_block() -> impl Strategy<Value = Block> {
    let withdrawals = option::of(vec(any_withdrawal(), 0..3).prop_map(Withdrawals::new));
    (any_summary(), any_header(), vec(any_header(), 0..3), withdrawals)
        .prop_map(|(summary, header, uncles, withdrawals)| Block { summary, header, uncles, withdrawals })
}

fn any_summary() -> impl Strategy<Value = BlockSummary> {
    let counters = (0..ORDINALS_END, any::<u32>(), 0..ORDINALS_END, any::<u32>());
    (any_hash(), any_u256(), any::<u64>(), any::<Option<u64>>(), any::<u32>(), counters).prop_map(
        |(hash, total_difficulty, timestamp, base_fee, size, counters)| BlockSummary {
            hash,
            total_difficulty,
            timestamp,
            base_fee,
            size,
            first_transaction: counters.0,
            transactions: counters.1,
            first_log: counters.2,
            logs: counters.3,
        },
    )
}

/// Headers of two eras: RLP leaves no room for a field without all the fields before it.
fn any_header() -> impl Strategy<Value = Header> {
    let late = option::of((any::<u64>(), any_hash(), any::<u64>(), any_hash()));
    (any_hash(), any_u256(), any::<[u64; 4]>(), vec(any::<u8>(), 0..33), any::<u8>(), late).prop_map(
        |(hash, difficulty, [number, gas_limit, gas_used, timestamp], extra_data, bloom, late)| Header {
            parent_hash: hash,
            difficulty,
            number,
            gas_limit,
            gas_used,
            timestamp,
            extra_data: Bytes::from(extra_data),
            logs_bloom: Bloom::repeat_byte(bloom),
            nonce: B64::repeat_byte(bloom),
            base_fee_per_gas: late.map(|late| late.0),
            withdrawals_root: late.map(|late| late.1),
            blob_gas_used: late.map(|late| late.2),
            excess_blob_gas: late.map(|late| late.2),
            parent_beacon_block_root: late.map(|late| late.3),
            requests_hash: late.map(|late| late.3),
            ..Header::default()
        },
    )
}

fn any_withdrawal() -> impl Strategy<Value = Withdrawal> {
    (any::<[u64; 3]>(), any_address()).prop_map(|([index, validator_index, amount], address)| Withdrawal {
        index,
        validator_index,
        address,
        amount,
    })
}

fn any_receipt() -> impl Strategy<Value = ReceiptRow> {
    let outcome = prop_oneof![
        any::<bool>().prop_map(TransactionOutcome::Status),
        any_hash().prop_map(TransactionOutcome::Root)
    ];
    let to =
        prop_oneof![any_address().prop_map(Recipient::Called), any_address().prop_map(Recipient::Created)];
    let logs = prop_oneof![Just(0), any::<u32>()];
    (any::<u8>(), outcome, any::<[u64; 4]>(), any::<[u128; 2]>(), any_address(), to, logs).prop_map(
        |(transaction_type, outcome, numbers, prices, from, to, logs)| ReceiptRow {
            transaction_type,
            outcome,
            cumulative_gas_used: numbers[0],
            gas_used: numbers[1],
            effective_gas_price: prices[0],
            from,
            to,
            blob_gas_used: numbers[2],
            blob_gas_price: prices[1],
            first_log: numbers[3] % ORDINALS_END,
            logs,
            bloom: if logs > 0 { Bloom::repeat_byte(transaction_type) } else { Bloom::ZERO },
        },
    )
}

fn any_account() -> impl Strategy<Value = AccountRow> {
    let code_hash = prop_oneof![Just(KECCAK256_EMPTY), any_hash()];
    let storage_root = prop_oneof![Just(EMPTY_ROOT_HASH), any_hash()];
    // Balances of every length.
    let balance = (any_u256(), 0_usize..=256).prop_map(|(balance, bits)| balance.wrapping_shr(bits));
    (any::<u64>(), balance, code_hash, storage_root).prop_map(|(nonce, balance, code_hash, storage_root)| {
        AccountRow { account: AccountState { nonce, balance, code_hash }, storage_root }
    })
}

fn any_hash() -> impl Strategy<Value = B256> {
    any::<[u8; 32]>().prop_map(B256::new)
}

fn any_address() -> impl Strategy<Value = Address> {
    any::<[u8; 20]>().prop_map(Address::new)
}

fn any_u256() -> impl Strategy<Value = U256> {
    any::<[u8; 32]>().prop_map(U256::from_be_bytes)
}
