// Cross-site scripting: every text that somebody else chooses is shown literally, and nothing in it runs.
//
// The content security policy would stop scripts. The tests therefore also look at the page itself: a text that became an
// element or an attribute is a fault, whether or not the policy makes it harmless.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import path from "node:path";

import { Gateway } from "./gateway.mjs";
import { PAYLOADS } from "./hostile_payloads.mjs";
import { PASSWORD, becomeOperator, join } from "./people.mjs";
import { test } from "./suite.mjs";

const EMAIL = "ada-hostile@example.com";

test("hostile texts: names of accounts and keys, browsers and audit entries are shown literally", async (stage) => {
  const gateway = stage.demo;
  const api = await adminApi(gateway);
  const operator = await visitor(stage, gateway);
  await becomeOperator(operator.page, gateway, "grace-hostile@example.com");
  const { page } = operator;

  for (const payload of PAYLOADS) {
    await api(payload, "/accounts", { name: payload, plan: "custom" });
    await api(payload, `/accounts/${encodeURIComponent(PAYLOADS[0])}/keys`, { name: payload });
  }
  const accounts = [];
  for (let href = "/accounts"; href !== null;) {
    await page.goto(href);
    await checkPage(page, href);
    accounts.push(...await page.locator("tbody .name").allTextContents());
    const more = page.getByRole("link", { name: "Next page" });
    href = await more.count() > 0 ? await more.getAttribute("href") : null;
  }
  showsAll(accounts);
  await checkAccountPages(page);
  await page.goto("/audit");
  await checkPage(page, "the audit log");
  // The page has the newest 100 entries: an account and a key for each payload.
  showsAll(await page.locator("td[data-label=Subject] .name").allTextContents());
  const actors = await page.locator("td[data-label=Who] .name").allTextContents();
  showsAll(actors, (text, payload) => !isAscii(payload) || text.includes(payload));

  const link = await gateway.command("console", "invite", "--account", PAYLOADS[0], "--email", EMAIL, "--json");
  const developer = await visitor(stage, gateway);
  await join(developer.page, JSON.parse(link).url);
  for (const status of [400, 404]) developer.expectStatus(status);
  await checkDeveloperPages(developer.page);
  await checkSessions(developer.page, gateway);
});

/** A visitor whose pages have the function that the payloads call. */
async function visitor(stage, gateway) {
  const made = await stage.visitor(gateway, { trace: false });
  await made.context.addInitScript(() => { globalThis.hit = () => { globalThis.isHit = true; }; });
  return made;
}

/** Changes accounts and keys as somebody who calls himself as hostile as the rest. */
async function adminApi(gateway) {
  const token = (await readFile(path.join(gateway.dataDir, "admin-token"), "utf8")).trim();
  return async (actor, target, body) => {
    const reply = await fetch(`${gateway.operator}/admin/v1${target}`, {
      method: "POST",
      headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json", "Chaingate-Actor": isAscii(actor) ? actor : "x" },
      body: JSON.stringify(body),
    });
    assert.ok(reply.ok, `${reply.status}: ${target}: ${await reply.text()}`);
  };
}

function isAscii(text) {
  return /^[\x20-\x7e]+$/.test(text);
}

/** Nothing on the page comes from a payload, except text. */
async function checkPage(page, what) {
  const foreign = await page.evaluate(() => {
    const found = [];
    if (globalThis.isHit) found.push("a script ran");
    const forbidden = "img, iframe, object, embed, base, video, audio, marquee, math, template, style, meta[http-equiv], body > script, main script";
    for (const element of document.querySelectorAll("*")) {
      const handlers = [...element.attributes].filter(({ name }) => name.startsWith("on"));
      const addresses = ["href", "src", "action", "formaction"].map((name) => element.getAttribute(name) ?? "");
      const isOwn = (address) => new URL(address, document.baseURI).origin === location.origin;
      if (element.matches(forbidden) || handlers.length > 0 || !addresses.every(isOwn)) {
        found.push(element.outerHTML.slice(0, 200));
      }
    }
    return found;
  });
  assert.deepEqual(foreign, [], `elements of hostile texts on ${what}`);
}

function showsAll(texts, isShown = (text, payload) => text === payload) {
  for (const payload of PAYLOADS) {
    assert.ok(texts.some((text) => isShown(text, payload)), `not shown literally: ${payload}`);
  }
}

/** The pages of all accounts, with names in titles, headings, attributes and addresses. */
async function checkAccountPages(page) {
  for (const payload of PAYLOADS) {
    await page.goto(`/accounts/${encodeURIComponent(payload)}`);
    await checkPage(page, `the account ${payload}`);
    assert.equal(await page.locator("h1 .name").textContent(), payload);
    assert.equal(await page.title(), `${payload} · Chaingate`.replaceAll(/\s+/g, " "));
  }
}

