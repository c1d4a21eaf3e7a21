//! Shows the progress of an import: a bar on a terminal, else a line every few seconds.

use archive::ImportProgress;
use gateway::log::BackgroundWriter;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::{
    io::{self, IsTerminal},
    time::{Duration, Instant},
};

/// Time between two lines without a terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Time over which rates are measured: long enough to be steady, short enough to be current.
const RATE_OVER: Duration = Duration::from_secs(2);

/// The bar, or the lines, that show the progress.
pub(super) struct Display {
    bar: Option<ProgressBar>,
    rate: Rate,
    last_line: Instant,
    bytes_total: u64,
    messages: BackgroundWriter,
}

impl Display {
    pub(super) fn new(bytes_total: u64, head: u64, messages: BackgroundWriter) -> Self {
        let bar = io::stderr().is_terminal().then(|| bar(bytes_total));
        if let Some(bar) = &bar {
            bar.set_message(format!("block {head}"));
        }
        let now = Instant::now();
        Self { bar, rate: Rate::new(now), last_line: now, bytes_total, messages }
    }

    pub(super) fn show(&mut self, progress: &ImportProgress) {
        let now = Instant::now();
        self.rate.take(now, progress);
        if let Some(bar) = &self.bar {
            bar.set_position(progress.bytes_read);
            bar.set_message(self.rate.text(progress));
        } else if now.duration_since(self.last_line) >= LINE_EVERY {
            self.last_line = now;
            let percent = percent(progress.bytes_read, self.bytes_total);
            let line = format!("import: {percent}%, {}\n", self.rate.text(progress));
            self.messages.write_lines(line.as_bytes());
        }
    }

    pub(super) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar(bytes: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {percent:>3}%  {msg}  ETA {eta}");
    let bar = ProgressBar::with_draw_target(Some(bytes), ProgressDrawTarget::stderr_with_hz(10));
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn percent(part: u64, whole: u64) -> u64 {
    (u128::from(part) * 100).checked_div(u128::from(whole)).unwrap_or(100) as u64
}

/// Recent blocks and gas per second.
struct Rate {
    since: Instant,
    blocks_then: u64,
    gas_then: u64,
    blocks_per_second: f64,
    gas_per_second: f64,
}

impl Rate {
    fn new(now: Instant) -> Self {
        Self { since: now, blocks_then: 0, gas_then: 0, blocks_per_second: 0.0, gas_per_second: 0.0 }
    }

    fn take(&mut self, now: Instant, progress: &ImportProgress) {
        let elapsed = now.duration_since(self.since);
        let first = self.blocks_per_second == 0.0 && elapsed >= RATE_OVER / 10;
        if elapsed >= RATE_OVER || first {
            let seconds = elapsed.as_secs_f64();
            self.blocks_per_second = (progress.blocks - self.blocks_then) as f64 / seconds;
            self.gas_per_second = (progress.gas - self.gas_then) as f64 / seconds;
            *self = Self { since: now, blocks_then: progress.blocks, gas_then: progress.gas, ..*self };
        }
    }

    fn text(&self, progress: &ImportProgress) -> String {
        let megagas = self.gas_per_second / 1e6;
        format!("block {}  {:.0} blocks/s  {megagas:.1} Mgas/s", progress.head, self.blocks_per_second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_of_nothing_is_everything() {
        assert_eq!(
            [percent(0, 0), percent(1, 3), percent(3, 3), percent(u64::MAX, u64::MAX)],
            [100, 33, 100, 100]
        );
    }

    #[test]
    fn rates_are_those_of_the_last_seconds() {
        let start = Instant::now();
        let mut rate = Rate::new(start);
        let at = |blocks, gas| ImportProgress { blocks, gas, head: blocks, ..ImportProgress::default() };
        rate.take(start + RATE_OVER, &at(100, 20_000_000));
        assert_eq!(rate.text(&at(100, 0)), "block 100  50 blocks/s  10.0 Mgas/s");
        rate.take(start + RATE_OVER * 2, &at(102, 20_000_000));
        assert_eq!(rate.text(&at(102, 0)), "block 102  1 blocks/s  0.0 Mgas/s");
    }
}
