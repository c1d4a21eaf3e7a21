// The console with the keyboard alone, and without JavaScript.

import assert from "node:assert/strict";

import { until } from "./lib.mjs";
import { PASSWORD, becomeOperator, createKey, newDeveloper, revokeKey, signIn } from "./people.mjs";
import { test } from "./suite.mjs";

test("keyboard: signs in and creates a key with Tab and Enter alone", async (stage) => {
  const gateway = stage.demo;
  const operator = await stage.visitor(gateway);
  await becomeOperator(operator.page, gateway, "grace-keyboard@example.com");
  await newDeveloper(stage, operator, gateway, { account: "keyboard", email: "ada-keyboard@example.com" });
  const { page } = await stage.visitor(gateway);
  await page.goto("/sign-in");
  // The field for the email has the focus already.
  assert.equal(await focused(page), "Email");
  await page.keyboard.type("ada-keyboard@example.com");
  await tabTo(page, "Password");
  await page.keyboard.type(PASSWORD);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Overview" }).waitFor();

  await page.keyboard.press("Tab");
  assert.equal(await focused(page), "Skip to content");
  await tabTo(page, "Keys");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Keys", exact: true }).waitFor();
  await tabTo(page, "Name");
  await page.keyboard.type("by keyboard");
  await tabTo(page, "Create key");
  await page.keyboard.press("Enter");
  await page.locator("#new-key").waitFor();
  await tabTo(page, "Copy the key");
  await page.keyboard.press("Enter");
  await page.getByText("Copied").waitFor();
});

/** The name of what has the focus. */
function focused(page) {
  return page.evaluate(() => {
    const { activeElement } = document;
    return activeElement.ariaLabel ?? activeElement.labels?.[0]?.innerText ?? activeElement.innerText.trim();
  });
}

/** Presses Tab until something with this name has the focus, which must be visible everywhere on the way. */
async function tabTo(page, name) {
  for (let count = 0; count < 60; count += 1) {
    await page.keyboard.press("Tab");
    const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
    const current = await focused(page);
    assert.ok(outline !== "none" || current === "", `the focus on ${current} cannot be seen`);
    if (current === name) return;
  }
  assert.fail(`Tab never reaches ${name}`);
}

test("without JavaScript: signs in, creates a key, revokes it and signs out", async (stage) => {
  const gateway = stage.demo;
  const operator = await stage.visitor(gateway);
  await becomeOperator(operator.page, gateway, "grace-plain@example.com");
  await newDeveloper(stage, operator, gateway, { account: "plain", email: "ada-plain@example.com" });
  const { page } = await stage.visitor(gateway, { javaScript: false });
  await signIn(page, "ada-plain@example.com");
  const { key, path } = await createKey(page, "plain");
  await until("the key works", async () => (await gateway.call(key, "eth_blockNumber")).status === 200);
  await revokeKey(page, path);
  await until("the key is refused", async () => (await gateway.call(key, "eth_blockNumber")).status === 401);
  await page.goto("/try?method=eth_getBalance");
  await page.getByText("Without JavaScript this page cannot send the call.").waitFor();
  await page.locator("#p0").fill("0x0000000000000000000000000000000000000001");
  await page.getByRole("button", { name: "Update the code" }).click();
  assert.match(await page.locator("#try-curl").textContent(), /0x0000000000000000000000000000000000000001/);
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  await page.goto("/keys");
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
});
