// The script of the console. Pages are complete without it, except for sending calls in "Try it".
"use strict";

document.documentElement.classList.add("js");

const element = (id) => document.getElementById(id);

/** Copy buttons: shown only if there is a clipboard (https or this machine). */
function setUpCopying() {
  document.addEventListener("click", async ({ target }) => {
    const button = target.closest("[data-copy]");
    if (!button) return;
    try {
      await navigator.clipboard.writeText(element(button.dataset.copy).textContent);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Failed";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
}

/** Adds to a part of a page what only the browser knows. */
function complete(root) {
  for (const button of root.querySelectorAll("[data-copy]")) button.hidden = !navigator.clipboard;
  root.querySelectorAll(".chart").forEach(localise);
}

/** Lists that send their form when another entry is chosen. */
function setUpLists() {
  for (const list of document.querySelectorAll("[data-submit]")) {
    list.addEventListener("change", () => list.form.requestSubmit());
  }
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const [MINUTE, HOUR, DAY] = [60, 3600, 86400];
/** Spans of time between two labels, and how many labels there are at most; the server has the same for UTC. */
const TICK_SPANS = [5, 10, 15, 30].map((n) => n * MINUTE).concat([1, 2, 4, 6, 12].map((n) => n * HOUR), [1, 2, 5].map((n) => n * DAY));
const TICKS_MAX = 7;
const TICK_MARGIN = 9;

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const date = (time) => new Date(time * 1000);
const dayText = (at) => `${at.getDate()} ${MONTHS[at.getMonth()]}`;
const clockText = (at) => `${at.getHours()}:${at.getMinutes()}`.replace(/\b\d\b/g, "0$&");

/** The difference between the time of the browser and UTC, such as `UTC+5:30`. */
function offsetText(at) {
  const minutes = -at.getTimezoneOffset();
  const rest = Math.abs(minutes) % 60;
  return `UTC${minutes < 0 ? "\u2212" : "+"}${Math.floor(Math.abs(minutes) / 60)}${rest ? `:${rest}` : ""}`;
}

/** A time here and, if they differ, in UTC: `17 Nov 18:02 · 17:02 UTC`. */
function bothTimes(time) {
  const at = date(time);
  const [utcDay, utcClock] = [`${at.getUTCDate()} ${MONTHS[at.getUTCMonth()]}`, at.toISOString().slice(11, 16)];
  return `${dayText(at)} ${clockText(at)} · ${dayText(at) === utcDay ? "" : `${utcDay} `}${utcClock} UTC`;
}

/** The labels of the horizontal axis, at times that are round in the time zone of the browser. */
function localTicks(since, duration, step) {
  const span = TICK_SPANS.find((each) => each >= step && duration <= TICKS_MAX * each) ?? 5 * DAY;
  // Time zones differ from UTC by whole quarters of an hour.
  const stride = Math.min(span, HOUR / 4);
  const ticks = [];
  for (let time = Math.ceil(since / stride) * stride; time < since + duration; time += stride) {
    const at = date(time);
    const ofDay = at.getHours() * HOUR + at.getMinutes() * MINUTE;
    if (ofDay % Math.min(span, DAY) !== 0) continue;
    const isDay = ofDay === 0 && duration >= DAY;
    ticks.push([((time - since) * 100) / duration, isDay ? dayText(at) : clockText(at)]);
  }
  return ticks;
}

/** Shows the times of charts in the time zone of the browser, with UTC beside it. Days stay days of UTC, of which they have the sums. */
function localise(chart) {
  const [since, step, steps] = ["since", "step", "steps"].map((name) => Number(chart.dataset[name]));
  const end = date(since + step * steps);
  if (step >= DAY || steps === 0 || (end.getTimezoneOffset() === 0 && date(since).getTimezoneOffset() === 0)) return;
  const axis = chart.querySelector(".x");
  const ticks = localTicks(since, step * steps, step);
  axis.replaceChildren(...ticks.map(([at, label]) => {
    const text = document.createElementNS(axis.namespaceURI, "text");
    text.setAttribute("x", `${at.toFixed(1)}%`);
    text.setAttribute("y", 12);
    text.setAttribute("text-anchor", at < TICK_MARGIN ? "start" : at > 100 - TICK_MARGIN ? "end" : "middle");
    text.textContent = label;
    return text;
  }));
  // The drawing has 1,000 by 200 units.
  chart.querySelector(".tick").setAttribute("d", ticks.map(([at]) => `M${(at * 10).toFixed(1)} 200v6`).join(""));
  chart.querySelector(".zone").textContent = `${zone}, ${offsetText(end)}`;
  if (chart.dataset.table) return;
  chart.querySelector("thead th").textContent = "Time";
  chart.querySelectorAll("tbody th").forEach((cell, index) => { cell.textContent = bothTimes(since + index * step); });
}

/** Charts: a box with the values of the step under the pointer, which are those of the table. */
function setUpCharts() {
  const column = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  column.setAttribute("class", "column");
  const tip = document.createElement("div");
  tip.className = "tip";
  document.addEventListener("pointermove", (event) => {
    const canvas = event.target.closest(".chart .canvas");
    const chart = canvas?.closest(".chart");
    // The table of another chart can have the series of this one beside others.
    const table = document.getElementById(chart?.dataset.table) ?? chart;
    const rows = table?.querySelectorAll("tbody tr") ?? [];
    if (!rows.length) {
      tip.remove();
      column.remove();
      return;
    }
    const texts = (row) => [...row.cells].map((cell) => cell.textContent);
    const box = canvas.getBoundingClientRect();
    const x = event.clientX - box.left;
    const step = Math.max(0, Math.min(rows.length - 1, Math.floor((x / box.width) * rows.length)));
    const names = texts(table.querySelector("thead tr"));
    const [time, ...values] = texts(rows[step]);
    const legend = [...chart.querySelectorAll(".legend li")].map((item) => item.textContent);
    const isShown = ([name, value]) => (table === chart || legend.includes(name)) && (values.length < 3 || value !== "0");
    const lines = values.map((value, index) => [names[index + 1], value]).filter(isShown).map((each) => each.join(": "));
    tip.textContent = [time, ...lines].join("\n");
    canvas.append(tip);
    const left = x > box.width / 2 ? x - tip.offsetWidth - 12 : x + 12;
    tip.style.left = `${Math.max(0, Math.min(left, box.width - tip.offsetWidth))}px`;
    const svg = canvas.querySelector("svg");
    const { width, height } = svg.viewBox.baseVal;
    const shape = { x: (step * width) / rows.length, width: width / rows.length, height };
    for (const [name, value] of Object.entries(shape)) column.setAttribute(name, value);
    svg.append(column);
  });
}

/** Makes one element like another and keeps what is equal, so that focus and scroll positions stay. */
function update(old, fresh) {
  // What somebody has opened stays open.
  for (const { name } of [...old.attributes]) if (name !== "open" && !fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  const wanted = [...fresh.childNodes];
  while (old.childNodes.length > wanted.length) old.lastChild.remove();
  wanted.forEach((child, index) => {
    const current = old.childNodes[index];
    if (!current) old.append(child);
    else if (current.nodeName !== child.nodeName) current.replaceWith(child);
    else if (current.nodeType === Node.ELEMENT_NODE) update(current, child);
    else if (current.nodeValue !== child.nodeValue) current.nodeValue = child.nodeValue;
  });
}

/** Says in the head of a page whether it shows what is true now. */
function show(tone, text) {
  const state = element("live-state");
  if (state.textContent === text) return;
  state.className = `state ${tone}`;
  state.textContent = text;
}

/** The live view: each event has the HTML of a whole status. */
function setUpLive() {
  const live = element("live");
  if (!live) return;
  show("warn", "Connecting");
  const events = new EventSource(live.dataset.events);
  events.addEventListener("status", (event) => {
    const fresh = live.cloneNode(false);
    fresh.innerHTML = event.data;
    update(live, fresh);
    show("good", "Live");
  });
  events.addEventListener("error", () => {
    if (events.readyState === EventSource.CLOSED) show("bad", "Not updating: reload the page in a minute");
    else show("warn", "Connection lost, trying again");
  });
  addEventListener("pagehide", () => events.close());
}

/** How often the usage is read again, in milliseconds, and for how long after the last sign of somebody who looks at it. */
const REFRESH_MS = 10_000;
const WATCHED_MS = HOUR * 1000;

/** The usage: the page is read again, and what has changed in it is replaced. A page that nobody watches must not keep its session. */
function setUpUsage() {
  const usage = element("usage");
  if (!usage) return;
  let watchedAt = Date.now();
  let isReading = false;
  for (const sign of ["pointermove", "keydown", "scroll"]) addEventListener(sign, () => { watchedAt = Date.now(); }, { passive: true });
  const refresh = async () => {
    if (document.hidden || isReading) return;
    if (Date.now() - watchedAt > WATCHED_MS) return show("off", "Paused: move the pointer");
    isReading = true;
    try {
      const reply = await fetch(location.href, { cache: "no-store" });
      const page = new DOMParser().parseFromString(await reply.text(), "text/html");
      const fresh = page.getElementById("usage");
      if (!fresh) return show("bad", "Not updating: reload the page");
      complete(fresh);
      update(usage, fresh);
      show("good", "Live");
    } catch {
      show("warn", "Connection lost, trying again");
    } finally {
      isReading = false;
    }
  };
  show("good", "Live");
  setInterval(refresh, REFRESH_MS);
  document.addEventListener("visibilitychange", refresh);
}

/** The value of a field of "Try it"; `undefined` if it is empty. Throws if it has to be JSON and is not. */
function fieldValue(field) {
  const text = field.value.trim();
  if (text === "") return undefined;
  const kind = field.dataset.param;
  if (kind === "text" || (kind === "block" && !text.startsWith("{"))) return text;
  return JSON.parse(text);
}

/** The parameters of the form as JSON, or `null` if a field is wrong, which is then marked. */
function readParams(form) {
  const values = [];
  let isRight = true;
  for (const field of form.querySelectorAll("[data-param]")) {
    const message = element(`${field.id}-error`);
    let error = "";
    try {
      values.push(fieldValue(field) ?? null);
    } catch {
      error = "must be JSON";
      isRight = false;
    }
    message.textContent = error;
    message.hidden = error === "";
    if (error) {
      field.setAttribute("aria-invalid", "true");
      field.setAttribute("aria-describedby", message.id);
    } else {
      field.removeAttribute("aria-invalid");
    }
  }
  while (values.length > 0 && values.at(-1) === null) values.pop();
  return isRight ? JSON.stringify(values) : null;
}

/** A call as code for each tool; the same as the server makes for the first view. */
function callAsCode(url, method, params) {
  const body = `{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`;
  const quoted = body.replaceAll("'", "'\\''");
  return {
    "try-request": body,
    "try-curl": `curl -s ${url} \\\n  -H 'Content-Type: application/json' \\\n  -d '${quoted}'`,
    "try-ethers": `import { JsonRpcProvider } from "ethers";\n\nconst provider = new JsonRpcProvider("${url}");\nconsole.log(await provider.send("${method}", ${params}));`,
    "try-viem": `import { createPublicClient, http } from "viem";\n\nconst client = createPublicClient({ transport: http("${url}") });\nconsole.log(await client.request({ method: "${method}", params: ${params} }));`,
  };
}

function showReply(state, tone, text, facts) {
  element("try-result").hidden = false;
  element("try-state").className = `state ${tone}`;
  element("try-state").textContent = state;
  element("try-reply").textContent = text;
  for (const [name, value] of Object.entries(facts)) element(`try-${name}`).textContent = value || "–";
}

async function sendCall(url, body) {
  const start = performance.now();
  const facts = { time: "", source: "", block: "", size: "" };
  try {
    const reply = await fetch(url, {
      method: "POST", headers: { "Content-Type": "application/json" }, body, credentials: "omit", referrerPolicy: "no-referrer",
    });
    const text = await reply.text();
    facts.time = `${Math.round(performance.now() - start)} ms`;
    facts.source = reply.headers.get("Chaingate-Source");
    const [number, hash] = (reply.headers.get("Chaingate-Block") ?? "").split(" ");
    facts.block = number ? parseInt(number, 16).toLocaleString("en") : "";
    element("try-block").title = hash ?? "";
    facts.size = `${new TextEncoder().encode(text).length.toLocaleString("en")} bytes`;
    let json = null;
    try { json = JSON.parse(text); } catch { /* shown as it is */ }
    const isRight = reply.ok && json !== null && !("error" in json);
    const state = isRight ? `${reply.status} OK` : `${reply.status}${json?.error ? `, error ${json.error.code}` : ""}`;
    showReply(state, isRight ? "good" : "bad", json === null ? text : JSON.stringify(json, null, 2), facts);
  } catch {
    const advice = "No reply. Check that the address is reachable from your browser, and that the origins of the key include this page.";
    showReply("No reply", "bad", advice, facts);
  }
}

/** "Try it": the key is read when a call is sent and goes nowhere else. */
function setUpTry() {
  const form = element("try");
  if (!form) return;
  const { base, method } = form.dataset;
  const key = element("try-key");
  const refresh = () => {
    const params = readParams(form);
    if (params === null) return null;
    // The code shows a key only if the page came with one that is public.
    const shownKey = key.value !== "" && key.value === key.defaultValue ? key.value : "YOUR_KEY";
    const code = callAsCode(base + shownKey, method, params);
    for (const [id, text] of Object.entries(code)) element(id).textContent = text;
    element("try-link").href = `/try?${new URLSearchParams({ method, params })}`;
    return code["try-request"];
  };
  const send = async () => {
    const body = refresh();
    if (body === null) {
      form.querySelector("[aria-invalid]")?.focus();
      return;
    }
    if (key.value.trim() === "") {
      key.focus();
      showReply("Not sent", "warn", "Enter your key first.", {});
      return;
    }
    const button = element("try-send");
    button.disabled = true;
    await sendCall(base + encodeURIComponent(key.value.trim()), body);
    button.disabled = false;
  };
  form.addEventListener("input", refresh);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  element("try-send").addEventListener("click", send);
  refresh();
}

/** On a phone the navigation is a strip that scrolls; the current page must be visible in it. */
function showCurrentPage() {
  const strip = document.querySelector(".side nav");
  const link = strip?.querySelector("[aria-current]");
  if (link) strip.scrollLeft = link.offsetLeft - (strip.clientWidth - link.offsetWidth) / 2;
}

showCurrentPage();
complete(document);
setUpCopying();
setUpLists();
setUpCharts();
setUpLive();
setUpUsage();
setUpTry();
