//! The attacks. Each module has those that aim at one resource.

mod bodies; // memory for requests
pub(crate) mod calls; // calls on the demo chain
mod connections; // places and descriptors
mod frames; // HTTP/2 that costs more to read than to write
mod log; // a log that cannot be written
mod replies; // memory for replies
mod stop; // requests during a shutdown
mod work; // threads that execute calls

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use crate::report::{AttackLimits, AttackReport};
use crate::run::{AttackContext, AttackOptions};

/// One row of the table of attacks.
#[derive(Debug)]
pub(crate) struct Attack {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) procedure: Procedure,
    pub(crate) limits: AttackLimits,
}

type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Procedure {
    /// Runs beside honest load.
    Beside {
        run: fn(AttackContext) -> Running,
        /// Whether honest callers open a connection for every call.
        fresh: bool,
        /// The gateway's limit of open files.
        open_files_max: Option<u64>,
        /// How long a reply may wait for its reader.
        write_timeout: fn(&AttackOptions) -> Duration,
    },
    /// Runs with a gateway of its own.
    Alone(fn(&AttackOptions) -> io::Result<AttackReport>),
}

const MIB: u64 = 1 << 20;

/// No limit on cores: the calls of these attacks are paid for, so the gateway may use every core that it has.
const ANY_CORES: f64 = 64.0;

/// The limits of most attacks: nobody else may notice them.
const UNNOTICED: AttackLimits = AttackLimits {
    honest_errors: 0,
    memory_growth: 160 * MIB,
    latency_ratio: 2.0,
    hostile_life: None,
    cores: ANY_CORES,
    cpu_per_request: None,
};

/// A bomb of some kilobytes inflates to 5 MiB, which its account pays for. A bomb in brotli of 165 bytes took 73 ms.
const INFLATED_CPU: Option<Duration> = Some(Duration::from_millis(40));

/// A coding that is not read costs no more than any other request that is refused.
const REFUSED_CPU: Option<Duration> = Some(Duration::from_millis(2));

/// Replies of up to `memory_bytes_max` wait for their readers, and a few more are being made.
const REPLIES_GROWTH: u64 = 700 * MIB;

/// [`REPLIES_GROWTH`], and copies of the data of calls that revert: in the interpreter, in the error and in the reply.
const REVERTS_GROWTH: u64 = 1_000 * MIB;

/// The write timeout is one and a half read timeouts, and begins when the last of many replies has been made.
const REPLY_LIFE: f64 = 2.0;

/// Bodies of requests were kept without a bound: 730 MiB for 100 connections, 830 MiB for 100 streams.
const BODIES_GROWTH: u64 = 400 * MIB;

/// Bodies of unknown callers took 145 KiB each; they need not be kept at all.
const UNKNOWN_BODIES_GROWTH: u64 = 64 * MIB;

/// Four connections of WINDOW_UPDATE took 1.9 cores. Some of the limit is the honest load.
const CONTROL_FRAMES_CORES: f64 = 0.8;

const fn beside(run: fn(AttackContext) -> Running) -> Procedure {
    Procedure::Beside { run, fresh: false, open_files_max: None, write_timeout }
}

/// One and a half times the read timeout, as by default.
fn write_timeout(options: &AttackOptions) -> Duration {
    options.read_timeout().mul_f64(1.5)
}

/// A shorter timeout would cut honest readers that a busy machine does not run for a while.
const SLOW_WRITE_TIMEOUT_MIN: Duration = Duration::from_millis(500);

/// Well below the time that a slow reader takes: by default, 15 s for 6.3 MB that take 126 s at 50 kB/s.
fn slow_write_timeout(options: &AttackOptions) -> Duration {
    (options.duration / 12).max(SLOW_WRITE_TIMEOUT_MIN)
}

