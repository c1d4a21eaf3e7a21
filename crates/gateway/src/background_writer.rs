//! A writer that never blocks its callers and never fails.

use std::io::{self, ErrorKind, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use std::{mem, thread};

use parking_lot::{Condvar, Mutex, MutexGuard};
use resources::{SupervisedTask, Supervisor, WhenDown};
use tracing_subscriber::fmt::MakeWriter;

use crate::policy::{LOG_ALIVE_INTERVAL, LOG_QUEUE_BYTES_MAX, LOG_RETRY_DELAY};

/// The names of a writer: of its task, for people, and of its thread, for the system.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriterName {
    task: &'static str,
    thread: &'static str,
}

impl WriterName {
    pub(crate) const LOG: Self = Self { task: "writer of the log", thread: "log" };
    pub(crate) const ACCESS_LOG: Self = Self { task: "writer of the access log", thread: "access-log" };
}

/// Hands lines to a thread that writes them.
#[derive(Clone, Debug)]
pub struct BackgroundWriter {
    queue: Arc<LineQueue>,
}

#[derive(Debug)]
struct LineQueue {
    state: Mutex<LineQueueState>,
    changed: Condvar,
    /// Lines that found no room, or could not be written.
    dropped: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct LineQueueState {
    /// Whole lines that are not being written yet.
    lines: Vec<u8>,
    /// Whether the thread is writing lines that it took out of the queue.
    is_writing: bool,
    is_finished: bool,
}

impl BackgroundWriter {
    /// Starts the thread that writes to `out`, and counts in `dropped` the lines that it cannot write.
    pub(crate) fn start(
        name: WriterName,
        mut out: impl Write + Send + 'static,
        dropped: Arc<AtomicU64>,
        supervisor: &Supervisor,
    ) -> io::Result<Self> {
        let queue = LineQueue { state: Mutex::default(), changed: Condvar::new(), dropped };
        let writer = Self { queue: Arc::new(queue) };
        let queue = Arc::clone(&writer.queue);
        let task = supervisor.task(name.task, WhenDown::Degraded);
        let run = move || {
            let mut lines = Vec::new();
            task.run_blocking(|task| {
                // A panic has left them behind.
                queue.count_dropped(&lines);
                lines.clear();
                queue.write_to(&mut out, &mut lines, task);
            });
        };
        thread::Builder::new().name(name.thread.to_owned()).spawn(run)?;
        Ok(writer)
    }

    /// Queues whole lines, or drops them if there is no room.
    pub fn write_lines(&self, lines: &[u8]) {
        let mut state = self.queue.state.lock();
        if state.lines.len() + lines.len() > LOG_QUEUE_BYTES_MAX {
            return self.queue.count_dropped(lines);
        }
        state.lines.extend_from_slice(lines);
        drop(state);
        self.queue.changed.notify_all();
    }

