//! Results as JSON text, written straight from binary into one buffer.
//!
//! Written by hand because it is six to eight times as fast as going through the types of a JSON library, and
//! because results have a simple form: objects of known members whose values are hex strings.

use alloy_primitives::U256;

/// Appends JSON text to a buffer.
#[derive(Debug)]
pub struct Json<'a>(pub &'a mut Vec<u8>);

impl Json<'_> {
    /// Text as it is.
    pub fn raw(&mut self, text: &[u8]) -> &mut Self {
        self.0.extend_from_slice(text);
        self
    }

    /// `"0x…"`, two digits per byte.
    pub fn data(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(b"\"0x");
        self.hex(bytes);
        self.0.push(b'"');
    }

    /// Two digits per byte, and nothing around them.
    pub fn hex(&mut self, bytes: &[u8]) -> &mut Self {
        let at = self.0.len();
        self.0.resize(at + bytes.len() * 2, 0);
        encode(bytes, &mut self.0[at..]);
        self
    }

    /// `"0x…"` without leading zeros.
    pub fn quantity(&mut self, number: u64) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let digits = (u64::BITS - number.leading_zeros()).div_ceil(4).max(1) as usize;
        let mut text = *b"\"0x0123456789abcdef\"";
        let (_, places) = text.split_at_mut(3);
        for (place, digit) in places[..digits].iter_mut().rev().zip(0..) {
            *place = DIGITS[(number >> (4 * digit) & 0xf) as usize];
        }
        places[digits] = b'"';
        self.0.extend_from_slice(&text[..3 + digits + 1]);
    }

    /// `"0x…"` without leading zeros.
    pub fn quantity_u128(&mut self, number: u128) {
        self.minimal(&number.to_be_bytes());
    }

    /// `"0x…"` without leading zeros.
    pub fn quantity_u256(&mut self, number: U256) {
        self.minimal(&number.to_be_bytes::<32>());
    }

    fn minimal(&mut self, bytes: &[u8]) {
        let mut digits = [0; 64];
        let digits = &mut digits[..bytes.len() * 2];
        encode(bytes, digits);
        let zeros = digits.iter().take_while(|digit| **digit == b'0').count().min(digits.len() - 1);
        self.0.extend_from_slice(b"\"0x");
        self.0.extend_from_slice(&digits[zeros..]);
        self.0.push(b'"');
    }

    /// `[…]`, one item after another.
    pub fn list<T>(&mut self, items: impl IntoIterator<Item = T>, mut write: impl FnMut(&mut Json<'_>, T)) {
        self.0.push(b'[');
        for (index, item) in items.into_iter().enumerate() {
            if index > 0 {
                self.0.push(b',');
            }
            write(&mut Json(self.0), item);
        }
        self.0.push(b']');
    }

    /// Begins an object.
    pub fn object(&mut self) -> Object<'_> {
        Object { out: self.0, separator: b'{' }
    }
}

/// Two digits per byte, into a place that has room for just them.
pub(super) fn encode(bytes: &[u8], digits: &mut [u8]) {
    const_hex::encode_to_slice(bytes, digits).expect("the buffer has two digits per byte");
}

/// An object under way.
#[derive(Debug)]
pub struct Object<'a> {
    out: &'a mut Vec<u8>,
    separator: u8,
}

impl Object<'_> {
    /// Begins a member; its value comes next.
    pub fn member(&mut self, name: &str) -> Json<'_> {
        let out = &mut *self.out;
        out.push(self.separator);
        self.separator = b',';
        out.push(b'"');
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\":");
        Json(out)
    }

    /// Ends the object.
    pub fn end(self) {
        self.out.push(b'}');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Json<'_>)) -> String {
        let mut out = Vec::new();
        write(&mut Json(&mut out));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn quantities_have_no_leading_zeros() {
        for number in (0..64).flat_map(|bits| [(1_u64 << bits) - 1, 1 << bits]).chain([u64::MAX]) {
            assert_eq!(written(|json| json.quantity(number)), format!("\"{number:#x}\""));
            assert_eq!(written(|json| json.quantity_u128(number.into())), format!("\"{number:#x}\""));
        }
        assert_eq!(written(|json| json.quantity_u256(U256::MAX)), format!("\"0x{}\"", "f".repeat(64)));
        assert_eq!(written(|json| json.quantity_u128(0x1234)), "\"0x1234\"");
    }

    #[test]
    fn data_has_two_digits_per_byte() {
        for (bytes, text) in [(&[][..], "\"0x\""), (&[0, 0xab], "\"0x00ab\"")] {
            assert_eq!(written(|json| json.data(bytes)), text);
        }
    }

    #[test]
    fn objects_and_lists_nest() {
        let text = written(|json| {
            let mut object = json.object();
            object.member("a").quantity(1);
            object.member("b").list([1, 2], |json, number| json.quantity(number));
            object.member("c").raw(b"null");
            object.end();
        });
        assert_eq!(text, r#"{"a":"0x1","b":["0x1","0x2"],"c":null}"#);
    }
}
