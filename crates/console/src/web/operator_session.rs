//! Proof that a request comes from an operator.

use std::ops::Deref;

use callers::people::ActiveSession;

use super::web_request::PageSession;

#[derive(Clone, Debug)]
pub(super) struct OperatorSession(ActiveSession);

impl OperatorSession {
    pub(super) fn of(session: ActiveSession) -> Option<Self> {
        session.is_operator().then_some(Self(session))
    }
}

impl Deref for OperatorSession {
    type Target = ActiveSession;

    fn deref(&self) -> &ActiveSession {
        &self.0
    }
}

impl PageSession for OperatorSession {
    fn signed_in(&self) -> Option<&ActiveSession> {
        Some(self)
    }
}