/** The key's own page, the choice of keys in the usage, and what addresses can put into pages. */
async function checkDeveloperPages(page) {
  await page.goto("/keys");
  await checkPage(page, "the keys");
  const names = [...await page.locator("tbody .name").allTextContents(), ...await page.locator(".chips .name").allTextContents()];
  showsAll(names);
  const hrefs = await page.locator("a.name").evaluateAll((links) => links.map((link) => link.getAttribute("href")));
  for (const href of hrefs.slice(0, 5)) {
    await page.goto(href);
    await checkPage(page, href);
  }
  await page.goto("/usage");
  await checkPage(page, "the usage");
  showsAll(await page.locator("#key option").allTextContents());
  const inAddresses = ["try?method=", "try?method=eth_call&params=", "try?method=eth_getBalance&p0=", "usage?range=", "usage?key=", "keys?done=", "sign-in?next="];
  for (const start of inAddresses) {
    for (const payload of PAYLOADS.slice(0, 3)) {
      await page.goto(`/${start}${encodeURIComponent(payload)}`);
      await checkPage(page, start);
    }
  }
}

/** Signs in with browsers that have hostile names, and looks at the list of sessions, which has only names that it knows. */
async function checkSessions(page, gateway) {
  for (const payload of PAYLOADS.filter(isAscii).slice(0, 5)) await signInAs(gateway, payload);
  await page.goto("/settings");
  await checkPage(page, "the sessions");
  assert.equal(await page.getByRole("row", { name: /^Unknown browser/ }).count(), 5);
}

/** Signs in as a program that sends what a browser sends. */
async function signInAs(gateway, userAgent) {
  const page = await fetch(`${gateway.console}/sign-in`);
  const cookie = page.headers.get("set-cookie").split(";")[0];
  const csrf = /name="csrf" value="([^"]*)"/.exec(await page.text())[1];
  const reply = await fetch(`${gateway.console}/sign-in`, {
    method: "POST",
    redirect: "manual",
    headers: { "User-Agent": userAgent, Cookie: cookie },
    body: new URLSearchParams({ csrf, email: EMAIL, password: PASSWORD }),
  });
  assert.equal(reply.status, 303);
}

test("hostile texts: names and replies of nodes, and the configuration are shown literally", async (stage) => {
  const node = await hostileNode();
  const url = `http://127.0.0.1:${node.address().port}`;
  const nodes = PAYLOADS.map((payload, index) => `[[node]]\nname = ${toml(payload)}\nurl = "${url}/${index}"\n`);
  const partner = `[[partner]]\nname = ${toml(PAYLOADS[0])}\nurl = "${url}/partner"\n`;
  const config = `[network]\nname = ${toml(PAYLOADS[3])}\n[[key]]\nkey = "own"\nname = ${toml(PAYLOADS[1])}\n${nodes.join("")}${partner}`;
  try {
    const gateway = await Gateway.start({ config });
    const operator = await visitor(stage, gateway);
    await becomeOperator(operator.page, gateway, "grace@example.com");
    const { page } = operator;
    await page.goto("/live");
    await checkPage(page, "the live view before its first event");
    showsAll(await page.locator(".nodes .name").allTextContents());
    await page.getByText("Live", { exact: true }).nth(1).waitFor();
    await checkPage(page, "the live view");
    showsAll(await page.locator(".nodes .name").allTextContents());
    assert.equal(await page.locator(".network").textContent(), PAYLOADS[3]);
    await page.goto("/configuration");
    await checkPage(page, "the configuration");
    showsAll(await page.locator(".configuration code").allTextContents(), (text, payload) => text === toml(payload));
    await checkReply(operator, gateway);
  } finally {
    node.closeAllConnections();
    node.close();
  }
});

/** TOML's basic strings are written as those of JSON. */
/** A value of the configuration file, in which `${` would begin the name of a variable. */
function toml(text) {
  return JSON.stringify(text.replaceAll("${", () => "$${"));
}

/** A node whose every reply has hostile texts. */
async function hostileNode() {
  const server = createServer((request, reply) => {
    const payload = PAYLOADS[Number(request.url.slice(1)) || 0];
    request.resume().on("end", () => {
      reply.setHeader("Content-Type", "application/json");
      reply.setHeader("Server", "x");
      reply.end(JSON.stringify({ jsonrpc: "2.0", id: 1, error: { code: -32000, message: payload, data: payload } }));
    });
  });
  await new Promise((resolve) => { server.listen(0, "127.0.0.1", resolve); });
  return server;
}

/** The reply of a call is shown as text, whatever it contains. */
async function checkReply(operator, gateway) {
  const { page } = operator;
  operator.allowOrigin(gateway.public);
  for (const status of [200, 502]) operator.expectStatus(status);
  for (const payload of PAYLOADS.slice(0, 10)) {
    await page.route(`${gateway.public}/**`, (route) => route.fulfill({
      status: 502, headers: { "Access-Control-Allow-Origin": "*", "Chaingate-Source": payload }, body: payload,
    }));
    await page.goto("/try");
    await page.getByLabel("Your key").fill("own");
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByText("502", { exact: true }).waitFor();
    assert.equal(await page.locator("#try-reply").textContent(), payload);
    await checkPage(page, "a reply in Try it");
    await page.unroute(`${gateway.public}/**`);
  }
}
