// Fills gateways with realistic data and saves pictures of the console for the documentation; `browser/screenshots` starts
// this.

import { execFile } from "node:child_process";
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";

import { Anvil, Gateway, freePort, stopAll } from "./gateway.mjs";
import { Visitor, launch, until } from "./lib.mjs";
import { becomeOperator, createKey, inviteToNewAccount, join, signIn } from "./people.mjs";

const OUT = process.env.OUT;

/** The height of a picture, in pixels: what is below is not needed to know the page. */
const HEIGHT_MAX = { desktop: 1_200, phone: 900 };

/** How long the live view is filled before its picture, in milliseconds. */
const LIVE_MS = 100_000;

const ADA = "ada@example.com";
const GRACE = "grace@example.com";
const CONTRACT = "0xA7918D253764E42d60C3ce2010a34d5a1e7C1398";
const TOPIC = `0x${"11".repeat(32)}`;

/** What callers ask, and how often: most of it is right, and each failure is there, too. */
const CALLS = [
  [900, "eth_call", [{ to: CONTRACT, data: "0x85bb7d69" }, "latest"]],
  [520, "eth_getLogs", [{ fromBlock: "0xf0", toBlock: "latest", topics: [TOPIC] }]],
  [430, "eth_blockNumber", []],
  [310, "eth_getBlockByNumber", ["latest", false]],
  [240, "eth_getTransactionReceipt", [`0x${"22".repeat(32)}`]],
  [190, "eth_getBalance", [CONTRACT, "latest"]],
  [120, "eth_chainId", []],
  [35, "eth_getBalance", ["0x12", "latest"]],
  [20, "eth_subscribe", ["newHeads"]],
];

async function main() {
  await mkdir(OUT, { recursive: true });
  const browser = await launch();
  try {
    const gateway = await Gateway.start();
    const operator = await Visitor.open(browser, gateway, { trace: false });
    await becomeOperator(operator.page, gateway, GRACE);
    await photographDeveloper(browser, gateway, operator);
    await photographOperator(browser, gateway);
    await photographLive(browser);
  } finally {
    await browser.close();
    await stopAll();
  }
}

/** The pages of a developer with four keys and a month of calls. */
async function photographDeveloper(browser, gateway, operator) {
  const link = await inviteToNewAccount(operator.page, { account: "acme", plan: "growth", email: ADA });
  await inviteToNewAccount(operator.page, { account: "northwind", plan: "developer", email: "kay@example.com" });
  const { page } = await Visitor.open(browser, gateway, { trace: false });
  await join(page, link);
  const keys = {};
  for (const name of ["backend", "website", "indexer", "staging"]) keys[name] = await createKey(page, name);
  await fill(page, keys.website.path, { "Origins of web pages": "https://app.example.com\nhttps://*.example.com", "Credits per day": "5000000" });
  await fill(page, keys.indexer.path, { Methods: "eth_getLogs\neth_getBlockByNumber\neth_blockNumber" });
  await fill(page, keys.staging.path, { "Credits per second": "500" });
  await makeCalls(gateway, keys);
  await until("the calls are in the store", async () => {
    await page.goto("/usage?range=15m");
    return await page.getByText("Calls without a result, and what to do").count() > 0;
  });
  await promisify(execFile)("python3", ["browser/spread_usage.py", path.join(gateway.dataDir, "callers.sqlite")]);
  await until("all keys have been used", async () => {
    await page.goto("/keys");
    return await page.getByText("never").count() === 0;
  });

  const pictures = [["overview", "/"], ["keys", "/keys"], ["key", keys.website.path], ["usage", "/usage?range=24h"]];
  for (const [name, target] of pictures) await photograph(browser, gateway, ADA, name, target);
  await photograph(browser, gateway, ADA, "usage-dark", "/usage?range=24h", { colorScheme: "dark" });
  for (const [name, target] of [["keys-phone", "/keys"], ["usage-phone", "/usage?range=24h"]]) {
    await photograph(browser, gateway, ADA, name, target, { viewport: "phone" });
  }
  await photograph(browser, gateway, ADA, "new-key", "/keys", {}, (at) => createKey(at, "mobile app"));
  await photograph(browser, gateway, ADA, "try", "/try?method=eth_getBlockByNumber", {}, async (at) => {
    await at.getByRole("button", { name: "Send" }).click();
    await at.getByText("200 OK").waitFor();
  });
}

async function fill(page, target, fields) {
  await page.goto(target);
  for (const [label, text] of Object.entries(fields)) await page.getByLabel(label, { exact: true }).fill(text);
  await page.getByRole("button", { name: "Save settings" }).click();
  await page.getByText("Settings saved.").waitFor();
}

