// "Try it": calls from the page.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { promisify } from "node:util";

import { becomeOperator, createKey, newDeveloper } from "./people.mjs";
import { test } from "./suite.mjs";

/** An account of the demo chain with a balance. */
const METHOD = "eth_getBlockByNumber";

test("try it: sends a call, shows its reply and where it comes from, and links to it", async (stage) => {
  const gateway = stage.demo;
  const operator = await stage.visitor(gateway);
  await becomeOperator(operator.page, gateway, "grace-try@example.com");
  const developer = await newDeveloper(stage, operator, gateway, { account: "try", email: "ada-try@example.com" });
  const { page } = developer;
  const { key } = await createKey(page, "try");
  developer.allowOrigin(gateway.public);
  developer.requests.length = 0;

  await page.goto("/try");
  await page.getByLabel("Method").selectOption(METHOD);
  await page.getByRole("heading", { name: METHOD }).waitFor();
  await page.locator("#p0").fill("0x7");
  await page.getByLabel("Your key").fill(key);
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByText("200 OK").waitFor();
  const reply = JSON.parse(await page.locator("#try-reply").innerText());
  assert.equal(reply.result.number, "0x7");
  assert.match(await page.locator("#try-time").innerText(), /^\d+ ms$/);
  assert.notEqual(await page.locator("#try-source").innerText(), "–");
  assert.match(await page.locator("#try-block").innerText(), /^[\d,]+$/);

  const sent = developer.requests.filter((request) => new URL(request.url()).origin === gateway.public && request.method() === "POST");
  assert.deepEqual(sent.map((request) => request.postDataJSON().method), [METHOD]);
  await checkLink(page, reply);
  await checkCode(page, key);
  await checkUnknownKey(developer);
  checkKeyStays(developer, gateway, key);
});

/** Somebody who follows the link sees the same call, without the key. */
async function checkLink(page, reply) {
  const request = await page.locator("#try-request").textContent();
  await page.getByRole("link", { name: "Link to this call" }).click();
  await page.waitForURL(/method=eth_getBlockByNumber&params=/);
  assert.equal(await page.locator("#try-request").textContent(), request);
  assert.equal(await page.getByLabel("Your key").inputValue(), "demo");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByText("200 OK").waitFor();
  assert.deepEqual(JSON.parse(await page.locator("#try-reply").innerText()), reply);
}

/** The code has the public key of the demo network and never a pasted one; the curl line works as it stands there. */
async function checkCode(page, key) {
  const { stdout } = await promisify(execFile)("sh", ["-c", await page.locator("#try-curl").textContent()]);
  assert.equal(JSON.parse(stdout).result.number, "0x7");
  await page.getByLabel("Your key").fill(key);
  for (const [tool, text] of [["curl", "-d '"], ["ethers", "provider.send("], ["viem", "client.request("]]) {
    await page.getByText(tool, { exact: true }).click();
    await page.getByRole("button", { name: `Copy the code for ${tool}` }).click();
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    assert.ok(copied.includes(text) && copied.includes(METHOD), copied);
    assert.ok(copied.includes("YOUR_KEY") && !copied.includes(key), copied);
  }
}

/** An error is shown as one. */
async function checkUnknownKey(developer) {
  developer.expectStatus(401);
  await developer.page.getByLabel("Your key").fill("unknown");
  await developer.page.getByRole("button", { name: "Send" }).click();
  await developer.page.getByText("401, error").waitFor();
}

/** The pasted key was in no address, header or body that the console got. */
function checkKeyStays(developer, gateway, key) {
  const toConsole = developer.requests.filter((request) => request.url().startsWith(gateway.console));
  assert.ok(toConsole.length > 0);
  for (const request of toConsole) {
    const text = `${request.url()} ${JSON.stringify(request.headers())} ${request.postData() ?? ""}`;
    assert.ok(!text.includes(key), request.url());
  }
}
