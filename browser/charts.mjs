// Charts: times in the zone of the browser, labels inside of the plot, series that differ without colours, and the usage page
// that refreshes itself.

import assert from "node:assert/strict";

import { until } from "./lib.mjs";
import { becomeOperator, createKey, newDeveloper } from "./people.mjs";
import { test } from "./suite.mjs";

const ZONES = ["Asia/Kolkata", "America/New_York", "UTC"];

test("charts: times of the zone of the browser, with UTC beside them", async (stage) => {
  const gateway = stage.demo;
  const operator = await stage.visitor(gateway);
  await becomeOperator(operator.page, gateway, "grace-charts@example.com");
  for (const [index, timeZone] of ZONES.entries()) {
    const people = { account: `charts-${index}`, email: `charts-${index}@example.com`, options: { timeZone } };
    const { page } = await newDeveloper(stage, operator, gateway, people);
    const { key } = await createKey(page, "charts");
    await gateway.call(key, "eth_blockNumber");
    for (const range of ["15m", "1h", "24h", "7d", "30d"]) {
      await until("the usage is shown", async () => {
        await page.goto(`/usage?range=${range}`);
        return await page.locator("#chart-requests").count() > 0;
      });
      await checkAxis(page, `${range} in ${timeZone}`);
      const hasDays = range === "30d";
      const zone = await page.locator("#chart-requests .zone").innerText();
      // Browsers call Asia/Kolkata by its older name, too.
      const names = timeZone === "Asia/Kolkata" ? "Asia/(Kolkata|Calcutta)" : timeZone;
      assert.match(zone, hasDays ? /^Days in UTC$/ : timeZone === "UTC" ? /^UTC$/ : new RegExp(`^${names}, UTC[+−]`));
      const rows = await page.locator("#chart-requests tbody th").allTextContents();
      assert.equal(rows.length, { "15m": 15, "1h": 60, "24h": 24, "7d": 168, "30d": 30 }[range]);
      if (timeZone === "Asia/Kolkata" && !hasDays) assert.ok(rows.every((row) => isBeside(row)), rows[0]);
      await page.getByText("No errors in this period").waitFor();
    }
  }
});

/** Whether the time in India of a row is that in UTC beside it. */
function isBeside(row) {
  const [hour, minute, utcHour, utcMinute] = [...row.matchAll(/(\d\d):(\d\d)/g)].flatMap(([, ...parts]) => parts.map(Number));
  return (hour * 60 + minute - utcHour * 60 - utcMinute + 1440) % 1440 === 330;
}

/** Labels of the time are round, different, and below the plot. */
async function checkAxis(page, what) {
  const plot = await page.locator("#chart-requests .canvas").boundingBox();
  const labels = await page.locator("#chart-requests .x text").evaluateAll((all) => all.map((label) => {
    const { left, right } = label.getBoundingClientRect();
    return { text: label.textContent, left, right };
  }));
  assert.ok(labels.length >= 2 && labels.length <= 8, `${what}: ${labels.length} labels`);
  assert.equal(new Set(labels.map(({ text }) => text)).size, labels.length, `${what}: a label twice`);
  for (const { text, left, right } of labels) {
    assert.ok(left >= plot.x - 1 && right <= plot.x + plot.width + 1, `${what}: ${text} is outside of the plot`);
    assert.match(text, /^\d\d:[0-5][05]$|^\d+ [A-Z][a-z]{2}$/, what);
  }
}

test("charts: the hour of UTC is right on days on which clocks change", async (stage) => {
  const { page } = await stage.visitor(stage.demo, { timeZone: "America/New_York" });
  await page.goto("/sign-in");
  // The clocks of New York changed on 8 March 2026 at 07:00 UTC, and on 1 November 2026 at 06:00 UTC.
  const texts = await page.evaluate((times) => times.map((time) => bothTimes(Date.parse(time) / 1000)), [
    "2026-03-08T03:00Z", "2026-03-08T07:00Z", "2026-11-01T02:00Z", "2026-11-01T06:00Z",
  ]);
  assert.deepEqual(texts, [
    "7 Mar 22:00 · 8 Mar 03:00 UTC", "8 Mar 03:00 · 07:00 UTC", "31 Oct 22:00 · 1 Nov 02:00 UTC", "1 Nov 01:00 · 06:00 UTC",
  ]);
});

test("charts: the usage refreshes itself, and series differ in forced colours", async (stage) => {
  const gateway = stage.demo;
  const operator = await stage.visitor(gateway);
  await becomeOperator(operator.page, gateway, "grace-forced@example.com");
  const { page } = await newDeveloper(stage, operator, gateway, { account: "forced", email: "forced@example.com" });
  const { key } = await createKey(page, "forced");
  await page.goto("/usage?range=1h");
  await page.getByText("No calls in this period.").waitFor();
  // Gone if the page is loaded again.
  await page.evaluate(() => { globalThis.isFirstLoad = true; });
  for (const method of ["eth_blockNumber", "eth_unknown"]) await gateway.call(key, method);
  await page.locator("#chart-requests").waitFor();
  await page.locator("#chart-requests summary").click();
  const calls = page.locator(".tile").filter({ hasText: "Calls" }).locator(".figure");
  await gateway.call(key, "eth_blockNumber");
  await until("the calls are counted", async () => await calls.first().innerText() === "3");
  assert.ok(await page.locator("#chart-requests details").evaluate((details) => details.open), "an open table stays open");
  assert.equal(await page.evaluate(() => globalThis.isFirstLoad), true);

  await page.emulateMedia({ forcedColors: "active" });
  const fills = await page.locator("#chart-requests .legend .bar").evaluateAll((all) => all.map((bar) => getComputedStyle(bar).fill));
  assert.equal(new Set(fills).size, 5, fills.join());
  const dashes = await page.locator("#chart-latency .legend .line").evaluateAll((all) => all.map((line) => getComputedStyle(line).strokeDasharray));
  assert.equal(new Set(dashes).size, 2, dashes.join());
});
