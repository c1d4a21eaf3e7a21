//! Reports of usage.

use super::{Administration, AdministrationError, unix_seconds};
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
    /// The same with other times for which usage is kept.
    pub fn with_usage_settings(self, usage: UsageSettings) -> Self {
        Self { usage, ..self }
    }

    /// What callers have used.
    pub async fn usage_report(
        &self,
        request: &UsageReportRequest,
    ) -> Result<UsageReport, AdministrationError> {
        let now = u64::try_from(unix_seconds()).unwrap_or(0);
        Ok(UsageReport::read(&self.store, &self.usage, request, now).await?)
    }
}
