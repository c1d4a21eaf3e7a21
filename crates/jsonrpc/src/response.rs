//! Parses the response body of a node, in one walk over the text.
//!
//! The whole body is validated as JSON. The caller checks ids, and that a response has either a result or an error.

use crate::scan::{ScanError, Scanner};
use crate::value::Value;

/// A parsed response body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RpcResponses<'a> {
    One(RpcResponse<'a>),
    Many(Vec<RpcResponse<'a>>),
}

/// The members of one response object, as slices of the body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RpcResponse<'a> {
    pub id: Option<Value<'a>>,
    pub result: Option<Value<'a>>,
    pub error: Option<Value<'a>>,
}

impl<'a> RpcResponses<'a> {
    /// `None` unless the text is one response object or an array of at most `responses_max` of them.
    pub fn read(text: &'a str, responses_max: usize) -> Option<Self> {
        let mut scanner = Scanner::new(text);
        let responses = match scanner.peek()? {
            b'{' => Self::One(object(&mut scanner, 0).ok()?),
            b'[' => Self::Many(array(&mut scanner, responses_max).ok()?),
            _ => return None,
        };
        scanner.peek().is_none().then_some(responses)
    }
}

fn array<'a>(scanner: &mut Scanner<'a>, responses_max: usize) -> Result<Vec<RpcResponse<'a>>, ScanError> {
    scanner.expect(b'[')?;
    let mut responses = Vec::new();
    if scanner.take(b']') {
        return Ok(responses);
    }
    loop {
        if responses.len() == responses_max {
            return Err(ScanError::Syntax);
        }
        responses.push(object(scanner, 1)?);
        if !scanner.take(b',') {
            scanner.expect(b']')?;
            return Ok(responses);
        }
    }
}

fn object<'a>(scanner: &mut Scanner<'a>, depth: usize) -> Result<RpcResponse<'a>, ScanError> {
    scanner.expect(b'{')?;
    let mut response = RpcResponse::default();
    if scanner.take(b'}') {
        return Ok(response);
    }
    loop {
        scanner.peek();
        let name = Value::from_scanned(scanner.string()?);
        scanner.expect(b':')?;
        let value = Value::from_scanned(scanner.value(depth + 1)?);
        response.set(name, value)?;
        if !scanner.take(b',') {
            scanner.expect(b'}')?;
            return Ok(response);
        }
    }
}

impl<'a> RpcResponse<'a> {
    /// Stores a member. A duplicate member makes the response invalid.
    fn set(&mut self, name: Value<'a>, value: Value<'a>) -> Result<(), ScanError> {
        let member = match name.as_str().as_deref() {
            Some("id") => &mut self.id,
            Some("result") => &mut self.result,
            Some("error") => &mut self.error,
            _ => return Ok(()),
        };
        if member.replace(value).is_some() { Err(ScanError::Syntax) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Option<RpcResponse<'_>> {
        match RpcResponses::read(text, 8)? {
            RpcResponses::One(response) => Some(response),
            RpcResponses::Many(_) => None,
        }
    }

    #[test]
    fn results_borrow_from_the_body() {
        let text = r#" {"jsonrpc":"2.0", "result": {"a":[1, 2]} ,"id":7}"#;
        let response = one(text).unwrap();
        assert_eq!(response.result.map(Value::raw), Some(r#"{"a":[1, 2]}"#));
        assert_eq!(response.id.and_then(Value::as_u64), Some(7));
        assert_eq!(response.error, None);
    }

    #[test]
    fn duplicate_members_are_refused_also_with_escapes() {
        assert!(one(r#"{"id":1,"result":1,"result":2}"#).is_none());
        assert!(one(r#"{"id":1,"result":1,"resul\u0074":2}"#).is_none());
        assert!(one(r#"{"id":1,"result":1,"other":1,"other":2}"#).is_some());
    }

    #[test]
    fn other_bodies_are_refused() {
        for text in
            ["", "7", "\"x\"", "{", "{}}", "[1]", "[{},]", "<html>", "{\"id\":1,\"result\":01}", "[{}"]
        {
            assert!(RpcResponses::read(text, 8).is_none(), "{text}");
        }
    }

    #[test]
    fn the_number_of_responses_is_limited() {
        assert!(matches!(RpcResponses::read("[{},{}]", 2), Some(RpcResponses::Many(all)) if all.len() == 2));
        assert_eq!(RpcResponses::read("[{},{},{}]", 2), None);
    }
}
