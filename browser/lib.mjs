// Helpers of the browser tests of the console.
//
// The browser is Debian's chromium, driven by playwright-core. Both packages are installed in their locked versions beside
// copies of these files, because a module is searched for beside its user. Every page that a test opens is watched: an error
// in the browser's console, a violation of the content security policy or an exception fails the test that calls `finish`.

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
  static async open(browser, { viewport = "desktop", colorScheme = "light", javaScript = true } = {}) {
    const context = await browser.newContext({
      viewport: VIEWPORTS[viewport],
      colorScheme,
      javaScriptEnabled: javaScript,
      permissions: ["clipboard-read", "clipboard-write"],
      reducedMotion: "reduce",
    });
    context.setDefaultTimeout(WAIT_MS);
    const visitor = new Visitor(context);
    visitor.page = await visitor.newPage();
    return visitor;
  }

  constructor(context) {
    this.context = context;
    this.faults = [];
    this.expectedStatuses = new Set();
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

  // Violations of the content security policy are messages of the type "error", too.
  #onMessage(page, message) {
    if (message.type() !== "error") return;
    const status = /the server responded with a status of (\d+)/.exec(message.text())?.[1];
    if (status !== undefined && this.expectedStatuses.has(Number(status))) return;
    this.faults.push(`${page.url()}: ${message.text()}`);
  }

  /** Closes all pages and fails if one of them had a fault. */
  async finish() {
    await this.context.close();
    assert.deepEqual(this.faults, []);
  }
}

/** Fails if axe finds a violation, with all parts of the page opened that can be opened. */
export async function checkAccessibility(page) {
  await page.evaluate(() => document.querySelectorAll("details").forEach((details) => { details.open = true; }));
  // Evaluated by the driver, so the content security policy of the page stays in force.
  await page.evaluate(await axeSource);
  const violations = await page.evaluate(async (rules) => {
    const result = await globalThis.axe.run(document, { runOnly: rules });
    return result.violations.map(({ id, help, nodes }) => ({ id, help, html: nodes.map((node) => node.html) }));
  }, AXE_RULES);
  assert.deepEqual(violations, [], `axe on ${page.url()}`);
}

/** Fails if the page as a whole scrolls sideways. */
export async function checkWidth(page) {
  const excess = await page.evaluate(() => {
    const root = document.documentElement;
    return root.scrollWidth - root.clientWidth;
  });
  assert.ok(excess <= 0, `${page.url()} is ${excess} px wider than the window`);
}

/** Saves a picture of the whole page as `FOLDER/NAME.png`. */
export async function takeScreenshot(page, folder, name) {
  await mkdir(folder, { recursive: true });
  await page.screenshot({ path: path.join(folder, `${name}.png`), fullPage: true });
}

/** Visits a path in both sizes and both colour schemes with the cookies of a visitor, checks it, and saves pictures. */
export async function checkEverywhere(browser, visitor, url, { folder, name } = {}) {
  const storage = await visitor.context.storageState();
  for (const viewport of Object.keys(VIEWPORTS)) {
    for (const colorScheme of COLOR_SCHEMES) {
      const other = await Visitor.open(browser, { viewport, colorScheme });
      await other.context.addCookies(storage.cookies);
      // Not "networkidle": the live view never is.
      await other.page.goto(url, { waitUntil: "load" });
      await checkWidth(other.page);
      if (folder !== undefined) await takeScreenshot(other.page, folder, `${name}-${viewport}-${colorScheme}`);
      await checkAccessibility(other.page);
      await other.finish();
    }
  }
}
