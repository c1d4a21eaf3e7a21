//! Why a request was rejected.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    NoKey,
    UnknownKey,
    WrongSecret,
    /// The token is missing, expired or wrong; the error does not tell callers which.
    BadToken,
    Setting(KeyRestriction),
}

/// The setting of a key that rejected a request or a call. The error contains its name, never its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyRestriction {
    Origin,
    Agent,
    Address,
    Method,
    Network,
    /// A required secret was not sent.
    Secret,
}

impl KeyRestriction {
    pub const ALL: [Self; 6] =
        [Self::Origin, Self::Agent, Self::Address, Self::Method, Self::Network, Self::Secret];

    /// The name in the `data` of the error.
    pub fn name(self) -> &'static str {
        match self {
            Self::Origin => "origin",
            Self::Agent => "agent",
            Self::Address => "address",
            Self::Method => "method",
            Self::Network => "network",
            Self::Secret => "secret",
        }
    }
}