async function makeCalls(gateway, keys) {
  const shares = { backend: 1, website: 0.4, indexer: 0.25, staging: 0.02 };
  const headers = { Origin: "https://app.example.com" };
  for (const [name, share] of Object.entries(shares)) {
    for (const [count, method, params] of CALLS) {
      for (let made = 0; made < count * share; made += 20) {
        await Promise.all(Array.from({ length: Math.min(20, Math.ceil(count * share)) }, () => gateway.call(keys[name].key, method, params, headers)));
      }
    }
  }
}

/** The pages of the operator about people. */
async function photographOperator(browser, gateway) {
  for (const [name, target] of [["accounts", "/accounts"], ["account", "/accounts/acme"], ["audit", "/audit"]]) {
    await photograph(browser, gateway, GRACE, name, target);
  }
  await photograph(browser, gateway, undefined, "sign-in", "/sign-in");
}

/** The live view of a gateway in front of three nodes, one of which has died, and its configuration. */
async function photographLive(browser) {
  const ports = [await freePort(), await freePort(), await freePort()];
  const anvils = await Promise.all(ports.map((port) => Anvil.start(port, 40)));
  const node = (name, port) => `[[node]]\nname = "${name}"\nurl = "http://127.0.0.1:${port}"\n`;
  const nodes = ["berlin-1", "berlin-2", "paris-1"].map((name, index) => node(name, ports[index])).join("");
  const partner = `[[partner]]\nname = "provider"\nurl = "http://127.0.0.1:${ports[0]}/v3/their-key"\ncalls_per_day = 20000\n`;
  const key = '[[key]]\nkey = "own"\nname = "monitoring"\naccount = "operations"\n';
  const gateway = await Gateway.start({ config: `[network]\nname = "devnet"\n\n${key}\n${nodes}\n${partner}` });
  await gateway.ready();
  const { page } = await Visitor.open(browser, gateway, { trace: false });
  await becomeOperator(page, gateway, GRACE);
  await makeLife(gateway, anvils);
  for (const [name, colorScheme] of [["live", "light"], ["live-dark", "dark"]]) {
    await photograph(browser, gateway, GRACE, name, "/live", { colorScheme }, (at) => at.locator("#live-state.good").waitFor());
  }
  await photograph(browser, gateway, GRACE, "configuration", "/configuration");
}

/** Blocks and calls, as the sparklines show them. The last node dies on the way. */
async function makeLife(gateway, anvils) {
  const ends = Date.now() + LIVE_MS;
  const alive = [...anvils];
  for (let round = 0; Date.now() < ends; round += 1) {
    if (round % 12 === 0) await Promise.all(alive.map((anvil) => anvil.ask("anvil_mine", ["0x1"])));
    if (alive.length === 3 && Date.now() > ends - LIVE_MS / 4) await alive.pop().kill();
    const busy = 6 + Math.round(5 * Math.sin(round / 25)) + Math.floor(Math.random() * 5);
    const calls = Array.from({ length: busy }, (_, index) => liveCall(gateway, index + round));
    await Promise.all([...calls, new Promise((resolve) => { setTimeout(resolve, 120); })]);
  }
}

function liveCall(gateway, number) {
  if (number % 61 === 0) return gateway.call("own", "eth_getBalance", ["0x12", "latest"]);
  const block = `0x${(number % 40).toString(16)}`;
  const calls = [["eth_getBlockByNumber", [block, true]], ["eth_blockNumber", []], ["eth_getBalance", [CONTRACT, "latest"]]];
  return gateway.call("own", ...calls[number % calls.length]);
}

/** Saves a picture of a page as somebody sees it who is signed in. */
async function photograph(browser, gateway, email, name, target, options = {}, act = async () => {}) {
  const { viewport = "desktop" } = options;
  const visitor = await Visitor.open(browser, gateway, { ...options, trace: false });
  visitor.allowOrigin(gateway.public);
  const { page } = visitor;
  if (email !== undefined) await signIn(page, email);
  await page.goto(target);
  await act(page);
  await page.mouse.move(0, 0);
  const { width, height } = await page.evaluate(() => ({
    width: document.documentElement.clientWidth, height: document.documentElement.scrollHeight,
  }));
  await page.setViewportSize({ width, height: email === undefined ? 560 : Math.min(height, HEIGHT_MAX[viewport]) });
  await page.screenshot({ path: path.join(OUT, `console-${name}.png`) });
  if (visitor.faults.length > 0) throw new Error(visitor.faults.join("\n"));
  await visitor.close();
}

await main();
process.exit(0);
