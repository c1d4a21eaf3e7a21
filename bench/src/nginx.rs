//! nginx in front of the same node: passing everything on, or keeping what it has seen by the body of the request.

use crate::peers::{self, BenchServer};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// One nginx with two workers; it ends when this is dropped.
pub(crate) struct Nginx {
    pub(crate) peer: BenchServer,
    program: &'static str,
    folder: PathBuf,
}

/// How nginx answers requests: from the node, or from its cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NginxMode {
    Pass,
    Cache,
}

impl Nginx {
    /// Starts nginx; `None` if it is not installed.
    pub(crate) fn start(mode: NginxMode, port: u16, node: &BenchServer, folder: &Path) -> Option<Self> {
        let folder = folder.join(format!("nginx-{port}"));
        fs::create_dir_all(&folder).expect("a folder to write to");
        fs::write(folder.join("nginx.conf"), config(mode, port, node)).expect("a folder to write to");
        let (program, child) = ["nginx", "/usr/sbin/nginx"].into_iter().find_map(|program| {
            let child = command(program, &folder).stderr(Stdio::null()).spawn();
            child.ok().map(|child| (program, child))
        })?;
        let peer = peers::ready(BenchServer::new(format!("http://127.0.0.1:{port}/"), child));
        Some(Self { peer, program, folder })
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // The workers would outlive nginx if it were killed.
        let _ended = command(self.program, &self.folder).args(["-s", "stop"]).stderr(Stdio::null()).status();
        self.peer.wait();
    }
}

fn command(program: &str, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg("-p").arg(folder).args(["-c", "nginx.conf", "-e", "error.log"]);
    command
}

/// Tuned as one would for this: connections to the node are kept, buffers hold whole small replies, nothing is logged,
/// and replies that are passed on do not go through files.
fn config(mode: NginxMode, port: u16, node: &BenchServer) -> String {
    let server = node.url.trim_start_matches("http://").trim_end_matches('/');
    let how = match mode {
        NginxMode::Pass => "proxy_max_temp_file_size 0;",
        NginxMode::Cache => {
            "proxy_cache kept; proxy_cache_methods POST; proxy_cache_key $request_body; proxy_cache_valid 200 1h;"
        }
    };
    format!(
        "daemon off; user root; worker_processes 2; pid nginx.pid; error_log error.log;
events {{ worker_connections 1024; }}
http {{
    access_log off; keepalive_requests 1000000000; tcp_nodelay on; sendfile on;
    client_body_buffer_size 64k; client_max_body_size 4m;
    client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    proxy_cache_path cache keys_zone=kept:64m max_size=4g inactive=1h use_temp_path=off;
    upstream node {{ server {server}; keepalive 128; keepalive_requests 1000000000; }}
    server {{
        listen 127.0.0.1:{port} backlog=1024;
        location / {{
            proxy_pass http://node; proxy_http_version 1.1; proxy_set_header Connection \"\";
            proxy_buffer_size 16k; proxy_buffers 32 16k; proxy_busy_buffers_size 64k;
            {how}
        }}
    }}
}}
"
    )
}
