// Programs that the tests start: gateways, and anvil as the node behind them. Each has a folder of its own and listens on
// ports that the system chooses, and all are ended with `stopAll`.

import { execFile, spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";

import { WAIT_MS, until } from "./lib.mjs";

const BINARY = process.env.CHAINGATE;
const ANVIL = process.env.ANVIL;

/** How many lines of a program's output are kept for the message about its failure. */
const LINES_MAX = 50;

const running = new Set();
const folders = [];

/** A child process. `line(pattern)` waits for a line of its output. */
class Program {
  constructor(command, args, cwd) {
    this.lines = [];
    this.waiting = [];
    this.child = spawn(command, args, { cwd, stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, RUST_LOG: "info" } });
    this.ended = new Promise((resolve) => { this.child.on("close", resolve); });
    this.ended.then(() => {
      running.delete(this);
      this.#settle();
    });
    running.add(this);
    for (const stream of [this.child.stdout, this.child.stderr]) {
      createInterface({ input: stream }).on("line", (line) => {
        if (this.lines.push(line) > LINES_MAX) this.lines.shift();
        this.#settle();
      });
    }
  }

  #settle() {
    this.waiting.splice(0).forEach((look) => look());
  }

  async line(pattern) {
    const timeout = setTimeout(() => this.child.kill("SIGKILL"), WAIT_MS);
    try {
      for (;;) {
        const found = this.lines.find((line) => pattern.test(line));
        if (found !== undefined) return found;
        if (!running.has(this)) throw new Error(`${this.child.spawnfile} ended:\n${this.lines.join("\n")}`);
        await new Promise((resolve) => { this.waiting.push(resolve); });
      }
    } finally {
      clearTimeout(timeout);
    }
  }

  async stop(signal = "SIGTERM") {
    this.child.kill(signal);
    await this.ended;
  }
}

/** A gateway with its console. */
export class Gateway {
  /** On the demo chain, or with the given lines of a configuration file. */
  static async start({ config = "" } = {}) {
    const folder = await mkdtemp(path.join(tmpdir(), "chaingate-browser-"));
    folders.push(folder);
    const gateway = new Gateway();
    gateway.folder = folder;
    gateway.dataDir = path.join(folder, "chaingate-data");
    await writeFile(path.join(folder, "chaingate.toml"), config);
    const addresses = ["--listen", "127.0.0.1:0", "--operator", "127.0.0.1:0", "--console", "127.0.0.1:0"];
    gateway.program = new Program(BINARY, ["serve", "--config", "chaingate.toml", ...addresses], folder);
    const serving = JSON.parse(await gateway.program.line(/"message":"serving"/)).fields;
    gateway.public = `http://${serving.public}`;
    gateway.operator = `http://${serving.operator}`;
    gateway.console = `http://${serving.console}`;
    return gateway;
  }

  /** Runs a command of the program on this gateway's data. */
  async command(...args) {
    const options = { cwd: this.folder };
    const { stdout } = await promisify(execFile)(BINARY, [...args, "--config", "chaingate.toml"], options);
    return stdout;
  }

  /** The path of a new link that makes an operator of whoever opens it. */
  async signInPath() {
    const { url } = JSON.parse(await this.command("console", "sign-in-link", "--json"));
    return new URL(url).pathname;
  }

  /** Sends a call with a key, and gives the status and the body of the reply. */
  async call(key, method, params = [], headers = {}) {
    const reply = await fetch(`${this.public}/v3/${key}`, {
      method: "POST",
      headers: { "Content-Type": "application/json", ...headers },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
    });
    return { status: reply.status, body: await reply.json() };
  }

  /** Waits until the gateway answers calls. */
  ready() {
    return until("the gateway is ready", async () => (await fetch(`${this.operator}/ready`)).ok);
  }
}

/** When block 0 of every anvil is; each further block is a second later. */
const GENESIS_TIME = 1_700_000_000;

/** A real node. All of them have the same chain, because they are told the same. */
export class Anvil {
  static async start(port, blocks) {
    const anvil = new Anvil();
    anvil.url = `http://127.0.0.1:${port}`;
    anvil.program = new Program(ANVIL, [
      "--host", "127.0.0.1", "--port", String(port), "--no-mining", "--timestamp", String(GENESIS_TIME),
    ]);
    await anvil.program.line(/^Listening on /);
    await anvil.ask("anvil_setBlockTimestampInterval", [1]);
    await anvil.ask("anvil_mine", [`0x${blocks.toString(16)}`]);
    return anvil;
  }

  async ask(method, params) {
    const reply = await fetch(this.url, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
    });
    const { result, error } = await reply.json();
    if (error) throw new Error(`${method}: ${error.message}`);
    return result;
  }

  kill() {
    return this.program.stop("SIGKILL");
  }
}

/** A port at which a node can be started, and started again: the system gives ports of this range to nobody by itself. */
export async function freePort() {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 10_000);
    const server = createServer();
    const isFree = await new Promise((resolve) => {
      server.once("error", () => resolve(false));
      server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
    });
    if (isFree) return port;
  }
}

/** Ends every program that was started here. */
export async function stopAll() {
  await Promise.all([...running].map((program) => program.stop("SIGKILL")));
  await Promise.all(folders.splice(0).map((folder) => rm(folder, { recursive: true, force: true })));
}
