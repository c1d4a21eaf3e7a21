//! Parses a request body into calls, which are slices of the body.
//!
//! The whole body is validated before the first call is returned, so no call of a batch with a syntax error at its end is
//! answered.

use std::borrow::Cow;

use crate::scan::{ScanError, Scanner, check_depth};
use crate::value::{Value, ValueKind};

/// Default limit on the calls of a batch. Common client libraries send up to 1,000.
pub const BATCH_CALLS_MAX: usize = 1_000;

/// Maximum length of a method name. The longest known name has less than 50 bytes; longer names would end up in logs and
/// replies.
const METHOD_BYTES_MAX: usize = 128;

/// Maximum length of an id in JSON. Clients use numbers and UUIDs.
const ID_BYTES_MAX: usize = 1_024;

/// Maximum number of unknown members of a call. Clients add a few; finding duplicates among hundreds of thousands would take
/// long.
const UNKNOWN_MEMBERS_MAX: usize = 32;

/// Positional parameters whose bounds are kept. `eth_call` has the most parameters, four.
pub const POSITIONS_MAX: usize = 4;

/// A parsed request body.
#[derive(Clone, Debug, PartialEq, Eq)]
// Most bodies are single calls, and boxing would be their only allocation.
#[allow(clippy::large_enum_variant)]
pub enum Request<'a> {
    Single(RequestItem<'a>),
    /// At least one call, in the caller's order.
    Batch(Vec<RequestItem<'a>>),
}

/// One call, or the reason why it is invalid.
pub type RequestItem<'a> = Result<Call<'a>, BadCall<'a>>;

/// One JSON-RPC request object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call<'a> {
    /// `None` makes the call a notification.
    pub id: Option<Id<'a>>,
    pub method: Cow<'a, str>,
    pub params: Params<'a>,
}

/// The exact bytes of the caller's `id`: `1.0`, `18446744073709551616` and `"\u0061"` are returned unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Id<'a>(&'a str);

impl<'a> Id<'a> {
    /// The id of a reply to a call without a readable id.
    pub const NULL: Id<'static> = Id("null");

    /// An id from the result of [`Self::raw`].
    pub fn from_raw(raw: &'a str) -> Self {
        Self(raw)
    }

    pub fn raw(self) -> &'a str {
        self.0
    }
}

/// The parameters of a call, by position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Params<'a> {
    positions: [Option<Value<'a>>; POSITIONS_MAX],
    count: usize,
    is_not_array: bool,
}

impl<'a> Params<'a> {
    /// The number of parameters, including those beyond `POSITIONS_MAX`.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Whether `params` was present and neither an array nor null.
    pub fn is_not_array(&self) -> bool {
        self.is_not_array
    }

    /// The parameter at a position, counted from 0.
    pub fn get(&self, position: usize) -> Option<Value<'a>> {
        self.positions.get(position).copied().flatten()
    }

    fn push(&mut self, value: Value<'a>) {
        if let Some(position) = self.positions.get_mut(self.count) {
            *position = Some(value);
        }
        self.count += 1;
    }
}

/// Why no call of a body can be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFault {
    /// Not UTF-8, not JSON, or nested too deep.
    NotJson,
    /// JSON, but neither an object nor an array.
    NotACall,
    EmptyBatch,
    BatchTooLarge,
}

/// An element of a request that is not a valid call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadCall<'a> {
    /// The id, or null if it could not be read.
    pub id: Id<'a>,
    pub fault: CallFault,
}

/// Why a call is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallFault {
    NotAnObject,
    DuplicateMember,
    /// More than `UNKNOWN_MEMBERS_MAX` unknown members.
    TooManyMembers,
    BadId,
    NoVersion,
    OtherVersion,
    NoMethod,
    MethodTooLong,
}

/// Parses a body with the default limit on batches.
pub fn parse(body: &[u8]) -> Result<Request<'_>, BodyFault> {
    parse_within(body, BATCH_CALLS_MAX)
}

/// Parses a body whose batch may have `batch_calls_max` calls.
pub fn parse_within(body: &[u8], batch_calls_max: usize) -> Result<Request<'_>, BodyFault> {
    let text = std::str::from_utf8(body).map_err(|_| BodyFault::NotJson)?;
    let mut scanner = Scanner::new(text);
    let request = match scanner.peek() {
        Some(b'{') => Request::Single(call(&mut scanner, 0)?),
        Some(b'[') => Request::Batch(batch(&mut scanner, batch_calls_max)?),
        _ => {
            scanner.value(0)?;
            return Err(if scanner.peek().is_none() { BodyFault::NotACall } else { BodyFault::NotJson });
        }
    };
    if scanner.peek().is_some() {
        return Err(BodyFault::NotJson);
    }
    Ok(request)
}

fn batch<'a>(scanner: &mut Scanner<'a>, calls_max: usize) -> Result<Vec<RequestItem<'a>>, BodyFault> {
    scanner.expect(b'[')?;
    if scanner.take(b']') {
        return Err(if scanner.peek().is_none() { BodyFault::EmptyBatch } else { BodyFault::NotJson });
    }
    let mut items = Vec::new();
    loop {
        // The rest is not validated: the whole batch is refused anyway.
        if items.len() == calls_max {
            return Err(BodyFault::BatchTooLarge);
        }
        items.push(if scanner.peek() == Some(b'{') {
            call(scanner, 1)?
        } else {
            scanner.value(1)?;
            Err(BadCall { id: Id::NULL, fault: CallFault::NotAnObject })
        });
        if !scanner.take(b',') {
            scanner.expect(b']')?;
            return Ok(items);
        }
    }
}

