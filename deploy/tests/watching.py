#!/usr/bin/env python3
"""Runs every query of the dashboards and every alert against a real Prometheus.

    deploy/tests/watching.py CHAINGATE     CHAINGATE is a built program; ANVIL names the program anvil

Gateways run under a short load while a real Prometheus scrapes them every second: in front of nodes that fail in each way, on the
demo chain, with limits that are reached, with a store, a disk and a Redis that are lost. Then every query of every panel must
return data, and every alert must have fired but those of NOT_HERE. The alerts wait for a second instead of minutes;
`promtool test rules` tests how long they wait, and those of NOT_HERE.
"""

import http.client
import json
import os
import re
import resource
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from lib import Failure, Gateway, call, free_port, get, metric, post, post_to_anvil, until

DEPLOY = Path(__file__).resolve().parent.parent
REPOSITORY = DEPLOY.parent

# Alerts that no fault on this machine causes within seconds.
NOT_HERE = {
    "ChaingateTaskPanicked": "tasks panic only in tests of the program",
    "ChaingateDiskNearlyFull": "needs a disk of its own",
    "ChaingateUsageLost": "needs 65,536 keys",
}

# Alerts that fire when nothing is left.
AT_LAST = {
    "ChaingateCallsUnanswered", "ChaingateHeadStalled", "ChaingateNotReady", "ChaingatePartnerAsked", "ChaingatePartnerNearLimit",
    "ChaingateQuorumAtRisk", "ChaingateRedisLost",
}

# How long everything is well before the first fault, while a rate needs some scrapes.
CALM_S = 6

RAW_CALL = (
    b"POST /v3/key HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n"
    b'{"jsonrpc":"2.0","id":1,"method":"eth_chainId"   }'
)


# --- the nodes ---


