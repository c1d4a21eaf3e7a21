//! Which part of a block cannot be decoded, and whether the file or the block is to blame.
//!
//! A block commits to its parts: where the bytes of the transactions have the root that the header states, they are
//! the bytes that somebody put there, and fetching the file again would not change them.

use crate::chain::Transaction;
use alloy_consensus::Header;
use alloy_primitives::keccak256;
use alloy_rlp::{Decodable, EMPTY_LIST_CODE};
use alloy_trie::root::ordered_trie_root_with_encoder;

/// The part of a block that cannot be decoded.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BadPart {
    /// Its name and number.
    pub(super) part: String,
    pub(super) reason: alloy_rlp::Error,
    /// Whether its bytes are those that the header commits to.
    pub(super) committed: bool,
}

/// Finds the part of a block, given as a list of header, transactions, uncles and withdrawals.
pub(super) fn find_in_block(block: &[u8]) -> Option<BadPart> {
    let parts = items(block)?;
    let (header, body) = parts.split_first()?;
    match decode::<Header>(header) {
        Ok(header) => find_in_parts(body, Some(&header)),
        Err(reason) => Some(BadPart { part: "its header".into(), reason, committed: false }),
    }
}

/// Finds the part of a body, given as a list of transactions, uncles and withdrawals.
pub(super) fn find_in_body(body: &[u8]) -> Option<BadPart> {
    find_in_parts(&items(body)?, None)
}

fn find_in_parts(body: &[&[u8]], header: Option<&Header>) -> Option<BadPart> {
    let transactions = items(body.first()?)?;
    if let Some((index, reason)) = first_bad::<Transaction>(&transactions) {
        let committed =
            header.is_some_and(|header| header.transactions_root == transactions_root(&transactions));
        return Some(BadPart { part: format!("transaction {index}"), reason, committed });
    }
    let uncles = body.get(1)?;
    let (index, reason) = first_bad::<Header>(&items(uncles)?)?;
    let committed = header.is_some_and(|header| header.ommers_hash == keccak256(uncles));
    Some(BadPart { part: format!("uncle {index}"), reason, committed })
}

fn first_bad<T: Decodable>(items: &[&[u8]]) -> Option<(usize, alloy_rlp::Error)> {
    items.iter().enumerate().find_map(|(index, item)| decode::<T>(item).err().map(|reason| (index, reason)))
}

fn decode<T: Decodable>(mut item: &[u8]) -> alloy_rlp::Result<T> {
    let value = T::decode(&mut item)?;
    if item.is_empty() { Ok(value) } else { Err(alloy_rlp::Error::UnexpectedLength) }
}

/// The root over encoded transactions; typed ones are unwrapped from their RLP string.
fn transactions_root(items: &[&[u8]]) -> alloy_primitives::B256 {
    ordered_trie_root_with_encoder(items, |item, out| {
        let is_list = item.first().is_some_and(|first| *first >= EMPTY_LIST_CODE);
        let payload = split_first(item).map_or(*item, |(payload, _)| payload);
        out.extend_from_slice(if is_list { item } else { payload });
    })
}

/// The items of a list, each with its own prefix; none if the lengths do not add up.
fn items(list: &[u8]) -> Option<Vec<&[u8]>> {
    let is_list = *list.first()? >= EMPTY_LIST_CODE;
    let (mut rest, after) = split_first(list)?;
    if !is_list || !after.is_empty() {
        return None;
    }
    let mut items = Vec::new();
    while !rest.is_empty() {
        let (_, after) = split_first(rest)?;
        items.push(&rest[..rest.len() - after.len()]);
        rest = after;
    }
    Some(items)
}

/// The payload of the first item, and what comes after the item.
fn split_first(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut rest = bytes;
    let header = alloy_rlp::Header::decode(&mut rest).ok()?;
    rest.split_at_checked(header.payload_length)
}