fn call<'a>(scanner: &mut Scanner<'a>, depth: usize) -> Result<RequestItem<'a>, ScanError> {
    check_depth(depth)?;
    scanner.expect(b'{')?;
    let mut members = CallMembers::default();
    if !scanner.take(b'}') {
        loop {
            scanner.peek();
            let name = scanner.string()?;
            scanner.expect(b':')?;
            members.read(name, scanner, depth + 1)?;
            if !scanner.take(b',') {
                break scanner.expect(b'}')?;
            }
        }
    }
    Ok(members.into_call())
}

/// Collects the members of a request object.
#[derive(Default)]
struct CallMembers<'a> {
    version: Option<Value<'a>>,
    id: Option<Value<'a>>,
    method: Option<Value<'a>>,
    params: Option<Params<'a>>,
    /// Unknown names, kept to find duplicates.
    others: Vec<Cow<'a, str>>,
    duplicate: bool,
    too_many: bool,
}

impl<'a> CallMembers<'a> {
    /// Reads the value of the member `name`, which includes the quotes.
    fn read(&mut self, name: &'a str, scanner: &mut Scanner<'a>, depth: usize) -> Result<(), ScanError> {
        let member = match name {
            "\"jsonrpc\"" => &mut self.version,
            "\"id\"" => &mut self.id,
            "\"method\"" => &mut self.method,
            "\"params\"" => return self.read_params(scanner, depth),
            _ => return self.read_unusual(name, scanner, depth),
        };
        self.duplicate |= member.replace(Value::from_scanned(scanner.value(depth)?)).is_some();
        Ok(())
    }

    /// Reads a member whose name is unknown or has escapes: `"meth\u006fd"` is `method`.
    #[cold]
    fn read_unusual(
        &mut self,
        name: &'a str,
        scanner: &mut Scanner<'a>,
        depth: usize,
    ) -> Result<(), ScanError> {
        let plain = Value::from_scanned(name).as_str().unwrap_or_default();
        let member = match &*plain {
            "jsonrpc" => &mut self.version,
            "id" => &mut self.id,
            "method" => &mut self.method,
            "params" => return self.read_params(scanner, depth),
            _ => {
                match self.others.len() {
                    UNKNOWN_MEMBERS_MAX => self.too_many = true,
                    _ => self.others.push(plain),
                }
                scanner.value(depth)?;
                return Ok(());
            }
        };
        self.duplicate |= member.replace(Value::from_scanned(scanner.value(depth)?)).is_some();
        Ok(())
    }

    fn read_params(&mut self, scanner: &mut Scanner<'a>, depth: usize) -> Result<(), ScanError> {
        let mut params = Params::default();
        if scanner.peek() == Some(b'[') {
            check_depth(depth)?;
            scanner.expect(b'[')?;
            if !scanner.take(b']') {
                loop {
                    params.push(Value::from_scanned(scanner.value(depth + 1)?));
                    if !scanner.take(b',') {
                        break scanner.expect(b']')?;
                    }
                }
            }
        } else {
            params.is_not_array = scanner.value(depth)? != "null";
        }
        self.duplicate |= self.params.replace(params).is_some();
        Ok(())
    }

    fn has_duplicate(&mut self) -> bool {
        if self.others.len() > 1 {
            self.others.sort_unstable();
            self.duplicate |= self.others.windows(2).any(|pair| pair[0] == pair[1]);
        }
        self.duplicate
    }

    fn into_call(mut self) -> RequestItem<'a> {
        if self.has_duplicate() {
            return Err(BadCall { id: Id::NULL, fault: CallFault::DuplicateMember });
        }
        let id = match self.id {
            None => None,
            Some(id) if is_id(id) => Some(Id(id.raw())),
            Some(_) => return Err(BadCall { id: Id::NULL, fault: CallFault::BadId }),
        };
        let bad = |fault| BadCall { id: id.unwrap_or(Id::NULL), fault };
        if self.too_many {
            return Err(bad(CallFault::TooManyMembers));
        }
        match self.version.and_then(Value::as_str) {
            None => return Err(bad(CallFault::NoVersion)),
            Some(version) if version != "2.0" => return Err(bad(CallFault::OtherVersion)),
            Some(_) => {}
        }
        let method = self.method.and_then(Value::as_str).ok_or_else(|| bad(CallFault::NoMethod))?;
        if method.len() > METHOD_BYTES_MAX {
            return Err(bad(CallFault::MethodTooLong));
        }
        Ok(Call { id, method, params: self.params.unwrap_or_default() })
    }
}

/// Whether a value is a valid id. The length is limited because every reply repeats the id: a long one would turn a cheap
/// call into a large reply.
fn is_id(id: Value<'_>) -> bool {
    matches!(id.kind(), ValueKind::Number | ValueKind::String | ValueKind::Null)
        && id.raw().len() <= ID_BYTES_MAX
}

impl From<ScanError> for BodyFault {
    fn from(_: ScanError) -> Self {
        Self::NotJson
    }
}

#[cfg(test)]
mod tests;
