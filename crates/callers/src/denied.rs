//! Why a key does not let a request in.

/// Why a request was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    NoKey,
    UnknownKey,
    WrongSecret,
    /// The token is missing, expired or wrong; callers are not told which.
    BadToken,
    Setting(RefusingSetting),
}

/// The kind of setting of a key that refused a request or a call. Callers are told the kind, never its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusingSetting {
    Origin,
    Agent,
    Address,
    Method,
    Network,
    /// A secret is required and was not sent.
    Secret,
}

impl RefusingSetting {
    pub const ALL: [Self; 6] =
        [Self::Origin, Self::Agent, Self::Address, Self::Method, Self::Network, Self::Secret];

    /// The name in an error's `data`.
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
