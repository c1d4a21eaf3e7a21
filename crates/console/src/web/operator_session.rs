//! Proof that a request comes from an operator.

use callers::people::ActiveSession;

/// The session of an operator.
#[derive(Clone, Debug)]
pub(super) struct OperatorSession(ActiveSession);

impl OperatorSession {
    pub(super) fn of(session: ActiveSession) -> Option<Self> {
        session.is_operator().then_some(Self(session))
    }

    pub(super) fn session(&self) -> &ActiveSession {
        &self.0
    }
}
