//! The gateway's own TLS certificate: read again when its files change, and reported before it expires.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use http_server::{ServedCertificate, TlsConfig};
use resources::{DAY_S, Supervisor, UtcTime, WhenDown, unix_seconds};

/// Time before the end of a certificate from which on it is reported.
const REPORTED_BEFORE_S: i64 = 14 * DAY_S as i64;

const LOGGED_EVERY: Duration = Duration::from_secs(DAY_S);

/// How often the files are looked at.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

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
            format!(
                "listen.tls_certificate {certificate} {verb} {time}: renew it; the new files are read without a restart"
            )
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

/// Reads the certificate again when its files change, and logs now and every day whether it has to be renewed.
pub(super) fn watch(certificate: Arc<ServedCertificate>, supervisor: &Supervisor) -> io::Result<()> {
    let mut watch = CertificateWatch::new(certificate);
    let task = supervisor.task("the certificate", WhenDown::Degraded);
    // The process ends without waiting for this.
    let run = move || {
        task.run_blocking(|task| {
            loop {
                task.alive();
                thread::sleep(LOOK_INTERVAL);
                let _is_another = watch.look(Instant::now());
            }
        });
    };
    thread::Builder::new().name("certificate".to_owned()).spawn(run).map(drop)
}

/// Watches the files of the certificate.
#[derive(Debug)]
struct CertificateWatch {
    certificate: Arc<ServedCertificate>,
    /// The state of the files that were read.
    read: Option<FilesState>,
    /// The state of the files when they were looked at last.
    seen: Option<FilesState>,
    reported: Instant,
}

/// Facts that change when the files are written or replaced: the length, the inode and the time of change of each.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FilesState(Vec<Option<(u64, u64, i64, i64)>>);

impl FilesState {
    fn of(files: &TlsConfig) -> Self {
        let state = |path: &PathBuf| {
            let file = fs::metadata(path).ok()?;
            Some((file.len(), file.ino(), file.mtime(), file.mtime_nsec()))
        };
        Self([&files.certificate, &files.key].map(state).to_vec())
    }
}

impl CertificateWatch {
    fn new(certificate: Arc<ServedCertificate>) -> Self {
        let watch = Self { certificate, read: None, seen: None, reported: Instant::now() };
        watch.report();
        watch
    }

    /// Reads files that have changed, once they stay as they are: certificate and key are not replaced at the same instant.
    /// Returns whether there is another certificate.
    fn look(&mut self, now: Instant) -> bool {
        let files = self.certificate.files();
        let state = Some(FilesState::of(&files));
        let is_settled = std::mem::replace(&mut self.seen, state.clone()) == state;
        if now.duration_since(self.reported) >= LOGGED_EVERY {
            self.report();
            self.reported = now;
        }
        if !is_settled || self.read == state {
            return false;
        }
        self.read = state;
        let replaced = self.certificate.replace(&files).inspect_err(|error| {
            tracing::error!(%error, "the changed certificate cannot be used; the one before it stays in use");
        });
        let is_another = replaced.unwrap_or(false);
        if is_another {
            tracing::info!(file = %files.certificate.display(), "new connections get the new certificate");
            self.report();
        }
        is_another
    }

    fn report(&self) {
        let (files, expires_at) = (self.certificate.files(), self.certificate.expires_at());
        CertificateExpiry::new(&files, expires_at, unix_seconds()).log();
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Writes a certificate for localhost and its key.
    fn write_files(dir: &Path) -> TlsConfig {
        let issued = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let files = TlsConfig { certificate: dir.join("cert.pem"), key: dir.join("key.pem") };
        fs::write(&files.certificate, issued.cert.pem()).unwrap();
        fs::write(&files.key, issued.signing_key.serialize_pem()).unwrap();
        files
    }

    /// After a panic, nobody would have been told that the certificate expires.
    #[test]
    fn a_certificate_is_watched_after_a_panic_and_it_is_told_when_it_is_not() {
        const TASK: &str = "the certificate";
        let dir = tempfile::tempdir().unwrap();
        let certificate = ServedCertificate::read(&write_files(dir.path())).unwrap();
        let supervisor = Supervisor::default();
        supervisor.inject_panics(TASK, 1);
        watch(Arc::new(certificate), &supervisor).unwrap();
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

    /// A renewed certificate needed a restart.
    #[test]
    fn files_are_read_again_once_both_are_replaced() {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (files, renewed) = (write_files(dir.path()), write_files(other.path()));
        let certificate = Arc::new(ServedCertificate::read(&files).unwrap());
        let mut watch = CertificateWatch::new(certificate);
        let mut replaced = || (0..3).filter(|_| watch.look(Instant::now())).count();
        assert_eq!(replaced(), 0);
        fs::rename(&renewed.certificate, &files.certificate).unwrap();
        assert_eq!(replaced(), 0, "the key is that of the old certificate");
        fs::rename(&renewed.key, &files.key).unwrap();
        assert_eq!(replaced(), 1);
        fs::remove_file(&files.key).unwrap();
        assert_eq!(replaced(), 0);
    }

    #[test]
    fn a_certificate_is_reported_for_14_days() {
        let tls = TlsConfig { certificate: "cert.pem".into(), key: "key.pem".into() };
        let expiry =
            |seconds_left: i64| CertificateExpiry::new(&tls, 1_800_000_000, 1_800_000_000 - seconds_left);
        let text = |verb: &str| {
            format!(
                "listen.tls_certificate cert.pem {verb} 2027-01-15 08:00 UTC: renew it; the new files are read \
                 without a restart"
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
