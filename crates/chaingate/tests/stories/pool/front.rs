//! A gateway in front of nodes.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use answers::ChainChanges;
use chaingate::config::Config;
use chaingate::source;
use gateway::{GatewayState, Server};
use resources::Supervisor;
use serde_json::Value;
use testkit::http::{ReceivedReply, TestConnection, get, request};
use testkit::proxy::Proxy;

use crate::demo::until;
use crate::gateway_under_test::call;

pub(crate) struct Front {
    server: Option<Server>,
    state: Arc<GatewayState>,
    pub(crate) public: SocketAddr,
    pub(crate) operator: SocketAddr,
    pub(crate) supervisor: Supervisor,
}

impl Front {
    /// Starts a gateway in front of these nodes; `rest` is any other part of the configuration. Waits until it is ready.
    pub(crate) fn of(nodes: &[String], rest: &str) -> Self {
        let front = Self::unready(nodes, rest);
        until("it is ready", || get(front.operator, "/ready").status == 200);
        front
    }

    /// Starts a gateway in front of one node that it sees through `count` proxies.
    pub(crate) fn behind(
        node: SocketAddr,
        path: &'static str,
        count: usize,
        rest: &str,
    ) -> (Vec<Proxy>, Self) {
        let proxies: Vec<_> = (0..count).map(|_| Proxy::start(node, path)).collect();
        let urls: Vec<_> = proxies.iter().map(Proxy::url).collect();
        let front = Self::of(&urls, rest);
        (proxies, front)
    }

    /// Whether the gateway takes this node for one that is down.
    pub(crate) fn sees_down(&self, node: &Proxy) -> bool {
        let address = node.address.to_string();
        let says_so = |line: &str| {
            line.starts_with("chaingate_node_health") && line.contains(&address) && line.ends_with(" 0")
        };
        get(self.operator, "/metrics").text().lines().any(says_so)
    }

    /// Waits until the partner was probed and is of this chain. Calls do not go to a partner before.
    pub(crate) fn wait_for_partner(&self) {
        let is_usable = |line: &str| line.starts_with("chaingate_partner_usable") && line.ends_with(" 1");
        until("the partner is usable", || get(self.operator, "/metrics").text().lines().any(is_usable));
    }

    /// Whether this node does not answer its watcher.
    pub(crate) fn sees_silent(&self, node: &Proxy) -> bool {
        let (status, address) = (get(self.operator, "/status").json(), node.address.to_string());
        let mut nodes = status["nodes"]["each"].as_array().unwrap().iter();
        let is_node = |each: &Value| each["name"].as_str().is_some_and(|name| name.contains(&address));
        nodes.any(|each| is_node(each) && each["state"] == "silent")
    }

    /// The known history of each node: the lowest block of each kind of old data that it has.
    pub(crate) fn histories(&self) -> Vec<Value> {
        let status = get(self.operator, "/status").json();
        let nodes = status["nodes"]["each"].as_array().unwrap();
        nodes.iter().map(|node| node["history"].clone()).collect()
    }

    /// Waits until it is known which nodes have everything. Before, no null is confirmed.
    pub(crate) fn wait_for_histories(&self) {
        let is_known = |history: &Value| history["blocks"].is_u64() && history["state"].is_u64();
        until("the histories are known", || self.histories().iter().all(is_known));
    }

    /// Starts a gateway that keeps no blocks, unless `rest` has a section `[follow]`.
    pub(crate) fn unready(nodes: &[String], rest: &str) -> Self {
        let follow = if rest.contains("[follow]") { "" } else { "[follow]\nmode = \"off\"\n" };
        Self::start("", nodes, &format!("{rest}{follow}"))
    }

    /// Starts a gateway that keeps blocks in a directory; `follow` are lines of `[follow]`. Waits until it is ready.
    pub(crate) fn following(data_dir: &Path, nodes: &[String], follow: &str, rest: &str) -> Self {
        let front = Self::following_unready(data_dir, nodes, follow, rest);
        until("it is ready", || get(front.operator, "/ready").status == 200);
        front
    }

    pub(crate) fn following_unready(data_dir: &Path, nodes: &[String], follow: &str, rest: &str) -> Self {
        let top = format!("data_dir = {data_dir:?}\n");
        Self::start(&top, nodes, &format!("{rest}[follow]\n{follow}\n"))
    }

    /// Starts a gateway that polls its nodes at the default interval.
    pub(crate) fn polling_by_default(nodes: &[String], rest: &str) -> Self {
        Self::start_polling("", "", nodes, &format!("{rest}[follow]\nmode = \"off\"\n"))
    }

    fn start(top: &str, nodes: &[String], rest: &str) -> Self {
        Self::start_polling("poll_interval_ms = 20\n", top, nodes, rest)
    }

    /// `polling` are lines of `[pool]`.
    fn start_polling(polling: &str, top: &str, nodes: &[String], rest: &str) -> Self {
        let mut text = String::from(
            "[listen]\npublic = \"127.0.0.1:0\"\noperator = \"127.0.0.1:0\"\nworkers = 2\n\
             [[key]]\nkey = \"core\"\nplan = \"core\"\n[[key]]\nkey = \"growth\"\nplan = \"growth\"\naccount = \"big\"\n\
             [[key]]\nkey = \"custom\"\nplan = \"custom\"\naccount = \"own\"\n",
        );
        for url in nodes {
            text.push_str(&format!("[[node]]\nurl = \"{url}\"\n"));
        }
        let pool = format!("[pool]\n{polling}");
        let rest =
            if rest.contains("[pool]\n") { rest.replace("[pool]\n", &pool) } else { format!("{pool}{rest}") };
        let config = Config::parse(&format!("{top}{text}{rest}")).unwrap();
        let supervisor = Supervisor::default();
        // A gateway that was stopped a moment ago may still have the file of stored blocks.
        let mut sources = source::open(&config, &supervisor, |_, _| {});
        until("the stored blocks are free", || {
            let is_taken = matches!(&sources, Err(cause) if cause.contains("in use"));
            if is_taken {
                sources = source::open(&config, &supervisor, |_, _| {});
            }
            !is_taken
        });
        let sources = sources.unwrap();
        let state = Arc::new(config.gateway(sources, &supervisor).unwrap());
        let server = Server::start(&config.listen, Arc::clone(&state)).unwrap();
        let (public, operator) = (server.public(), server.operator());
        Self { public, operator, server: Some(server), state, supervisor }
    }

    /// The changes of its chain from now on.
    pub(crate) fn chain_changes(&self) -> ChainChanges {
        self.state.chain_changes()
    }

    pub(crate) fn wire(&self) -> TestConnection {
        TestConnection::connect(self.public)
    }

    /// Asks with a key, and with headers that end with `\r\n`.
    pub(crate) fn ask_as(&self, key: &str, headers: &str, method: &str, params: &str) -> ReceivedReply {
        let body = call(method, params);
        self.wire().send(request(&format!("/v3/{key}"), headers, body.as_bytes())).reply()
    }

    pub(crate) fn ask(&self, method: &str, params: &str) -> Value {
        self.ask_as("custom", "", method, params).json()
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.drain_at_once();
        }
    }
}
