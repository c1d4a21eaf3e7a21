//! One run of `wrk`, and what it cost the process under load.

use std::{fs, path::Path, process::Command};

/// What a run gave.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) per_second: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    /// CPU time of the server per request.
    pub(crate) cpu_us: f64,
}

/// Clock ticks in a second, as Linux counts CPU time for users.
const TICKS_PER_SECOND: f64 = 100.0;

/// Sends one body over and over, and looks at the CPU time of `process` before and after.
pub(crate) fn run(
    url: &str,
    body: &str,
    process: u32,
    connections: u32,
    seconds: u64,
    folder: &Path,
) -> Load {
    let script = folder.join("post.lua");
    let headers = "wrk.headers[\"Content-Type\"] = \"application/json\"";
    let report = "done = function(s, l, r)\n  io.write(string.format(\"RESULT %d %f %d %d %d\\n\", s.requests, s.duration / 1e6, \
                  l:percentile(50), l:percentile(99), s.errors.status + s.errors.read + s.errors.connect))\nend";
    fs::write(&script, format!("wrk.method = \"POST\"\nwrk.body = [==[{body}]==]\n{headers}\n{report}\n"))
        .expect("a folder to write to");
    let before = cpu_seconds(process);
    let output = Command::new("wrk")
        .args(["-t1", &format!("-c{connections}"), &format!("-d{seconds}s"), "--timeout", "30s", "-s"])
        .arg(&script)
        .arg(url)
        .output()
        .expect("wrk is installed");
    let cpu = cpu_seconds(process) - before;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find_map(|line| line.strip_prefix("RESULT "));
    let line = line.unwrap_or_else(|| panic!("wrk said: {text}{}", String::from_utf8_lossy(&output.stderr)));
    let figures: Vec<f64> = line.split(' ').filter_map(|figure| figure.parse().ok()).collect();
    let [requests, duration, p50_us, p99_us, errors] = figures[..] else { panic!("wrk said: {line}") };
    assert!(requests > 0.0 && errors == 0.0, "{url}: {requests} requests, {errors} errors");
    Load { per_second: requests / duration, p50_us, p99_us, cpu_us: cpu * 1e6 / requests }
}

/// User and system time of a process so far.
fn cpu_seconds(process: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).expect("the process lives");
    let (_, fields) = stat.rsplit_once(") ").expect("a name in brackets");
    let fields: Vec<&str> = fields.split(' ').collect();
    let ticks: f64 = [11, 12].iter().filter_map(|field| fields[*field].parse::<f64>().ok()).sum();
    ticks / TICKS_PER_SECOND
}
