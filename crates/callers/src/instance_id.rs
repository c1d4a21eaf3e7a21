//! The id of a process, which distinguishes the gateways that share a store.

use std::fmt;

/// A random id, new at each start of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstanceId(u64);

impl InstanceId {
    pub fn random() -> Self {
        Self(rand::random())
    }

    /// Reads an id that was shown.
    pub fn parse(text: &str) -> Option<Self> {
        let is_id = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_id.then(|| u64::from_str_radix(text, 16).ok()).flatten().map(Self)
    }
}

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