class Node(ThreadingHTTPServer):
    """An anvil behind a proxy that fails in one way. Without a fault it forwards everything."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, upstream):
        super().__init__(("127.0.0.1", 0), NodeHandler)
        self.upstream, self.fault, self.calls, self.frozen = upstream, None, 0, {}
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request, client_address):
        pass


class NodeHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        node, fault = self.server, self.server.fault
        node.calls += 1
        if fault == "down":
            self.close_connection = True
            return
        if fault == "rate limited" or fault == "failing" and node.calls % 2 == 0:
            return self.reply(429 if fault == "rate limited" else 500, b"no")
        if fault == "slow":
            time.sleep(0.7)
        upstream = http.client.HTTPConnection("127.0.0.1", node.upstream, timeout=10)
        try:
            upstream.request("POST", "/", body, {"content-type": "application/json"})
            answer = json.loads(upstream.getresponse().read())
        finally:
            upstream.close()
        calls, answers = json.loads(body), answer
        if isinstance(calls, dict):
            calls, answers = [calls], [answer]
        methods = {call["id"]: call for call in calls}
        for one in answers:
            self.distort(methods[one["id"]], one)
        self.reply(200, json.dumps(answer).encode())

    def distort(self, call, answer):
        fault, method = self.server.fault, call["method"]
        newest = method in ("eth_blockNumber", "eth_getBlockByNumber") and call["params"][:1] in ([], ["latest"])
        if fault == "other chain" and method in ("eth_chainId", "net_version"):
            answer["result"] = "0x5"
        elif fault == "behind" and newest:
            answer["result"] = self.server.frozen.setdefault(method, answer.get("result"))
        elif fault == "lying" and method == "eth_getBlockReceipts" and answer.get("result"):
            for receipt in answer["result"]:
                receipt["cumulativeGasUsed"] = "0x1"
        elif fault == "lying" and method.startswith("eth_getBlockBy") and answer.get("result"):
            answer["result"]["gasUsed"] = "0x1"

    def reply(self, status, body):
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


# --- the gateways ---


class Load:
    """Calls to gateways in a loop until it is stopped."""

    def __init__(self, port, bodies, pause=0.05, key="key", callers=1, context=None):
        self.port, self.bodies, self.pause, self.key, self.context = port, bodies, pause, key, context
        self.is_over = threading.Event()
        self.threads = [threading.Thread(target=self.run, daemon=True) for _ in range(callers)]
        for thread in self.threads:
            thread.start()

    def run(self):
        connection = None
        while not self.is_over.is_set():
            for body in self.bodies:
                try:
                    if connection is None:
                        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
                    connection.request("POST", f"/v3/{self.key}", json.dumps(body), {"content-type": "application/json"})
                    connection.getresponse().read()
                except (OSError, http.client.HTTPException):
                    if connection:
                        connection.close()
                    connection = None
                if self.is_over.wait(self.pause):
                    return

    def stop(self):
        self.is_over.set()
        for thread in self.threads:
            thread.join()


# --- Prometheus ---


class Prometheus:
    def __init__(self, work, targets):
        self.folder, self.port = work / "prometheus", free_port()
        self.folder.mkdir()
        rules = (DEPLOY / "prometheus/rules.yml").read_text()
        # How long an alert waits is tested by `promtool test rules`.
        (self.folder / "rules.yml").write_text(re.sub(r"\bfor: \w+", "for: 1s", rules))
        addresses = ", ".join(f'"127.0.0.1:{port}"' for port in targets)
        (self.folder / "prometheus.yml").write_text(
            "global: { scrape_interval: 1s, evaluation_interval: 1s }\n"
            "rule_files: [rules.yml]\n"
            f"scrape_configs: [{{ job_name: chaingate, static_configs: [{{ targets: [{addresses}] }}] }}]\n"
        )
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={self.folder}/prometheus.yml", f"--storage.tsdb.path={self.folder}/data",
             f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=warn"],
            stdout=subprocess.DEVNULL, stderr=open(self.folder / "log", "ab"),
        )
        until("Prometheus is ready", lambda: get(self.port, "/-/ready")[0] == 200)

    def api(self, path, **parameters):
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as reply:
                return json.load(reply)["data"]
        except urllib.error.HTTPError as error:
            raise Failure(f"{parameters}: {error.read().decode()}") from None

    def alerts(self):
        rules = [rule for group in self.api("rules", type="alert")["groups"] for rule in group["rules"]]
        return [rule["name"] for rule in rules]

    def until_scraped(self, gateway):
        """Waits for a scrape of the process that runs now."""
        started_at = metric(gateway.operator, "process_start_time_seconds")
        query = f'process_start_time_seconds{{instance="127.0.0.1:{gateway.operator}"}} == {started_at:.0f}'
        until(f"{gateway.name} is scraped", lambda: self.api("query", query=query)["result"])

    def has_fired(self):
        fired = self.api("query", query='max by (alertname) (max_over_time(ALERTS{alertstate="firing"}[10m]))')
        return {series["metric"]["alertname"] for series in fired["result"]}

    def values(self, expression, since):
        """Every value of a query since a time."""
        now = time.time()
        answer = self.api("query_range", query=expression, start=since, end=now, step=1)
        return [value for series in answer["result"] for _, value in series["values"]]


def panels():
    """The title and the queries of every panel, with the variables of Grafana replaced."""
    for file in sorted((DEPLOY / "grafana/dashboards").glob("*.json")):
        dashboard = json.loads(file.read_text())
        for panel in dashboard["panels"]:
            for target in panel.get("targets", []):
                query = target["expr"].replace("$__rate_interval", "5s").replace("$__range", "60s")
                yield f"{file.name}: {panel['title']}", query.replace("$instance", ".*")


# --- the story ---

KEYS = '[[key]]\nkey = "key"\naccount = "acme"\n[[key]]\nkey = "other"\naccount = "initech"\n[[key]]\nkey = "small"\naccount = "hooli"\nplan = "core"\n'


def certificate(folder, days):
    """A certificate that expires in days, and the settings that name it."""
    folder.mkdir(exist_ok=True)
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", str(days),
         "-keyout", folder / "key.pem", "-out", folder / "certificate.pem", "-subj", "/CN=localhost"],
        check=True, capture_output=True,
    )
    return f'tls_certificate = "{folder}/certificate.pem"\ntls_key = "{folder}/key.pem"\n'


def nodes_in(settings, nodes):
    return settings + "".join(f'[[node]]\nname = "{name}"\nurl = "{url}"\n' for name, url in nodes.items())


class Story:
    def __init__(self, command, work):
        self.command, self.work = command, work
        self.anvil = self.redis = self.prometheus = None
        self.gateways, self.loads, self.nodes = {}, [], {}

    def gateway(self, name, settings):
        self.gateways[name] = Gateway(self.work, name, settings, self.command)
        return self.gateways[name]

    def load(self, name, bodies, **options):
        self.loads.append(Load(self.gateways[name].public, bodies, **options))

    def end(self):
        for load in self.loads:
            load.is_over.set()
        for gateway in self.gateways.values():
            gateway.kill()
        for process in (self.anvil, self.redis, self.prometheus and self.prometheus.process):
            if process:
                process.kill()
                process.wait()

    # What is there before the first fault.

    def start(self):
        anvil_port, redis_port = free_port(), free_port()
        self.anvil = subprocess.Popen(
            [os.environ["ANVIL"], "--port", str(anvil_port), "--block-time", "1", "--silent"], stdout=subprocess.DEVNULL
        )
        self.redis = subprocess.Popen(
            ["redis-server", "--port", str(redis_port), "--save", "", "--dir", str(self.work)], stdout=subprocess.DEVNULL
        )
        until("anvil answers", lambda: post_to_anvil(anvil_port, "eth_chainId"))
        self.anvil_port = anvil_port
        self.nodes = {name: Node(anvil_port) for name in ("a", "b", "c", "down", "limited", "lying", "other", "behind", "slow", "failing", "lost")}
        partner = self.nodes["partner"] = Node(anvil_port)
        url = lambda *names: {name: self.nodes[name].url for name in names}
        # A quorum of three, so that each of the others can fail.
        self.gateway("pool", nodes_in(
            f'[network]\nname = "anvil"\n{KEYS}[shared]\nredis_url = "redis://127.0.0.1:{redis_port}/0"\n'
            "[pool]\nquorum = 3\nhead_stall_ms = 3000\n",
            url("a", "b", "c", "down", "limited", "lying", "other", "behind")))
        self.gateway("slow", nodes_in(f'[network]\nname = "anvil"\n{KEYS}[integrity]\nmode = "off"\n[cache]\nenabled = false\n'
            f'[[partner]]\nname = "lost"\nurl = "{self.nodes["lost"].url}"\n', url("slow")))
        self.gateway("failing", nodes_in(
            f'[network]\nname = "anvil"\n{KEYS}[integrity]\nmode = "off"\n[cache]\nenabled = false\n'
            f'[[partner]]\nname = "partner"\nurl = "{partner.url}"\ncalls_per_day = 5\n', url("failing")))
        self.gateway("demo", f'{KEYS}[listen]\n{certificate(self.work / "soon", 10)}')
        self.gateway("limits", f"{KEYS}[listen]\n[limits]\nconnections_max = 60\ncalls_in_flight_max = 8\npool_queue_max = 4\n"
            "pool_threads = 1\ncall_timeout_ms = 1500\ncall_gas_multiple = 1000000000\nmemory_bytes_max = 2097152\n"
            "unauthenticated_per_second_max = 1\naddress_limits_exempt = []\nconnections_per_address_max = 0\n")
        self.gateway("headless", nodes_in(f'[network]\nname = "anvil"\n{KEYS}', url("lost")))
        self.gateway("talkative", f"{KEYS}[listen]\n")
        self.gateway("damaged", f"{KEYS}[listen]\n")
        self.gateway("victim", f'{KEYS}[listen]\n{certificate(self.work / "expired", 1)}')
        # What was told at the start is not asked again soon.
        self.nodes["other"].fault = "other chain"
        self.nodes["lost"].fault = "down"
        for gateway in self.gateways.values():
            gateway.start(*(subprocess.PIPE, "info,gateway=debug") if gateway.name == "talkative" else ())
        self.gateways["damaged"].until_up().kill()
        # With nothing of the file in memory.
        self.gateways["damaged"].start()
        self.start_followers()
        self.start_stores()
        for gateway in self.gateways.values():
            gateway.until_up()
        self.prometheus = Prometheus(self.work, [gateway.operator for gateway in self.gateways.values()])
        self.began = time.time()

    def start_followers(self):
        """Two archives that follow a gateway with the demo chain. One has other forks in its genesis file, so it stops."""
        served = self.gateway("served", f"{KEYS}[listen]\n").start()
        genesis = json.loads((REPOSITORY / "crates/demo/chain/genesis.json").read_text())
        for name, byzantium in (("follower", 32), ("stopped", 500)):
            genesis["config"]["byzantiumBlock"] = byzantium
            if name == "stopped":
                for fork in ("constantinopleBlock", "petersburgBlock", "istanbulBlock", "muirGlacierBlock", "berlinBlock",
                             "londonBlock", "arrowGlacierBlock", "grayGlacierBlock"):
                    genesis["config"][fork] = byzantium
            file = self.work / f"{name}.json"
            file.write_text(json.dumps(genesis))
            follower = self.gateway(name, nodes_in(
                f'[network]\nname = "followed"\n{KEYS}[follow]\nmode = "full"\n[pool]\nhead_stall_ms = 0\n',
                {"served": f"http://127.0.0.1:{served.public}/v3/key"}))
            follower.run("import", "--data-dir", follower.data, "--genesis", file)
            follower.start()

    def start_stores(self):
        """A gateway with rows that are wrong and no place for its copy, and one whose store is lost."""
        store = self.gateway("store", f"{KEYS}[listen]\n")
        lost = self.gateway("lost store", f"{KEYS}[listen]\n[store]\ncopy_age_max_s = 4\n")
        for gateway in (store, lost):
            gateway.data.mkdir()
            gateway.run("accounts", "create", "--name", "umbrella", "--plan", "core", "--config", gateway.config)
            gateway.run("keys", "create", "--account", "umbrella", "--name", "backend", "--config", gateway.config)
        with sqlite3.connect(store.data / "callers.sqlite") as database:
            database.execute("""UPDATE api_keys SET settings = '{"rules":{"origins":5}}'""")
        (store.data / "callers.copy").mkdir()
        # It has followed the store, and then starts without it.
        lost.start().until_up()
        until("the store is followed", lambda: (lost.data / "callers.copy").exists())
        lost.kill()
        for file in lost.data.glob("callers.sqlite*"):
            file.unlink()
        (lost.data / "callers.sqlite").mkdir()
        store.start()
        lost.start()

    def calls(self):
        """A load that gives every panel something to show."""
        block = lambda tag: call("eth_getBlockByNumber", tag, True)
        account = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
        on_nodes = [call("eth_blockNumber"), call("eth_getBalance", account, "latest"), block("latest"),
                    [call("eth_chainId"), call("eth_gasPrice")], call("eth_getBlockReceipts", "latest")]
        self.load("pool", on_nodes)
        self.load("pool", [call("eth_blockNumber")], key="small", callers=4, pause=0.001)
        self.load("slow", [call("eth_getBalance", account, "latest")], callers=4)
        self.load("failing", [call("eth_getStorageAt", account, "0x0", "latest")])
        self.load("served", [
            call("eth_getBalance", account, "0x10"), call("eth_getLogs", {"fromBlock": "0x0", "toBlock": "0x20"}),
            call("eth_call", {"data": "0x5f5ff3"}, "latest", {}), call("eth_feeHistory", "0x20", "latest", [50]), block("0x20"),
            call("eth_getBlockReceipts", "0x30"), call("eth_nonsense")])
        self.load("lost store", [call("eth_chainId")])
        # A method has series from its first call on.
        post(self.gateways["damaged"].public, call("eth_getBlockReceipts", "0x0"))
        for number in range(6):
            # Equal calls would share one answer.
            endless = call("eth_call", {"data": f"0x5b600056{number:02x}", "gas": "0xffffffffffff"}, "latest")
            self.load("limits", [endless])
            self.load("limits", [endless], key="other")
            self.load("limits", [endless], key="small")

    # The faults, each of which makes alerts fire.

    def fail(self):
        for name, fault in (("down", "down"), ("limited", "rate limited"), ("lying", "lying"), ("behind", "behind"),
                            ("slow", "slow"), ("failing", "failing")):
            self.nodes[name].fault = fault
        self.stop_writing()
        self.exceed_limits()
        self.damage()
        self.stop_reading_the_log()
        self.restart_often()
        (self.gateways["limits"].data / "last-backup").write_text("1000000000\n")
        # The node behind has reported its last block by now.
        post_to_anvil(self.anvil_port, "anvil_mine", "0x14")

    def exceed_limits(self):
        limits = self.gateways["limits"]
        # They stay open until the end.
        self.idle = [socket.create_connection(("127.0.0.1", limits.public)) for _ in range(48)]
        post(limits.public, call("eth_call", {"data": "0x" + "00" * 700_000}, "latest"))
        flood(limits)
        # Nobody calls this one, so the number of its files stays as it is.
        quiet = self.gateways["store"].process.pid
        files = len(os.listdir(f"/proc/{quiet}/fd")) + 2
        resource.prlimit(quiet, resource.RLIMIT_NOFILE, (files, files))

    def stop_writing(self):
        pool, store = self.gateways["pool"], self.gateways["store"]
        resource.prlimit(pool.process.pid, resource.RLIMIT_FSIZE, (0, 0))
        store.run("accounts", "create", "--name", "soylent", "--plan", "core", "--config", store.config)

    def damage(self):
        damaged = self.gateways["damaged"]
        with open(damaged.data / "archive.redb", "r+b") as archive:
            size = archive.seek(0, os.SEEK_END)
            for offset in range(size // 4, size, 65_536):
                archive.seek(offset)
                archive.write(os.urandom(4_096))

        def fails():
            for number in range(0, 256, 4):
                post(damaged.public, call("eth_getBlockReceipts", hex(number)))
            return b'outcome="internal_error"} 0' not in get(damaged.operator, "/metrics")[1]

        until("the damage is found", fails)
        shutil.move(damaged.data, damaged.folder / "moved")

    def stop_reading_the_log(self):
        """Lines are dropped, and the task that writes them hangs."""
        talkative = self.gateways["talkative"]

        def drops():
            for _ in range(1_000):
                talkative.wire.sendall(RAW_CALL)
                talkative.wire.recv(65_536)
            return metric(talkative.operator, "chaingate_log_lines_dropped_total") > 0

        talkative.wire = socket.create_connection(("127.0.0.1", talkative.public))
        until("lines of the log are dropped", drops)

    def restart_often(self):
        victim = self.gateways["victim"]
        for _ in range(3):
            started_at = metric(victim.operator, "process_start_time_seconds")
            victim.kill()
            until("another second has begun", lambda: int(time.time()) > started_at)
            victim.start().until_up()
            self.prometheus.until_scraped(victim)
        victim.kill()

    def lose_everything(self):
        self.redis.kill()
        for node in self.nodes.values():
            node.fault = "down"
        self.nodes["partner"].fault = None


def flood(gateway):
    """More requests without a valid key than an address may send: 10 per second on the average of five minutes."""
    request = b"POST /v3/nobody HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
    for _ in range(3_500):
        with socket.create_connection(("127.0.0.1", gateway.public)) as wire:
            wire.sendall(request)
            wire.recv(4_096)


def check_metrics(gateways):
    for gateway in gateways:
        _, page = get(gateway.operator, "/metrics")
        checked = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True)
        if checked.returncode != 0 or checked.stdout or checked.stderr:
            raise Failure(f"promtool check metrics: {(checked.stdout + checked.stderr).decode()}")


def check_panels(prometheus, began):
    empty, queries = [], 0
    for panel, query in panels():
        queries += 1
        if all(value == "NaN" for value in prometheus.values(query, began)):
            empty.append(f"{panel}: {query}")
    if empty:
        raise Failure("no data:\n" + "\n".join(empty))
    print(f"{queries} queries of dashboards return data")


def until_fired(prometheus, expected):
    try:
        until("all alerts fire", lambda: expected <= prometheus.has_fired())
    except Failure:
        raise Failure(f"did not fire: {sorted(expected - prometheus.has_fired())}") from None


def expected_alerts(prometheus):
    alerts = prometheus.alerts()
    tested = re.findall(r"^      - alertname: (\w+)", (DEPLOY / "prometheus/rules.test.yml").read_text(), re.MULTILINE)
    untested = set(alerts) - set(tested)
    if untested or len(alerts) != len(set(alerts)):
        raise Failure(f"without a test in rules.test.yml, or there twice: {untested}")
    return set(alerts) - set(NOT_HERE)


def check_nothing_else_fired(prometheus, expected):
    fired = prometheus.has_fired()
    if fired != expected:
        raise Failure(f"fired without their fault: {sorted(fired - expected)}")
    print(f"{len(expected)} alerts have fired; only promtool tests {', '.join(NOT_HERE)}")


def main():
    work = Path(tempfile.mkdtemp(prefix="chaingate-watching-"))
    story = Story(Path(sys.argv[1]).resolve(), work)
    try:
        story.start()
        story.calls()
        time.sleep(CALM_S)
        check_metrics(story.gateways[name] for name in ("pool", "demo", "follower"))
        expected = expected_alerts(story.prometheus)
        story.fail()
        until_fired(story.prometheus, expected - AT_LAST)
        story.lose_everything()
        until_fired(story.prometheus, expected)
        check_nothing_else_fired(story.prometheus, expected)
        check_panels(story.prometheus, story.began)
    except Failure as failure:
        print(f"error: {failure}", file=sys.stderr)
        print(f"logs are in {work}", file=sys.stderr)
        return 1
    finally:
        story.end()
    shutil.rmtree(work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
