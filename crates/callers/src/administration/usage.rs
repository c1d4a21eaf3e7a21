//! Reports of usage.

use resources::unix_time;

use super::{Administration, AdministrationError};
use crate::usage::{UsageReport, UsageReportFailure, UsageReportRequest, UsageSettings};

impl From<UsageReportFailure> for AdministrationError {
    fn from(failure: UsageReportFailure) -> Self {
        match failure {
            UsageReportFailure::Invalid { field, message } => Self::Invalid { field, message },
            UsageReportFailure::Store(failure) => failure.into(),
        }
    }
}

impl Administration {
    /// Sets for how long usage is kept.
    pub fn with_usage_settings(self, usage: UsageSettings) -> Self {
        Self { usage, ..self }
    }

    /// The usage of callers.
    pub async fn usage_report(
        &self,
        request: &UsageReportRequest,
    ) -> Result<UsageReport, AdministrationError> {
        let now = unix_time().as_secs();
        Ok(UsageReport::read(&self.store, &self.usage, request, now).await?)
    }
}
