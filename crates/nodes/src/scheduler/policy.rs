//! The times and numbers of the scheduler.
//!
//! | name                       | value  | what happens at it                                            | why                                                     |
//! |----------------------------|--------|---------------------------------------------------------------|---------------------------------------------------------|
//! | `ATTEMPTS_MAX`             | 2      | a node that failed as often is not asked again                | a failure may be temporary                              |
//! | `RUNNING_MAX`              | 3      | the oldest attempt is dropped for another one                 | a fourth node would hardly be faster than the third     |
//! | `AGAIN_PAUSE`              | 20 ms  | a node that failed, or a budget that refused, is asked again  | either may have changed; up to as much again by chance  |
//! | `OVERDUE_FACTOR`           | 8      | times the usual delay: the attempt is overdue                 | an answer so late is no usual one                       |
//! | `OVERDUE_MIN`              | 250 ms | not before that, however quick the node usually is            | a busy machine is late by as much                       |
//! | `QUICK_OVERDUE_MAX`        | 500 ms | a look-up is overdue at the latest, or at twice the usual     | look-ups seldom take longer                             |
//! | `SILENT_OVERDUE_MAX`       | 250 ms | a simulation or block is overdue on a node that is silent     | bounds [`UsualDelays::silence_max`]                     |
//! | `OVERDUE_TIME_PART`        | 1/2    | of the remaining time: overdue at the latest                  | another node has as much                                |
//! | `FALLBACK_TIME_PART`       | 1/2    | of the remaining time: a fallback becomes the answer          | a better answer may still come                          |
//! | `SILENT_OPINION_WAIT_MAX`  | 100 ms | a fallback waits no longer for a node that seems to be down   | it would hardly say more                                |
//! | `DOUBTED_OPINION_WAIT_MIN` | 500 ms | a fallback waits as long for a node that is only doubted      | it may be slow for the reason for which it is doubted   |
//! | `HOPELESS_AFTER`           | 100 ms | a call that no budget pays for ends, if all left seem down    | meanwhile other calls find out whether one is back      |
//! | `TOO_MANY_RESULTS_OPINIONS`| 2      | as many nodes say "too many results": that is the answer      | one alone may search less than others                   |
//! | `LATE_PAUSE`               | 50 ms  | a node without the block is asked again; doubles each time    | nodes learn of a block within a fraction of a second    |
//! | `LATE_TIME_MAX`            | 2 s    | it is not asked again                                         | a node a few blocks behind has caught up by then        |
//! | `LATE_FREE_MAX`            | 2      | further times are paid for out of the retry budget            | most nodes are late by less than a second               |
//! | `HEADS_CHECKED_EVERY`      | 50 ms  | it is looked at, not asked, whether other nodes may know now  | their watchers learn it                                 |
//! | `DOWN_TIME_MAX`            | 1 s    | of several: one that seems to be down is given up             | one that is back answers sooner                         |
//! | `SILENT_FACTOR`            | 4      | times the usual delay without a word: one of several is given | it hangs on calls, though it may answer polls; there    |
//! | `SILENT_TIME_MIN`          | 2 s    | up, but not before that                                       | may be no quorum, and the caller should learn that      |
//! | `LOST_CHECKED_EVERY`       | 2 s    | of all: one that its watcher has lost is given up             | any other may know what nobody else does                |
//! | `CALLS_AT_ONCE_MAX`        | 256    | further calls to the same node wait                           | others of the account have room                         |
//!
//! [`UsualDelays::silence_max`]: crate::node::UsualDelays

use std::time::Duration;

pub(crate) const ATTEMPTS_MAX: u32 = 2;
pub(super) const RUNNING_MAX: usize = 3;
pub(crate) const AGAIN_PAUSE: Duration = Duration::from_millis(20);

pub(super) const OVERDUE_FACTOR: u32 = 8;
pub(super) const OVERDUE_MIN: Duration = Duration::from_millis(250);
pub(super) const QUICK_OVERDUE_MAX: Duration = Duration::from_millis(500);
pub(super) const SILENT_OVERDUE_MAX: Duration = Duration::from_millis(250);
pub(super) const OVERDUE_TIME_PART: u32 = 2;

pub(super) const FALLBACK_TIME_PART: u32 = 2;
pub(super) const SILENT_OPINION_WAIT_MAX: Duration = Duration::from_millis(100);
pub(super) const DOUBTED_OPINION_WAIT_MIN: Duration = Duration::from_millis(500);
pub(super) const HOPELESS_AFTER: Duration = Duration::from_millis(100);
pub(super) const TOO_MANY_RESULTS_OPINIONS: usize = 2;

pub(super) const LATE_PAUSE: Duration = Duration::from_millis(50);
pub(super) const LATE_TIME_MAX: Duration = Duration::from_secs(2);
pub(super) const LATE_FREE_MAX: u32 = 2;
pub(super) const HEADS_CHECKED_EVERY: Duration = Duration::from_millis(50);

pub(super) const DOWN_TIME_MAX: Duration = Duration::from_secs(1);
pub(super) const SILENT_FACTOR: u32 = 4;
pub(super) const SILENT_TIME_MIN: Duration = Duration::from_secs(2);
pub(super) const LOST_CHECKED_EVERY: Duration = Duration::from_secs(2);

pub(super) const CALLS_AT_ONCE_MAX: usize = 256;
