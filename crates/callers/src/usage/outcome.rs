//! How calls end.

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    Ok,
    /// The EVM ran and failed; the answer is an error, and a right one.
    Reverted,
    Invalid,
    /// The settings of the key exclude the call.
    Denied,
    /// A limit of the plan or the key is used up.
    Refused,
    OverCapacity,
    Unavailable,
    InternalError,
    Abandoned,
}

impl Outcome {
    pub const ALL: [Self; 9] = [
        Self::Ok,
        Self::Reverted,
        Self::Invalid,
        Self::Denied,
        Self::Refused,
        Self::OverCapacity,
        Self::Unavailable,
        Self::InternalError,
        Self::Abandoned,
    ];

    pub fn label(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Reverted => "reverted",
            Self::Invalid => "invalid",
            Self::Denied => "denied",
            Self::Refused => "refused",
            Self::OverCapacity => "over_capacity",
            Self::Unavailable => "unavailable",
            Self::InternalError => "internal_error",
            Self::Abandoned => "abandoned",
        }
    }

    /// The outcome with this label; `None` if only a later version has it.
    pub fn from_label(label: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.label() == label)
    }

    /// Callers do not pay for being refused by a limit, nor for our faults.
    pub fn is_free(self) -> bool {
        matches!(self, Self::Refused | Self::OverCapacity | Self::Unavailable | Self::InternalError)
    }
}
