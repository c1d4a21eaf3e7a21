"""What the tests of this folder have in common: processes, calls and waiting."""

import http.client
import json
import os
import socket
import subprocess
import time
import urllib.request

# How long anything may take to happen.
PATIENCE_S = 120


class Failure(Exception):
    pass


def until(what, done):
    late = time.monotonic() + PATIENCE_S
    while not (value := done()):
        if time.monotonic() > late:
            raise Failure(f"it never happened: {what}")
        time.sleep(0.1)
    return value


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def get(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        reply = connection.getresponse()
        return reply.status, reply.read()
    except OSError:
        return None, b""
    finally:
        connection.close()


def metric(port, series):
    status, page = get(port, "/metrics")
    for line in page.decode().splitlines():
        if line.startswith(series + " "):
            return float(line.rsplit(" ", 1)[1])
    return None


class Gateway:
    """The program in a process of its own, always at the same addresses."""

    def __init__(self, work, name, settings, command):
        self.name, self.command, self.folder = name, command, work / name
        self.folder.mkdir(exist_ok=True)
        self.data = self.folder / "data"
        self.public, self.operator = free_port(), free_port()
        self.config = self.folder / "chaingate.toml"
        listen = f'[listen]\npublic = "127.0.0.1:{self.public}"\noperator = "127.0.0.1:{self.operator}"\nconsole = "off"\nworkers = 2\n'
        top, _, rest = settings.partition("[listen]\n")
        self.config.write_text(f'data_dir = "{self.data}"\n{top}{listen}{rest}')
        self.process = None

    def start(self, stderr=None, log="warn"):
        environment = {**os.environ, "RUST_LOG": log}
        output = stderr or open(self.folder / "log", "ab")
        # A file that is larger than it may be is an error instead of the end: Python ignores that signal, and children inherit it.
        self.process = subprocess.Popen(
            [self.command, "serve", "--config", self.config],
            stdout=subprocess.DEVNULL, stderr=output, env=environment, restore_signals=False,
        )
        return self

    def until_up(self):
        def up():
            if self.process.poll() is not None:
                log = self.folder / "log"
                raise Failure(f"{self.name} has ended:\n{log.read_text() if log.exists() else ''}")
            return get(self.operator, "/health")[0] == 200

        until(f"{self.name} serves", up)
        return self

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
        if self.process:
            self.process.wait()

    def run(self, *arguments):
        done = subprocess.run([self.command, *arguments], capture_output=True, text=True)
        if done.returncode != 0:
            raise Failure(f"chaingate {' '.join(map(str, arguments))}:\n{done.stderr}")
        return done.stdout


def call(method, *params):
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)}


def post(port, body, key="key", timeout=20):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request("POST", f"/v3/{key}", data, {"content-type": "application/json"})
        reply = connection.getresponse()
        return reply.status, reply.read()
    except OSError:
        return None, b""
    finally:
        connection.close()


def post_to_anvil(port, method, *params):
    try:
        request = urllib.request.Request(f"http://127.0.0.1:{port}", json.dumps(call(method, *params)).encode(),
                                         {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=5) as reply:
            return json.load(reply)["result"]
    except OSError:
        return None
