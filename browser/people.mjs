// What people do in the console, step by step.

import assert from "node:assert/strict";

export const PASSWORD = "correct horse battery";

/** Follows the one-time link of the operator, and chooses an email and a password. */
export async function becomeOperator(page, gateway, email) {
  await page.goto(await gateway.signInPath());
  await page.getByLabel("Email").fill(email);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByRole("link", { name: "Accounts" }).waitFor();
}

/** Creates an account and gives the link with which a developer joins it. */
export async function inviteToNewAccount(page, { account, plan, email }) {
  await page.goto("/accounts");
  await page.getByLabel("Name", { exact: true }).fill(account);
  await page.getByLabel("Plan").selectOption(plan);
  await page.getByLabel("Invite (optional)").fill(email);
  await page.getByRole("button", { name: "Create account" }).click();
  return page.locator("#shown-link").innerText();
}

/** Follows an invitation and chooses a password. */
export async function join(page, link) {
  await page.goto(new URL(link).pathname);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
}

export async function signIn(page, email) {
  await page.goto("/sign-in");
  await page.getByLabel("Email").fill(email);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("button", { name: "Sign out" }).waitFor();
}

/** Creates a key in a list of keys, and gives its text and its page. */
export async function createKey(page, name, list = "/keys") {
  await page.goto(list);
  await page.getByLabel("Name", { exact: true }).fill(name);
  await page.getByRole("button", { name: "Create key" }).click();
  const key = await page.locator("#new-key").innerText();
  const path = await page.getByRole("link", { name: "Restrict the key" }).getAttribute("href");
  assert.match(key, /^[0-9a-f]{32}$/);
  return { key, path };
}

export async function revokeKey(page, path) {
  await page.goto(path);
  await page.getByText("Revoke key…").click();
  await page.getByLabel(/may stop working/).check();
  await page.getByRole("button", { name: "Revoke for ever" }).click();
  await page.getByText("Key revoked. It is refused from now on.").waitFor();
}

/** A developer of a new account, in a browser profile of their own. */
export async function newDeveloper(stage, operator, gateway, { account, plan = "custom", email, options = {} }) {
  const link = await inviteToNewAccount(operator.page, { account, plan, email });
  const developer = await stage.visitor(gateway, options);
  await join(developer.page, link);
  return developer;
}
