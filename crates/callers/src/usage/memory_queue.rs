//! Usage that waits in memory, because its file cannot be written.
//!
//! It is moved to the store from here, so that a full disk does not keep it from a store that is well. It is sent under an id of
//! its own, with sequence numbers of its own, so that each batch counts once, whatever becomes of the spool meanwhile.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use parking_lot::Mutex;
use resources::{DiskHealth, DiskWriter};
use store::{UsageCounts, UsageFlush, UsageGroup, UsageRow};

use super::entry::ENTRY_ROWS_MAX;
use super::recorder::UsageRecorder;
use super::spool::{AppendError, ProcessSpool, SpoolId};
use crate::instance_id::InstanceId;
use crate::policy::WAITING_GROUPS_MAX;

/// Bytes that a group takes in memory, about; all of them take 25 MiB.
const GROUP_BYTES: usize = 400;

/// Usage on its way from the workers to the spool, or to the store while the spool takes nothing.
#[derive(Debug)]
pub(super) struct MemoryQueue {
    recorder: Arc<UsageRecorder>,
    spool: Arc<ProcessSpool>,
    /// How many bytes may wait for the store, over all spools.
    spool_bytes_max: u64,
    /// Under which the store knows the batches. The spool has another one.
    id: SpoolId,
    waiting: Mutex<WaitingUsage>,
    disk: DiskHealth,
}

#[derive(Debug, Default)]
struct WaitingUsage {
    groups: HashMap<UsageGroup, UsageCounts>,
    /// Whether the spool has refused usage that still waits.
    is_refused: bool,
    /// The sequence number of the last batch.
    sequence: u64,
    /// The last batch until the store has confirmed it. It may be stored already, so it is only ever sent again as it is.
    sent: Option<Arc<[UsageRow]>>,
}

/// Rows that are sent to the store from memory.
#[derive(Debug)]
pub(super) struct MemoryBatch {
    instance: String,
    epoch: u64,
    sequence: u64,
    rows: Arc<[UsageRow]>,
}

impl MemoryBatch {
    pub(super) fn flush(&self) -> UsageFlush<'_> {
        let Self { instance, epoch, sequence, rows } = self;
        UsageFlush { instance, epoch: *epoch, after: sequence - 1, through: *sequence, rows }
    }
}

impl MemoryQueue {
    pub(super) fn new(
        recorder: Arc<UsageRecorder>,
        spool: Arc<ProcessSpool>,
        spool_bytes_max: u64,
        disk: DiskHealth,
    ) -> Self {
        let id = SpoolId { instance: InstanceId::random(), ..spool.id() };
        Self { recorder, spool, spool_bytes_max, id, waiting: Mutex::default(), disk }
    }

    /// Adds rows. Those for which there is no memory are lost.
    pub(super) fn add(&self, rows: impl IntoIterator<Item = UsageRow>) {
        let mut waiting = self.waiting.lock();
        for UsageRow { group, counts } in rows {
            let is_full = waiting.groups.len() >= WAITING_GROUPS_MAX;
            match waiting.groups.entry(group) {
                Entry::Occupied(mut sum) => sum.get_mut().add(&counts),
                Entry::Vacant(new) if !is_full => drop(new.insert(counts)),
                Entry::Vacant(_) => self.recorder.ledger().lose(counts.calls, counts.credits),
            }
        }
        self.measure(&waiting);
    }

    /// Writes the waiting rows to the spool. Rows that the spool does not take stay in memory.
    pub(super) fn write_to_spool(&self) -> Result<(), AppendError> {
        loop {
            let mut taken = TakenRows { queue: self, rows: self.waiting.lock().take(ENTRY_ROWS_MAX) };
            let appended = if taken.rows.is_empty() { Ok(()) } else { self.append_and_record(&taken.rows) };
            if appended.is_ok() {
                taken.rows.clear();
            }
            let mut waiting = self.waiting.lock();
            match appended {
                Ok(()) if waiting.groups.is_empty() => {
                    waiting.is_refused = false;
                    self.measure(&waiting);
                    return Ok(());
                }
                Ok(()) => {}
                Err(error) => {
                    waiting.put_back(std::mem::take(&mut taken.rows));
                    self.measure(&waiting);
                    self.recorder.ledger().spool_failures.fetch_add(1, Relaxed);
                    return Err(error);
                }
            }
        }
    }

