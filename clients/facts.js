#!/usr/bin/env node
// Prints what is on the demo chain as JSON, for the tests of all clients. It is read from docs/demo-chain.md, which a
// test of the gateway compares with the chain, and from the contracts' artefacts.

"use strict";

const fs = require("node:fs");
const path = require("node:path");

const ROOT = path.join(__dirname, "..");
const PAGE = fs.readFileSync(path.join(ROOT, "docs", "demo-chain.md"), "utf8");

// The rows of a table of the page, as arrays of cells without their backquotes.
function table(name) {
  const [, text] = PAGE.split(`<!-- ${name} -->`);
  if (text === undefined) throw new Error(`docs/demo-chain.md has no table ${name}`);
  const lines = text.split(`<!-- /${name} -->`)[0].trim().split("\n").slice(2);
  return lines.map((line) => line.split("|").slice(1, -1).map((cell) => cell.trim().replace(/`/g, "")));
}

const byName = (rows, read) => Object.fromEntries(rows.map(read));

function contract([title, address]) {
  const artifact = path.join(ROOT, "contracts", "artifacts", `${title.split(" ")[0]}.json`);
  return [title, { address, abi: JSON.parse(fs.readFileSync(artifact, "utf8")).abi }];
}

function transaction([place, hash, , name]) {
  const [, block, index] = place.match(/^(\d+) \(0x[0-9a-f]+\), (\d+)$/);
  return [name, { block: Number(block), index: Number(index), hash }];
}

const chain = byName(table("chain"), ([what, value]) => [what, value]);
const facts = {
  chainId: parseInt(chain["chain id"], 10),
  head: { number: parseInt(chain.head, 10), hash: chain.head.split(", ")[1] },
  accounts: byName(table("accounts"), ([name, address]) => [name, address]),
  contracts: byName(table("contracts"), contract),
  slots: byName(table("slots"), ([, what, , position, value]) => [what, { position, value }]),
  topics: byName(table("topics"), ([signature, , hash]) => [signature, hash]),
  blocks: byName(table("blocks"), ([number, hash, , name]) => [name, { number: parseInt(number, 10), hash }]),
  transactions: byName(table("transactions"), transaction),
};
process.stdout.write(`${JSON.stringify(facts, null, 2)}\n`);
