// A developer from the invitation to the revoked key.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";

import { WAIT_MS, until } from "./lib.mjs";
import { becomeOperator, createKey, newDeveloper, revokeKey } from "./people.mjs";
import { test } from "./suite.mjs";

/** The price of `eth_blockNumber`. */
const CREDITS = 80;

test("developer: invited, creates a key, uses it, sees the calls, hits a limit, revokes it", async (stage) => {
  const gateway = stage.demo;
  const operator = await stage.visitor(gateway);
  await becomeOperator(operator.page, gateway, "grace@example.com");
  const developer = await newDeveloper(stage, operator, gateway, { account: "acme", plan: "developer", email: "ada@example.com" });
  const { page } = developer;
  await page.getByText("No calls yet. Try this curl line.").waitFor();

  const { key, path: keyPath } = await createKey(page, "backend");
  const snippets = await Promise.all(["curl", "ethers", "viem"].map((tool) => page.locator(`#snippet-${tool}`).textContent()));
  await checkCopyButton(page, key);
  for (const [index, output] of (await runSnippets(snippets)).entries()) {
    assert.match(output, index === 0 ? /"result":"0xff"/ : /^255n?\n$/, snippets[index]);
  }

  await showsUsage(page, (rows) => rows["eth_blockNumber"]?.calls >= 3);
  await page.goto("/keys");
  await page.getByRole("row", { name: /^backend/ }).waitFor();

  await setDailyCredits(page, keyPath, CREDITS);
  const refused = await until("the limit is reached", async () => {
    const reply = await gateway.call(key, "eth_blockNumber");
    return reply.status !== 200 && reply;
  });
  assert.ok([402, 429].includes(refused.status), `${refused.status}`);
  assert.equal(refused.body.error.code, -32005);
  await showsUsage(page, (rows) => rows["refused"] !== undefined);
  await page.getByText("A limit of the plan or of the key was reached.").waitFor();

  await revokeKey(page, keyPath);
  assert.equal((await until("the key is refused", async () => {
    const reply = await gateway.call(key, "eth_blockNumber");
    return reply.status === 401 && reply;
  })).body.error.message, "invalid project id");
  await page.goto("/keys");
  await page.getByRole("row", { name: /^backend.*Revoked/ }).waitFor();
});

/** The button copies the key, and says so. */
async function checkCopyButton(page, key) {
  await page.getByRole("button", { name: "Copy the key" }).click();
  await page.getByText("Copied").waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), key);
}

/** Runs code of the page for curl, ethers and viem as it stands there. */
async function runSnippets([curl, ...scripts]) {
  const run = promisify(execFile);
  const outputs = [(await run("sh", ["-c", curl], { timeout: WAIT_MS })).stdout];
  for (const [index, code] of scripts.entries()) {
    const file = path.join(import.meta.dirname, `snippet-${index}.mjs`);
    // Clients keep their connections for a while.
    await writeFile(file, `${code}\nprocess.exit(0);\n`);
    outputs.push((await run(process.execPath, [file], { timeout: WAIT_MS })).stdout);
  }
  return outputs;
}

/** Reloads the usage until its tables are as wanted. Their rows are read as `{ name: { calls } }`. */
function showsUsage(page, isWanted) {
  return until("the usage is shown", async () => {
    await page.goto("/usage?range=15m");
    const rows = await page.locator("table.numbers tbody tr").evaluateAll((all) => all.map((row) => [
      row.querySelector("th").innerText.trim(),
      { calls: Number(row.querySelector("td").innerText.replaceAll(",", "")) },
    ]));
    return isWanted(Object.fromEntries(rows));
  });
}

async function setDailyCredits(page, keyPath, credits) {
  await page.goto(keyPath);
  await page.getByLabel("Credits per day").fill(String(credits));
  await page.getByRole("button", { name: "Save settings" }).click();
  await page.getByText("Settings saved. They are in effect.").waitFor();
  assert.equal(await page.getByLabel("Credits per day").inputValue(), String(credits));
}
