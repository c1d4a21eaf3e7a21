//! `chaingate import`: imports block files into an archive, and shows the progress.

mod progress;

use super::{
    MESSAGE_TIMEOUT,
    signals::{self, Signal, StopRequest, StopSignals},
};
use crate::import_socket::{Imported, ImportedHead, ReceivingGateway, SendFileError};
use archive::{Archive, BlockFile, BlockFileError, GenesisError, ImportObserver, ImportProgress, OpenError};
use clap::Args;
use gateway::log::BackgroundWriter;
use progress::Display;
use resources::{Supervisor, WhenDown, counted};
use std::{
    io,
    panic::{self, AssertUnwindSafe},
    path::PathBuf,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, SyncSender},
    },
    thread,
    time::Instant,
};

/// Import blocks into the archive, and execute and verify each of them
///
/// Every block is executed, and the result is compared with everything that its header states: the roots of
/// transactions, uncles, withdrawals, receipts and state, the bloom, gas, base fee, blob gas and requests.
/// The import stops at the first block that fails. The blocks before it stay in the archive.
///
/// Seals are not checked: neither proof of work and its difficulty, nor the signatures of the consensus layer.
/// Import blocks from a source whose head you know.
///
/// If a gateway serves the archive, the blocks are imported through it, and it continues to serve.
///
/// You can stop an import at any time with Ctrl-C, or kill it. A second Ctrl-C, more than a second later, ends it at
/// once. Run the same command again to continue.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  chaingate import --data-dir chaingate-data --genesis genesis.json chain.rlp
  chaingate import --data-dir mainnet --genesis mainnet.json era1/mainnet-*.era1")]
pub(super) struct ImportArguments {
    /// Directory of the archive; created if it does not exist
    #[arg(long, value_name = "DIRECTORY", env = "CHAINGATE_DATA_DIR", default_value = "chaingate-data")]
    data_dir: PathBuf,
    /// Genesis file of the chain, in geth's format
    #[arg(long, value_name = "FILE")]
    genesis: PathBuf,
    /// Block files in order: RLP (as `geth export` writes them) or era1; without any, only block 0 is imported
    #[arg(value_name = "BLOCKS")]
    files: Vec<PathBuf>,
}

/// An event of the import, for the main thread.
#[derive(Debug)]
enum ImportEvent {
    /// A signal came: the import stops after the current block.
    Stopping(Signal),
    Finished(Result<Report, ImportFailure>),
    Panicked,
    /// A second signal came: the import is left in the middle of a block, as by a kill.
    EndAtOnce(Signal),
}

/// Events that are sent before the main thread has received one.
const EVENTS_WAITING_MAX: usize = 3;

/// The stack of the thread that imports: that of a main thread.
const STACK_BYTES: usize = 8 << 20;

pub(super) fn run(arguments: ImportArguments) -> ExitCode {
    // Standard error may have no reader, or a stuck one, and the import must not wait for it.
    let Ok(messages) = BackgroundWriter::to_stderr(&Supervisor::default()) else { return ExitCode::FAILURE };
    let mut stopped_by = Signal::Interrupt;
    let outcome = match start(arguments, &messages) {
        Ok(events) => loop {
            match events.recv() {
                Ok(ImportEvent::Stopping(signal)) => stopped_by = signal,
                Ok(ImportEvent::Finished(outcome)) => break outcome,
                Ok(ImportEvent::EndAtOnce(signal)) => return ExitCode::from(signal.exit_status()),
                // The panic has said what is wrong.
                Ok(ImportEvent::Panicked) | Err(_) => return ExitCode::FAILURE,
            }
        },
        Err(failure) => Err(failure),
    };
    let (last_message, status) = match outcome {
        Ok(report) if report.stopped => {
            let message = format!("{report}\nStopped. Run the same command again to continue.\n");
            (message, ExitCode::from(stopped_by.exit_status()))
        }
        Ok(report) => (format!("{report}\n"), ExitCode::SUCCESS),
        Err(failure) => (format!("chaingate import: {failure}\n"), ExitCode::FAILURE),
    };
    messages.write_lines(last_message.as_bytes());
    messages.finish(MESSAGE_TIMEOUT);
    status
}