    fn append_and_record(&self, rows: &[UsageRow]) -> Result<(), AppendError> {
        let appended = self.append(rows);
        match &appended {
            Ok(()) => self.disk.record(DiskWriter::Usage, &Ok::<_, io::Error>(())),
            Err(AppendError::Io(error)) => self.disk.record(DiskWriter::Usage, &Err::<(), _>(error)),
            // The limit of the spool says nothing about the disk.
            Err(AppendError::Full) => {}
        }
        appended
    }

    fn append(&self, rows: &[UsageRow]) -> Result<(), AppendError> {
        let ledger = self.recorder.ledger();
        let of_others = ledger.left_over_bytes.load(Relaxed);
        self.spool.get_or_create()?.append(rows, self.spool_bytes_max.saturating_sub(of_others))?;
        ledger.spooled_calls.fetch_add(rows.iter().map(|row| row.counts.calls).sum(), Relaxed);
        Ok(())
    }

    /// Whether the spool has refused what waits here.
    pub(super) fn is_refused(&self) -> bool {
        let waiting = self.waiting.lock();
        waiting.sent.is_some() || waiting.is_refused
    }

    /// The next rows that the spool has refused; the same ones again until they are confirmed.
    pub(super) fn next_batch(&self) -> Option<MemoryBatch> {
        let mut waiting = self.waiting.lock();
        if waiting.sent.is_none() && waiting.is_refused {
            let mut rows = waiting.take(ENTRY_ROWS_MAX);
            // Rows are in one order in all transactions, so that two of them cannot wait for each other.
            rows.sort_unstable_by(|one, other| one.group.cmp(&other.group));
            if !rows.is_empty() {
                waiting.sequence += 1;
                waiting.sent = Some(rows.into());
            }
        }
        let rows = Arc::clone(waiting.sent.as_ref()?);
        let SpoolId { instance, epoch } = self.id;
        Some(MemoryBatch { instance: instance.to_string(), epoch, sequence: waiting.sequence, rows })
    }

    /// Says that the last batch is in the store.
    pub(super) fn confirm(&self) {
        let mut waiting = self.waiting.lock();
        waiting.sent = None;
        self.measure(&waiting);
    }

    /// Counts what still waits as lost. Returns how many calls that are.
    pub(super) fn lose_rest(&self) -> u64 {
        let mut waiting = self.waiting.lock();
        let mut lost = UsageCounts::default();
        std::mem::take(&mut waiting.groups).values().for_each(|counts| lost.add(counts));
        waiting.sent.take().iter().flat_map(|rows| rows.iter()).for_each(|row| lost.add(&row.counts));
        self.measure(&waiting);
        self.recorder.ledger().lose(lost.calls, lost.credits);
        lost.calls
    }

    fn measure(&self, waiting: &WaitingUsage) {
        let groups = waiting.groups.len() + waiting.sent.as_ref().map_or(0, |rows| rows.len());
        self.recorder.ledger().memory_bytes.store((groups * GROUP_BYTES) as u64, Relaxed);
    }
}

/// Rows on their way to the spool. A panic, which can only come before they are written, puts them back.
struct TakenRows<'a> {
    queue: &'a MemoryQueue,
    rows: Vec<UsageRow>,
}

impl Drop for TakenRows<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.queue.waiting.lock().put_back(std::mem::take(&mut self.rows));
        }
    }
}

impl WaitingUsage {
    fn take(&mut self, rows_max: usize) -> Vec<UsageRow> {
        let taken = self.groups.extract_if(|_, _| true).take(rows_max);
        taken.map(|(group, counts)| UsageRow { group, counts }).collect()
    }

    fn put_back(&mut self, rows: Vec<UsageRow>) {
        self.is_refused = true;
        for UsageRow { group, counts } in rows {
            self.groups.entry(group).or_default().add(&counts);
        }
    }
}
