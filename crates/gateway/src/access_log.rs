//! The access log: one JSON line per call, to standard output or to a file.
//!
//! Calls never wait for it. Lines wait in a bounded queue for the one thread that writes them; lines that do not fit, or that cannot
//! be written, are dropped and counted.

mod json_line; // one line
mod rotating_file; // a file of bounded size, and the full ones before it

use std::fs::File;
use std::io::{self, stdout};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use callers::usage::Outcome;
use resources::Supervisor;
use settings::Section;

use crate::background_writer::{BackgroundWriter, WriterName};
use crate::policy::LOG_FINISH_TIMEOUT;

pub(crate) use json_line::JsonLine;
use rotating_file::{FileLimits, RotatingFile};

/// `[access_log]`: which calls are logged, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct AccessLogConfig {
    calls: LoggedCalls,
    /// `None` is standard output.
    file: Option<PathBuf>,
    file_limits: FileLimits,
}

/// Which calls have a line.
#[derive(Clone, Copy, Debug, PartialEq)]
enum LoggedCalls {
    Errors,
    /// This share of all.
    Sampled(f64),
    All,
}

impl AccessLogConfig {
    /// `None` if no call is logged.
    pub fn read(section: &mut Section<'_>) -> Option<Self> {
        let calls = section.text("calls", "off");
        let ratio = section.ratio("sample_ratio", 0.01);
        let file = section.optional_text("file").map(PathBuf::from);
        let file_limits = FileLimits::read(section);
        let calls = match calls.as_str() {
            "off" => return None,
            "errors" => LoggedCalls::Errors,
            "sampled" => LoggedCalls::Sampled(ratio),
            "all" => LoggedCalls::All,
            _ => {
                section.error("calls", "must be \"off\", \"errors\", \"sampled\" or \"all\"");
                return None;
            }
        };
        Some(Self { calls, file, file_limits })
    }
}

/// The access log of a gateway. Clones write to the same.
#[derive(Clone, Debug)]
pub struct AccessLog {
    calls: LoggedCalls,
    writer: BackgroundWriter,
    counts: Arc<AccessLogCounts>,
}

#[derive(Debug, Default)]
struct AccessLogCounts {
    lines: AtomicU64,
    dropped: Arc<AtomicU64>,
}

impl AccessLog {
    /// Starts the thread that writes. Fails if the file cannot be opened.
    pub fn start(config: &AccessLogConfig, supervisor: &Supervisor) -> io::Result<Self> {
        let counts = AccessLogCounts::default();
        let (name, dropped) = (WriterName::ACCESS_LOG, Arc::clone(&counts.dropped));
        let writer = match &config.file {
            Some(path) => {
                let file = RotatingFile::open(path.clone(), config.file_limits)?;
                BackgroundWriter::start(name, file, dropped, supervisor)?
            }
            None => {
                // Without the buffer of the standard library, which keeps what it could not write.
                let unbuffered = File::from(stdout().as_fd().try_clone_to_owned()?);
                BackgroundWriter::start(name, unbuffered, dropped, supervisor)?
            }
        };
        Ok(Self { calls: config.calls, writer, counts: Arc::new(counts) })
    }

    /// Whether a call that ended like this has a line. Of sampled calls, every question is another draw.
    pub(crate) fn takes(&self, outcome: Outcome) -> bool {
        match self.calls {
            LoggedCalls::Errors => outcome != Outcome::Ok,
            LoggedCalls::Sampled(ratio) => rand::random::<f64>() < ratio,
            LoggedCalls::All => true,
        }
    }

    pub(crate) fn write(&self, line: JsonLine) {
        self.counts.lines.fetch_add(1, Relaxed);
        self.writer.write_lines(&line.end());
    }

    /// Lines so far, including those that were dropped.
    pub(crate) fn lines(&self) -> u64 {
        self.counts.lines.load(Relaxed)
    }

    /// Lines that found no room, or could not be written.
    pub(crate) fn lines_dropped(&self) -> u64 {
        self.counts.dropped.load(Relaxed)
    }

    /// Writes the last lines, for at most a second. Lines that come later may be lost.
    pub fn finish(&self) {
        self.writer.finish(LOG_FINISH_TIMEOUT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<AccessLogConfig>, String> {
        settings::read(text, AccessLogConfig::read).map_err(|errors| errors.to_string())
    }

    #[test]
    fn it_is_off_unless_it_is_asked_for() {
        assert_eq!(read(""), Ok(None));
        assert_eq!(read("file = \"calls.log\""), Ok(None));
        for (calls, logged) in [
            ("errors", LoggedCalls::Errors),
            ("sampled", LoggedCalls::Sampled(0.5)),
            ("all", LoggedCalls::All),
        ] {
            let config = read(&format!("calls = \"{calls}\"\nsample_ratio = 0.5")).unwrap().unwrap();
            assert_eq!((config.calls, config.file), (logged, None));
        }
        assert!(read("calls = \"some\"").unwrap_err().contains("calls: must be"));
        for wrong in ["1.5", "-0.1", "nan", "\"a\"", "2"] {
            let error = read(&format!("calls = \"sampled\"\nsample_ratio = {wrong}")).unwrap_err();
            assert!(error.contains("sample_ratio: must be a number from 0 to 1"), "{wrong}: {error}");
        }
    }

    #[test]
    fn errors_and_samples_are_told_apart() {
        let supervisor = Supervisor::default();
        let start = |calls| {
            let file = Some("/dev/null".into());
            let config = AccessLogConfig { calls, file, file_limits: FileLimits::default() };
            AccessLog::start(&config, &supervisor).unwrap()
        };
        let errors = start(LoggedCalls::Errors);
        for outcome in Outcome::ALL {
            assert_eq!(errors.takes(outcome), outcome != Outcome::Ok);
        }
        for (ratio, least, most) in [(0.0, 0, 0), (0.5, 300, 700), (1.0, 1_000, 1_000)] {
            let log = start(LoggedCalls::Sampled(ratio));
            let taken = (0..1_000).filter(|_| log.takes(Outcome::Ok)).count();
            assert!((least..=most).contains(&taken), "{taken} of 1,000 at {ratio}");
        }
    }
}
