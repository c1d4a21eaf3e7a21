//! The body that a node sent → outcomes, each with the bounds of its result, in one walk over the text.
//!
//! Whatever comes out has been proven to be JSON to its last byte; whose reply it is, and whether it may be both or
//! neither of result and error, is for the reader to judge.

use crate::scan::{Broken, Scanner};
use crate::value::Value;

/// What a node's body holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcomes<'a> {
    One(Outcome<'a>),
    Many(Vec<Outcome<'a>>),
}

/// The members of one reply that matter, as they stand in the body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome<'a> {
    pub id: Option<Value<'a>>,
    pub result: Option<Value<'a>>,
    pub error: Option<Value<'a>>,
}

impl<'a> Outcomes<'a> {
    /// `None` unless the text is one reply object or an array of at most `outcomes_max` of them, and nothing else.
    pub fn read(text: &'a str, outcomes_max: usize) -> Option<Self> {
        let mut scanner = Scanner::new(text);
        let outcomes = match scanner.peek()? {
            b'{' => Self::One(object(&mut scanner, 0).ok()?),
            b'[' => Self::Many(array(&mut scanner, outcomes_max).ok()?),
            _ => return None,
        };
        scanner.peek().is_none().then_some(outcomes)
    }
}

fn array<'a>(scanner: &mut Scanner<'a>, outcomes_max: usize) -> Result<Vec<Outcome<'a>>, Broken> {
    scanner.expect(b'[')?;
    let mut outcomes = Vec::new();
    if scanner.take(b']') {
        return Ok(outcomes);
    }
    loop {
        if outcomes.len() == outcomes_max {
            return Err(Broken::Syntax);
        }
        outcomes.push(object(scanner, 1)?);
        if !scanner.take(b',') {
            scanner.expect(b']')?;
            return Ok(outcomes);
        }
    }
}

fn object<'a>(scanner: &mut Scanner<'a>, depth: usize) -> Result<Outcome<'a>, Broken> {
    scanner.expect(b'{')?;
    let mut outcome = Outcome::default();
    if scanner.take(b'}') {
        return Ok(outcome);
    }
    loop {
        scanner.peek();
        let name = Value::from_scanned(scanner.string()?);
        scanner.expect(b':')?;
        let value = Value::from_scanned(scanner.value(depth + 1)?);
        outcome.keep(name, value)?;
        if !scanner.take(b',') {
            scanner.expect(b'}')?;
            return Ok(outcome);
        }
    }
}

impl<'a> Outcome<'a> {
    /// A member that comes twice has no meaning, and a reply with one is refused whole.
    fn keep(&mut self, name: Value<'a>, value: Value<'a>) -> Result<(), Broken> {
        let place = match name.as_str().as_deref() {
            Some("id") => &mut self.id,
            Some("result") => &mut self.result,
            Some("error") => &mut self.error,
            _ => return Ok(()),
        };
        if place.replace(value).is_some() { Err(Broken::Syntax) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Option<Outcome<'_>> {
        match Outcomes::read(text, 8)? {
            Outcomes::One(outcome) => Some(outcome),
            Outcomes::Many(_) => None,
        }
    }

    #[test]
    fn a_result_is_a_slice_of_the_body() {
        let text = r#" {"jsonrpc":"2.0", "result": {"a":[1, 2]} ,"id":7}"#;
        let outcome = one(text).unwrap();
        assert_eq!(outcome.result.map(Value::raw), Some(r#"{"a":[1, 2]}"#));
        assert_eq!(outcome.id.and_then(Value::as_u64), Some(7));
        assert_eq!(outcome.error, None);
    }

    #[test]
    fn a_member_that_comes_twice_is_refused_however_it_is_spelled() {
        assert!(one(r#"{"id":1,"result":1,"result":2}"#).is_none());
        assert!(one(r#"{"id":1,"result":1,"resul\u0074":2}"#).is_none());
        assert!(one(r#"{"id":1,"result":1,"other":1,"other":2}"#).is_some());
    }

    #[test]
    fn what_is_no_reply_is_refused() {
        for text in
            ["", "7", "\"x\"", "{", "{}}", "[1]", "[{},]", "<html>", "{\"id\":1,\"result\":01}", "[{}"]
        {
            assert!(Outcomes::read(text, 8).is_none(), "{text}");
        }
    }

    #[test]
    fn an_array_has_as_many_replies_as_were_awaited() {
        assert!(matches!(Outcomes::read("[{},{}]", 2), Some(Outcomes::Many(all)) if all.len() == 2));
        assert_eq!(Outcomes::read("[{},{},{}]", 2), None);
    }
}
