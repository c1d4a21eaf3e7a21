//! Warns before the gateway's own TLS certificate expires.

use std::time::{Duration, Instant};
use std::{io, thread};

use http_server::TlsConfig;
use resources::{DAY_S, SupervisedTask, Supervisor, UtcTime, WhenDown, unix_seconds};

/// Time before the end of a certificate from which on it is reported.
const REPORTED_BEFORE_S: i64 = 14 * DAY_S as i64;

const LOGGED_EVERY: Duration = Duration::from_secs(DAY_S);

/// How soon a certificate has to be renewed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CertificateExpiry {
    Later,
    /// Within 14 days; the text says when and what to do.
    Soon(String),
    Expired(String),
}

impl CertificateExpiry {
    pub(super) fn new(tls: &TlsConfig, expires_at: i64, now: i64) -> Self {
        let certificate = tls.certificate.display();
        let time = UtcTime::new(expires_at)
            .map(|time| format!("{} {} UTC", time.date(), time.hour_and_minute()))
            .unwrap_or_default();
        let text = |verb: &str| {
            format!("listen.tls_certificate {certificate} {verb} {time}: renew it, and restart the gateway")
        };
        if expires_at <= now {
            Self::Expired(text("expired"))
        } else if expires_at - now <= REPORTED_BEFORE_S {
            Self::Soon(text("expires"))
        } else {
            Self::Later
        }
    }

    fn log(&self) {
        match self {
            Self::Later => {}
            Self::Soon(text) => tracing::warn!("{text}"),
            Self::Expired(text) => tracing::error!("{text}"),
        }
    }
}

/// Logs now and every day whether the certificate that was read at the start has to be renewed.
pub(super) fn watch(tls: TlsConfig, expires_at: i64, supervisor: &Supervisor) -> io::Result<()> {
    let log = move || CertificateExpiry::new(&tls, expires_at, unix_seconds()).log();
    log();
    let task = supervisor.task("expiry of the certificate", WhenDown::Degraded);
    let run = move || task.run_blocking(|task| log_daily(task, &log));
    thread::Builder::new().name("certificate".to_owned()).spawn(run).map(drop)
}

/// The process ends without waiting for this.
fn log_daily(task: &SupervisedTask, log: &impl Fn()) {
    let mut logged = Instant::now();
    loop {
        task.alive();
        thread::sleep(Duration::from_secs(1));
        if logged.elapsed() >= LOGGED_EVERY {
            log();
            logged = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After a panic, nobody would have been told that the certificate expires.
    #[test]
    fn a_certificate_is_watched_after_a_panic_and_it_is_told_when_it_is_not() {
        const TASK: &str = "expiry of the certificate";
        let supervisor = Supervisor::default();
        supervisor.inject_panics(TASK, 1);
        let tls = TlsConfig { certificate: "cert.pem".into(), key: "key.pem".into() };
        watch(tls, 4_000_000_000, &supervisor).unwrap();
        let late = Instant::now() + Duration::from_secs(60);
        let wait_until = |is_true: &dyn Fn() -> bool| {
            while !is_true() {
                assert!(Instant::now() < late, "{:?}", supervisor.report());
                thread::sleep(Duration::from_millis(10));
            }
        };
        wait_until(&|| supervisor.report()[0].panics == 1);
        assert_eq!(supervisor.why_down(TASK), None);
        supervisor.inject_panics(TASK, u32::MAX);
        wait_until(&|| supervisor.why_down(TASK).is_some());
    }

    #[test]
    fn a_certificate_is_reported_for_14_days() {
        let tls = TlsConfig { certificate: "cert.pem".into(), key: "key.pem".into() };
        let expiry =
            |seconds_left: i64| CertificateExpiry::new(&tls, 1_800_000_000, 1_800_000_000 - seconds_left);
        let text = |verb: &str| {
            format!(
                "listen.tls_certificate cert.pem {verb} 2027-01-15 08:00 UTC: renew it, and restart the gateway"
            )
        };
        let day = DAY_S as i64;
        assert_eq!(expiry(14 * day + 1), CertificateExpiry::Later);
        assert_eq!(expiry(14 * day), CertificateExpiry::Soon(text("expires")));
        assert_eq!(expiry(1), CertificateExpiry::Soon(text("expires")));
        assert_eq!(expiry(0), CertificateExpiry::Expired(text("expired")));
        assert_eq!(expiry(-day), CertificateExpiry::Expired(text("expired")));
    }
}
