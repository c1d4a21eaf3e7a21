//! One run of `wrk`, and what it cost the processes under load.

use crate::peers::BenchServer;
use std::{fs, path::Path, process::Command};

/// The figures of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) per_second: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    /// CPU time of the server per request.
    pub(crate) cpu_us: f64,
    /// Requests that were not answered, or with a status that is no success.
    pub(crate) errors: f64,
}

/// How a server is asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Traffic<'a> {
    /// Sent one after another, from the first again after the last.
    pub(crate) bodies: &'a [String],
    pub(crate) connections: u32,
    pub(crate) seconds: u64,
}

/// Clock ticks in a second, as Linux counts CPU time for users.
const TICKS_PER_SECOND: f64 = 100.0;

/// Runs the traffic, all of which must succeed, and looks at the CPU time of the server before and after.
pub(crate) fn run(peer: &BenchServer, traffic: Traffic<'_>, folder: &Path) -> Load {
    let load = try_run(peer, traffic, folder);
    assert!(load.errors == 0.0, "{}: {} errors", peer.url, load.errors);
    load
}

/// Like [`run`], but errors are a result, too.
pub(crate) fn try_run(peer: &BenchServer, traffic: Traffic<'_>, folder: &Path) -> Load {
    let path = folder.join("post.lua");
    fs::write(&path, script(traffic.bodies)).expect("a folder to write to");
    let before = cpu_seconds(&peer.processes());
    let (connections, seconds) = (traffic.connections, traffic.seconds);
    let output = Command::new("wrk")
        .args(["-t1", &format!("-c{connections}"), &format!("-d{seconds}s"), "--timeout", "30s", "-s"])
        .arg(&path)
        .arg(&peer.url)
        .output()
        .expect("wrk is installed");
    let cpu = cpu_seconds(&peer.processes()) - before;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find_map(|line| line.strip_prefix("RESULT "));
    let line = line.unwrap_or_else(|| panic!("wrk said: {text}{}", String::from_utf8_lossy(&output.stderr)));
    let figures: Vec<f64> = line.split(' ').filter_map(|figure| figure.parse().ok()).collect();
    let [requests, duration, p50_us, p99_us, errors] = figures[..] else { panic!("wrk said: {line}") };
    assert!(requests > 0.0, "{} answered nothing", peer.url);
    Load { per_second: requests / duration, p50_us, p99_us, cpu_us: cpu * 1e6 / requests, errors }
}

fn script(bodies: &[String]) -> String {
    let head = "wrk.method = \"POST\"\nwrk.headers[\"Content-Type\"] = \"application/json\"\n";
    let report = "done = function(s, l, r)\n  io.write(string.format(\"RESULT %d %f %d %d %d\\n\", s.requests, s.duration / 1e6, \
                  l:percentile(50), l:percentile(99), s.errors.status + s.errors.read + s.errors.connect))\nend\n";
    let [body] = bodies else {
        let list: Vec<String> = bodies.iter().map(|body| format!("[==[{body}]==]")).collect();
        // Requests are made beforehand, so that the client has nothing to do but send them.
        let cycle = "local requests, at = {}, 0\n\
                     init = function()\n  for i, body in ipairs(bodies) do requests[i] = wrk.format(nil, nil, nil, body) end\nend\n\
                     request = function()\n  at = at % #requests + 1\n  return requests[at]\nend\n";
        return format!("{head}local bodies = {{\n{}\n}}\n{cycle}{report}", list.join(",\n"));
    };
    format!("{head}wrk.body = [==[{body}]==]\n{report}")
}

/// User and system time of some processes so far.
fn cpu_seconds(processes: &[u32]) -> f64 {
    let ticks = |process: &u32| -> f64 {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).expect("the process lives");
        let (_, fields) = stat.rsplit_once(") ").expect("a name in brackets");
        let fields: Vec<&str> = fields.split(' ').collect();
        [11, 12].iter().filter_map(|field| fields[*field].parse::<f64>().ok()).sum()
    };
    processes.iter().map(ticks).sum::<f64>() / TICKS_PER_SECOND
}

/// The run in the middle by requests per second.
pub(crate) fn median(loads: &[Load]) -> Load {
    let mut loads = loads.to_vec();
    loads.sort_by(|a, b| a.per_second.total_cmp(&b.per_second));
    loads[loads.len() / 2]
}
