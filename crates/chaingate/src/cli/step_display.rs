//! Shows how far a command with several long steps is: a bar on a terminal, else a line every few seconds.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use gateway::log::BackgroundWriter;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use resources::Supervisor;

use super::MESSAGE_TIMEOUT;

/// Time between two lines without a terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// The bar, or the lines, of a command.
pub(super) struct StepDisplay {
    command: &'static str,
    bar: Option<ProgressBar>,
    last_line: Instant,
    messages: BackgroundWriter,
}

impl StepDisplay {
    pub(super) fn new(command: &'static str) -> Result<Self, String> {
        // Standard error may have no reader, or a stuck one, and the command must not wait for it.
        let messages = BackgroundWriter::to_stderr(&Supervisor::default());
        let messages = messages.map_err(|error| format!("cannot write messages: {error}"))?;
        let bar = io::stderr().is_terminal().then(bar);
        Ok(Self { command, bar, last_line: Instant::now(), messages })
    }

    pub(super) fn show(&mut self, step: &str, done: u64, total: u64) {
        let percent = (u128::from(done) * 100).checked_div(u128::from(total)).unwrap_or(100);
        if let Some(bar) = &self.bar {
            bar.set_length(total);
            bar.set_position(done);
            bar.set_message(step.to_owned());
        } else if self.last_line.elapsed() >= LINE_EVERY {
            self.last_line = Instant::now();
            let line = format!("{}: {step} {percent}%\n", self.command);
            self.messages.write_lines(line.as_bytes());
        }
    }
}

impl Drop for StepDisplay {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        self.messages.finish(MESSAGE_TIMEOUT);
    }
}

fn bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {percent:>3}%  {msg}  {elapsed}");
    let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr_with_hz(10));
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
