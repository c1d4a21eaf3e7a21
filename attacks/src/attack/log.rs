//! A log that is full, closed, or not read.

use std::io;
use std::time::Duration;

use crate::gateway::LogTarget;
use crate::honest::HonestCallers;
use crate::report::AttackReport;
use crate::run::{AttackOptions, runtime};

/// How long honest load runs on each kind of log.
const LOAD: Duration = Duration::from_secs(4);

/// Starts a gateway on each kind of broken log, calls it, and stops it.
pub(super) fn log_dead(options: &AttackOptions) -> io::Result<AttackReport> {
    let mut report = AttackReport { exit: "exit status: 0".to_owned(), ..Default::default() };
    let runtime = runtime()?;
    for log in [LogTarget::FullDevice, LogTarget::ClosedPipe, LogTarget::StuckPipe] {
        // At this level every request writes, so that a stuck pipe fills.
        let gateway = match options.start(log, "debug") {
            Ok(gateway) => gateway,
            Err(error) => {
                report.exceeded.push(format!("{log:?}: {error}"));
                continue;
            }
        };
        let callers = HonestCallers::new(gateway.public, true);
        let figures = runtime.block_on(callers.call_for(LOAD.min(options.duration)));
        let (errors, ready) = (figures.error_count(), gateway.operator_page("/ready").is_some());
        report
            .require(errors == 0, || format!("{log:?}: {errors} of {} honest calls failed", figures.sent()));
        report.require(ready, || format!("{log:?}: the operator's listener does not answer"));
        report.attacked = figures;
        let exit = gateway.stop();
        report.require(exit == "exit status: 0", || format!("{log:?}: the gateway ended with {exit}"));
        report.notes.push(format!("{log:?}: {exit}"));
    }
    Ok(report)
}
