//! Keys as numbers in the same order, so that there is one in the middle of two others.

use alloy_primitives::U512;
use redb::{Key, Value};

/// Bytes of a key of variable length that count.
const BYTES_MAX: usize = 64;

/// Texts cannot be made of numbers. Only the smallest tables have them as keys.
pub(super) fn has_numbers<K: Key>() -> bool {
    K::type_name() != <&str>::type_name()
}

fn is_number<K: Key>() -> bool {
    K::type_name() == u64::type_name()
}

fn width<K: Key>() -> usize {
    K::fixed_width().unwrap_or(BYTES_MAX).min(BYTES_MAX)
}

pub(super) fn max<K: Key>() -> U512 {
    U512::MAX >> (512 - 8 * width::<K>())
}

/// The number of a key, of whose bytes redb has made it.
pub(super) fn number_of<K: Key>(key: &[u8]) -> U512 {
    if is_number::<K>() {
        return U512::try_from_le_slice(key).unwrap_or_default();
    }
    let mut bytes = [0; BYTES_MAX];
    let bytes = bytes.get_mut(..width::<K>()).unwrap_or_default();
    bytes.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
    U512::try_from_be_slice(bytes).unwrap_or_default()
}

/// The bytes of which redb makes a key.
pub(super) fn key_of<K: Key>(number: U512) -> Vec<u8> {
    let mut bytes = number.to_be_bytes::<BYTES_MAX>()[BYTES_MAX - width::<K>()..].to_vec();
    if is_number::<K>() {
        bytes.reverse();
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_leads_back_to_its_key_and_numbers_have_the_order_of_keys() {
        assert_eq!(key_of::<u64>(number_of::<u64>(&7_u64.to_le_bytes())), 7_u64.to_le_bytes());
        assert!(number_of::<u64>(&256_u64.to_le_bytes()) > number_of::<u64>(&255_u64.to_le_bytes()));
        assert_eq!(max::<u64>(), U512::from(u64::MAX));
        let key = [3_u8; 28];
        assert_eq!(key_of::<&[u8; 28]>(number_of::<&[u8; 28]>(&key)), key);
        assert!(number_of::<&[u8]>(&[1, 2]) < number_of::<&[u8]>(&[1, 3]));
        assert!(number_of::<&[u8]>(&[1, 2]) < number_of::<&[u8]>(&[1, 2, 1]));
        assert_eq!(key_of::<&[u8]>(max::<&[u8]>()), [0xff; 64]);
        assert!(!has_numbers::<&str>() && has_numbers::<&[u8]>());
    }
}
