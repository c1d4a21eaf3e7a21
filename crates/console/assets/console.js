// The script of the console. Pages are complete without it, except for sending calls in "Try it".
"use strict";

document.documentElement.classList.add("js");

const element = (id) => document.getElementById(id);

/** Copy buttons: shown only if there is a clipboard (https or this machine). */
function setUpCopying() {
  if (!navigator.clipboard) return;
  for (const button of document.querySelectorAll("[data-copy]")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(element(button.dataset.copy).textContent);
        button.textContent = "Copied";
      } catch {
        button.textContent = "Failed";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
  }
}

/** Lists that send their form when another entry is chosen. */
function setUpLists() {
  for (const list of document.querySelectorAll("[data-submit]")) {
    list.addEventListener("change", () => list.form.requestSubmit());
  }
}

/** Charts: a box with the values of the step under the pointer, which are those of the table. */
function setUpCharts() {
  for (const chart of document.querySelectorAll(".chart")) {
    const [head, ...rows] = [...chart.querySelectorAll("tr")].map((row) => [...row.cells].map((cell) => cell.textContent));
    if (!rows.length) continue;
    const canvas = chart.querySelector(".canvas");
    const { width, height } = canvas.querySelector("svg").viewBox.baseVal;
    const column = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    column.setAttribute("class", "column");
    column.setAttribute("width", width / rows.length);
    column.setAttribute("height", height);
    const tip = document.createElement("div");
    tip.className = "tip";
    canvas.append(tip);
    const hide = () => {
      tip.hidden = true;
      column.remove();
    };
    hide();
    canvas.addEventListener("pointermove", (event) => {
      const box = canvas.getBoundingClientRect();
      const x = event.clientX - box.left;
      const step = Math.max(0, Math.min(rows.length - 1, Math.floor((x / box.width) * rows.length)));
      const [time, ...values] = rows[step];
      const lines = values.map((value, index) => `${head[index + 1]}: ${value}`).filter((line) => values.length < 3 || !line.endsWith(": 0"));
      tip.textContent = [time, ...lines].join("\n");
      tip.hidden = false;
      const left = x > box.width / 2 ? x - tip.offsetWidth - 12 : x + 12;
      tip.style.left = `${Math.max(0, Math.min(left, box.width - tip.offsetWidth))}px`;
      column.setAttribute("x", (step * width) / rows.length);
      canvas.querySelector("svg").append(column);
    });
    canvas.addEventListener("pointerleave", hide);
  }
}

/** Makes one element like another and keeps what is equal, so that focus and scroll positions stay. */
function update(old, fresh) {
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
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

/** The live view: each event has the HTML of a whole status. */
function setUpLive() {
  const live = element("live");
  if (!live) return;
  const state = element("live-state");
  const show = (tone, text) => {
    if (state.textContent === text) return;
    state.className = `state ${tone}`;
    state.textContent = text;
  };
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
setUpCopying();
setUpLists();
setUpCharts();
setUpLive();
setUpTry();