/// Starts the import on a thread of its own, so that a second signal need not wait for it.
fn start(
    arguments: ImportArguments,
    messages: &BackgroundWriter,
) -> Result<Receiver<ImportEvent>, ImportFailure> {
    let (sender, events) = mpsc::sync_channel(EVENTS_WAITING_MAX);
    let stop = Arc::new(AtomicBool::new(false));
    stop_on_signal(&stop, &sender, messages)?;
    let messages = messages.clone();
    let run = move || {
        let outcome = panic::catch_unwind(AssertUnwindSafe(|| import(&arguments, &stop, &messages)));
        // Nobody waits for it any more if a second signal came first.
        let _unheard = sender.send(outcome.map_or(ImportEvent::Panicked, ImportEvent::Finished));
    };
    let thread = thread::Builder::new().name("import".to_owned()).stack_size(STACK_BYTES);
    thread.spawn(run).map_err(ImportFailure::Thread)?;
    Ok(events)
}

fn import(
    arguments: &ImportArguments,
    stop: &AtomicBool,
    messages: &BackgroundWriter,
) -> Result<Report, ImportFailure> {
    let genesis = std::fs::read_to_string(&arguments.genesis)
        .map_err(|cause| ImportFailure::Genesis { path: arguments.genesis.clone(), cause })?;
    let bytes = size_of_files(&arguments.files)?;
    let destination = Destination::open(arguments, &genesis, messages)?;
    let mut head = destination.head()?;
    let mut reporter = ProgressReporter::new(bytes, head.number, stop, messages);
    for path in &arguments.files {
        let file = BlockFile::open(path)?;
        let size = file.bytes_total();
        let imported = destination.import(file, &mut reporter)?;
        reporter.finish_file(size, imported.progress.as_ref());
        head = imported.head;
        if let Some(cause) = imported.fault {
            return Err(ImportFailure::Import { cause, head });
        }
        if stop.load(Ordering::Acquire) {
            break;
        }
    }
    reporter.display.finish();
    Ok(Report {
        done: reporter.total,
        head,
        seconds: reporter.started.elapsed().as_secs_f64(),
        stopped: stop.load(Ordering::Acquire),
    })
}

/// The archive that stores the blocks, opened here or by a gateway.
enum Destination {
    Archive(Archive),
    /// A gateway that has the archive open.
    Gateway(ReceivingGateway),
}

impl Destination {
    fn open(
        arguments: &ImportArguments,
        genesis: &str,
        messages: &BackgroundWriter,
    ) -> Result<Self, ImportFailure> {
        let in_use = match Archive::open_or_create(&arguments.data_dir, genesis) {
            Ok(archive) => return Ok(Self::Archive(archive)),
            Err(OpenError::Genesis(cause)) => {
                return Err(ImportFailure::BadGenesis { path: arguments.genesis.clone(), cause });
            }
            Err(in_use @ OpenError::InUse(_)) => in_use,
            Err(cause) => return Err(cause.into()),
        };
        let gateway = ReceivingGateway::find(&arguments.data_dir, genesis);
        let Some(gateway) = gateway.filter(|_| !arguments.files.is_empty()) else {
            return Err(in_use.into());
        };
        messages.write_lines(b"A gateway serves this archive: the blocks are imported through it.\n");
        Ok(Self::Gateway(gateway))
    }

    fn head(&self) -> Result<ImportedHead, ImportFailure> {
        match self {
            Self::Archive(archive) => head(archive),
            // The gateway reports its head with every file.
            Self::Gateway(_) => Ok(ImportedHead::default()),
        }
    }

    fn import(
        &self,
        file: BlockFile,
        reporter: &mut ProgressReporter<'_>,
    ) -> Result<Imported, ImportFailure> {
        match self {
            Self::Archive(archive) => {
                let imported = archive.import(file, reporter);
                let fault = imported.as_ref().err().map(ToString::to_string);
                Ok(Imported { progress: imported.ok(), head: head(archive)?, fault })
            }
            Self::Gateway(gateway) => Ok(gateway.import(file, reporter.stop, reporter)?),
        }
    }
}

/// How many bytes there are in all. Opens every file, so that a wrong one is known before an hour of work; one at a
/// time, because there can be more of them than a process may have open.
fn size_of_files(paths: &[PathBuf]) -> Result<u64, BlockFileError> {
    paths.iter().map(|path| BlockFile::open(path).map(|file| file.bytes_total())).sum()
}

