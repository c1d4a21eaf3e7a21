//! The keys under which the nodes of all tries share one table.
//!
//! A node of the account trie is at `0, path`, one of a storage trie at `1, hashed address, path`, the path with
//! one byte per nibble. The tag keeps the two apart, the nibbles need no length, and the rows of one storage
//! trie lie side by side, each node before its children.

use alloy_primitives::B256;
use alloy_trie::Nibbles;

const ACCOUNT_TRIE: u8 = 0;
const STORAGE_TRIE: u8 = 1;

/// The first byte that is no nibble: it ends the range of a storage trie.
const AFTER_NIBBLES: u8 = 0x10;

/// The key of the node at `path` of the account trie, or of the storage trie of a hashed address.
pub(crate) fn node_key(owner: Option<&B256>, path: &Nibbles) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + owner.map_or(0, |owner| owner.len()) + path.len());
    match owner {
        Some(owner) => {
            key.push(STORAGE_TRIE);
            key.extend_from_slice(owner.as_slice());
        }
        None => key.push(ACCOUNT_TRIE),
    }
    key.extend(path.iter());
    key
}

/// All rows of the storage trie of a hashed address: from the first key, up to and without the second.
pub(crate) fn storage_trie_range(owner: &B256) -> (Vec<u8>, Vec<u8>) {
    let first = node_key(Some(owner), &Nibbles::new());
    let mut end = first.clone();
    end.push(AFTER_NIBBLES);
    (first, end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_the_tag_the_owner_and_one_byte_per_nibble() {
        let path = Nibbles::from_nibbles([0xa, 0x0, 0xf]);
        assert_eq!(node_key(None, &Nibbles::new()), [0]);
        assert_eq!(node_key(None, &path), [0, 0xa, 0x0, 0xf]);
        let key = node_key(Some(&B256::repeat_byte(0xee)), &path);
        assert_eq!(key, [&[1][..], &[0xee; 32], &[0xa, 0x0, 0xf]].concat());
    }

    #[test]
    fn the_range_of_a_storage_trie_holds_its_rows_and_no_others() {
        let owner = B256::repeat_byte(0x10);
        let (first, end) = storage_trie_range(&owner);
        let within = |key: Vec<u8>| first <= key && key < end;
        let mut neighbours = [owner, owner];
        neighbours[0].0[31] -= 1;
        neighbours[1].0[31] += 1;
        for path in [Nibbles::new(), Nibbles::from_nibbles([0x0]), Nibbles::from_nibbles([0xf; 64])] {
            assert!(within(node_key(Some(&owner), &path)));
            assert!(!within(node_key(None, &path)));
            for neighbour in &neighbours {
                assert!(!within(node_key(Some(neighbour), &path)));
            }
        }
    }
}
