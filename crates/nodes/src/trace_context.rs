//! W3C trace context: which trace a call belongs to, as the header `traceparent` says it.
//!
//! A call runs in one task, however many modules are between it and a node, and starts no other task for itself. So the context is a
//! value of the task: only the one who reads the header and the one who talks to nodes know of it.

use std::fmt;

use http::HeaderName;

tokio::task_local! {
    static CURRENT: TraceContext;
}

/// The header that has the context.
pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// A position in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// Not 0.
    pub trace_id: u128,
    /// The span below which everything is that happens in this context. Not 0.
    pub span_id: u64,
    /// Whether whoever has begun the trace records it.
    pub is_sampled: bool,
}

/// Bytes of a header of version 00. Later versions may append to them, after a dash.
const HEADER_BYTES: usize = 55;

const SAMPLED: u8 = 1;

impl TraceContext {
    /// Reads the value of the header. It is decoded and written again where it is passed on, so bytes of callers never reach a node.
    pub fn parse(header: &str) -> Option<Self> {
        let header = header.as_bytes();
        let (known, rest) = header.split_at_checked(HEADER_BYTES)?;
        let [version, trace_id, span_id, flags] = fields(known)?;
        let is_whole = match hexadecimal(version)? {
            0 => rest.is_empty(),
            0xff => false,
            _ => rest.first().is_none_or(|&byte| byte == b'-'),
        };
        let trace_id = Some(hexadecimal(trace_id)?).filter(|&id| id != 0 && is_whole)?;
        let span_id = u64::try_from(hexadecimal(span_id)?).ok().filter(|&id| id != 0)?;
        let flags = u8::try_from(hexadecimal(flags)?).ok()?;
        Some(Self { trace_id, span_id, is_sampled: flags & SAMPLED != 0 })
    }

    /// Runs work in this context.
    pub fn run<T>(self, work: impl Future<Output = T>) -> impl Future<Output = T> {
        CURRENT.scope(self, work)
    }

    /// The context of the call that this task works for.
    pub(crate) fn current() -> Option<Self> {
        CURRENT.try_with(|context| *context).ok()
    }
}

/// The header of version 00.
impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = if self.is_sampled { SAMPLED } else { 0 };
        write!(f, "00-{:032x}-{:016x}-{flags:02x}", self.trace_id, self.span_id)
    }
}

/// Version, trace id, span id and flags.
fn fields(header: &[u8]) -> Option<[&[u8]; 4]> {
    let mut fields = header.split(|&byte| byte == b'-');
    let mut next = |length| fields.next().filter(|field| field.len() == length);
    Some([next(2)?, next(32)?, next(16)?, next(2)?])
}

/// A number in at most 32 lower-case digits.
fn hexadecimal(digits: &[u8]) -> Option<u128> {
    digits.iter().try_fold(0, |number, &digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u128::from(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_context_is_passed_on_as_it_came() {
        let context = TraceContext::parse(HEADER).unwrap();
        assert_eq!(context.trace_id, 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c);
        assert_eq!((context.span_id, context.is_sampled), (0xb7ad_6b71_6920_3331, true));
        assert_eq!(context.to_string(), HEADER);
        for (flags, sent) in [("00", "00"), ("02", "00"), ("ff", "01")] {
            let header = format!("{}{flags}", &HEADER[..53]);
            assert_eq!(TraceContext::parse(&header).unwrap().to_string(), format!("{}{sent}", &HEADER[..53]));
        }
    }

    #[test]
    fn later_versions_are_read_as_far_as_they_are_known() {
        let later = HEADER.replacen("00", "01", 1);
        for header in [later.clone(), format!("{later}-"), format!("{later}-what-comes")] {
            assert_eq!(TraceContext::parse(&header).unwrap().to_string(), HEADER, "{header}");
        }
        assert_eq!(TraceContext::parse(&format!("{later}x")), None);
    }

    #[test]
    fn anything_else_is_no_context() {
        for bad in [
            "",
            "00",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 ",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0g",
            "00-0af7651916cd43dd8448eb211c80319cb-7ad6b7169203331-01",
            "00_0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331_01",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "+0-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "é00-af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ] {
            assert_eq!(TraceContext::parse(bad), None, "{bad}");
        }
    }
}