/// All attacks, in the order in which `all` runs them.
pub(crate) const ATTACKS: [Attack; 21] = [
    Attack {
        name: "h2-zero-window",
        about: "HTTP/2 connections ask for large replies and open no window",
        procedure: beside(replies::h2_zero_window),
        limits: AttackLimits { memory_growth: REPLIES_GROWTH, hostile_life: Some(REPLY_LIFE), ..UNNOTICED },
    },
    Attack {
        name: "h1-non-readers",
        about: "200 connections ask for large replies and read nothing",
        procedure: beside(replies::h1_non_readers),
        limits: AttackLimits { memory_growth: REPLIES_GROWTH, hostile_life: Some(REPLY_LIFE), ..UNNOTICED },
    },
    Attack {
        name: "slow-readers",
        about: "honest callers read a large reply slowly and steadily, and get all of it",
        procedure: Procedure::Beside {
            run: replies::slow_readers,
            fresh: false,
            open_files_max: None,
            write_timeout: slow_write_timeout,
        },
        limits: UNNOTICED,
    },
    Attack {
        name: "open-bodies-h1",
        about: "100 connections send all but the last byte of 5 MiB",
        procedure: beside(bodies::open_bodies_h1),
        limits: AttackLimits { memory_growth: BODIES_GROWTH, hostile_life: Some(1.0), ..UNNOTICED },
    },
    Attack {
        name: "open-bodies-h2",
        about: "100 streams of one connection send all but the last byte of 5 MiB",
        procedure: beside(bodies::open_bodies_h2),
        limits: AttackLimits { memory_growth: BODIES_GROWTH, ..UNNOTICED },
    },
    Attack {
        name: "unknown-key-bodies",
        about: "1,000 connections with unknown keys send all but the last byte of 64 KiB",
        procedure: beside(bodies::unknown_key_bodies),
        limits: AttackLimits { memory_growth: UNKNOWN_BODIES_GROWTH, hostile_life: Some(1.0), ..UNNOTICED },
    },
    Attack {
        name: "batch-held",
        about: "60 batches hold four large replies each while an endless call runs",
        procedure: beside(work::batch_held),
        limits: AttackLimits { memory_growth: REPLIES_GROWTH, ..UNNOTICED },
    },
    Attack {
        name: "zstd-members",
        about: "500 bytes inflate to a call with 870,000 members, 46 times a second",
        procedure: beside(bodies::zstd_members),
        limits: UNNOTICED,
    },
    Attack {
        name: "gzip-bodies",
        about: "gzip bodies that cost most for their size, 155 times a second",
        procedure: beside(bodies::gzip_bodies),
        limits: AttackLimits { memory_growth: BODIES_GROWTH, cpu_per_request: INFLATED_CPU, ..UNNOTICED },
    },
    Attack {
        name: "zstd-bodies",
        about: "zstd bodies that cost most for their size, 155 times a second",
        procedure: beside(bodies::zstd_bodies),
        limits: AttackLimits { memory_growth: BODIES_GROWTH, cpu_per_request: INFLATED_CPU, ..UNNOTICED },
    },
    Attack {
        name: "brotli-bodies",
        about: "brotli bodies with the widest window, 155 times a second",
        procedure: beside(bodies::brotli_bodies),
        limits: AttackLimits { cpu_per_request: REFUSED_CPU, ..UNNOTICED },
    },
    Attack {
        name: "batch-crowd",
        about: "900 connections of one key send batches of 1,000 cheap calls without a pause",
        procedure: beside(work::batch_crowd),
        limits: AttackLimits { latency_ratio: 3.0, ..UNNOTICED },
    },
    Attack {
        name: "log-dead",
        about: "the log is full, closed or not read",
        procedure: Procedure::Alone(log::log_dead),
        limits: UNNOTICED,
    },
    Attack {
        name: "sigterm",
        about: "64 callers go on calling while the gateway stops",
        procedure: Procedure::Alone(stop::sigterm),
        limits: UNNOTICED,
    },
    Attack {
        name: "h2-silence",
        about: "HTTP/2 connections that begin a request and do not go on",
        procedure: beside(frames::h2_silence),
        limits: AttackLimits { hostile_life: Some(1.0), ..UNNOTICED },
    },
    Attack {
        name: "one-address",
        about: "10,000 silent connections from one address, while others open new ones",
        procedure: Procedure::Beside {
            run: connections::one_address,
            fresh: true,
            open_files_max: None,
            write_timeout,
        },
        limits: AttackLimits { hostile_life: Some(1.0), ..UNNOTICED },
    },
    Attack {
        name: "endless-calls",
        about: "64 endless calls of one key at any time",
        procedure: beside(work::endless_calls),
        limits: UNNOTICED,
    },
    Attack {
        name: "large-reverts",
        about: "16 callers make a contract revert with 8 MB, alone and in batches",
        procedure: beside(work::large_reverts),
        limits: AttackLimits { memory_growth: REVERTS_GROWTH, ..UNNOTICED },
    },
    Attack {
        name: "operator-connections",
        about: "connections to the operator's listener use up the descriptors; foreign hosts",
        procedure: Procedure::Beside {
            run: connections::operator_connections,
            fresh: true,
            open_files_max: Some(1024),
            write_timeout,
        },
        limits: UNNOTICED,
    },
    Attack {
        name: "h2-control-frames",
        about: "12 connections of nothing but WINDOW_UPDATE, PING or SETTINGS",
        procedure: beside(frames::h2_control_frames),
        limits: AttackLimits { cores: CONTROL_FRAMES_CORES, ..UNNOTICED },
    },
    Attack {
        name: "emfile",
        about: "more connections than the gateway may have descriptors",
        procedure: Procedure::Beside {
            run: connections::emfile,
            fresh: false,
            open_files_max: Some(256),
            write_timeout,
        },
        limits: UNNOTICED,
    },
];
