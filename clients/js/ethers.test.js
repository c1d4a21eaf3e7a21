import assert from "node:assert/strict";
import { after, test } from "node:test";
import { Contract, JsonRpcProvider, Network, ZeroHash, id, concat, keccak256, toQuantity, zeroPadValue } from "ethers";
import { chatter, chatterFits, chatterFrom, chatterTo, facts, noKeyUrl, token, tour, url, wrongKeyUrl } from "./chain.js";

const provider = new JsonRpcProvider(url);
const tourContract = new Contract(tour.address, tour.abi, provider);
const tokenContract = new Contract(token.address, token.abi, provider);
const { Alice: alice, Bob: bob, Erin: erin } = facts.accounts;

after(() => provider.destroy());

test("the network is found by itself", async () => {
  assert.equal((await provider.getNetwork()).chainId, BigInt(facts.chainId));
  assert.equal(await provider.getBlockNumber(), facts.head.number);
});

test("a block is read by number, by hash and by tag", async () => {
  const { number, hash } = facts.blocks.head;
  for (const which of [number, hash, "latest"]) {
    const block = await provider.getBlock(which, true);
    assert.equal(block.hash, hash);
    assert.deepEqual(block.prefetchedTransactions.map((tx) => tx.type), [0, 0, 1, 2, 3, 4, 2, 2, 2].slice(0, block.length));
    assert.equal(block.transactions[0], facts.transactions["head-unprotected"].hash);
  }
  for (const tag of ["safe", "finalized"]) assert.ok((await provider.getBlock(tag)).number <= number);
});

test("what is not there is null", async () => {
  assert.equal(await provider.getBlock(facts.head.number + 1), null);
  assert.equal(await provider.getTransaction(ZeroHash), null);
  assert.equal(await provider.getTransactionReceipt(ZeroHash), null);
});

test("transactions of every type are read", async () => {
  const expected = { "head-protected": 0, "head-access-list": 1, "head-dynamic-fee": 2, "head-blobs": 3, "head-delegation": 4 };
  for (const [name, type] of Object.entries(expected)) {
    const { hash, block, index } = facts.transactions[name];
    const transaction = await provider.getTransaction(hash);
    assert.deepEqual([transaction.type, transaction.blockNumber, transaction.index], [type, block, index], name);
    assert.equal(transaction.chainId, BigInt(facts.chainId));
  }
});

test("receipts have a status, or a root from before Byzantium", async () => {
  const created = await provider.getTransactionReceipt(facts.transactions["create-tour"].hash);
  assert.deepEqual([created.status, created.contractAddress], [1, tour.address]);
  const failed = await provider.getTransactionReceipt(facts.transactions["revert-reason"].hash);
  assert.deepEqual([failed.status, failed.logs.length], [0, 0]);
  const early = await provider.getTransactionReceipt(facts.transactions["create-early"].hash);
  assert.deepEqual([early.status ?? null, early.root.length], [null, 66]);
});

test("an uncle is read", async () => {
  const uncle = await provider.send("eth_getUncleByBlockNumberAndIndex", [toQuantity(facts.blocks["two-uncles"].number), "0x1"]);
  assert.equal(uncle.hash.length, 66);
  assert.equal(uncle.transactions, undefined);
});

test("logs are filtered by contract, event and argument", async () => {
  const { number, hash } = facts.blocks["token-transfers"];
  const transfers = await tokenContract.queryFilter(tokenContract.filters.Transfer(alice, bob), number, number);
  assert.deepEqual(transfers.map((log) => log.args.value), [10_000n * 10n ** 18n]);
  const all = await provider.getLogs({ blockHash: hash, topics: [id("Transfer(address,address,uint256)")] });
  assert.equal(all.length, 3);
});

test("a variable and an element of a mapping are read from storage", async () => {
  assert.equal(BigInt(await provider.getStorage(tour.address, 0)), 1234n);
  const position = keccak256(concat([zeroPadValue(erin, 32), zeroPadValue("0x01", 32)]));
  assert.equal(position, facts.slots["points of Erin"].position);
  assert.equal(BigInt(await provider.getStorage(tour.address, position)), 5678n);
});

test("view functions answer, also about the past", async () => {
  assert.equal(await tourContract.answer(), 1234n);
  assert.equal(await tokenContract.symbol(), "TOUR");
  assert.equal(await tourContract.count(), BigInt(facts.slots["count, which grows"].value));
  assert.equal(await tourContract.count({ blockTag: facts.transactions["create-tour"].block }), 0n);
});

test("a revert is caught with its reason", async () => {
  await assert.rejects(tourContract.failWithReason.staticCall(), { code: "CALL_EXCEPTION", reason: "the tour ends here" });
  await assert.rejects(tourContract.failWithAssert(), (error) => error.revert.name === "Panic" && Number(error.revert.args[0]) === 1);
  await assert.rejects(tourContract.failWithError(99), (error) => {
    return error.revert.name === "NotEnough" && error.revert.args.wanted === 99n;
  });
});

test("gas is estimated, and a revert is found while estimating", async () => {
  const gas = await tokenContract.transfer.estimateGas(bob, 1n, { from: alice });
  assert.ok(gas > 21_000n && gas < 100_000n, `${gas}`);
  await assert.rejects(tourContract.failWithReason.estimateGas(), { reason: "the tour ends here" });
});

test("a missing and a wrong key are told", async () => {
  const network = Network.from(facts.chainId);
  for (const [where, message] of [[noKeyUrl, "project id required in the URL"], [wrongKeyUrl, "invalid project id"]]) {
    const keyless = new JsonRpcProvider(where, network, { staticNetwork: network });
    await assert.rejects(keyless.getBlockNumber(), (error) => {
      assert.equal(error.code, "SERVER_ERROR");
      assert.equal(error.response.statusCode, 401);
      assert.equal(JSON.parse(error.response.bodyText).error.message, message);
      return true;
    });
    keyless.destroy();
  }
});

test("a method that is not available says why in its message", async () => {
  await assert.rejects(provider.send("eth_newFilter", [{}]), (error) => {
    // ethers has an error of its own for such methods, which contains the gateway's.
    assert.equal(error.code, "UNSUPPORTED_OPERATION");
    assert.match(error.info.error.message, /^the method eth_newFilter does not exist\/is not available: .*filters/);
    return true;
  });
});

test("too many logs are refused, and as many as are allowed come", async () => {
  const filter = { address: chatter.address, fromBlock: chatterFrom, toBlock: chatterTo };
  await assert.rejects(provider.getLogs(filter), (error) => {
    assert.equal(error.error.code, -32005);
    assert.equal(error.error.message, "query returned more than 10000 results");
    return true;
  });
  assert.equal((await provider.getLogs({ ...filter, toBlock: chatterFits })).length, 10_000);
});

test("calls made at the same time travel as a batch", async () => {
  const sizes = [];
  const counting = new JsonRpcProvider(url, facts.chainId, { staticNetwork: true });
  counting.on("debug", ({ action, payload }) => action === "sendRpcPayload" && sizes.push([payload].flat().length));
  const numbers = [1, 5, 9, 33];
  const blocks = await Promise.all(numbers.map((number) => counting.getBlock(number)));
  assert.deepEqual(blocks.map((block) => block.number), numbers);
  assert.ok(sizes.includes(4), `${sizes}`);
  counting.destroy();
});