    /// Waits until everything is written, for at most this long. Lines that come later may be lost.
    pub fn finish(&self, timeout: Duration) {
        let deadline = Instant::now() + timeout;
        let mut state = self.queue.state.lock();
        state.is_finished = true;
        self.queue.changed.notify_all();
        while state.is_writing || !state.lines.is_empty() {
            if self.queue.changed.wait_until(&mut state, deadline).timed_out() {
                return;
            }
        }
    }
}

/// Every `write` of a log line is the whole line.
impl Write for BackgroundWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.write_lines(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for BackgroundWriter {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl LineQueue {
    fn write_to(&self, out: &mut impl Write, lines: &mut Vec<u8>, task: &SupervisedTask) {
        let mut is_line_broken = false;
        while self.take(lines, task) {
            if is_line_broken && write_all(out, b"\n") == 1 {
                is_line_broken = false;
            }
            let written = if is_line_broken { 0 } else { write_all(out, lines) };
            if written > 0 {
                is_line_broken = lines[written - 1] != b'\n';
            }
            self.count_dropped(&lines[written..]);
            lines.clear();
        }
    }

    /// Waits for lines and takes them all. `false`: there will be none.
    fn take(&self, lines: &mut Vec<u8>, task: &SupervisedTask) -> bool {
        let mut state = self.state.lock();
        state.is_writing = false;
        self.changed.notify_all();
        while state.lines.is_empty() {
            if state.is_finished {
                return false;
            }
            let _timed_out = self.changed.wait_for(&mut state, LOG_ALIVE_INTERVAL);
            MutexGuard::unlocked(&mut state, || task.alive());
        }
        mem::swap(lines, &mut state.lines);
        state.is_writing = true;
        true
    }

    fn count_dropped(&self, lines: &[u8]) {
        let count = memchr::memchr_iter(b'\n', lines).count();
        self.dropped.fetch_add(count as u64, Relaxed);
    }
}

/// How many bytes could be written before an error.
fn write_all(out: &mut impl Write, bytes: &[u8]) -> usize {
    let mut written = 0;
    while written < bytes.len() {
        match out.write(&bytes[written..]) {
            Ok(0) => break,
            Ok(length) => written += length,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(LOG_RETRY_DELAY),
            // A full disk or a closed pipe. Later lines are tried again, because a disk can be freed.
            Err(_) => break,
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Writes what it is given to a channel, after a permission for each write.
    struct Gate {
        permissions: mpsc::Receiver<io::Result<usize>>,
        written: mpsc::Sender<Vec<u8>>,
    }

    impl Write for Gate {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let length = self.permissions.recv().map_err(io::Error::other)??.min(bytes.len());
            self.written.send(bytes[..length].to_vec()).map_err(io::Error::other)?;
            Ok(length)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    type WritePermit = mpsc::Sender<io::Result<usize>>;

    fn gate() -> (BackgroundWriter, WritePermit, mpsc::Receiver<Vec<u8>>) {
        let (permit, permissions) = mpsc::channel();
        let (written, lines) = mpsc::channel();
        let gate = Gate { permissions, written };
        let writer = BackgroundWriter::start(WriterName::LOG, gate, Arc::default(), &Supervisor::default());
        (writer.unwrap(), permit, lines)
    }

    #[test]
    fn lines_that_find_no_room_or_no_reader_are_dropped_and_counted() {
        let (writer, permit, lines) = gate();
        let dropped = || writer.queue.dropped.load(Relaxed);
        let line = [vec![b'x'; 1023], vec![b'\n']].concat();
        for _ in 0..3 * (LOG_QUEUE_BYTES_MAX >> 10) {
            writer.write_lines(&line);
        }
        let queued = 3 * (LOG_QUEUE_BYTES_MAX >> 10) - dropped() as usize;
        assert!(
            queued <= 2 * (LOG_QUEUE_BYTES_MAX >> 10),
            "{queued} lines are queued for a reader that does not read"
        );
        let dropped_by_queue = dropped();

        permit.send(Err(ErrorKind::BrokenPipe.into())).unwrap();
        permit.send(Err(ErrorKind::StorageFull.into())).unwrap();
        writer.finish(Duration::from_secs(60));
        assert_eq!(dropped() - dropped_by_queue, queued as u64);
        assert!(lines.try_recv().is_err());
    }

    #[test]
    fn a_line_after_a_broken_one_starts_on_a_line_of_its_own() {
        let (writer, permit, lines) = gate();
        writer.write_lines(b"first line\n");
        permit.send(Err(ErrorKind::Interrupted.into())).unwrap();
        permit.send(Err(ErrorKind::WouldBlock.into())).unwrap();
        permit.send(Ok(5)).unwrap();
        permit.send(Err(ErrorKind::StorageFull.into())).unwrap();
        assert_eq!(lines.recv().unwrap(), b"first");
        writer.write_lines(b"second\n");
        permit.send(Ok(100)).unwrap();
        assert_eq!(lines.recv().unwrap(), b"\n");
        permit.send(Ok(100)).unwrap();
        assert_eq!(lines.recv().unwrap(), b"second\n");
    }

    /// The end of a line that was cut off was once counted as a line when it could not be written, either.
    #[test]
    fn only_lines_that_were_given_to_it_are_counted_as_dropped() {
        let (writer, permit, lines) = gate();
        writer.write_lines(b"first line\n");
        permit.send(Ok(5)).unwrap();
        permit.send(Err(ErrorKind::StorageFull.into())).unwrap();
        assert_eq!(lines.recv().unwrap(), b"first");
        for number in 2..5 {
            until_written(&writer);
            assert_eq!(writer.queue.dropped.load(Relaxed), number - 1);
            writer.write_lines(b"another\n");
            permit.send(Err(ErrorKind::StorageFull.into())).unwrap();
        }
        until_written(&writer);
        writer.write_lines(b"last\n");
        permit.send(Ok(100)).unwrap();
        permit.send(Ok(100)).unwrap();
        assert_eq!((lines.recv().unwrap(), lines.recv().unwrap()), (b"\n".to_vec(), b"last\n".to_vec()));
        until_written(&writer);
        assert_eq!(writer.queue.dropped.load(Relaxed), 4);
    }

    /// Waits until the thread has nothing to write.
    fn until_written(writer: &BackgroundWriter) {
        let mut state = writer.queue.state.lock();
        while state.is_writing || !state.lines.is_empty() {
            writer.queue.changed.wait(&mut state);
        }
    }

    /// A panic of the thread would have ended the log.
    #[test]
    fn lines_are_written_after_a_panic() {
        let supervisor = Supervisor::default();
        let (permit, permissions) = mpsc::channel();
        let (written, lines) = mpsc::channel();
        let gate = Gate { permissions, written };
        let writer = BackgroundWriter::start(WriterName::LOG, gate, Arc::default(), &supervisor).unwrap();
        supervisor.inject_panics("writer of the log", 2);
        permit.send(Ok(100)).unwrap();
        let late = Instant::now() + Duration::from_secs(60);
        while supervisor.report()[0].panics < 2 {
            assert!(Instant::now() < late, "it panics when it waits");
            thread::sleep(Duration::from_millis(10));
        }
        writer.write_lines(b"after\n");
        assert_eq!(lines.recv().unwrap(), b"after\n");
        supervisor.inject_panics("writer of the log", u32::MAX);
        while supervisor.first_down(WhenDown::Degraded).is_none() {
            assert!(Instant::now() < late + Duration::from_secs(60), "it is reported");
            thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn the_end_waits_for_the_reader_but_not_for_ever() {
        let (writer, permit, lines) = gate();
        writer.write_lines(b"last words\n");
        writer.finish(Duration::from_millis(20));
        assert!(lines.try_recv().is_err());
        permit.send(Ok(100)).unwrap();
        writer.finish(Duration::from_secs(60));
        assert_eq!(lines.try_recv().unwrap(), b"last words\n");
    }
}
