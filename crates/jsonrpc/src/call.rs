//! A body → the calls in it, each a handful of slices of the body.
//!
//! The whole body is judged before the first call is handed out: a batch with a syntax error at its end is not JSON,
//! and none of it is answered.

use std::borrow::Cow;

use crate::scan::{Broken, Scanner, deeper};
use crate::value::{Kind, Value};

/// Calls in one batch. The largest that common client libraries send is 1,000.
pub const BATCH_CALLS_MAX: usize = 1_000;

/// Bytes of a method name. The longest known name has under 50; the bound keeps names out of logs and replies.
pub const METHOD_BYTES_MAX: usize = 128;

/// Bytes of an id, as it is written. Clients use numbers and UUIDs.
pub const ID_BYTES_MAX: usize = 1_024;

/// Members of one call that mean nothing to us. Clients add a few of their own; each is compared with the others to find
/// duplicates, which takes long for hundreds of thousands of them.
pub const UNKNOWN_MEMBERS_MAX: usize = 32;

/// Positional parameters whose bounds are kept. No method takes more than `eth_call` with its four.
pub const POSITIONS_MAX: usize = 4;

/// What a body holds.
#[derive(Clone, Debug, PartialEq, Eq)]
// A single call is by far the most common body, and a box would cost it the only allocation that it has.
#[allow(clippy::large_enum_variant)]
pub enum Request<'a> {
    Single(Item<'a>),
    /// At least one, in the caller's order.
    Batch(Vec<Item<'a>>),
}

/// One call, or what is wrong with what stands in its place.
pub type Item<'a> = Result<Call<'a>, BadCall<'a>>;

/// One JSON-RPC request object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call<'a> {
    /// `None` makes the call a notification.
    pub id: Option<Id<'a>>,
    pub method: Cow<'a, str>,
    pub params: Params<'a>,
}

/// The caller's `id`, byte for byte: `1.0`, `18446744073709551616` and `"\u0061"` go back as they came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Id<'a>(&'a str);

impl<'a> Id<'a> {
    /// The id of a reply to something that has none that could be read.
    pub const NULL: Id<'static> = Id("null");

    /// The id whose text is `raw`, which was taken from another one.
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
    named: bool,
}

impl<'a> Params<'a> {
    /// How many parameters there are, also those beyond the positions that are kept.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Whether `params` was something else than an array, null or left out.
    pub fn is_not_array(&self) -> bool {
        self.named
    }

    /// The parameter at a position, counted from 0.
    pub fn get(&self, position: usize) -> Option<Value<'a>> {
        self.positions.get(position).copied().flatten()
    }

    fn push(&mut self, value: Value<'a>) {
        if let Some(place) = self.positions.get_mut(self.count) {
            *place = Some(value);
        }
        self.count += 1;
    }
}

/// Why a body holds no call at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFault {
    /// Not UTF-8, not JSON, or nested too deep.
    NotJson,
    /// JSON, but neither an object nor an array.
    NotACall,
    EmptyBatch,
    BatchTooLarge,
}

/// Something in the place of a call that cannot be answered as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadCall<'a> {
    /// The id, if it could be read, else null.
    pub id: Id<'a>,
    pub fault: CallFault,
}

/// What is wrong with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallFault {
    NotAnObject,
    DuplicateMember,
    /// More than `UNKNOWN_MEMBERS_MAX`.
    TooManyMembers,
    BadId,
    NoVersion,
    OtherVersion,
    NoMethod,
    MethodTooLong,
}

/// Reads a body with the usual bound on its batch.
pub fn parse(body: &[u8]) -> Result<Request<'_>, BodyFault> {
    parse_within(body, BATCH_CALLS_MAX)
}

/// Reads a body whose batch may hold `batch_calls_max` calls.
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

fn batch<'a>(scanner: &mut Scanner<'a>, calls_max: usize) -> Result<Vec<Item<'a>>, BodyFault> {
    scanner.expect(b'[')?;
    if scanner.take(b']') {
        return Err(if scanner.peek().is_none() { BodyFault::EmptyBatch } else { BodyFault::NotJson });
    }
    let mut items = Vec::new();
    loop {
        // What comes after too many calls is not read: the reply is the same whether or not it is JSON.
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

fn call<'a>(scanner: &mut Scanner<'a>, depth: usize) -> Result<Item<'a>, Broken> {
    deeper(depth)?;
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

/// The members of a request object as they turn up.
#[derive(Default)]
struct CallMembers<'a> {
    version: Option<Value<'a>>,
    id: Option<Value<'a>>,
    method: Option<Value<'a>>,
    params: Option<Params<'a>>,
    /// Names that mean nothing to us; kept only to find those that occur twice.
    others: Vec<Cow<'a, str>>,
    duplicate: bool,
    too_many: bool,
}

impl<'a> CallMembers<'a> {
    /// Reads the member called `name` (with its quotes), whose value comes next.
    fn read(&mut self, name: &'a str, scanner: &mut Scanner<'a>, depth: usize) -> Result<(), Broken> {
        let place = match name {
            "\"jsonrpc\"" => &mut self.version,
            "\"id\"" => &mut self.id,
            "\"method\"" => &mut self.method,
            "\"params\"" => return self.read_params(scanner, depth),
            _ => return self.read_rare(name, scanner, depth),
        };
        self.duplicate |= place.replace(Value::from_scanned(scanner.value(depth)?)).is_some();
        Ok(())
    }

    /// A name that we do not know, or that we know in another spelling: `"meth\u006fd"` is `method`.
    #[cold]
    fn read_rare(&mut self, name: &'a str, scanner: &mut Scanner<'a>, depth: usize) -> Result<(), Broken> {
        let plain = Value::from_scanned(name).as_str().unwrap_or_default();
        let place = match &*plain {
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
        self.duplicate |= place.replace(Value::from_scanned(scanner.value(depth)?)).is_some();
        Ok(())
    }

    fn read_params(&mut self, scanner: &mut Scanner<'a>, depth: usize) -> Result<(), Broken> {
        let mut params = Params::default();
        if scanner.peek() == Some(b'[') {
            deeper(depth)?;
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
            params.named = scanner.value(depth)? != "null";
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

    fn into_call(mut self) -> Item<'a> {
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

/// Whether a value may be an id. Every reply repeats it, so a long one would make large replies out of cheap calls.
fn is_id(id: Value<'_>) -> bool {
    matches!(id.kind(), Kind::Number | Kind::String | Kind::Null) && id.raw().len() <= ID_BYTES_MAX
}

impl From<Broken> for BodyFault {
    fn from(_: Broken) -> Self {
        Self::NotJson
    }
}

#[cfg(test)]
mod tests;
