//! Reading the configuration file again while calls go on: what can change without a restart takes effect, and the rest is named.
//!
//! The file is read and checked as a whole first, and changes nothing if anything in it is wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use callers::{CurrentPlans, FeedHandle};
use console::ReloadReport;
use gateway::GatewayState;
use gateway::log::LogFilterHandle;
use http_server::ServedCertificate;
use remote::change_nodes;
use remote::settings::PoolConfig;
use resources::Clock;
use tokio::sync::oneshot;

use crate::config::Config;

/// Sections and keys that a reload changes; `*` is every key of a section. All others need a restart.
const LIVE_KEYS: &[(&str, &str)] = &[
    ("key", "*"),
    ("plans", "*"),
    ("methods", "*"),
    ("limits", "*"),
    ("node", "*"),
    ("partner", "*"),
    ("listen", "tls_certificate"),
    ("listen", "tls_key"),
    ("listen", "operator_hosts"),
    ("", "log"),
];

/// Keys of these sections from which threads and memory are made once.
const RESTART_KEYS: &[(&str, &str)] =
    &[("limits", "memory_bytes_max"), ("limits", "pool_threads"), ("limits", "pool_queue_max")];

/// Whether a reload changes this key, or a restart is needed. `section` is without the number of an entry of a list.
pub fn is_live(section: &str, key: &str) -> bool {
    let section = section.split(['.', ' ']).next().unwrap_or_default();
    let is_in = |keys: &[(&str, &str)]| {
        keys.iter().any(|(of, name)| *of == section && (*name == key || *name == "*"))
    };
    is_in(LIVE_KEYS) && !is_in(RESTART_KEYS)
}

/// The outcome of a reload; an error has every mistake of the file with its line.
pub type ReloadOutcome = Result<ReloadReport, String>;

/// A request to reload, with where its outcome goes.
pub type ReloadRequest = Option<oneshot::Sender<ReloadOutcome>>;

/// Asks the thread that reloads, and returns the outcome.
pub fn request(requests: &SyncSender<ReloadRequest>) -> impl Future<Output = ReloadOutcome> + Send + use<> {
    let (reply, outcome) = oneshot::channel();
    let sent = requests.try_send(Some(reply));
    async move {
        match sent {
            Ok(()) => outcome.await.map_err(|_| "the reload has panicked; see the log".to_owned())?,
            Err(_) => Err("other reloads are waiting; try again when they are done".to_owned()),
        }
    }
}

/// Reads the configuration and the text of its file, as the process was told to at its start.
pub type ReadConfig = Box<dyn Fn() -> Result<(Config, String), String> + Send + Sync>;

/// The parts of a running gateway that a reload changes.
#[derive(Debug)]
pub struct ReloadTarget {
    pub gateway: Arc<GatewayState>,
    pub feed: FeedHandle,
    pub log: LogFilterHandle,
}

/// Brings a running gateway to the configuration that its file has now.
pub struct Reloader {
    read: ReadConfig,
    target: ReloadTarget,
    plans: CurrentPlans,
    /// The text of the file at the start, which is in effect for all keys that a reload cannot change.
    started: String,
    running: RunningConfig,
}

/// The configuration that was read last.
struct RunningConfig {
    text: String,
    remote: PoolConfig,
}

impl std::fmt::Debug for Reloader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reloader").finish_non_exhaustive()
    }
}

impl Reloader {
    /// `config` and `text` are the configuration in effect and the text of its file.
    pub fn new(read: ReadConfig, config: &Config, text: String, target: ReloadTarget) -> Self {
        let running = RunningConfig { text: text.clone(), remote: config.remote.clone() };
        let plans = config.plans.clone();
        Self { read, target, plans, started: text, running }
    }

    /// Reads the file again. Blocks until the new nodes are known or a timeout is over, because the old ones serve until then.
    pub fn reload(&mut self) -> ReloadOutcome {
        let outcome = (self.read)().and_then(|(config, text)| self.change(&config, text));
        match &outcome {
            Ok(report) => {
                let (changed, needs_restart) = (report.changed.join(", "), report.needs_restart.join(", "));
                tracing::info!(changed, needs_restart, "the configuration was read again");
            }
            Err(error) => tracing::error!(error, "the configuration was not read again: nothing has changed"),
        }
        outcome
    }

