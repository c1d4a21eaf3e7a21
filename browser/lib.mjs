// The browser of the tests of the console, and what is checked on every page.
//
// The browser is Debian's chromium, driven by playwright-core. Every page that a test opens is watched: an error in the
// browser's console, a violation of the content security policy, a dialog, an exception or a request to another server is
// a fault, and fails the test.

import assert from "node:assert/strict";
import { mkdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import path from "node:path";

import { chromium } from "playwright-core";

/** Where Debian installs the browser. */
const CHROMIUM = process.env.CHAINGATE_CHROMIUM ?? "/usr/bin/chromium";

/** How long a test waits for something to appear, in milliseconds; generous, because it is reached only by a fault. */
export const WAIT_MS = 60_000;

/** The sizes for which the pages are made. */
export const VIEWPORTS = { desktop: { width: 1280, height: 900 }, phone: { width: 360, height: 740 } };

export const COLOR_SCHEMES = ["light", "dark"];

/** What axe checks: WCAG up to 2.2 AA, and its own good practice. */
const AXE_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

const axeSource = readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Starts the browser. The sandbox is off, because the tests run as root in containers, and visit only the gateway. */
export function launch() {
  return chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
}

/** A browser profile of its own (cookies, size, colours), whose pages are watched for faults. */
export class Visitor {
  /** `gateway` is whose console is visited; its pages may send requests to that console only. */
  static async open(browser, gateway, options = {}) {
    const { viewport = "desktop", colorScheme = "light", javaScript = true, trace = true, userAgent, timeZone } = options;
    const context = await browser.newContext({
      baseURL: gateway.console,
      viewport: VIEWPORTS[viewport],
      colorScheme,
      userAgent,
      timezoneId: timeZone,
      javaScriptEnabled: javaScript,
      permissions: ["clipboard-read", "clipboard-write"],
      reducedMotion: "reduce",
    });
    context.setDefaultTimeout(WAIT_MS);
    const visitor = new Visitor(context, gateway, trace);
    if (trace) await context.tracing.start({ screenshots: true, snapshots: true });
    visitor.page = await visitor.newPage();
    return visitor;
  }

  constructor(context, gateway, trace) {
    this.context = context;
    this.trace = trace;
    this.faults = [];
    this.requests = [];
    this.origins = new Set([gateway.console]);
    this.expectedStatuses = new Set();
    context.on("request", (request) => this.#onRequest(request));
  }

  async newPage() {
    const page = await this.context.newPage();
    page.on("console", (message) => this.#onMessage(page, message));
    page.on("pageerror", (error) => this.faults.push(`${page.url()}: ${error}`));
    page.on("dialog", async (dialog) => {
      this.faults.push(`${page.url()}: a dialog: ${dialog.message()}`);
      await dialog.dismiss();
    });
    return page;
  }

  /** Allows replies with this status, which the browser reports as an error. */
  expectStatus(status) {
    this.expectedStatuses.add(status);
  }

  /** Allows requests to another server, which only "Try it" sends. */
  allowOrigin(origin) {
    this.origins.add(origin);
  }

  #onRequest(request) {
    this.requests.push(request);
    const { origin, protocol } = new URL(request.url());
    if (protocol === "data:" || this.origins.has(origin)) return;
    this.faults.push(`${request.frame().url()}: a request to ${request.url()}`);
  }

  // Violations of the content security policy are messages of the type "error", too.
  #onMessage(page, message) {
    if (message.type() !== "error") return;
    const status = /the server responded with a status of (\d+)/.exec(message.text())?.[1];
    if (status !== undefined && this.expectedStatuses.has(Number(status))) return;
    this.faults.push(`${page.url()}: ${message.text()}`);
  }

  /** Saves pictures of all pages and what the browser did as `FOLDER/NAME…`. */
  async keep(folder, name) {
    await mkdir(folder, { recursive: true });
    for (const [index, page] of this.context.pages().entries()) {
      await page.screenshot({ path: path.join(folder, `${name}-${index + 1}.png`) });
    }
    if (this.trace) await this.context.tracing.stop({ path: path.join(folder, `${name}.zip`) });
  }

  close() {
    return this.context.close();
  }
}

/** Fails if axe finds a violation, with all parts of the page opened that can be opened. */
export async function checkAccessibility(page, what) {
  await page.evaluate(() => document.querySelectorAll("details").forEach((details) => { details.open = true; }));
  // Evaluated by the driver, so the content security policy of the page stays in force.
  await page.evaluate(`globalThis.axe === undefined && (() => { ${await axeSource} })()`);
  const violations = await page.evaluate(async (rules) => {
    const result = await globalThis.axe.run(document, { runOnly: rules, resultTypes: ["violations"] });
    return result.violations.map(({ id, help, nodes }) => ({ id, help, html: nodes.map((node) => node.html) }));
  }, AXE_RULES);
  assert.deepEqual(violations, [], `axe on ${what}`);
}

/** Fails if the page as a whole scrolls sideways. */
export async function checkWidth(page, what) {
  const excess = await page.evaluate(() => {
    const root = document.documentElement;
    return root.scrollWidth - root.clientWidth;
  });
  assert.ok(excess <= 0, `${what} is ${excess} px wider than the window`);
}

/** Repeats a read until its value is as wanted, as fast as the program answers. */
export async function until(what, read, limitMs = WAIT_MS) {
  const end = Date.now() + limitMs;
  let value;
  while (Date.now() < end) {
    value = await read();
    if (value) return value;
    await new Promise((resolve) => { setTimeout(resolve, 50); });
  }
  throw new Error(`waited for ${limitMs / 1000} s: ${what}`);
}
