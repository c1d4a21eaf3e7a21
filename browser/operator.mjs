// The operator watches the nodes.

import assert from "node:assert/strict";

import { Anvil, Gateway, freePort } from "./gateway.mjs";
import { VIEWPORTS, checkAccessibility, checkWidth, until } from "./lib.mjs";
import { becomeOperator, createKey, newDeveloper, revokeKey } from "./people.mjs";
import { test } from "./suite.mjs";

/** Blocks that each node has. */
const BLOCKS = 5;

test("operator: sees a node die and come back, without reloading the page", async (stage) => {
  const ports = [await freePort(), await freePort()];
  const anvils = await Promise.all(ports.map((port) => Anvil.start(port, BLOCKS)));
  const gateway = await Gateway.start({ config: behind(ports) });
  await gateway.ready();
  const operator = await stage.visitor(gateway);
  await becomeOperator(operator.page, gateway, "grace@example.com");
  const { page } = operator;
  await page.getByRole("link", { name: "Live" }).click();
  // Gone if the page is loaded again.
  await page.evaluate(() => { globalThis.isFirstLoad = true; });

  await shows(page, "first", "Up");
  await shows(page, "second", "Up");
  await page.getByText("2 of 2 up").waitFor();
  await anvils[1].kill();
  await page.getByText("1 of 2 up").waitFor();
  await shows(page, "second", "Down|Silent");
  await page.getByText(/second: (cannot connect|the connection ended|no reply in time|it does not answer when its head is asked for)/).waitFor();
  await checkAccessibility(page, "the live view with a node that is down");
  await page.setViewportSize(VIEWPORTS.phone);
  await checkWidth(page, "the live view with a node that is down");
  await page.setViewportSize(VIEWPORTS.desktop);
  await Anvil.start(ports[1], BLOCKS);
  await shows(page, "second", "Up");
  await page.getByText("2 of 2 up").waitFor();
  await page.waitForFunction(() => globalThis.isFirstLoad === true);
});

function behind(ports) {
  const node = (name, port) => `[[node]]\nname = "${name}"\nurl = "http://127.0.0.1:${port}"\n`;
  return `[network]\nname = "anvil"\n[[key]]\nkey = "own"\n${node("first", ports[0])}${node("second", ports[1])}`;
}

/** Waits until the row of a node, which begins with its name and its program, says this. */
function shows(page, node, state) {
  return page.getByRole("row", { name: new RegExp(`^${node} (\\S+ )?(${state}) `) }).waitFor();
}

test("operator: finds a leaked key by its first characters, limits it and revokes it", async (stage) => {
  const gateway = stage.demo;
  const operator = await stage.visitor(gateway);
  const { page } = operator;
  await becomeOperator(page, gateway, "grace-leak@example.com");
  const developer = await newDeveloper(stage, operator, gateway, { account: "leak", email: "leak@example.com" });
  const { key } = await createKey(developer.page, "leaked");
  assert.equal((await gateway.call(key, "eth_blockNumber")).status, 200);
  await page.goto("/accounts");
  await page.getByRole("searchbox").fill(key.slice(0, 6).toUpperCase());
  await page.getByRole("button", { name: "Search" }).click();
  await page.getByRole("link", { name: "leaked" }).click();
  await page.getByLabel("Credits per day").fill("80");
  await page.getByRole("button", { name: "Save settings" }).click();
  await page.getByText("Settings saved. They are in effect.").waitFor();
  const path = new URL(page.url()).pathname;
  await page.getByRole("link", { name: "Usage of this key" }).click();
  await page.getByRole("heading", { name: "Usage" }).waitFor();
  await revokeKey(page, path);
  await until("the key is refused", async () => (await gateway.call(key, "eth_blockNumber")).status === 401);
});