    fn change(&mut self, config: &Config, text: String) -> ReloadOutcome {
        let mut report = report(&self.started, &self.running.text, &text);
        self.add_keys_that_need_a_restart(&mut report, config);
        let ReloadTarget { gateway, feed, log } = &self.target;
        // Steps that can fail come first, so that an error changes nothing.
        let mut certificate = None;
        if let (Some(served), Some(files)) = (gateway.certificate(), &config.listen.server.tls) {
            certificate = Some((served, ServedCertificate::read(files).map_err(|error| error.to_string())?));
        }
        if let Some(remote) = gateway.answers().remote()
            && !config.remote.nodes.is_empty()
        {
            change_nodes(remote.pool(), &self.running.remote, &config.remote)?;
            self.running.remote = config.remote.clone();
        }
        if let Some((served, read)) = certificate {
            served.replace_with(read);
        }
        gateway.callers().replace_configured(&config.keys, Clock::default().now());
        gateway.change_settings(&config.limits, &config.network);
        gateway.change_operator_hosts(&config.listen.operator.hosts);
        log.change(&config.log);
        // The accounts of the store, and those who change them, have the plans of the start, which are replaced in place.
        self.plans.replace(config.plans.now());
        feed.apply_plans();
        self.running.text = text;
        Ok(report)
    }

    /// Adds keys to `needs_restart` that a reload can change in general, but not on this gateway.
    fn add_keys_that_need_a_restart(&self, report: &mut ReloadReport, config: &Config) {
        let gateway = &self.target.gateway;
        let keeps_tls = gateway.certificate().is_some() == config.listen.server.tls.is_some();
        let keeps_source = gateway.answers().remote().is_some() != config.remote.nodes.is_empty();
        for (keys, is_kept) in
            [("listen.tls_", keeps_tls), ("node ", keeps_source), ("partner ", keeps_source)]
        {
            if !is_kept {
                let moved = report.changed.extract_if(.., |path| path.starts_with(keys));
                report.needs_restart.extend(moved);
            }
        }
        // The default of `state` depends on the number of nodes.
        if self.running.remote.state != config.remote.state {
            report.needs_restart.push("integrity.state".to_owned());
        }
        report.needs_restart.sort();
        report.needs_restart.dedup();
    }
}

/// Keys that take effect at once, compared with the file before, and keys that wait for a restart, compared with the file at the
/// start.
fn report(started: &str, before: &str, after: &str) -> ReloadReport {
    let is_at_once = |path: &String| {
        let (section, key) = path.rsplit_once('.').unwrap_or(("", path));
        is_live(section, key)
    };
    let mut changed = differences(before, after);
    changed.retain(is_at_once);
    let mut needs_restart = differences(started, after);
    needs_restart.retain(|path| !is_at_once(path));
    ReloadReport { changed, needs_restart }
}

/// The keys that one of two files sets, and that have another value in the other.
fn differences(before: &str, after: &str) -> Vec<String> {
    let written = [before, after].into_iter().flat_map(settings::file_values).map(|value| value.path);
    let written: BTreeSet<_> = written.collect();
    let (before, after) = (values(before), values(after));
    written.into_iter().filter(|path| before.get(path) != after.get(path)).collect()
}

/// Each key that a file could have, with the value that the file or the default gives it.
fn values(text: &str) -> BTreeMap<String, String> {
    let defaults = Config::keys_of(text).into_iter().map(|known| (known.path, known.default));
    let written = settings::file_values(text).into_iter().map(|value| (value.path, value.text));
    defaults.chain(written).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_named_by_what_they_need() {
        let before = "[[key]]\nkey = \"a\"\n[[node]]\nurl = \"http://a\"\n[cache]\nbytes_max = 1000\n";
        let after = "data_dir = \"other\"\n[[key]]\nkey = \"b\"\n[[node]]\nurl = \"http://a\"\n[[node]]\nurl = \"http://b\"\n\
                     [plans.core]\nkeys_max = 2\n[limits]\nbody_bytes_max = 1000\n";
        let ReloadReport { changed, needs_restart } = report(before, before, after);
        assert!(
            ["key 1.key", "node 2.url", "plans.core.keys_max", "limits.body_bytes_max"]
                .iter()
                .all(|path| changed.iter().any(|changed| changed == path)),
            "{changed:?}"
        );
        assert_eq!(needs_restart, ["cache.bytes_max", "data_dir"]);
        // The default, written out, is no change.
        let written = "[limits]\nbatch_calls_max = 1000\n";
        assert_eq!(report("", "", written), ReloadReport::default());
        // A second reload changes nothing more, and a restart is still needed.
        let again = report(before, after, after);
        assert_eq!((again.changed.len(), again.needs_restart.len()), (0, 2));
    }
}