fn stop_on_signal(
    stop: &Arc<AtomicBool>,
    sender: &SyncSender<ImportEvent>,
    messages: &BackgroundWriter,
) -> Result<(), ImportFailure> {
    let (stop, sender, messages) = (Arc::clone(stop), sender.clone(), messages.clone());
    let mut stops = StopSignals::default();
    let handle = move |signal| match stops.next(Instant::now()) {
        StopRequest::Finish => {
            // The event is sent before `stop` is set, so that it arrives before the event that the import has finished.
            let _full = sender.try_send(ImportEvent::Stopping(signal));
            stop.store(true, Ordering::Release);
            let message = "\nStopping after the current block … Signal again to end at once.\n";
            messages.write_lines(message.as_bytes());
        }
        StopRequest::Repeated => {
            messages.write_lines(b"\nAlready stopping. Send the signal again to end at once.\n");
        }
        StopRequest::EndAtOnce => {
            // Where there is no room, the program is about to end.
            let _full = sender.try_send(ImportEvent::EndAtOnce(signal));
        }
    };
    let task = Supervisor::default().task("delivery of signals", WhenDown::Degraded);
    signals::watch(task, handle).map_err(ImportFailure::Signals)
}

fn head(archive: &Archive) -> Result<ImportedHead, ImportFailure> {
    let snapshot = archive.snapshot();
    let number = snapshot.head();
    let summary = snapshot.summary(number).map_err(OpenError::from)?;
    Ok(ImportedHead { number, hash: summary.map(|summary| summary.hash.to_string()).unwrap_or_default() })
}

/// Shows the progress of an import, and sums it up over all files.
struct ProgressReporter<'a> {
    display: Display,
    stop: &'a AtomicBool,
    started: Instant,
    /// Sum over the files that are finished.
    total: ImportProgress,
    /// Bytes of the files that are finished.
    bytes_before: u64,
}

impl<'a> ProgressReporter<'a> {
    fn new(bytes: u64, head: u64, stop: &'a AtomicBool, messages: &BackgroundWriter) -> Self {
        Self {
            display: Display::new(bytes, head, messages.clone()),
            stop,
            started: Instant::now(),
            total: ImportProgress::default(),
            bytes_before: 0,
        }
    }

    fn finish_file(&mut self, bytes: u64, progress: Option<&ImportProgress>) {
        self.bytes_before += bytes;
        if let Some(progress) = progress {
            self.total = self.with(progress);
        }
    }

    fn with(&self, progress: &ImportProgress) -> ImportProgress {
        ImportProgress {
            head: progress.head,
            blocks: self.total.blocks + progress.blocks,
            skipped: self.total.skipped + progress.skipped,
            transactions: self.total.transactions + progress.transactions,
            gas: self.total.gas + progress.gas,
            bytes_read: self.bytes_before + progress.bytes_read,
        }
    }
}

impl ImportObserver for ProgressReporter<'_> {
    fn progressed(&mut self, progress: &ImportProgress) {
        let progress = self.with(progress);
        self.display.show(&progress);
    }

    fn should_stop(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }
}

/// The result of an import.
#[derive(Debug)]
struct Report {
    done: ImportProgress,
    head: ImportedHead,
    seconds: f64,
    stopped: bool,
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ImportProgress { blocks, skipped, transactions, gas, .. } = self.done;
        let seconds = self.seconds.max(1e-3);
        write!(
            f,
            "Imported {} with {} in {seconds:.1} s",
            counted(blocks, "block"),
            counted(transactions, "transaction")
        )?;
        write!(f, " ({:.0} blocks/s, {:.1} Mgas/s)", blocks as f64 / seconds, gas as f64 / seconds / 1e6)?;
        if skipped > 0 {
            write!(f, "; {skipped} were already in the archive")?;
        }
        write!(f, ".\nThe head is block {}, {}.", self.head.number, self.head.hash)
    }
}

/// The contents of the archive after a failed import.
fn archive_after_failure(head: &ImportedHead) -> String {
    match head.number {
        0 => "No block is in the archive yet, so you may also import with another genesis file.".into(),
        number => format!("Everything up to block {number} ({}) is in the archive.", head.hash),
    }
}

/// Why an import failed.
#[derive(Debug, thiserror::Error)]
enum ImportFailure {
    #[error("cannot read the genesis file {}: {cause}", path.display())]
    Genesis { path: PathBuf, cause: io::Error },
    #[error("the genesis file {}: {cause}", path.display())]
    BadGenesis { path: PathBuf, cause: GenesisError },
    #[error(transparent)]
    File(#[from] BlockFileError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("{cause}\n{}", archive_after_failure(head))]
    Import { cause: String, head: ImportedHead },
    #[error(transparent)]
    Send(#[from] SendFileError),
    #[error("cannot handle signals: {0}")]
    Signals(io::Error),
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}
