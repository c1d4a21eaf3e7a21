// What holds for every page: no violation that axe finds, no sideways scrolling, at most 100 KB, in both sizes and both colour
// schemes. The requests of every page are checked in all tests (`Visitor`).

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";

import { Gateway } from "./gateway.mjs";
import { COLOR_SCHEMES, VIEWPORTS, checkAccessibility, checkWidth, until } from "./lib.mjs";
import { becomeOperator, createKey, inviteToNewAccount, join } from "./people.mjs";
import { test } from "./suite.mjs";

const PAGE_BYTES_MAX = 100_000;

/** Routes that are no pages: files, a CSV file, and the events of the live view. */
const NO_PAGES = ["/assets/{name}", "/usage.csv", "/accounts/{name}/usage.csv", "/live/events"];

test("every page: for anyone", async (stage) => {
  const gateway = await Gateway.start({ config: '[console]\nsign_up = "open"\n' });
  const visitor = await stage.visitor(gateway, { trace: false });
  visitor.expectStatus(422);
  visitor.expectStatus(404);
  const { page } = visitor;
  await check(page, "/sign-in");
  await check(page, "/sign-up");
  await check(page, await gateway.signInPath(), "/link/{token}");
  await check(page, "/link/unknown", "a link that is no longer valid");
  await page.goto("/sign-in");
  await page.getByLabel("Email").fill("nobody@example.com");
  await page.getByLabel("Password").fill("wrong");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("Email or password is wrong.").waitFor();
  await checkHere(page, "a sign-in that failed");
  await check(page, "/sign-in?next=%2Fkeys%2Fk_1", "/sign-in with a page to return to");
});

test("every page: for developers", async (stage) => {
  const gateway = stage.demo;
  const operator = await stage.visitor(gateway, { trace: false });
  await becomeOperator(operator.page, gateway, "grace-pages@example.com");
  const link = await inviteToNewAccount(operator.page, { account: "pages", plan: "developer", email: "ada-pages@example.com" });
  const developer = await stage.visitor(gateway, { trace: false });
  for (const status of [403, 404, 422]) developer.expectStatus(status);
  const { page } = developer;
  await check(page, new URL(link).pathname, "an invitation");
  await join(page, link);
  for (const path of ["/", "/keys", "/usage"]) await check(page, path, `${path} of a new account`);

  const { key, path } = await createKey(page, "pages");
  await checkHere(page, "a new key");
  await makeCalls(gateway, key);
  await until("the usage is shown", async () => {
    await page.goto("/usage");
    return await page.getByText("Calls without a result, and what to do").count() > 0;
  });
  for (const own of ["/", "/keys", "/usage", "/try", "/settings"]) await check(page, own);
  for (const range of ["15m", "7d", "30d"]) await check(page, `/usage?range=${range}`);
  await check(page, path, "/keys/{id}");
  await check(page, "/try?method=eth_getLogs", "a method with JSON parameters");
  await check(page, "/accounts", "a page of operators");
  await check(page, "/unknown", "an unknown page");
  await page.goto(path);
  await page.getByLabel("Methods", { exact: true }).fill("eth_unknown");
  await page.getByRole("button", { name: "Save settings" }).click();
  await page.getByText("Not saved. Correct the marked field.").waitFor();
  await checkHere(page, "settings that were not saved");
  await page.goto(path);
  await page.getByRole("button", { name: "Rotate key" }).click();
  await page.locator("#new-key").waitFor();
  await checkHere(page, "a rotated key");
});

/** Calls with different outcomes. */
async function makeCalls(gateway, key) {
  const calls = [["eth_blockNumber"], ["eth_getBalance", ["0x0000000000000000000000000000000000000001", "latest"]], ["eth_unknown"]];
  for (const [method, params] of calls) await gateway.call(key, method, params);
}

test("every page: for operators", async (stage) => {
  const gateway = stage.demo;
  const operator = await stage.visitor(gateway, { trace: false });
  const { page } = operator;
  await becomeOperator(page, gateway, "grace-every@example.com");
  await inviteToNewAccount(page, { account: "every", plan: "team", email: "ada-every@example.com" });
  await checkHere(page, "an invitation that is shown once");
  for (const path of ["/live", "/accounts", "/audit", "/configuration"]) await check(page, path);
  await check(page, "/accounts/every", "/accounts/{name}");
  const { key, path } = await createKey(page, "every", "/accounts/every/keys");
  await makeCalls(gateway, key);
  await check(page, path, "/accounts/{name}/keys/{id}");
  for (const list of ["keys", "users", "usage"]) await check(page, `/accounts/every/${list}`, `/accounts/{name}/${list}`);
  await check(page, `/accounts?q=${key}`, "a search for a key");
  await check(page, "/accounts?q=ada-every", "a search for a user");
  await check(page, "/accounts/every/keys?q=nothing", "a search without a result");
  await check(page, "/audit?q=key.create", "a search in the audit log");
  await page.goto("/accounts/every");
  await page.getByText("Suspend account…").click();
  await page.getByLabel(/stop working/).check();
  await page.getByRole("button", { name: "Suspend", exact: true }).click();
  await page.getByText("Account suspended.").waitFor();
  await checkHere(page, "a suspended account");
});

test("every page: no route was left out", async () => {
  const source = await readFile(process.env.ROUTES, "utf8");
  const paths = [...source.matchAll(/route!\(GET\s+"([^"]+)"/g)].map(([, path]) => path);
  assert.ok(paths.length > 10, "the table of routes was not found");
  assert.deepEqual(paths.filter((path) => !checked.has(path) && !NO_PAGES.includes(path)), []);
});

/** The routes that were checked. */
const checked = new Set();

async function check(page, path, name = path) {
  const response = await page.goto(path);
  const bytes = (await response.body()).length + await bytesOfFiles(page);
  assert.ok(bytes <= PAGE_BYTES_MAX, `${name} has ${bytes} bytes`);
  await checkHere(page, name);
  checked.add(name);
}

/** The bytes of the files that a page loads, as if the browser had none of them. */
async function bytesOfFiles(page) {
  const urls = await page.locator("link[href], script[src]").evaluateAll((all) => all.map((each) => each.href || each.src));
  const bodies = await Promise.all(urls.map(async (url) => (await fetch(url)).arrayBuffer()));
  return bodies.reduce((sum, body) => sum + body.byteLength, 0);
}

/** Checks the page as it stands there. */
async function checkHere(page, name) {
  for (const [size, viewport] of Object.entries(VIEWPORTS)) {
    await page.setViewportSize(viewport);
    for (const colorScheme of COLOR_SCHEMES) {
      await page.emulateMedia({ colorScheme });
      const what = `${name}, ${size}, ${colorScheme}`;
      await checkWidth(page, what);
      await checkAccessibility(page, what);
    }
  }
  await page.setViewportSize(VIEWPORTS.desktop);
}
