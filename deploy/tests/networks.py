#!/usr/bin/env python3
"""Runs what deploy/compose.yaml describes without containers: three networks behind one nginx, with a PostgreSQL and a Redis.

    deploy/tests/networks.py CHAINGATE     CHAINGATE is a built program; ANVIL names the program anvil

The configurations of the gateways and of nginx are those of compose.yaml and compose/nginx.conf, with other addresses. Each network
is an anvil with its chain id. One key works for all three, and its usage is counted by network.
"""

import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

from lib import Failure, call, free_port, get, post_to_anvil, until

DEPLOY = Path(__file__).resolve().parent.parent


class Networks:
    def __init__(self, command, work):
        self.command, self.work, self.processes = command, work, []
        self.compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
        self.names = list(self.compose["configs"])
        self.public = {name: free_port() for name in self.names}
        self.operator = {name: free_port() for name in self.names}
        self.proxy = free_port()

    def spawn(self, *command, **options):
        with open(self.work / "log", "ab") as log:
            self.processes.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log, **options))

    def end(self):
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            process.wait()

    def start_postgres(self):
        port, data = free_port(), self.work / "postgres"
        programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1]
        # PostgreSQL refuses to run as root.
        user = ["runuser", "--user", "postgres", "--"] if os.geteuid() == 0 else []
        data.mkdir()
        if user:
            shutil.chown(data, "postgres")
        subprocess.run([*user, programs / "initdb", "--pgdata", data, "--username", "chaingate", "--auth", "trust"],
                       check=True, capture_output=True, cwd="/")
        self.spawn(*user, programs / "postgres", "-D", data, "-p", str(port), "-c", "listen_addresses=127.0.0.1",
                   "-c", "unix_socket_directories=", cwd="/")
        sql = [*user, programs / "psql", "--host", "127.0.0.1", "--port", str(port), "--username", "chaingate"]
        create = [*sql, "--dbname", "postgres", "--command", "CREATE DATABASE chaingate"]
        until("PostgreSQL answers", lambda: subprocess.run(create, capture_output=True, cwd="/").returncode == 0)
        return port

    def start(self):
        postgres, redis = self.start_postgres(), free_port()
        self.spawn("redis-server", "--port", str(redis), "--save", "", "--dir", str(self.work))
        for name in self.names:
            self.start_network(name, postgres, redis)
        self.start_nginx()
        for name in self.names:
            until(f"{name} is ready", lambda: get(self.operator[name], "/ready")[0] == 200)

    def start_network(self, name, postgres, redis):
        content = self.compose["configs"][name]["content"]
        chain_id, node = re.search(r"chain_id = (\d+)", content)[1], free_port()
        self.spawn(os.environ["ANVIL"], "--port", str(node), "--chain-id", chain_id, "--block-time", "1", "--silent")
        until("anvil answers", lambda: post_to_anvil(node, "eth_chainId"))
        content = content.replace("@postgres/", f"@127.0.0.1:{postgres}/").replace("redis://redis:6379", f"redis://127.0.0.1:{redis}")
        content = content.replace("${POSTGRES_PASSWORD}", "password").replace('["172.16.0.0/12"]', '["127.0.0.0/8"]')
        content = re.sub(r"\$\{[A-Z]+_NODE:[^}]*\}", f"http://127.0.0.1:{node}", content)
        folder = self.work / name
        folder.mkdir()
        (folder / "chaingate.toml").write_text(content)
        environment = {
            **os.environ, "CHAINGATE_CONFIG": str(folder / "chaingate.toml"), "CHAINGATE_DATA_DIR": str(folder / "data"),
            "CHAINGATE_LISTEN": f"127.0.0.1:{self.public[name]}", "CHAINGATE_OPERATOR": f"127.0.0.1:{self.operator[name]}",
            "CHAINGATE_CONSOLE": "off", "RUST_LOG": "warn",
        }
        self.spawn(self.command, "serve", env=environment)

    def start_nginx(self):
        text = (DEPLOY / "compose/nginx.conf").read_text()
        # Services have the same port and different names; here it is the other way round.
        ports = "".join(f"{name} {port}; " for name, port in self.public.items())
        changes = [
            ("listen 8080;", f"listen 127.0.0.1:{self.proxy};"),
            ("resolver 127.0.0.11 valid=5s;", f"map $network $port {{ default 0; {ports} }}"),
            ("http://$network:8545", "http://127.0.0.1:$port"),
        ]
        for old, new in changes:
            if text.count(old) != 1:
                raise Failure(f"nginx.conf does not have {old}")
            text = text.replace(old, new)
        folder = self.work / "nginx"
        folder.mkdir()
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"):
            text = text.replace("http {", f"http {{\n    {name}_temp_path {folder}/{name};", 1)
        (folder / "nginx.conf").write_text(f"daemon off; pid {folder}/pid; error_log {folder}/error.log;\n{text}")
        self.spawn("nginx", "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log"))

    def chaingate(self, name, *arguments):
        folder = self.work / name
        done = subprocess.run(
            [self.command, *arguments, "--config", folder / "chaingate.toml", "--data-dir", folder / "data"],
            capture_output=True, text=True,
        )
        if done.returncode != 0:
            raise Failure(f"chaingate {' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def post(self, host, key):
        connection = http.client.HTTPConnection("127.0.0.1", self.proxy, timeout=20)
        connection.request("POST", f"/v3/{key}", json.dumps(call("eth_chainId")), {"host": host, "content-type": "application/json"})
        reply = connection.getresponse()
        return reply.status, reply.read()


def check(networks):
    networks.chaingate("mainnet", "accounts", "create", "--name", "acme", "--plan", "developer")
    created = json.loads(networks.chaingate("mainnet", "keys", "create", "--account", "acme", "--name", "backend", "--json"))
    key = created["key"] if isinstance(created["key"], str) else created["key"]["key"]
    for name in networks.names:
        chain_id = int(re.search(r"chain_id = (\d+)", networks.compose["configs"][name]["content"])[1])
        until(f"{name} knows the key", lambda: networks.post(f"{name}.example.com", key)[0] == 200)
        status, body = networks.post(f"{name}.example.com", key)
        if json.loads(body)["result"] != hex(chain_id):
            raise Failure(f"{name} answers {status} {body}")
    if networks.post("other.example.com", key)[0] != 404:
        raise Failure("nginx passes an unknown host on")

    def counted():
        usage = json.loads(networks.chaingate("base", "keys", "usage", "--account", "acme", "--by", "network", "--json"))
        return {row["network"] for row in usage["rows"]} == set(networks.names)

    until("usage of all networks is in one store", counted)
    print(f"one key for {', '.join(networks.names)}")


def main():
    work = Path(tempfile.mkdtemp(prefix="chaingate-networks-"))
    # PostgreSQL has another user.
    work.chmod(0o755)
    networks = Networks(Path(sys.argv[1]).resolve(), work)
    try:
        networks.start()
        check(networks)
    except Failure as failure:
        print(f"error: {failure}\nlogs are in {work}", file=sys.stderr)
        return 1
    finally:
        networks.end()
    shutil.rmtree(work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
