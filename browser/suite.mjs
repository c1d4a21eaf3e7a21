// Runs tests one after the other, and keeps what the browser saw of those that fail.

import assert from "node:assert/strict";
import { rm } from "node:fs/promises";

import { Gateway, stopAll } from "./gateway.mjs";
import { Visitor, launch } from "./lib.mjs";

const FAILURES = process.env.FAILURES;

const tests = [];

/** Adds a test. `story` gets a `Stage`. */
export function test(name, story) {
  tests.push({ name, story });
}

/** What a test uses: the browser, and the gateway on the demo chain that all tests share. */
class Stage {
  constructor(browser, demo) {
    this.browser = browser;
    this.demo = demo;
    this.visitors = [];
  }

  /** A browser profile of its own. Its faults fail the test. */
  async visitor(gateway, options) {
    const visitor = await Visitor.open(this.browser, gateway, options);
    this.visitors.push(visitor);
    return visitor;
  }

  async close() {
    for (const visitor of this.visitors) await visitor.close();
  }
}

async function run({ name, story }, stage) {
  const started = performance.now();
  const seconds = () => `${((performance.now() - started) / 1000).toFixed(1)} s`;
  try {
    await story(stage);
    assert.deepEqual(stage.visitors.flatMap((visitor) => visitor.faults), [], "faults in the browser");
    console.log(`ok      ${name} (${seconds()})`);
    return true;
  } catch (error) {
    console.log(`FAILED  ${name} (${seconds()})\n\n${error.stack}\n`);
    const faults = stage.visitors.flatMap((visitor) => visitor.faults);
    if (faults.length > 0) console.log(`In the browser:\n${faults.join("\n")}\n`);
    const file = name.replaceAll(/[^a-z0-9]+/gi, "-");
    for (const [index, visitor] of stage.visitors.entries()) {
      await visitor.keep(FAILURES, `${file}-${index + 1}`).catch((problem) => console.log(`not kept: ${problem}`));
    }
    console.log(`Pictures and traces: ${FAILURES}`);
    return false;
  } finally {
    await stage.close();
  }
}

/** Runs all tests, or those whose names contain one of the texts, and ends the process. */
export async function runAll(wanted) {
  await rm(FAILURES, { recursive: true, force: true });
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => stopAll().then(() => process.exit(1)));
  const chosen = tests.filter(({ name }) => wanted.length === 0 || wanted.some((text) => name.includes(text)));
  let failed = chosen.length === 0 ? 1 : 0;
  let browser;
  try {
    const demo = await Gateway.start();
    browser = await launch();
    for (const each of chosen) {
      if (!(await run(each, new Stage(browser, demo)))) failed += 1;
    }
  } finally {
    await browser?.close();
    await stopAll();
  }
  console.log(`\n${chosen.length} tests, ${failed} failed`);
  process.exit(failed === 0 ? 0 : 1);
}
