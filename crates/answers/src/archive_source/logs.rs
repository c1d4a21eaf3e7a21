//! Logs of the embedded chain.

use std::ops::ControlFlow;

use archive::{LogLimits, LogsError};
use methods::{BlockRef, LogBlocks, LogsQuery};
use sources::{Failure, Json, LOG_BYTES_TYPICAL, LogWriter};

use super::{ArchiveReader, brief};

impl ArchiveReader<'_> {
    pub(super) fn logs(&self, query: &LogsQuery<BlockRef>, json: &mut Json<'_>) -> Result<BlockRef, Failure> {
        let LogsQuery { filter, blocks } = query;
        let (from, to) = match *blocks {
            LogBlocks::One(block) => (block, block),
            LogBlocks::Range { from, to } => (from, to),
        };
        let brief = self.budget.is_brief();
        let values = filter.addresses.len() + filter.topics.iter().map(Vec::len).sum::<usize>();
        if brief && values > brief::FILTER_VALUES_MAX {
            return Err(Failure::QueryTimeout);
        }
        let filter =
            archive::LogFilter { addresses: filter.addresses.clone(), topics: filter.topics.clone() };
        let limits = LogLimits {
            results_max: usize::try_from(self.limits.log_results_max).unwrap_or(usize::MAX),
            deadline: self.budget.deadline(),
            cancel: self.budget.abandoned().map(|flag| &**flag),
        };
        let found =
            self.snapshot.logs(from.number..=to.number, &filter, limits).map_err(|cause| match cause {
                LogsError::TooMany { widest_to } => Failure::TooManyResults {
                    from: from.number,
                    to: widest_to.unwrap_or(from.number),
                    most: self.limits.log_results_max,
                },
                other => other.into(),
            })?;
        if brief && found.len() > brief::LOGS_MAX {
            return Err(Failure::QueryTimeout);
        }
        let bytes_max = if brief { json.0.len() + brief::JSON_BYTES_MAX } else { usize::MAX };
        let typical_bytes = found.len() as usize * LOG_BYTES_TYPICAL;
        self.budget.charge_reply(json.0.len() + typical_bytes)?;
        json.0.reserve(typical_bytes);
        let mut writer = LogWriter::default();
        let mut separator: &[u8] = b"[";
        let flow = found.read(|log| {
            json.raw(separator);
            separator = b",";
            writer.write(&log.into(), json);
            if json.0.len() > bytes_max {
                return ControlFlow::Break(Failure::QueryTimeout);
            }
            match self.budget.charge_reply(json.0.capacity()) {
                Ok(()) => ControlFlow::Continue(()),
                Err(failure) => ControlFlow::Break(failure),
            }
        })?;
        if let ControlFlow::Break(failure) = flow {
            return Err(failure);
        }
        json.raw(if found.is_empty() { b"[]" } else { b"]" });
        Ok(to)
    }
}
