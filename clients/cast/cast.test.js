import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import fs from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const url = process.env.CHAINGATE_URL;
const noKeyUrl = url.slice(0, url.lastIndexOf("/"));
const facts = JSON.parse(fs.readFileSync(process.env.CHAINGATE_FACTS, "utf8"));
const program = fileURLToPath(new URL("node_modules/.bin/cast", import.meta.url));
const { Alice: alice, Bob: bob, Erin: erin } = facts.accounts;
const { Tour: tour, Token: token, Chatter: chatter } = facts.contracts;
const nowhere = `0x${"00".repeat(32)}`;

// What it prints. The package's wrapper hides the exit status, so it is its error text that says that it failed.
function run(args, rpcUrl = url) {
  const env = { ...process.env, NO_COLOR: "1", ETH_RPC_URL: rpcUrl };
  return new Promise((resolve, reject) => {
    execFile(program, args, { env, maxBuffer: 64 << 20 }, (error, stdout, stderr) => {
      if (error || /^Error: /m.test(stderr)) reject(new Error(stderr));
      else resolve(stdout.trim());
    });
  });
}

const cast = (...args) => run(args);
const json = async (...args) => JSON.parse(await run([...args, "--json"]));

test("the chain is there", async () => {
  assert.equal(await cast("chain-id"), String(facts.chainId));
  assert.equal(await cast("block-number"), String(facts.head.number));
});

test("a block is read by number, by hash and by tag", async () => {
  const { number, hash } = facts.blocks.head;
  for (const which of [String(number), hash, "latest"]) {
    const block = await json("block", which, "--full");
    assert.equal(block.hash, hash);
    assert.deepEqual(block.transactions.slice(0, 6).map((tx) => tx.type), ["0x0", "0x0", "0x1", "0x2", "0x3", "0x4"]);
  }
  for (const tag of ["safe", "finalized"]) assert.ok(Number(await cast("block", tag, "--field", "number")) <= number);
});

test("what is not there is not found", async () => {
  await assert.rejects(cast("tx", nowhere), /tx not found/);
  await assert.rejects(cast("block", String(facts.head.number + 1)), /not found/);
});

test("transactions and receipts are read", async () => {
  assert.equal(await cast("tx", facts.transactions["first-payment"].hash, "value"), String(10n ** 18n));
  assert.equal((await json("tx", facts.transactions.delegation.hash)).authorizationList.length, 1);
  const created = await json("receipt", facts.transactions["create-tour"].hash);
  assert.deepEqual([created.status, created.contractAddress], ["0x1", tour.address.toLowerCase()]);
  assert.equal((await json("receipt", facts.transactions["revert-reason"].hash)).status, "0x0");
  assert.equal((await json("receipt", facts.transactions["create-early"].hash)).root.length, 66);
});

test("an uncle and raw records are read", async () => {
  const uncle = JSON.parse(await cast("rpc", "eth_getUncleByBlockNumberAndIndex", "0x9", "0x1"));
  assert.equal(uncle.hash.length, 66);
  const { number } = facts.blocks["raw-l1"];
  const records = JSON.parse(await cast("rpc", "zks_getRawBlockTransactions", String(number)));
  assert.deepEqual(records.map((record) => Object.keys(record.common_data)[0]).slice(0, 2), ["L1", "L2"]);
});

test("logs are filtered by contract, event and argument", async () => {
  const number = String(facts.blocks["token-transfers"].number);
  const filter = ["logs", "--address", token.address, "--from-block", number, "--to-block", number];
  const signature = "Transfer(address indexed from,address indexed to,uint256 value)";
  assert.equal((await json(...filter, signature)).length, 3);
  assert.equal((await json(...filter, signature, alice, bob)).length, 1);
});

test("a variable and an element of a mapping are read from storage", async () => {
  assert.equal(BigInt(await cast("storage", tour.address, "0")), 1234n);
  const position = await cast("index", "address", erin, "1");
  assert.equal(position, facts.slots["points of Erin"].position);
  assert.equal(BigInt(await cast("storage", tour.address, position)), 5678n);
});

test("view functions answer, also about the past", async () => {
  assert.equal(await cast("call", tour.address, "answer()(uint256)"), "1234");
  assert.equal(await cast("call", token.address, "symbol()(string)"), '"TOUR"');
  const { block } = facts.transactions["create-tour"];
  assert.equal(await cast("call", tour.address, "count()(uint256)", "--block", String(block)), "0");
});

test("a revert is shown with its reason", async () => {
  await assert.rejects(cast("call", tour.address, "failWithReason()"), /execution reverted: the tour ends here/);
  await assert.rejects(cast("call", tour.address, "failWithAssert()"), /execution reverted: assert\(false\)/);
  const selector = await cast("sig", "NotEnough(uint256,uint256)");
  await assert.rejects(cast("call", tour.address, "failWithError(uint256)", "99"), new RegExp(selector));
});

test("gas is estimated, and a revert is found while estimating", async () => {
  const gas = Number(await cast("estimate", "--from", alice, token.address, "transfer(address,uint256)", bob, "1"));
  assert.ok(gas > 21_000 && gas < 100_000, `${gas}`);
  await assert.rejects(cast("estimate", tour.address, "failWithReason()"), /the tour ends here/);
});

test("a missing and a wrong key are told", async () => {
  await assert.rejects(run(["block-number"], noKeyUrl), /401.*project id required in the URL/);
  await assert.rejects(run(["block-number"], `${noKeyUrl}/nobody`), /401.*invalid project id/);
});

test("too many logs are refused, and come in two halves", async () => {
  const from = facts.blocks["chatter-begins"].number;
  const hex = (number) => `0x${number.toString(16)}`;
  const query = JSON.stringify({ address: chatter.address, fromBlock: hex(from), toBlock: hex(from + 59) });
  await assert.rejects(cast("rpc", "eth_getLogs", query), /-32005: query returned more than 10000 results/);
  const logs = (first, last) => json("logs", "--address", chatter.address, "--from-block", String(first), "--to-block", String(last));
  assert.equal((await logs(from, from + 29)).length + (await logs(from + 30, from + 59)).length, 12_000);
});
