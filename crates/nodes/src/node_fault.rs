//! A fault of a node, as people are told it: what happened, and what they can do.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::call::{Fault, TlsFailure};

/// A fault of a node, with what is wrong with its answer, if it has given one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFault {
    pub(crate) kind: Fault,
    answer: Option<Arc<BadAnswer>>,
}

/// An answer that cannot be used.
#[derive(Debug, PartialEq, Eq)]
struct BadAnswer {
    method: &'static str,
    /// Number, hash or tag of the block that was asked for.
    block: Option<String>,
    /// The member that is wrong, and how.
    problem: Cow<'static, str>,
}

impl NodeFault {
    /// An answer to this method that cannot be used.
    pub(crate) fn of_answer(
        kind: Fault,
        method: &'static str,
        block: Option<String>,
        problem: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { kind, answer: Some(Arc::new(BadAnswer { method, block, problem: problem.into() })) }
    }

    /// The node says that it has no block at all.
    pub(crate) fn no_newest_block() -> Self {
        Self::of_answer(Fault::Refused, "eth_getBlockByNumber", Some("latest".to_owned()), "it is null")
    }

    /// The fault, and the advice for the operator.
    pub fn with_advice(&self) -> String {
        format!("{self}: {}", self.advice())
    }

    /// The advice for the operator. Faults with the same advice are of one kind for the log.
    pub(crate) fn advice(&self) -> &'static str {
        advice(self.kind)
    }
}

impl From<Fault> for NodeFault {
    fn from(kind: Fault) -> Self {
        Self { kind, answer: None }
    }
}

impl fmt::Display for NodeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(BadAnswer { method, block, problem }) = self.answer.as_deref() else {
            return self.kind.fmt(f);
        };
        write!(f, "its answer to {method}")?;
        if let Some(block) = block {
            write!(f, " for block {block}")?;
        }
        write!(f, " is wrong ({problem})")
    }
}

fn advice(fault: Fault) -> &'static str {
    match fault {
        Fault::Connect => "check that it runs, and the host and port of its url",
        Fault::ConnectTimeout => "check that its host is up, and that no firewall drops the connection",
        Fault::Dns => "check the host name in its url, and the DNS of this machine",
        Fault::Tls(TlsFailure::NoTls) => {
            "its url says https, and it answers without TLS: check scheme and port of its url"
        }
        Fault::Tls(TlsFailure::OtherName) => {
            "check the host name in its url: its certificate is for another one"
        }
        Fault::Tls(TlsFailure::Expired | TlsFailure::NotYetValid) => {
            "renew its certificate, or set the clock of this machine"
        }
        Fault::Tls(TlsFailure::UnknownIssuer | TlsFailure::BadCertificate) => {
            "give it a certificate of an authority that this machine trusts, or install its authority here"
        }
        Fault::Tls(TlsFailure::Handshake) => "check that its port speaks TLS 1.2 or 1.3",
        Fault::Status(401 | 403) => {
            "it refuses our credentials: check user, password, key and headers of its entry"
        }
        Fault::Status(404 | 405) => "check the path of its url",
        Fault::Status(_) => "look into its own log",
        Fault::Refused => "it answers a plain question with an error: check its key and its plan",
        Fault::RateLimited => "raise its limit, or poll_interval_ms in [pool]",
        Fault::Garbled | Fault::WrongId => "check that its url is that of a JSON-RPC endpoint",
        Fault::Timeout => "check whether it hangs or is overloaded",
        Fault::Closed => "check whether it restarts, or a proxy before it closes connections",
        Fault::TooLarge | Fault::Wrong => {
            "it sends replies that no honest node sends: check what answers at its url"
        }
        Fault::QueueFull => "it answers more slowly than it is asked: add nodes",
        Fault::NoMemory | Fault::LargerThanMemory => "raise reply_memory_bytes in [pool]",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A node whose blocks were refused was "down" and "silent", and nothing said which block and why.
    #[test]
    fn a_wrong_answer_is_told_with_method_block_and_member() {
        let fault = NodeFault::of_answer(
            Fault::Wrong,
            "eth_getBlockByNumber",
            Some("0x5".to_owned()),
            "`hash` is not that of its header",
        );
        assert_eq!(
            fault.to_string(),
            "its answer to eth_getBlockByNumber for block 0x5 is wrong (`hash` is not that of its header)"
        );
    }

    #[test]
    fn every_cause_has_its_own_sentence() {
        let causes = [
            Fault::Connect,
            Fault::ConnectTimeout,
            Fault::Timeout,
            Fault::Closed,
            Fault::Dns,
            Fault::Tls(TlsFailure::Expired),
            Fault::Tls(TlsFailure::OtherName),
            Fault::Status(401),
            Fault::Status(404),
            Fault::Wrong,
        ];
        let sentences: std::collections::HashSet<_> =
            causes.iter().map(|cause| NodeFault::from(*cause).with_advice()).collect();
        assert_eq!(sentences.len(), causes.len(), "{sentences:#?}");
    }
}
